import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private typealias Frame = HTTP2Frame

/// How a test's server goes on, with a name for the log.
struct FrameScript: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var steps: [ReplayServer.Step]
    /// What is read before the end.
    var payloads: [String]

    init(_ what: String, _ steps: [ReplayServer.Step], payloads: [String]) {
        testDescription = what
        self.steps = steps
        self.payloads = payloads
    }

    /// A stream that is open and has had one event.
    static func open(_ what: String, _ frames: [UInt8], then end: ReplayServer.Step = .silence, _ more: String...)
        -> Self
    {
        Self(
            what,
            [.send(Frame.preface + Frame.eventStreamHead + Frame.data("data: a\n\n")), .silence, .send(frames), end],
            payloads: ["a"] + more
        )
    }

    /// A request without an answer yet.
    static func early(_ what: String, _ frames: [UInt8], then end: ReplayServer.Step = .silence, _ more: String...)
        -> Self
    {
        Self(what, [.send(Frame.preface), .silence, .send(frames), end], payloads: more)
    }
}

/// HTTP/2 by prior knowledge, as a raw server cannot speak TLS: what libcurl makes of the frames is the same.
@Suite("Frames of HTTP/2, played by hand", .timeLimit(.minutes(5)))
struct HTTP2Tests {
    /// A transport that begins with HTTP/2.
    private func transport(
        _ server: ReplayServer,
        _ configure: (inout Configuration) -> Void = { _ in }
    ) throws -> EventSourceTransport {
        try plain(server) {
            $0.httpVersion = .http2
            configure(&$0)
        }
    }

    /// Reads a stream to its end, while its server goes on; nothing may be left of it.
    private func read(
        _ transport: EventSourceTransport,
        from server: ReplayServer,
        open: Bool
    ) async throws -> ReadStream<ServerSentEvent> {
        let task = Task { await transport.read(EventSourceRequest()) }
        #expect(await holds { transport.counters.bytesReceived > 0 || !open })
        // With the head not there, the request is what has come: a server's frame before it would be none of a stream's.
        #expect(await server.reaches { $0.connections == 1 })
        server.proceed()
        let read = await task.value
        #expect(transport.counters.openStreams == 0)
        await transport.curlLoop.shutdown()
        #expect(transport.counters.faults == 0)
        #expect(await server.reaches { $0.openConnections == 0 })
        return read
    }

    // Nothing comes with a reset: libcurl may throw away what it reads in one with it.
    static let endings: [FrameScript] =
        [
            .open("the stream ends", Frame.data("data: b\n\n", ends: true), "b"),
            .open("a trailer ends it", Frame.data("data: b\n\n") + Frame.head([("x-last", "1")], ends: true), "b"),
            .open("a ping before", Frame.ping + Frame.data("data: b\n\ndata: half", ends: true), "b"),
            .open("goes away, and ends it", Frame.goAway(last: 1) + Frame.data("data: b\n\n", ends: true), "b"),
            .open("goes away and closes", Frame.goAway(last: 1) + Frame.data("data: b\n\n"), then: .close, "b"),
            .open("goes away without it", Frame.goAway(last: 0)),
            .open("goes away in anger", Frame.goAway(last: 0, .enhanceYourCalm), then: .close),
            .open("closes", [], then: .close),
            .open("resets TCP", [], then: .reset),
            .open("a frame that is none", Frame.frame(4, [0, 0, 0, 0, 0])),
            .open("content of a stream that is not there", Frame.data("data: b\n\n", stream: 3)),
        ]
        + [HTTP2Frame.Code.noError, .protocolError, .internalError, .refusedStream, .cancel, .enhanceYourCalm].map {
            .open("reset by \($0)", Frame.reset($0))
        }

    @Test(
        "T1, H8: an open stream that ends, in whatever way, has given what came and is a network failure",
        arguments: endings
    )
    func open(script: FrameScript) async throws {
        let server = try ReplayServer(scripts: [script.steps])
        let read = try await read(try transport(server), from: server, open: true)
        #expect(read.payloads.map(\.data.text) == script.payloads)
        #expect(read.end == .failed(.network))
        #expect(server.journal.connections == 1)
    }

    static let refusals: [FrameScript] =
        [
            .early("closes", [], then: .close),
            .early("resets TCP", [], then: .reset),
            .early("goes away in anger", Frame.goAway(last: 1, .enhanceYourCalm), then: .close),
            .early("a frame that is none", Frame.frame(4, [0, 0, 0, 0, 0])),
            .early("content without a head", Frame.data("data: a\n\n", ends: true)),
            .early("a head without a status", Frame.head([("content-type", "text/event-stream")], ends: true)),
            .early("an interim head that ends", Frame.head([(":status", "103")], ends: true)),
        ]
        + [HTTP2Frame.Code.noError, .protocolError, .internalError, .cancel, .enhanceYourCalm].map {
            .early("reset by \($0)", Frame.reset($0))
        }

    @Test("a stream that ends before its head, in whatever way, is a network failure", arguments: refusals)
    func early(script: FrameScript) async throws {
        let server = try ReplayServer(scripts: [script.steps])
        let read = try await read(try transport(server), from: server, open: false)
        #expect(read.payloads.isEmpty)
        #expect(read.end == .failed(.network))
    }

