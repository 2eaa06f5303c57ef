// swift-tools-version: 6.2
import PackageDescription

/// What every target of the package is compiled with, beside Swift 6 mode.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "swift-subscriptions",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "SubscriptionRuntime", targets: ["SubscriptionRuntime"]),
        .library(name: "CurlSSETransport", targets: ["CurlSSETransport"]),
        .library(name: "SubscriptionTesting", targets: ["SubscriptionTesting"]),
        .executable(name: "subscribe", targets: ["subscribe"]),
    ],
    targets: [
        .systemLibrary(
            name: "CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]
        ),
        .target(name: "SubscriptionRuntime", swiftSettings: settings + [.strictMemorySafety()]),
        .target(
            name: "CurlSSETransport",
            dependencies: ["CCurl", "SubscriptionRuntime"],
            swiftSettings: settings + [.strictMemorySafety()]
        ),
        .target(
            name: "SubscriptionTesting",
            dependencies: ["SubscriptionRuntime"],
            swiftSettings: settings + [.strictMemorySafety()]
        ),
        // In C, and in the test executable alone.
        .target(name: "SystemProbe", path: "Tests/SystemProbe"),
        .testTarget(
            name: "CurlSSETransportTests",
            dependencies: [
                "CCurl", "CurlSSETransport", "SubscriptionRuntime", "SubscriptionTesting", "SystemProbe",
            ],
            swiftSettings: settings
        ),
        .testTarget(name: "EventStreamTests", dependencies: ["CurlSSETransport"], swiftSettings: settings),
        .testTarget(name: "HTTPTests", dependencies: ["CurlSSETransport"], swiftSettings: settings),
        .testTarget(name: "ReplayServerTests", dependencies: ["SubscriptionTesting"], swiftSettings: settings),
        .testTarget(
            name: "SubscriptionRuntimeTests",
            dependencies: ["SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SubscriptionTestingTests",
            dependencies: ["SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "subscribe",
            dependencies: ["CurlSSETransport", "SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SubscribeTests",
            dependencies: ["subscribe", "SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
        .testTarget(name: "RoomTests", swiftSettings: settings),
        .testTarget(
            name: "DocumentationTests",
            dependencies: ["CurlSSETransport", "SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TranscriptTests",
            dependencies: ["CurlSSETransport", "SubscriptionRuntime", "SubscriptionTesting"],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The real-server tests need servers, which scripts/test starts and names here. Without them there is no such target:
// it is never skipped in silence where it was asked for.
if Context.environment["REAL_SERVERS"] != nil {
    package.targets.append(
        .testTarget(
            name: "RealServerTests",
            dependencies: ["CurlSSETransport", "SubscriptionRuntime", "subscribe"],
            swiftSettings: settings
        )
    )
}
