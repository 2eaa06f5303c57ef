import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Synchronization
import Testing

private let head = ReplayServer.eventStreamHead

@Suite("Cancellation", .timeLimit(.minutes(5)))
struct CancellationTests {
    /// Cancels an opening once the condition holds, and reads how it ended.
    private func cancelled(
        _ transport: EventSourceTransport,
        when isReached: () async -> Bool
    ) async -> ReadStream<ServerSentEvent> {
        let task = Task { await transport.read(EventSourceRequest()) }
        #expect(await isReached())
        task.cancel()
        return await task.value
    }

    @Test("before an opening has begun connects to nobody")
    func early() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        let transport = try plain(server)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await transport.read(EventSourceRequest())
        }
        _ = await task.value
        await transport.curlLoop.shutdown()
        #expect(server.journal.requestCount == 0)
        #expect(transport.counters.openStreams == 0)
    }

    @Test("while a connection is made leaves no socket behind")
    func connecting() async throws {
        let port = try FullBacklog()
        let transport = try plain("http://127.0.0.1:\(port.port)/")
        // Those that keep the port full are among them.
        let before = ProcessUse.connecting(to: port.port)
        let read = await cancelled(transport) {
            await holds { ProcessUse.connecting(to: port.port) == before + 1 }
        }
        #expect(await holds { ProcessUse.connecting(to: port.port) == before })
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "the opening was cancelled")
        withExtendedLifetime(port) {}
    }

    @Test("in the middle of TLS closes the connection")
    func handshake() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let transport = try plain("https://127.0.0.1:\(server.port)/")
        let read = await cancelled(transport) { await server.reaches { $0.connections == 1 } }
        #expect(read.end == .failed(.network))
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test(
        "before the head, and in the middle of it, closes the connection",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-"]
    )
    func waiting(part: String) async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(part), .silence])
        let transport = try plain(server)
        let read = await cancelled(transport) {
            await server.reaches { $0.requestCount == 1 && $0.bytesSent == part.utf8.count }
        }
        #expect(read.end == .failed(.network))
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(server.journal.connections == 1)
    }

    @Test("in the middle of a refusal's body closes the connection")
    func refusal() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(ReplayServer.head(503) + "busy"), .silence])
        let transport = try plain(server)
        let read = await cancelled(transport) { await server.reaches { $0.bytesSent > 0 } }
        #expect(read.end == .failed(.network))
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test("behind a redirect closes the second connection, and the first")
    func redirect() async throws {
        let silent = try ReplayServer(otherwise: [.expectRequest, .silence])
        let first = try ReplayServer { _, _ in [.send(ReplayServer.response(307, [("Location", silent.url)]))] }
        let transport = try plain(first)
        let read = await cancelled(transport) { await silent.reaches { $0.requestCount == 1 } }
        #expect(read.end == .failed(.network))
        #expect(await silent.reaches { $0.openConnections == 0 })
        #expect(await first.reaches { $0.openConnections == 0 })
    }

    @Test("C7: of a quiet stream, by its task, closes the connection")
    func quiet() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        let transport = try plain(server)
        let read = await cancelled(transport) { await holds { transport.counters.openStreams == 1 } }
        // Cancelled within the call that opens, or within the one that reads.
        #expect(read.payloads.isEmpty)
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(await holds { transport.counters.openStreams == 0 })
    }

    @Test("of a reader that has payloads in hand is heard at the next of them", arguments: [1, 2])
    func payloadsInHand(atMost count: Int) async throws {
        let body = (1...100).map { "id: \($0)\ndata: x\n\n" }.joined()
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head + body), .silence])
        let transport = try plain(server)
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        let (taken, point) = try await Task {
            var iterator = stream.makeAsyncIterator()
            var taken: [String] = []
            func take() async throws -> [ServerSentEvent] {
                if count > 1 { return try await iterator.next(atMost: count) ?? [] }
                if let event = try await iterator.next() { return [event] }
                return []
            }
            while case let events = try await take(), !events.isEmpty {
                taken += events.map(\.lastEventID)
                if taken.count == 2 { withUnsafeCurrentTask { $0?.cancel() } }
            }
            // Nor to a task that is not cancelled, and with the connection closed while all that read it is here.
            nonisolated(unsafe) let rest = iterator
            let more = try await Task {
                #expect(await server.reaches { $0.openConnections == 0 })
                var iterator = rest
                return (try await iterator.next(), iterator.nextIfReady(atMost: 1))
            }.value
            #expect(more.0 == nil && more.1 == nil)
            let point = iterator.resumePoint
            withExtendedLifetime(iterator) {}
            return (taken, point)
        }.value
        #expect(taken == ["1", "2"])
        #expect(point.flatMap { StreamPosition($0) }?.lastEventID == "2")
        withExtendedLifetime(stream) {}
    }

    @Test("of a stream that is held back closes the connection")
    func heldBack() async throws {
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(head), .sendForever(Array("data: x\n\n".utf8))]
        )
        let transport = try plain(server)
        var stream: PayloadStream<ServerSentEvent>? = try await transport.open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
        #expect(stream != nil)
        stream = nil
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(await holds { transport.counters.openStreams == 0 })
    }

    @Test("a stream that was held back when its server ended gives all that was sent, and then how it ended")
    func endedWhileHeldBack() async throws {
        let payload = String(repeating: "x", count: 4000)
        let server = try ReplayServer(
            otherwise: [
                .expectRequest, .send(head), .sendRepeating(Array("data: \(payload)\n\n".utf8), count: 40),
                .send("event: last\ndata: y\n\n"), .close,
            ]
        )
        let stream = try await plain(server) { $0.highWater = 1024 }.open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0.openConnections == 0 })
        var types: [String] = []
        let error = await #expect(throws: SubscriptionFailure.self) {
            for try await event in stream { types.append(event.type) }
        }
        #expect(types.count == 41)
        #expect(types.last == "last")
        #expect(error?.kind == .network)
    }

    @Test(
        "a stream that was held back when its connection was reset ends by a network failure",
        arguments: [true, false]
    )
    func resetWhileHeldBack(reads: Bool) async throws {
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(head), .sendForever(Array("data: x\n\n".utf8))]
        )
        let transport = try plain(server)
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
        server.endConnections(by: .reset)
        if reads {
            let error = await #expect(throws: SubscriptionFailure.self) { for try await _ in stream {} }
            #expect(error?.kind == .network)
            #expect(error?.transportError?.curlCode == 56)
        }
        await transport.curlLoop.shutdown()
        #expect(transport.counters.openStreams == 0)
        withExtendedLifetime(stream) {}
    }

    @Test("a loop that is shut down with openings in every stage ends each of them, and leaves nothing open")
    func shutdown() async throws {
        let loop = try CurlLoop()
        let port = try FullBacklog()
        let silent = try ReplayServer(otherwise: [.silence])
        let waiting = try ReplayServer(otherwise: [.expectRequest, .silence])
        let open = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let flood = try ReplayServer(otherwise: [.expectRequest, .send(head), .sendForever(Array("data: x\n\n".utf8))])
        let held = try await plain(flood, loop: loop).open(EventSourceRequest(), resuming: nil)
        let transports = try [
            plain("http://127.0.0.1:\(port.port)/", loop: loop),
            plain("https://127.0.0.1:\(silent.port)/", loop: loop) { $0.maxConcurrentOpenings = 1 },
            plain("https://127.0.0.1:\(silent.port)/", loop: loop) { $0.maxConcurrentOpenings = 1 },
            plain(waiting, loop: loop),
            plain(open, loop: loop),
        ]
        #expect(await flood.reaches { $0[connection: 1]?.isHeldBack == true })
        await withTaskGroup { group in
            for transport in transports {
                group.addTask {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.end == .failed(.environment))
                    #expect(read.error?.message == "the transport's loop has been shut down")
                }
            }
            #expect(await waiting.reaches { $0.requestCount == 1 })
            #expect(await silent.reaches { $0.connections == 1 })
            #expect(await holds { transports[0].counters.openings == 6 && transports[0].counters.openStreams == 2 })
            await loop.shutdown()
        }
        for server in [silent, waiting, open, flood] { #expect(await server.reaches { $0.openConnections == 0 }) }
        #expect(transports[0].counters.openStreams == 0)
        withExtendedLifetime((held, port)) {}
    }

    @Test("C2: a transport that is dropped with a hundred streams and as many kept connections closes all of them")
    func dropped() async throws {
        let server = try ReplayServer { _, request in
            request.target == "/kept" ? [.send(ReplayServer.response(404))] : [.send(head + "data: a\n\n"), .silence]
        }
        var transport: EventSourceTransport? = try plain(server)
        weak let loop = transport?.curlLoop
        var streams: [PayloadStream<ServerSentEvent>] = []
        for _ in 0..<100 {
            _ = await transport?.read(EventSourceRequest(target: "/kept"))
            if let stream = try await transport?.open(EventSourceRequest(), resuming: nil) { streams.append(stream) }
        }
        #expect(streams.count == 100)
        transport = nil
        #expect(loop != nil)
        streams = []
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(await holds { loop == nil })
    }

    @Test("a reader that leaves within a comment hears of no other, though they have been read with it")
    func lastComment() async throws {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .silence, .sendForever(Array(":\ndata: x\n\n".utf8)),
        ])
        let comments = Atomic<Int>(0)
        let held = Lock<PayloadStream<ServerSentEvent>?>(nil)
        let transport = try plain(server) {
            $0.onComment = { _ in
                comments.add(1, ordering: .relaxed)
                let stream = held.withLock { $0.take() }
                withExtendedLifetime(stream) {}
            }
        }
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        held.withLock { $0 = stream }
        _ = consume stream
        server.proceed()
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(comments.load(ordering: .relaxed) == 1)
    }

    @Test("from inside of what the loop calls ends the stream, and the loop goes on")
    func reentrant() async throws {
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(head + ":\ndata: a\n\n"), .sendForever(Array(":\ndata: x\n\n".utf8))]
        )
        let box = Recorder<Task<ReadStream<ServerSentEvent>, Never>>()
        let loop = try CurlLoop()
        let transport = try plain(server, loop: loop) {
            $0.onComment = { _ in for task in box.values { task.cancel() } }
        }
        for _ in 0..<20 {
            let task = Task { await transport.read(EventSourceRequest()) }
            box.append(task)
            _ = await task.value
            // Its last comment has been read, and cancels nobody who comes after it.
            #expect(await server.reaches { $0.openConnections == 0 })
        }
        #expect(server.journal.connections == 20)
        let healthy = try ReplayServer.answering(head, "data: a\n\n")
        #expect(await (try plain(healthy, loop: loop)).read(EventSourceRequest()).payloads.count == 1)
    }

    @Test(
        "C6: of readers that wait, by tasks that share their one thread, closes the connections",
        arguments: [true, false]
    )
    func oneThread(onLoop: Bool) async throws {
        let server = try ReplayServer { _, request in
            switch request.target {
            case "/silent": [.silence]
            case "/flood": [.send(head), .sendForever(Array("data: x\n\n".utf8))]
            default: [.send(head + "data: a\n\n"), .silence]
            }
        }
        let transport = try plain(server)
        let thread: any TaskExecutor = onLoop ? transport.curlLoop.executor : OneThread(label: "one")
        await withTaskExecutorPreference(thread) {
            for path in ["/silent", "/flood", "/quiet"] {
                let (firsts, first) = AsyncStream<Void>.makeStream()
                let reader = Task {
                    guard
                        let stream = try? await transport.open(EventSourceRequest(target: path), resuming: nil)
                    else { return }
                    var iterator = stream.makeAsyncIterator()
                    while (try? await iterator.next(isolation: nil)) != nil { first.yield() }
                }
                let canceller = Task {
                    if path == "/silent" {
                        _ = await server.reaches { $0.requestCount == 1 }
                    } else {
                        for await _ in firsts { break }
                    }
                    reader.cancel()
                }
                await canceller.value
                await reader.value
                #expect(await server.reaches { $0.openConnections == 0 })
            }
        }
        #expect(transport.counters.openings == 3)
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
    }

    @Test("C3: an opening from inside of what the loop calls, or of the credentials' provider, is one like any other")
    func openedFromInside() async throws {
        let server = try ReplayServer { _, request in
            request.target == "/commented"
                ? [.send(head + ": 1\n: 2\n\ndata: a\n\n"), .close] : [.send(head + "data: a\n\n"), .close]
        }
        let loop = try CurlLoop()
        let inner = try plain(server, "/inner", loop: loop)
        let tasks = Recorder<Task<ReadStream<ServerSentEvent>, Never>>()
        let commented = try plain(server, "/commented", loop: loop) {
            $0.onComment = { _ in
                // As far as it comes within the call of libcurl that the comment is read in.
                tasks.append(Task.immediate { await inner.read(EventSourceRequest()) })
            }
        }
        let authorized = try plain(
            server,
            "/authorized",
            credentials: Credentials(deadline: .seconds(300)) { _ in
                let token = await inner.read(EventSourceRequest()).payloads.first?.data.text ?? "none"
                return [HTTPField("Authorization", token)]
            },
            loop: loop
        )
        #expect(await commented.read(EventSourceRequest()).payloads.count == 1)
        #expect(await authorized.read(EventSourceRequest()).payloads.count == 1)
        #expect(tasks.values.count == 2)
        for task in tasks.values { #expect(await task.value.payloads.count == 1) }
        #expect(server.journal.requests.last?.field("Authorization") == "a")
        #expect(server.journal.requestCount == 5)
        await loop.shutdown()
        #expect(inner.counters.openStreams == 0)
        #expect(inner.counters.faults == 0)
    }
}
