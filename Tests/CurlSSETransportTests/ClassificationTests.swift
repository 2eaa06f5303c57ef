import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

/// A response in raw bytes, and what it is to be taken for.
struct ClassificationRow: Sendable, CustomTestStringConvertible {
    var what: String
    var steps: [ReplayServer.Step]
    var end: StreamEnd
    var payloads: [String] = []
    var status: Int?
    var retryAfter: Duration?
    var bodyPrefix: String = ""
    var graphQLErrors: [GraphQLError] = []
    var curlCode: Int?
    /// Parts of the message.
    var says: [String] = []

    var testDescription: String { what }

    init(
        _ what: String,
        _ response: String,
        _ end: StreamEnd,
        then steps: [ReplayServer.Step] = [.close],
        payloads: [String] = [],
        status: Int? = nil,
        retryAfter: Duration? = nil,
        bodyPrefix: String = "",
        graphQLErrors: [GraphQLError] = [],
        curlCode: Int? = nil,
        says: [String] = []
    ) {
        self.what = what
        self.steps = [.send(response)] + steps
        self.end = end
        self.payloads = payloads
        self.status = status
        self.retryAfter = retryAfter
        self.bodyPrefix = bodyPrefix
        self.graphQLErrors = graphQLErrors
        self.curlCode = curlCode
        self.says = says
    }
}

private let network = StreamEnd.failed(.network)
private let refused = StreamEnd.failed(.request)
private let eventStream = ("Content-Type", "text/event-stream")

/// A head of 200 with a content type and more.
private func ok(_ type: String?, _ more: [(String, String)] = []) -> String {
    ReplayServer.head(200, (type.map { [("Content-Type", $0)] } ?? []) + more + [("Connection", "close")])
}

private func failing(
    _ status: Int,
    _ end: StreamEnd,
    retryAfter: String? = nil,
    floor: Duration? = nil
) -> ClassificationRow {
    let fields = [eventStream] + (retryAfter.map { [("Retry-After", $0)] } ?? [])
    return ClassificationRow(
        "\(status), Retry-After '\(retryAfter ?? "")', its body never read as events",
        ReplayServer.response(status, fields, body: "data: not an event\n\n"),
        end,
        then: [.silence],
        status: status,
        retryAfter: floor,
        bodyPrefix: "data: not an event\n\n",
        says: ["answered \(status) (HTTP/1.1)"]
    )
}

