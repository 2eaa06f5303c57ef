import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

/// What nobody but the server may see, a word for each place that it is planted in.
private let secrets = [
    "hunter2user", "hunter2word", "hunter2query", "hunter2header", "hunter2cookie", "hunter2body", "hunter2token",
    "hunter2variable", "hunter2proxy", "hunter2location",
]

private struct HunterError: Error, CustomStringConvertible {
    var description: String { "the token hunter2token was not taken" }
}

@Suite("Secrets", .timeLimit(.minutes(5)))
struct SecretTests {
    /// One way to fail.
    struct Failing: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var steps: [ReplayServer.Step]

        init(_ what: String, _ response: String, _ end: ReplayServer.Step = .close) {
            testDescription = what
            steps = [.send(response), end]
        }
    }

    static let failings: [Failing] = [
        Failing("clean end", head + "data: a\n\n"),
        Failing("reset", head + "data: a\n\n", .reset),
        Failing("nothing", ""),
        Failing("HTTP/0.9", "hunter2body hunter2header\r\n"),
        Failing("bad chunk", ReplayServer.chunkedEventStreamHead + "hunter2body\r\n"),
        Failing("bad length", "HTTP/1.1 200 OK\r\nContent-Length: hunter2header\r\n\r\n"),
        Failing("bad status", "HTTP/1.1 hunter2body\r\n\r\n"),
        Failing("bad header", "HTTP/1.1 200 OK\r\nhunter2header\r\n\r\n"),
        Failing("bad fold", "HTTP/1.1 200 OK\r\n hunter2header\r\n\r\n"),
        Failing("other type", ReplayServer.response(200, [("Content-Type", "text/html; x=hunter2header")])),
        Failing("coded", ReplayServer.response(200, [("Content-Encoding", "hunter2header")])),
        Failing("refused with an echo", ReplayServer.response(403, [("X-Echo", "hunter2header")], body: "hunter2body")),
        Failing(
            "GraphQL errors that quote",
            ReplayServer.response(
                400,
                [("Content-Type", "application/json")],
                body: #"{"errors":[{"message":"bad hunter2variable"}]}"#
            )
        ),
        Failing("busy", ReplayServer.response(503, [("Retry-After", "hunter2header")])),
        Failing("unauthorized", ReplayServer.response(401, [("WWW-Authenticate", "hunter2token")])),
        Failing(
            "away",
            ReplayServer.response(302, [("Location", "https://hunter2user:hunter2word@x/hunter2location")])
        ),
        Failing("elsewhere", ReplayServer.response(302, [("Location", "ftp://x/hunter2location?hunter2query")])),
        Failing("around", ReplayServer.response(307, [("Location", "?q=hunter2query")])),
        Failing("first result refused", head + #"data: {"errors":[{"message":"hunter2variable"}]}"# + "\n\n"),
        Failing("first result unreadable", head + "event: next\ndata: hunter2variable\n\n"),
        Failing("too long", head + "data: hunter2body" + String(repeating: "x", count: 4000) + "\n\n"),
    ]

    /// The failure's sentences, wherever they can come from.
    private func texts(_ error: (any Error)?, _ transportError: TransportError?) -> [String] {
        var texts = [error.map { "\($0)" } ?? ""]
        if let transportError {
            texts += [
                "\(transportError)", transportError.message, transportError.host ?? "", transportError.address ?? "",
            ]
        }
        return texts
    }

    private func check(_ texts: [String], _ context: String) {
        for text in texts {
            for secret in secrets { #expect(!text.contains(secret), "\(context): \(text)") }
        }
    }

    /// Opens, reads to the end, and says how it failed.
    private func failure<D: Dialect>(
        _ transport: CurlTransport<D>,
        _ request: D.Request
    ) async -> (message: String, errors: [String]) {
        let error = await transport.read(request).error
        return (error?.message ?? "", texts(error, error) + ["\(transport.counters)"])
    }

    @Test("are in no sentence of a failure, of whatever kind it is", arguments: failings)
    func sentences(failing: Failing) async throws {
        let server = try ReplayServer(otherwise: [.expectRequest] + failing.steps)
        let url = "http://hunter2user:hunter2word@127.0.0.1:\(server.port)/a?q=hunter2query"
        let credentials = Credentials(deadline: .seconds(300)) { _ in
            [HTTPField("Authorization", "Bearer hunter2token")]
        }
        let transport = try plain(url, credentials: credentials) { $0.maxEventBytes = 1000 }
        let request = EventSourceRequest(
            target: "?more=hunter2query",
            headers: [HTTPField("X-Api-Key", "hunter2header"), HTTPField("Cookie", "hunter2cookie")]
        )
        let plainFailure = await failure(transport, request)
        #expect(!plainFailure.message.isEmpty)
        check(plainFailure.errors, failing.testDescription)

        let graph = try GraphQLTransport(url, dialect: GraphQLSSE(), credentials: credentials)
        let graphFailure = await failure(
            graph,
            try GraphQLRequest(query: "subscription { hunter2body }", variables: ["a": "hunter2variable"])
        )
        #expect(!graphFailure.message.isEmpty)
        check(graphFailure.errors, failing.testDescription)
    }

    @Test("are in no sentence of a failure before there is a response")
    func early() async throws {
        let gone = try ReplayServer()
        gone.refuseConnections()
        let port = gone.port
        let proxy = "hunter2user:hunter2proxy@127.0.0.1:\(port)"
        let target = "http://hunter2user:hunter2word@127.0.0.1:\(port)/?hunter2query"
        let configurations: [(inout Configuration) -> Void] = [
            { _ in }, { $0.proxy = .url("http://\(proxy)") }, { $0.proxy = .url("socks5://\(proxy)") },
            { $0.proxy = .url("hunter2x://\(proxy)") }, { $0.proxy = .url("http://hunter2user:hunter2proxy@/") },
            { $0.proxy = .url("http://hunter2user:hunter2proxy@[") },
            { $0.proxy = .url("http://hunter2proxy:x@y:99999") },
        ]
        for (number, configure) in configurations.enumerated() {
            do throws(TransportError) {
                var configuration = Configuration()
                configure(&configuration)
                configuration.connectTimeout = .seconds(2)
                let transport = try EventSourceTransport(target, dialect: EventSource(), configuration: configuration)
                let (message, errors) = await failure(transport, EventSourceRequest())
                #expect(!message.isEmpty)
                check(errors, "configuration \(number)")
                // A proxy that no URL names is the environment's fault, and will not pass.
                if number > 2 { #expect(message.contains("proxy")) }
            } catch {
                check(texts(error, error), "configuration \(number)")
            }
        }
        for url in [
            "http://hunter2user:hunter2word@", "hunter2word", "http://h:hunter2word/", "http://a b/hunter2query",
        ] {
            let error = #expect(throws: TransportError.self) { _ = try plain(url) as EventSourceTransport }
            check(texts(error, error), url)
        }
        let read = try await plain(gone, credentials: Credentials(deadline: .seconds(300)) { _ in throw HunterError() })
            .read(
                EventSourceRequest()
            )
        check(texts(read.error, read.error), "credentials")
    }

    /// One way to fail on the way to a server, and what the configuration is for it.
    struct Way: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var configure: @Sendable (inout Configuration, Places) -> Void

        init(_ what: String, _ configure: @escaping @Sendable (inout Configuration, Places) -> Void) {
            testDescription = what
            self.configure = configure
        }
    }

    /// Where a way may lead.
    struct Places {
        /// Refuses every request to it, and every tunnel, by 407.
        var proxy: ReplayServer
        /// Closes every connection.
        var closing: ReplayServer

        func url(_ scheme: String, _ server: ReplayServer) -> Configuration.Proxy {
            .url("\(scheme)://hunter2user:hunter2proxy@127.0.0.1:\(server.port)")
        }
    }

    static let ways: [Way] = [
        Way("a refusal") { _, _ in },
        Way("a refusal over HTTP/1.1") { configuration, _ in configuration.httpVersion = .http1_1 },
        Way("nobody vouches") { configuration, _ in configuration.tls.caFile = nil },
        Way("a wrong pin") { configuration, _ in
            configuration.tls.pinnedPublicKey = "sha256//" + String(repeating: "A", count: 43) + "="
        },
        Way("a CA file that is none") { configuration, _ in configuration.tls.caFile = "/nowhere" },
        Way("a proxy's 407") { configuration, places in configuration.proxy = places.url("http", places.proxy) },
        Way("a proxy that closes") { configuration, places in
            configuration.proxy = places.url("http", places.closing)
        },
        Way("SOCKS5 that closes") { configuration, places in
            configuration.proxy = places.url("socks5h", places.closing)
        },
        Way("SOCKS4 that closes") { configuration, places in
            configuration.proxy = places.url("socks4a", places.closing)
        },
        Way("a proxy over TLS that closes") { configuration, places in
            configuration.proxy = places.url("https", places.closing)
        },
    ]

    @Test("are in nothing that the runtime says or logs of a failure over TLS, HTTP/2 or a proxy", arguments: ways)
    func runtime(way: Way) async throws {
        let certificates = try Certificates.shared()
        let echo = ReplayServer.response(
            403,
            [("Content-Type", "application/json"), ("X-Echo", "hunter2header")],
            body: #"{"errors":[{"message":"bad hunter2variable"}]}"#
        )
        let server = try ReplayServer(otherwise: [.expectRequest, .send(echo), .close])
        let nginx = try await Nginx(to: server)
        let places = Places(
            proxy: try ReplayServer { _, _ in [.send(ReplayServer.response(407, body: "hunter2proxy"))] },
            closing: try ReplayServer()
        )
        var configuration = Configuration()
        configuration.tls.caFile = certificates.authority
        configuration.connectTimeout = .seconds(300)
        way.configure(&configuration, places)
        let credentials = Credentials(deadline: .seconds(300)) { _ in
            [HTTPField("Authorization", "Bearer hunter2token")]
        }
        let transport = try GraphQLTransport(
            "https://hunter2user:hunter2word@127.0.0.1:\(nginx.port)/?q=hunter2query",
            dialect: GraphQLSSE(),
            configuration: configuration,
            credentials: credentials
        )
        let entries = Recorder<SubscriptionLogEntry>()
        let environment = SubscriptionEnvironment<GraphQLRequest, GraphQLResult>(transport: transport) {
            entries.append($0)
        }
        let request = try GraphQLRequest(
            query: "subscription { hunter2body }",
            variables: ["a": "hunter2variable"],
            headers: [HTTPField("X-Api-Key", "hunter2header"), HTTPField("Cookie", "hunter2cookie")]
        )
        let handle = environment.handle(for: request)
        // Its end stays to be seen when its reader has gone.
        let retention = handle.retain()
        let reader = Task { () -> String in
            do throws(SubscriptionEnd) {
                for try await _ in handle.deliveries() {}
                return "none"
            } catch {
                return "\(error) \(String(reflecting: error))"
            }
        }
        var said: [String] = []
        for await status in handle.statuses {
            said += ["\(status)", "\(status.stream)", String(reflecting: status)]
            guard let error = status.error else { continue }
            said += ["\(error)", String(reflecting: error)] + texts(error, error.transportError)
            break
        }
        #expect(said.contains { $0.contains("127.0.0.1:\(nginx.port)") }, "\(said)")
        await environment.end()
        said.append(await reader.value)
        said += entries.values.map { "\($0)" }
        #expect(entries.values.contains { if case .failed = $0.event { true } else { false } })
        said += ["\(transport.counters)", "\(handle.status)"]
        retention.release()
        check(said, way.testDescription)
    }
}
