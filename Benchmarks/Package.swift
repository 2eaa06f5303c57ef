// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who links the libraries builds none of it.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "swift-subscriptions", path: "..")],
    targets: [
        .executableTarget(
            name: "parse",
            dependencies: [.product(name: "CurlSSETransport", package: "swift-subscriptions")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "stream",
            dependencies: [
                .product(name: "CurlSSETransport", package: "swift-subscriptions"),
                .product(name: "SubscriptionRuntime", package: "swift-subscriptions"),
            ],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
