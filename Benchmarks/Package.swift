// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who links the libraries builds none of it.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// What the libraries call `package`, by the name that SwiftPM gives the package above: its folder's.
let libraryPackage = String(
    (Context.packageDirectory.split(separator: "/").dropLast().last ?? "").lowercased()
        .map { $0.isLetter || $0.isNumber ? $0 : "_" }
)

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
            packageAccess: false,
            // Some hundred thousand waits on a virtual clock need a draw each: the initializer is the package's own.
            swiftSettings: settings + [.unsafeFlags(["-package-name", libraryPackage])]
        ),
        // In C and here, so that one build makes all that a figure needs, with one compiler.
        .executableTarget(name: "loadserver", cSettings: warnings),
        .executableTarget(name: "ceiling", cSettings: warnings, linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "countallocations", cSettings: warnings),
    ],
    swiftLanguageModes: [.v6]
)
