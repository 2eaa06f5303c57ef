import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

/// How long the server's first connection lasted from its beginning, or from its request.
///
/// By the server's clock: its thread and the loop's do not wait for a turn among the tests.
private func lasted(_ server: ReplayServer, sinceRequest: Bool = true) async -> Duration? {
    guard await server.reaches({ $0[connection: 1]?.ended != nil }), let record = server.journal[connection: 1],
        let ended = record.ended
    else { return nil }
    let start = sinceRequest ? server.journal.requests.first?.instant : record.accepted
    return start?.duration(to: ended)
}

/// Whether a wait that was to be so long was no longer, by far, and shorter than any default.
///
/// For waits so short that a thread's turn among the tests is a good part of them; `accuracy` holds long ones to a tenth.
private func isAbout(_ expected: Duration, _ found: Duration?) -> Bool {
    guard let found else { return false }
    if Setting.count("TRANSPORT_FIGURES", default: 0) > 0 { Setting.report("deadline \(expected): found at \(found)") }
    // No shorter either, which the test sees by its own clock: the server may have come late to the request.
    return found < expected + .seconds(7)
}

@Suite("Deadlines", .timeLimit(.minutes(5)))
struct DeadlineTests {
    @Test("a server that cannot be connected to is given up at the connect deadline, and not before")
    func connect() async throws {
        let port = try FullBacklog()
        let transport = try plain("http://127.0.0.1:\(port.port)/") { $0.connectTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "no connection to 127.0.0.1:\(port.port) within 300 ms")
        #expect(elapsed >= .milliseconds(300))
        #expect(isAbout(.milliseconds(300), elapsed))
        withExtendedLifetime(port) {}
    }

