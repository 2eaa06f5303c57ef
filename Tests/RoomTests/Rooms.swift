// The rooms of the package: which folder may import what, and which words its code may not say.
//
// A rule is loosened here or nowhere, and the commit says why.

/// One folder of the sources, the folders in it excepted that are rooms of their own.
struct Room {
    /// Under the package's top.
    var folder: String
    /// The modules that any of its files may import.
    var imports: Set<String> = []
    /// Modules that single files may import beside.
    var importsOfFiles: [String: Set<String>] = [:]
    /// Words that its code may not say.
    var mayNotName: [String] = []
    /// Files in which `unsafe` may be said.
    var unsafeFiles: Set<String> = []
    /// Whether it may be said in all of them.
    var isUnsafe = false
}

extension Room {
    private static let cLibrary: Set<String> = ["Glibc", "Musl", "Darwin"]

    /// What a pure room does without: clocks, locks, tasks, threads, libcurl.
    private static let impure = [
        "curl_", "CURL", "CCurl", "Lock", "Mutex", "Atomic", "Task", "Dispatch", "DispatchQueue", "ContinuousClock",
        "SuspendingClock", "Date", "Thread", "async", "await",
    ]

    /// All of them.
    static let all = [
        Room(
            folder: "Sources/SubscriptionRuntime",
            imports: ["Synchronization", "Observation"],
            importsOfFiles: ["Lock.swift": cLibrary],
            mayNotName: ["curl_", "CURL", "CCurl", "Foundation", "DispatchQueue", "Mutex"],
            unsafeFiles: ["Lock.swift"]
        ),
        Room(
            folder: "Sources/CurlSSETransport",
            imports: ["SubscriptionRuntime", "Synchronization"],
            mayNotName: ["curl_", "CCurl", "DispatchQueue", "Mutex"]
        ),
        Room(
            folder: "Sources/CurlSSETransport/EventStream",
            importsOfFiles: ["ByteScan.swift": cLibrary],
            mayNotName: impure,
            unsafeFiles: ["ByteScan.swift"]
        ),
        Room(
            folder: "Sources/CurlSSETransport/Dialects",
            imports: ["SubscriptionRuntime", "Foundation", "FoundationEssentials"],
            mayNotName: impure
        ),
        Room(folder: "Sources/CurlSSETransport/HTTP", imports: ["SubscriptionRuntime"], mayNotName: impure),
        Room(folder: "Sources/CurlSSETransport/Transfer", imports: ["SubscriptionRuntime"], mayNotName: impure),
        Room(
            folder: "Sources/CurlSSETransport/Curl",
            imports: cLibrary.union(["CCurl", "SubscriptionRuntime"]),
            mayNotName: ["Lock", "Mutex", "Task", "DispatchQueue"],
            isUnsafe: true
        ),
        Room(
            folder: "Sources/CurlSSETransport/Loop",
            imports: cLibrary.union(["CCurl", "SubscriptionRuntime", "Synchronization", "Dispatch"]),
            mayNotName: ["Mutex"],
            unsafeFiles: ["Poller.swift", "LoopExecutor.swift", "LoopThread.swift"]
        ),
        Room(
            folder: "Sources/SubscriptionTesting",
            imports: cLibrary.union(["SubscriptionRuntime", "Synchronization"]),
            mayNotName: ["curl_", "CURL", "CCurl", "Foundation", "DispatchQueue", "Mutex"],
            isUnsafe: true
        ),
        Room(
            folder: "Sources/subscribe",
            imports: cLibrary.union([
                "SubscriptionRuntime", "CurlSSETransport", "SubscriptionTesting", "Synchronization", "Foundation",
            ]),
            mayNotName: ["curl_", "CURL", "CCurl", "FoundationNetworking", "URLSession", "DispatchQueue", "Mutex"]
        ),
    ]

    /// What no code of the package says, the tests included.
    static let neverNamed = ["try!", "FoundationNetworking", ".serialized"]

    /// What no source says beside: a peer, the network or a build option must not end the process.
    static let neverNamedInSources = ["fatalError", "as!", "Task.sleep"]

    /// Sources that may all the same, each for its reason.
    static let mayName: [String: Set<String>] = [
        // The live line of a terminal, and --max-time.
        "Sources/subscribe/Console.swift": ["Task.sleep"],
        "Sources/subscribe/Run.swift": ["Task.sleep"],
        // A server's own count of its connections has no signal to wait for; the look is bounded.
        "Sources/SubscriptionTesting/TransportContract.swift": ["Task.sleep"],
    ]
}
