// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that who links the libraries builds none of it. Built by scripts/fuzz alone: each program's
// `main` is libFuzzer's, which `--sanitize=fuzzer` links.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-parse-as-library"]),
]

let package = Package(
    name: "Fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "swift-subscriptions", path: "..")],
    targets: ["fuzz-parser", "fuzz-dialects"].map { name in
        .executableTarget(
            name: name,
            dependencies: [.product(name: "CurlSSETransport", package: "swift-subscriptions")],
            swiftSettings: settings
        )
    } + [
        .executableTarget(
            name: "fuzz-http",
            dependencies: [.product(name: "SubscriptionRuntime", package: "swift-subscriptions")],
            swiftSettings: settings
        )
    ],
    swiftLanguageModes: [.v6]
)
