// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who links the libraries builds none of it.
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "swift-subscriptions", path: "..")],
    targets: [
        .executableTarget(
            name: "parse",
            dependencies: [.product(name: "CurlSSETransport", package: "swift-subscriptions")],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