    @Test("L6: a server that accepts and says nothing of TLS is given up at the connect deadline")
    func handshake() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let transport = try plain("https://127.0.0.1:\(server.port)/") { $0.connectTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "no connection to 127.0.0.1:\(server.port) within 300 ms")
        #expect(elapsed >= .milliseconds(300))
        #expect(isAbout(.milliseconds(300), await lasted(server, sinceRequest: false)))
    }

    @Test("silence before the head is found at the first-byte deadline, which may be shorter than the connect deadline")
    func firstByte() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .silence])
        let transport = try plain(server) { $0.firstByteTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "127.0.0.1:\(server.port) did not answer within 300 ms")
        #expect(elapsed >= .milliseconds(300))
        #expect(isAbout(.milliseconds(300), await lasted(server)))
    }

    @Test("silence after the head is found at the idle deadline, which may be shorter than the first-byte deadline")
    func idle() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let transport = try plain(server) { $0.idleTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.payloads.map(\.data.text) == ["a"])
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "127.0.0.1:\(server.port) said nothing for 300 ms, after 9 bytes")
        #expect(elapsed >= .milliseconds(300))
        #expect(isAbout(.milliseconds(300), await lasted(server)))
    }

    @Test("silence is found at the time that was asked for, a tenth more or less at most, by the server's clock")
    func accuracy() async throws {
        // Long enough to be looked at in common with others first.
        let limit = Duration.milliseconds(2500)
        let comments = (0..<6).flatMap { _ in [ReplayServer.Step.pause(.milliseconds(500)), .send(":\n")] }
        let cases: [(what: String, steps: [ReplayServer.Step], expected: Duration)] = [
            ("before the head", [], limit),
            ("after the head", [.send(head)], limit),
            ("after comments", [.send(head)] + comments, .seconds(3) + limit),
        ]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (what, steps, expected) in cases {
                let server = try ReplayServer(otherwise: [.expectRequest] + steps + [.silence])
                let transport = try plain(server) {
                    $0.firstByteTimeout = limit
                    $0.idleTimeout = limit
                }
                group.addTask {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.end == .failed(.network))
                    #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
                    let asked = try #require(server.journal.requests.first).instant
                    let found = try #require(server.journal[connection: 1]?.peerEnded)
                    let elapsed = asked.duration(to: found)
                    #expect((expected - limit * 0.1...expected + limit * 0.1).contains(elapsed), "\(what)")
                    if Setting.count("TRANSPORT_FIGURES", default: 0) > 0 {
                        Setting.report("silence \(what): \(elapsed), expected \(expected)")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("no connection, no TLS and no place in line are found at the time that was asked for, a tenth more at most")
    func accuracyOfOpening() async throws {
        let limit = Duration.milliseconds(2500)
        let port = try FullBacklog()
        let silent = try ReplayServer(otherwise: [.silence])
        let full = try ReplayServer(otherwise: [.silence])
        let blocked = try plain("https://127.0.0.1:\(full.port)/") {
            $0.httpVersion = .http1_1
            $0.connectTimeout = .seconds(600)
            $0.maxConcurrentOpenings = 1
            $0.admissionTimeout = limit
        }
        let holder = Task { await blocked.read(EventSourceRequest()) }
        #expect(await full.reaches { $0.connections == 1 })
        let cases: [(what: String, transport: EventSourceTransport)] = [
            ("no connection to", try plain("http://127.0.0.1:\(port.port)/") { $0.connectTimeout = limit }),
            ("no connection to", try plain("https://127.0.0.1:\(silent.port)/") { $0.connectTimeout = limit }),
            ("no place among", blocked),
        ]
        await withTaskGroup { group in
            for (number, (what, transport)) in cases.enumerated() {
                group.addTask {
                    // On a thread of its own each: by the test's clock, as no server sees when an opening begins.
                    await withTaskExecutorPreference(OneThread(label: what)) {
                        var elapsed = Duration.zero
                        // What is late once is the machine, what is late three times is not.
                        for _ in 0..<3 where !(limit...limit * 1.1).contains(elapsed) {
                            let start = ContinuousClock.now
                            let read = await transport.read(EventSourceRequest())
                            elapsed = start.duration(to: .now)
                            #expect(read.end == .failed(.network))
                            #expect(read.error?.message.hasPrefix(what) == true)
                        }
                        #expect((limit...limit * 1.1).contains(elapsed), "\(number): \(what)")
                        if Setting.count("TRANSPORT_FIGURES", default: 0) > 0 {
                            Setting.report("\(number), \(what): \(elapsed), expected \(limit)")
                        }
                    }
                }
            }
        }
        #expect(await silent.reaches { $0.openConnections == 0 })
        holder.cancel()
        _ = await holder.value
        withExtendedLifetime(port) {}
    }

    @Test("L6: a head that comes byte by byte is given up at the first-byte deadline, interim heads or not")
    func drip() async throws {
        let drip = ReplayServer.Step.pieces(Array((0..<60).map { "X-Slow-\($0): y\r\n" }.joined().utf8), of: 5)
        for start in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"] {
            let steps = [.expectRequest, .send(start)] + drip.flatMap { [$0, .pause(.milliseconds(50))] } + [.silence]
            let server = try ReplayServer(otherwise: steps)
            let transport = try plain(server) { $0.firstByteTimeout = .milliseconds(400) }
            let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
            #expect(read.error?.message == "127.0.0.1:\(server.port) did not answer within 400 ms")
            #expect(elapsed >= .milliseconds(400))
            #expect(isAbout(.milliseconds(400), await lasted(server)))
        }
    }

    @Test("a refusal whose body never ends keeps its own meaning at the first-byte deadline", arguments: [403, 503])
    func endlessRefusal(status: Int) async throws {
        let refusal = ReplayServer.head(status, [("Retry-After", "7")]) + "because"
        let server = try ReplayServer(otherwise: [.expectRequest, .send(refusal), .silence])
        let transport = try plain(server) { $0.firstByteTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.error?.status == status)
        #expect(read.end == .failed(status == 403 ? .request : .network))
        #expect(read.retryAfter == (status == 403 ? nil : .seconds(7)))
        #expect(read.error?.bodyPrefix == Array("because".utf8))
        #expect(elapsed >= .milliseconds(300))
        #expect(isAbout(.milliseconds(300), await lasted(server)))
    }

    @Test("comments are signs of life")
    func comments() async throws {
        let pings = (0..<8).flatMap { _ in [ReplayServer.Step.pause(.milliseconds(200)), .send(":\n")] }
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(head)] + pings + [.send("data: late\n\n"), .silence]
        )
        let transport = try plain(server) { $0.idleTimeout = .milliseconds(1000) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.payloads.map(\.data.text) == ["late"])
        #expect(read.error?.message.contains("said nothing for 1 s") == true)
        // Eight pauses, and then the silence.
        #expect(elapsed >= .milliseconds(2600))
        #expect(isAbout(.milliseconds(2600), await lasted(server)))
    }

    @Test("time in which the reader holds the stream back does not count as the server's silence")
    func heldBack() async throws {
        let payload = String(repeating: "x", count: 4 << 10)
        let count = 4000
        let server = try ReplayServer(
            otherwise: [
                .expectRequest, .send(head), .sendRepeating(Array("data: \(payload)\n\n".utf8), count: count), .silence,
            ]
        )
        // Long enough for a server's thread that has to wait for a processor.
        let transport = try plain(server) { $0.idleTimeout = .seconds(6) }
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        var iterator = stream.makeAsyncIterator()
        #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
        // Another stream of the loop runs into its deadline twice meanwhile: time has passed for this one too.
        let other = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        for _ in 0..<2 {
            let read = try await plain(other, loop: transport.curlLoop) { $0.idleTimeout = .milliseconds(3500) }
                .read(EventSourceRequest())
            #expect(read.end == .failed(.network))
        }
        var arrived = 0
        while arrived < count, let batch = try await iterator.next(atMost: 100) { arrived += batch.count }
        #expect(arrived == count)
    }

    @Test("a stream whose deadline has passed does not take another server's connection from the same port with it")
    func neighbours() async throws {
        let silent = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        let healthy = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .silence, .send("data: a\n\n"), .silence,
        ])
        let loop = try CurlLoop()
        let stream = try await plain(healthy, loop: loop).open(EventSourceRequest(), resuming: nil)
        for _ in 0..<3 {
            let read = try await plain(silent, loop: loop) { $0.idleTimeout = .milliseconds(50) }
                .read(EventSourceRequest())
            #expect(read.end == .failed(.network))
        }
        healthy.proceed()
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next(isolation: nil)?.data.text == "a")
    }
}