    /// A connection that answers, by either version.
    private static let answers: [(HTTP2Frame.Code, [ReplayServer.Step])] = [
        (
            .refusedStream,
            [.send(Frame.preface + Frame.eventStreamHead + Frame.data("data: again\n\n")), .silence, .close]
        ),
        (
            .http11Required,
            [.expectRequest, .send(ReplayServer.eventStreamHead + "data: again\n\n"), .silence, .close]
        ),
    ]

    @Test("a request that was not processed is asked again, over another connection", arguments: [0, 1])
    func askedAgain(index: Int) async throws {
        let (code, answer) = Self.answers[index]
        let server = try ReplayServer(scripts: [FrameScript.early("", Frame.reset(code)).steps, answer])
        let transport = try transport(server)
        let task = Task { await transport.read(EventSourceRequest()) }
        #expect(await server.reaches { $0.connections == 1 })
        server.proceed(1)
        #expect(await holds { transport.counters.openStreams == 1 && transport.counters.bytesReceived > 0 })
        server.proceed(2)
        let read = await task.value
        #expect(read.payloads.map(\.data.text) == ["again"])
        #expect(read.end == .failed(.network))
        #expect(server.journal.connections == 2)
        await transport.curlLoop.shutdown()
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test(
        "the answer to a request that libcurl sends again is no continuation of a stream that is open",
        arguments: [0, 1]
    )
    func beginsAnew(index: Int) async throws {
        let (code, answer) = Self.answers[index]
        let silent: [ReplayServer.Step] = [.silence]
        let refusing: [ReplayServer.Step] = [.send(ReplayServer.response(503, body: "data: busy\n\n")), .silence]
        for again in [answer, refusing, silent, [.close]] {
            let server = try ReplayServer(scripts: [FrameScript.open("", Frame.reset(code)).steps, again])
            // For the one that says nothing: the stream is still an open one.
            let transport = try transport(server) { $0.idleTimeout = .milliseconds(500) }
            let read = try await read(transport, from: server, open: true)
            #expect(read.payloads.map(\.data.text) == ["a"])
            #expect(read.end == .failed(.network))
            #expect(transport.counters.payloads == 1)
        }
    }

    private static let last = Frame.data("event: last\ndata: 40\n\n")

    /// How a stream ends that is held back.
    static let heldEndings: [FrameScript] = [
        FrameScript("ends", [.send(Frame.data("event: last\ndata: 40\n\n", ends: true)), .silence], payloads: []),
        FrameScript(
            "ends and closes",
            [.send(Frame.data("event: last\ndata: 40\n\n", ends: true)), .close],
            payloads: []
        ),
        FrameScript(
            "goes away, ends",
            [.send(Frame.goAway(last: 1) + last + Frame.data("", ends: true)), .close],
            payloads: []
        ),
        FrameScript("closes", [.send(last), .close], payloads: []),
        FrameScript("resets TCP", [.send(last), .reset], payloads: []),
        FrameScript("is reset", [.send(last + Frame.reset(.cancel)), .silence], payloads: []),
        FrameScript("goes away", [.send(last + Frame.goAway(last: 0)), .close], payloads: []),
    ]

    @Test(
        "M6: a stream that ends while it is held back gives what was sent, all of it where it ended well, and then how",
        arguments: heldEndings
    )
    func endedWhileHeldBack(ending: FrameScript) async throws {
        let text = String(repeating: "x", count: 4000)
        let events = (0..<40).map { ReplayServer.Step.send(Frame.data("data: \($0) \(text)\n\n")) }
        let server = try ReplayServer(scripts: [
            [.send(Frame.preface + Frame.eventStreamHead), .silence] + events + ending.steps
        ])
        let transport = try transport(server) { $0.highWater = 1024 }
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        server.proceed()
        #expect(await server.reaches { $0.bytesSent > 40 * 4000 + 200 })
        #expect(await holds { transport.counters.bytesReceived > 1024 })
        // Nobody reads: most of it has not been let in.
        #expect(transport.counters.bytesReceived < 20 * 4000)
        var numbers: [Int?] = []
        let error = await #expect(throws: SubscriptionFailure.self) {
            for try await event in stream { numbers.append(Int(event.data.text.prefix { $0 != " " })) }
        }
        // Of one that is cut off libcurl may throw away the end.
        #expect(numbers == Array(0..<numbers.count))
        #expect(numbers.count == 41 || !ending.testDescription.contains("ends") && numbers.count >= 1)
        #expect(error?.kind == .network)
        await transport.curlLoop.shutdown()
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test("H8: two lengths of one content are refused, and what they measure is not read")
    func twoLengths() async throws {
        let head = Frame.head([
            (":status", "200"), ("content-type", "text/event-stream"), ("content-length", "9"),
            ("content-length", "18"),
        ])
        let script = FrameScript.early("", head + Frame.data("data: a\n\ndata: b\n\n", ends: true))
        let server = try ReplayServer(scripts: [script.steps])
        let read = try await read(try transport(server), from: server, open: false)
        #expect(read.payloads.isEmpty)
        #expect(read.end == .failed(.network))
    }
}
