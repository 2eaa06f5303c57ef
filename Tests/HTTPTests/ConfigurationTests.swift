import CurlSSETransport
import Testing

@Suite("A configuration")
struct ConfigurationTests {
    /// What one test changes, with a name for the log.
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var apply: @Sendable (inout Configuration) -> Void

        init(_ name: String, _ apply: @escaping @Sendable (inout Configuration) -> Void) {
            testDescription = name
            self.apply = apply
        }
    }

    private func refusal(_ change: Change) throws -> TransportError {
        var configuration = Configuration()
        change.apply(&configuration)
        return try #require(throws: TransportError.self) { try configuration.validate() }
    }

    @Test("has the documented defaults, which are valid")
    func defaults() throws {
        let configuration = Configuration()
        try configuration.validate()

        #expect(configuration.connectTimeout == .seconds(15))
        #expect(configuration.firstByteTimeout == .seconds(60))
        #expect(configuration.idleTimeout == .seconds(300))
        #expect(configuration.admissionTimeout == .seconds(60))
        #expect(configuration.maxConcurrentOpenings == 32)
        #expect(configuration.highWater == 262_144)
        #expect(configuration.maxEventBytes == 16_777_216)
        #expect(configuration.keepaliveIdle == .seconds(30))
        #expect(configuration.keepaliveInterval == .seconds(10))
        #expect(configuration.keepaliveProbes == 3)
        #expect(configuration.tcpUserTimeout == .seconds(30))
        #expect(configuration.httpVersion == .automatic)
        #expect(configuration.tls.caFile == nil)
        #expect(configuration.tls.caPath == nil)
        #expect(configuration.tls.clientCertificate == nil)
        #expect(configuration.tls.clientKey == nil)
        #expect(configuration.tls.minimumVersion == .tls1_2)
        #expect(configuration.tls.pinnedPublicKey == nil)
        #expect(!configuration.tls.insecureSkipsVerification)
        #expect(configuration.proxy == .none)
        #expect(configuration.unixSocket == nil)
        #expect(configuration.interface == nil)
        #expect(configuration.resolve == [])
        #expect(configuration.trustedOrigins == [])
        #expect(!configuration.readsOnLoop)
        #expect(configuration.onComment == nil)
        // Each that there is, is above.
        #expect(Mirror(reflecting: configuration).children.count == 20)
        #expect(Mirror(reflecting: configuration.tls).children.count == 7)
    }

    @Test(
        "is refused where a transport is made, and not at its first opening",
        arguments: times.map { name, set, _, high in Change(name) { set(&$0, high + .nanoseconds(1)) } }
            + numbers.map { name, set, low, _ in Change(name) { set(&$0, low - 1) } }
            + [
                Change("tls.caFile") { $0.tls.caFile = "" },
                Change("tls.pinnedPublicKey") { $0.tls.pinnedPublicKey = "sha256//x" },
                Change("proxy") { $0.proxy = .url("") },
                Change("unixSocket") { $0.unixSocket = "" },
                Change("interface") { $0.interface = "" },
                Change("resolve") { $0.resolve = [.init(host: "a", port: 0, address: "::1")] },
                Change("trustedOrigins") { $0.trustedOrigins = [""] },
            ]
    )
    func whereItIsGiven(change: Change) throws {
        var configuration = Configuration()
        change.apply(&configuration)
        let expected = try refusal(change)
        let error = try #require(throws: TransportError.self) {
            _ = try EventSourceTransport("http://a.test/", dialect: EventSource(), configuration: configuration)
        }
        #expect(error == expected)
        #expect(error.message.hasPrefix("the configuration's \(change.testDescription) "))
    }

    @Test(
        "is refused with a trusted origin that is none, without the origin's words",
        arguments: [
            "hunter2", "ftp://hunter2", "https://", "https://hunter2:99999", "//hunter2",
            "https://[",
        ]
    )
    func notAnOrigin(origin: String) throws {
        var configuration = Configuration()
        configuration.trustedOrigins = ["https://a.test", origin]
        let error = try #require(throws: TransportError.self) {
            _ = try EventSourceTransport("http://a.test/", dialect: EventSource(), configuration: configuration)
        }
        #expect(error.kind == .environment)
        #expect(error.message.hasPrefix("the configuration's trustedOrigins has one that is no origin: "))
        #expect(!error.message.contains("hunter2"))
    }

    static let times: [(String, @Sendable (inout Configuration, Duration) -> Void, Duration, Duration)] = [
        ("connectTimeout", { $0.connectTimeout = $1 }, .milliseconds(10), .seconds(3600)),
        ("firstByteTimeout", { $0.firstByteTimeout = $1 }, .milliseconds(10), .seconds(3600)),
        ("idleTimeout", { $0.idleTimeout = $1 }, .milliseconds(10), .seconds(604_800)),
        ("admissionTimeout", { $0.admissionTimeout = $1 }, .milliseconds(10), .seconds(3600)),
        ("keepaliveIdle", { $0.keepaliveIdle = $1 }, .seconds(1), .seconds(32_767)),
        ("keepaliveInterval", { $0.keepaliveInterval = $1 }, .seconds(1), .seconds(32_767)),
        ("tcpUserTimeout", { $0.tcpUserTimeout = $1 }, .milliseconds(1), .seconds(3600)),
    ]

    @Test(
        "takes a time at both ends of its range, and refuses one past them by name, value and range",
        arguments: times.indices
    )
    func timeRanges(index: Int) throws {
        let (name, set, low, high) = Self.times[index]
        for value in [low, high] {
            var configuration = Configuration()
            set(&configuration, value)
            try configuration.validate()
        }
        for value in [low - .nanoseconds(1), high + .nanoseconds(1), .zero, .seconds(-1)] {
            let error = try refusal(Change(name) { set(&$0, value) })
            #expect(error.kind == .environment)
            #expect(error.message == "the configuration's \(name) is \(value), not \(low) to \(high)")
        }
    }

    static let numbers: [(String, @Sendable (inout Configuration, Int) -> Void, Int, Int)] = [
        ("maxConcurrentOpenings", { $0.maxConcurrentOpenings = $1 }, 1, 1024),
        ("highWater", { $0.highWater = $1 }, 1024, 1_073_741_824),
        ("maxEventBytes", { $0.maxEventBytes = $1 }, 1, 1_073_741_824),
        ("keepaliveProbes", { $0.keepaliveProbes = $1 }, 1, 127),
    ]

    @Test(
        "takes a number at both ends of its range, and refuses one past them by name, value and range",
        arguments: numbers.indices
    )
    func numberRanges(index: Int) throws {
        let (name, set, low, high) = Self.numbers[index]
        for value in [low, high] {
            var configuration = Configuration()
            set(&configuration, value)
            try configuration.validate()
        }
        for value in [low - 1, high + 1, .min, .max] {
            let error = try refusal(Change(name) { set(&$0, value) })
            #expect(error.kind == .environment)
            #expect(error.message == "the configuration's \(name) is \(value), not \(low) to \(high)")
        }
    }

    static let pin = "sha256//" + String(repeating: "aB3+/", count: 8) + "xyz="

    @Test(
        "takes what is well formed",
        arguments: [
            Change("files") {
                $0.tls.caFile = "/etc/ca.pem"
                $0.tls.caPath = "/etc/ca"
                $0.tls.clientCertificate = "cert.pem"
                $0.tls.clientKey = "key.pem"
                $0.tls.pinnedPublicKey = "pin.der"
            },
            Change("a certificate with its key inside") { $0.tls.clientCertificate = "both.pem" },
            Change("a pin") { $0.tls.pinnedPublicKey = pin },
            Change("two pins") { $0.tls.pinnedPublicKey = "\(pin);\(pin)" },
            Change("a proxy") { $0.proxy = .url("http://user:word@proxy:3128") },
            Change("a socket") { $0.unixSocket = "/" + String(repeating: "x", count: 106) },
            Change("an interface") { $0.interface = "eth0" },
            Change("overrides") {
                $0.resolve = [
                    .init(host: "a.example", port: 443, address: "127.0.0.1"),
                    .init(host: "*", port: 1, address: "[::1],fe80::1"),
                ]
            },
            Change("origins") { $0.trustedOrigins = ["https://a.example", "https://[::1]:8443"] },
        ]
    )
    func wellFormed(change: Change) throws {
        var configuration = Configuration()
        change.apply(&configuration)
        try configuration.validate()
    }

    @Test(
        "refuses what is not, by the property's name and never by a secret",
        arguments: [
            ("tls.caFile", Change("empty") { $0.tls.caFile = "" }),
            ("tls.caFile", Change("NUL") { $0.tls.caFile = "/etc/ca\0.pem" }),
            ("tls.caPath", Change("empty") { $0.tls.caPath = "" }),
            ("tls.clientCertificate", Change("line break") { $0.tls.clientCertificate = "a\nb" }),
            ("tls.clientKey", Change("empty") { $0.tls.clientKey = "" }),
            ("tls.clientKey", Change("no certificate") { $0.tls.clientKey = "key.pem" }),
            ("tls.pinnedPublicKey", Change("empty") { $0.tls.pinnedPublicKey = "" }),
            ("tls.pinnedPublicKey", Change("short") { $0.tls.pinnedPublicKey = "sha256//abc=" }),
            (
                "tls.pinnedPublicKey",
                Change("hex") { $0.tls.pinnedPublicKey = "sha256//" + String(repeating: "a", count: 64) }
            ),
            ("tls.pinnedPublicKey", Change("a second that is none") { $0.tls.pinnedPublicKey = "\(pin);x" }),
            ("proxy", Change("empty") { $0.proxy = .url("") }),
            ("proxy", Change("blank") { $0.proxy = .url("http://u:hunter2@proxy 1") }),
            ("unixSocket", Change("empty") { $0.unixSocket = "" }),
            ("unixSocket", Change("long") { $0.unixSocket = String(repeating: "x", count: 108) }),
            ("interface", Change("empty") { $0.interface = "" }),
            ("resolve", Change("no host") { $0.resolve = [.init(host: "", port: 1, address: "::1")] }),
            ("resolve", Change("a colon") { $0.resolve = [.init(host: "a:1", port: 1, address: "::1")] }),
            ("resolve", Change("a removal") { $0.resolve = [.init(host: "-a", port: 1, address: "::1")] }),
            ("resolve", Change("port 0") { $0.resolve = [.init(host: "a", port: 0, address: "::1")] }),
            ("resolve", Change("port 65536") { $0.resolve = [.init(host: "a", port: 65_536, address: "::1")] }),
            ("resolve", Change("no address") { $0.resolve = [.init(host: "a", port: 1, address: "")] }),
            ("resolve", Change("a blank") { $0.resolve = [.init(host: "a", port: 1, address: "::1 ")] }),
            ("resolve", Change("a name") { $0.resolve = [.init(host: "a", port: 1, address: "localhost")] }),
            ("resolve", Change("a zone") { $0.resolve = [.init(host: "a", port: 1, address: "fe80::1%lo")] }),
            ("resolve", Change("half a list") { $0.resolve = [.init(host: "a", port: 1, address: "::1,")] }),
            ("resolve", Change("a short one") { $0.resolve = [.init(host: "a", port: 1, address: "127.1")] }),
            ("resolve", Change("brackets") { $0.resolve = [.init(host: "a", port: 1, address: "[127.0.0.1]")] }),
            ("trustedOrigins", Change("empty") { $0.trustedOrigins = [""] }),
            ("trustedOrigins", Change("blank") { $0.trustedOrigins = ["https://u:hunter2@a b"] }),
        ]
    )
    func malformed(name: String, change: Change) throws {
        let error = try refusal(change)
        #expect(error.kind == .environment)
        #expect(error.message.hasPrefix("the configuration's \(name) "))
        #expect(!error.message.contains("hunter2"))
        #expect(error.message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    }
}
