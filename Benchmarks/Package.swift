// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who links the libraries builds none of it.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let warnings: [CSetting] = [.unsafeFlags(["-Wall", "-Wextra"])]

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    products: [.library(name: "countallocations", type: .dynamic, targets: ["countallocations"])],
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
        .executableTarget(
            name: "runtime",
            dependencies: [
                .product(name: "SubscriptionRuntime", package: "swift-subscriptions"),
                .product(name: "SubscriptionTesting", package: "swift-subscriptions"),
            ],
            swiftSettings: settings
        ),
        // In C and here, so that one build makes all that a figure needs, with one compiler.
        .executableTarget(name: "loadserver", cSettings: warnings),
        .executableTarget(name: "ceiling", cSettings: warnings, linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "countallocations", cSettings: warnings),
    ],
    swiftLanguageModes: [.v6]
)