private let jsonErrors = #"{"errors":[{"message":"no such field","path":["a",0],"extensions":{"code":"X"}}]}"#
private let readErrors = [GraphQLError(message: "no such field", path: #"["a",0]"#, extensions: #"{"code":"X"}"#)]

@Suite("What each response means, in raw bytes", .timeLimit(.minutes(5)))
struct ClassificationTests {
    static let open: [ClassificationRow] =
        [
            "text/event-stream", "Text/Event-Stream", "text/event-stream;charset=UTF-8",
            "Text/Event-Stream ; charset=\"utf-8\"", "text/event-stream; charset=iso-8859-1",
            "text/event-stream; x=y;z",
        ].map { (type: String) in
            ClassificationRow("200 \(type)", ok(type) + "data: a\n\n", network, payloads: ["a"], status: 200)
        }
        + ["identity", "none", "", "Identity"].map {
            ClassificationRow(
                "200, the content coding \($0)",
                ok("text/event-stream", [("Content-Encoding", $0)]) + "data: a\n\n",
                network,
                payloads: ["a"]
            )
        }

    static let completed: [ClassificationRow] = [
        ClassificationRow("204", "HTTP/1.1 204 No Content\r\n\r\n", .completed, then: [.silence]),
        ClassificationRow(
            "204 with a type",
            ReplayServer.head(204, [eventStream]),
            .completed,
            then: [.silence]
        ),
        ClassificationRow("205", "HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n", .completed, then: [.silence]),
    ]

    static let other2xx: [ClassificationRow] =
        [
            (nil, "without a content type"), ("text/html", "text/html"), ("text/event-streamx", "text/event-streamx"),
            ("application/json; x=text/event-stream", "application/json"), ("", "content type"),
        ].map { (type: String?, said: String) in
            let shown: String = type ?? "that is missing"
            return ClassificationRow(
                "200 of the type \(shown)",
                ok(type) + "<html>\ndata: x\n\n",
                refused,
                status: 200,
                bodyPrefix: "<html>\ndata: x\n\n",
                says: [said, "not text/event-stream"]
            )
        }
        + ["gzip", "br", "identity, deflate", "zstd", "x-unknown"].map {
            ClassificationRow(
                "200 with the content coding \($0)",
                ok("text/event-stream", [("Content-Encoding", $0)]) + "data: x\n\n",
                refused,
                status: 200,
                bodyPrefix: "data: x\n\n",
                says: ["content coding"]
            )
        }
        + [
            ClassificationRow(
                "200 JSON with errors",
                ok("application/json") + jsonErrors,
                refused,
                status: 200,
                bodyPrefix: jsonErrors,
                graphQLErrors: readErrors,
                says: ["with 1 GraphQL error"]
            ),
            ClassificationRow(
                "200 of two types, the last of them HTML",
                "HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\nContent-Type: text/html\r\n\r\n",
                refused,
                status: 200
            ),
        ] + [201, 202, 203, 206, 226, 299].map { failing($0, refused) }

    static let redirects: [ClassificationRow] = [300, 304, 305, 306, 309, 399].map { status in
        ClassificationRow(
            "\(status) with a Location is not followed",
            ReplayServer.head(status, [("Location", "/elsewhere"), ("Content-Length", "0")]),
            refused,
            then: [.silence],
            status: status
        )
    }

    static let refusals: [ClassificationRow] =
        [400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 413, 414, 415, 416, 417, 422, 426, 428, 431, 451, 499]
        .map { failing($0, refused, retryAfter: "7") } + [
            ClassificationRow(
                "400 GraphQL",
                ReplayServer.response(400, [("Content-Type", "application/graphql-response+json")], body: jsonErrors),
                refused,
                then: [.silence],
                status: 400,
                bodyPrefix: jsonErrors,
                graphQLErrors: readErrors
            ),
            ClassificationRow(
                "403 with a long body",
                ReplayServer.response(403, body: String(repeating: "x", count: 100_000)),
                refused,
                then: [.silence],
                status: 403,
                bodyPrefix: String(repeating: "x", count: 16 << 10)
            ),
            ClassificationRow(
                "403 whose body is cut",
                ReplayServer.head(403, [("Content-Length", "100")]) + "because",
                refused,
                status: 403,
                bodyPrefix: "because"
            ),
        ]

    static let passing: [ClassificationRow] =
        [408, 421, 425, 429, 500, 501, 502, 503, 504, 505, 507, 511, 520, 599, 600, 999].map {
            failing($0, network, retryAfter: "7", floor: .seconds(7))
        }
        + [
            ("0", Duration.zero), (" 12 ", .seconds(12)), ("99999999999999999999", .seconds(600)),
            ("Fri, 31 Dec 2027 23:59:59 GMT", .seconds(600)), ("Sun, 06 Nov 1994 08:49:37 GMT", .zero),
        ].map { failing(503, network, retryAfter: $0.0, floor: $0.1) }
        + ["-1", "+5", "7, 8", "1.5", "soon", ""].map { failing(503, network, retryAfter: $0) }
        + [
            ClassificationRow(
                "503 that is reset in its body",
                ReplayServer.head(503, [("Retry-After", "7"), ("Content-Length", "100")]) + "busy",
                network,
                then: [.reset],
                status: 503,
                retryAfter: .seconds(7),
                bodyPrefix: "busy"
            )
        ]

    private static let chunked = ReplayServer.chunkedEventStreamHead

    static let endings: [ClassificationRow] = [
        ClassificationRow("a clean end by FIN", ok("text/event-stream") + "data: a\n\n", network, payloads: ["a"]),
        ClassificationRow(
            "a clean end by the last chunk",
            chunked + ReplayServer.chunk("data: a\n\n") + ReplayServer.chunk(""),
            network,
            then: [.silence],
            payloads: ["a"],
            status: 200,
            says: ["ended without completing: the body ended, after 9 bytes"]
        ),
        ClassificationRow(
            "a clean end by Content-Length",
            ReplayServer.response(200, [eventStream], body: "data: a\n\n"),
            network,
            then: [.silence],
            payloads: ["a"],
            status: 200,
            says: ["the body ended"]
        ),
        ClassificationRow(
            "trailers after the last chunk",
            chunked + ReplayServer.chunk("data: a\n\n") + "0\r\nX-Trailer: 1\r\n\r\n",
            network,
            then: [.silence],
            payloads: ["a"],
            says: ["the body ended"]
        ),
        ClassificationRow(
            "a chunked body without its last chunk",
            chunked + ReplayServer.chunk("data: a\n\n"),
            network,
            payloads: ["a"],
            status: 200,
            curlCode: 18,
            says: ["after 9 bytes", "(curl 18)"]
        ),
        ClassificationRow(
            "a chunk that is cut",
            chunked + "ff\r\ndata: a\n\nda",
            network,
            payloads: ["a"],
            curlCode: 18
        ),
        ClassificationRow(
            "a body shorter than its Content-Length",
            ReplayServer.head(200, [eventStream, ("Content-Length", "100")]) + "data: a\n\n",
            network,
            payloads: ["a"],
            curlCode: 18,
            says: ["after 9 bytes"]
        ),
        ClassificationRow(
            "a bad chunk size",
            chunked + ReplayServer.chunk("data: a\n\n") + "zz\r\n",
            network,
            then: [.silence],
            payloads: ["a"],
            curlCode: 56,
            says: ["(curl 56"]
        ),
        ClassificationRow(
            "a RST in the body",
            ok("text/event-stream") + "data: a\n\n",
            network,
            then: [.reset],
            payloads: ["a"],
            curlCode: 56,
            says: ["errno 104"]
        ),
        ClassificationRow(
            "half an event at the end",
            ok("text/event-stream") + "data: a\n\ndata: half",
            network,
            payloads: ["a"]
        ),
    ]

    static let junk: [ClassificationRow] = [
        ClassificationRow("nothing at all", "", network, curlCode: 52, says: ["(curl 52)"]),
        ClassificationRow("nothing but a RST", "", network, then: [.reset], curlCode: 56, says: ["errno 104"]),
        ClassificationRow("HTTP/0.9", "data: a\n\ndata: b\n\n", network, then: [.silence], curlCode: 1),
        ClassificationRow("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", network, then: [.silence], curlCode: 1),
        ClassificationRow("a status that is no number", "HTTP/1.1 abc\r\n\r\n", network),
        ClassificationRow("a status line cut", "HTTP/1.1 20", network),
        ClassificationRow("a head cut in a field", "HTTP/1.1 200 OK\r\nContent-Ty", network),
        ClassificationRow(
            "a head cut before its blank line",
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
            network
        ),
        ClassificationRow(
            "a header line of 200 KB",
            "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 200_000) + "\r\n\r\n",
            network
        ),
        ClassificationRow(
            "a head of 70 KB",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "X: " + String(repeating: "x", count: 1000) + "\r\n", count: 70),
            network,
            says: ["a head of over 65536 bytes"]
        ),
        ClassificationRow(
            "a head of 300 fields",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 300),
            network,
            says: ["over 256 header fields"]
        ),
        ClassificationRow(
            "a header line without a colon",
            "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
            network,
            curlCode: 8,
            says: ["(curl 8)"]
        ),
        ClassificationRow(
            "a head with a NUL in it",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
            network
        ),
        ClassificationRow(
            "an endless row of interim heads, cut",
            String(repeating: "HTTP/1.1 103 Early\r\nX: y\r\n\r\n", count: 500),
            network
        ),
    ]

    static let interim: [ClassificationRow] = [
        ClassificationRow(
            "1xx heads are skipped, whatever they say",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\nContent-Type: text/html\r\n\r\n"
                + "HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\nLocation: /x\r\n\r\n"
                + ok("text/event-stream") + "data: a\n\n",
            network,
            payloads: ["a"],
            status: 200
        ),
        ClassificationRow(
            "a 503 behind a 100",
            "HTTP/1.1 100 Continue\r\n\r\n" + ReplayServer.response(503, [("Retry-After", "7")]),
            network,
            then: [.silence],
            status: 503,
            retryAfter: .seconds(7)
        ),
        ClassificationRow(
            "HTTP/1.0",
            "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n",
            network,
            payloads: ["a"],
            status: 200
        ),
    ]

    // B16
    @Test(
        "a response is what the table of the failures says, and leaves nothing open",
        arguments: open + completed + other2xx + redirects + refusals + passing + endings + junk + interim
    )
    func row(_ row: ClassificationRow) async throws {
        let server = try ReplayServer(otherwise: [.expectRequest] + row.steps)
        let transport = try plain(server)
        let read = await transport.read(EventSourceRequest())
        #expect(read.end == row.end)
        #expect(read.payloads.map(\.data.text) == row.payloads)
        #expect(read.retryAfter == row.retryAfter)
        if let status = row.status { #expect(read.error?.status == status) }
        if let code = row.curlCode { #expect(read.error?.curlCode == code) }
        #expect(String(decoding: read.error?.bodyPrefix ?? [], as: UTF8.self) == row.bodyPrefix)
        #expect(read.error?.graphQLErrors ?? [] == row.graphQLErrors)
        let message = read.error?.message ?? ""
        for part in row.says { #expect(message.contains(part)) }
        if row.end != .completed {
            #expect(message.contains("127.0.0.1:\(server.port)"))
            #expect(read.error?.host == "127.0.0.1:\(server.port)")
            #expect(!message.hasSuffix(".") && !message.contains("\n"))
        }
        #expect(server.journal.requestCount == 1)
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
        #expect(transport.counters.failures == (row.end == .completed ? 0 : 1))
        // A whole response leaves its connection to the next opening; the loop leaves nothing.
        await transport.curlLoop.shutdown()
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test(
        "H8: of two lengths of one content one is held to, and what is beyond it is no other response",
        arguments: [[9, 18], [18, 9], [9, 100]]
    )
    func twoLengths(lengths: [Int]) async throws {
        let fields = [("Content-Type", "text/event-stream")] + lengths.map { ("Content-Length", "\($0)") }
        let server = try ReplayServer { _, _ in [.send(ReplayServer.head(200, fields) + "data: a\n\ndata: b\n\n")] }
        let loop = try CurlLoop()
        let transport = try plain(server, loop: loop) { $0.idleTimeout = .milliseconds(300) }
        for _ in 0..<2 {
            let read = await transport.read(EventSourceRequest())
            let texts = read.payloads.map(\.data.text)
            #expect(texts == ["a"] || texts == ["a", "b"])
            #expect(read.end == .failed(.network))
        }
        await loop.shutdown()
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test("an event over the limit is a network failure that names the limit")
    func tooLong() async throws {
        let server = try ReplayServer.answering(
            ReplayServer.eventStreamHead,
            "data: a\n\ndata: " + String(repeating: "x", count: 2000) + "\n\ndata: b\n\n"
        )
        let read = try await plain(server) { $0.maxEventBytes = 1000 }.read(EventSourceRequest())
        #expect(read.payloads.map(\.data.text) == ["a"])
        #expect(read.end == .failed(.network))
        #expect(read.error?.message.contains("1000") == true)
    }

    @Test("a first result that cannot be read is a network failure")
    func unreadable() async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead, "event: next\ndata: <html>\n\n")
        let read = try await graphQL(server).read(GraphQLRequest(query: "{a}"))
        #expect(read.payloads.isEmpty)
        #expect(read.end == .failed(.network))
    }

    @Test("a name that does not resolve is a network failure")
    func noName() async throws {
        let read = try await plain("http://name.invalid/").read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.curlCode == 6)
        #expect(read.error?.host == "name.invalid:80")
    }

    @Test("an address that refused does not put its error number into the failure of the one that answered")
    func otherAddress() async throws {
        let server = try ReplayServer.answering(ReplayServer.chunkedEventStreamHead, ReplayServer.chunk("data: a\n\n"))
        let transport = try plain("http://two.invalid:\(server.port)/") {
            $0.resolve = [.init(host: "two.invalid", port: Int(server.port), address: "[::1],127.0.0.1")]
        }
        let read = await transport.read(EventSourceRequest())
        #expect(read.payloads.map(\.data.text) == ["a"])
        #expect(read.error?.curlCode == 18)
        #expect(read.error?.errno == nil)
        #expect(read.error?.address == "127.0.0.1")
    }

    @Test("a network interface that there is not is an environment failure")
    func noInterface() async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead)
        let read = try await plain(server) { $0.interface = "nowhere0" }.read(EventSourceRequest())
        #expect(read.end == .failed(.environment))
        #expect(server.journal.connections == 0)
    }

    @Test("a Unix socket that there is not is a network failure: its server may come")
    func noUnixSocket() async throws {
        let read = try await plain("http://x/") { $0.unixSocket = "/nonexistent/socket" }.read(EventSourceRequest())
        #expect(read.end == .failed(.network))
    }
}
