import SubscriptionRuntime
import SubscriptionTesting
import Testing

@testable import CurlSSETransport

private typealias Environment = SubscriptionEnvironment<EventSourceRequest, ServerSentEvent>

private let head = ReplayServer.eventStreamHead

extension SubscriptionHandle {
    /// Returns the first status that is as described.
    fileprivate func status(where condition: (SubscriptionStatus) -> Bool) async -> SubscriptionStatus {
        for await status in statuses where condition(status) { return status }
        return status
    }
}

@Suite("The runtime over a real transport", .timeLimit(.minutes(5)))
struct RuntimeTests {
    /// How a subscription looks once its stream has ended.
    enum Looks {
        case waiting, refused, completed

        func fits(_ state: StreamState) -> Bool {
            switch (self, state) {
            case (.waiting, .waiting), (.refused, .ended(.request)), (.completed, .ended(nil)): true
            default: false
            }
        }
    }

    private static let json = ("Content-Type", "application/graphql-response+json")
    private static let refusal = #"{"errors":[{"message":"no such field"}]}"#

    // B15, B17, B18
    @Test(
        "waits, ends or completes as the server's answer says, and counts no event for a refusal",
        arguments: [
            // B15
            ("a body that ends without complete", head + "event: next\ndata: {\"data\":1}\n\n", Looks.waiting, 1),
            // B17
            ("a 400 with errors", ReplayServer.response(400, [json], body: refusal), .refused, 0),
            ("a refusal as first result", head + "event: next\ndata: \(refusal)\n\nevent: complete\n\n", .refused, 0),
            (
                "one with null data",
                head + "event: next\ndata: {\"data\":null,\"errors\":[{\"message\":\"x\"}]}\n\nevent: complete\n\n",
                .refused, 0
            ),
            // B18
            ("204", ReplayServer.response(204), .completed, 0),
        ]
    )
    func answers(what: String, answer: String, looks: Looks, events: Int) async throws {
        let server = try ReplayServer.answering(answer)
        let environment = SubscriptionEnvironment<GraphQLRequest, GraphQLResult>(transport: try graphQL(server))
        let handle = environment.handle(for: GraphQLRequest(query: "subscription { a }"))
        let retention = handle.retain()

        let status = await handle.status { looks.fits($0.stream) }

        #expect(looks.fits(status.stream), "\(what)")
        #expect(status.events == events)
        switch looks {
        case .waiting: #expect(status.error?.kind == .network)
        case .refused: #expect(status.error?.kind == .request)
        case .completed: #expect(status.error == nil)
        }
        retention.release()
        await environment.end()
    }

    /// How long a subscription's waits are, each over at once: by the whole step, or by no chance.
    private static func waits<Transport: SubscriptionTransport>(
        _ count: Int,
        of request: Transport.Request,
        over transport: Transport,
        chance: Double
    ) async -> [Duration] {
        let clock = TestClock()
        let environment = SubscriptionEnvironment(transport: transport, clock: clock, chance: chance)
        let handle = environment.handle(for: request)
        let retention = handle.retain()
        var waits: [Duration] = []
        for await status in handle.statuses {
            guard case .waiting(let until) = status.stream else { continue }
            waits.append(clock.now.duration(to: until))
            if waits.count == count { break }
            clock.advance(to: until)
        }
        retention.release()
        await environment.end()
        return waits
    }

    /// What a server may send that cannot be read.
    enum Unreadable: CaseIterable {
        case largeEvent, brokenChunk

        var bytes: String {
            switch self {
            case .largeEvent: ReplayServer.chunk("data: \(String(repeating: "x", count: 5000))\n\n")
            case .brokenChunk: "no size\r\n"
            }
        }
    }

    // C06
    @Test(
        "waits the first step after each payload, though what cannot be read follows it, and longer where nothing can",
        arguments: Unreadable.allCases
    )
    func unreadable(_ unreadable: Unreadable) async throws {
        let good = ReplayServer.chunk("data: 1\n\n")
        let server = try ReplayServer { number, _ in
            [.send(ReplayServer.chunkedEventStreamHead + (number <= 4 ? good : "") + unreadable.bytes), .silence]
        }
        let transport = try plain(server) { $0.maxEventBytes = 4096 }

        let waits = await Self.waits(8, of: EventSourceRequest(), over: transport, chance: 1)

        #expect(waits == [1, 1, 1, 1, 2, 4, 8, 16].map { .seconds($0) })
    }

    // A16
    @Test(
        "waits as long as a stream's retry field says, over every outage until another is said, and never less than half a step"
    )
    func retryField() async throws {
        let bodies = [
            "retry: 20000\ndata: 1\n\n", "data: 2\n\n", "", "retry: 40000\n\n", "data: 3\n\n", "retry: 0\ndata: 4\n\n",
        ]
        let server = try ReplayServer { number, _ in
            [.send(head + (number <= bodies.count ? bodies[number - 1] : "data: 5\n\n")), .close]
        }

        let waits = await Self.waits(7, of: EventSourceRequest(), over: try plain(server), chance: 0)

        // The third and the fourth brought no payload, and so follow steps of one and two seconds, which are less.
        #expect(waits == [20, 20, 20, 40, 40, 0.5, 0.5].map { .seconds($0) })
    }

    /// A server that counts without end, and keeps a connection of `/quiet` open with one event.
    private static func counting() throws -> ReplayServer {
        try ReplayServer { _, request in
            if request.target.hasSuffix("quiet") { return [.send(head + "data: 1\n\n"), .silence] }
            if request.target.hasSuffix("cut") { return [.send(head + "data: 1\n\n"), .close] }
            let events = (1...20_000).map { "data: \($0)\n\n" }.joined()
            return [.send(head)] + ReplayServer.Step.pieces(Array(events.utf8), of: 4000) + [.silence]
        }
    }

    private static func environment(
        _ server: ReplayServer,
        onLoop: Bool,
        loop: CurlLoop? = nil,
        log: SubscriptionLog? = nil
    ) throws -> Environment {
        Environment(transport: try plain(server, loop: loop) { $0.readsOnLoop = onLoop }, log: log)
    }

    @Test("reads where it is told to: on the loop's thread, or on the pool's", arguments: [true, false])
    func whereItReads(onLoop: Bool) async throws {
        let (places, place) = AsyncStream<Bool>.makeStream()
        let server = try Self.counting()
        let loop = try CurlLoop()
        let environment = try Self.environment(server, onLoop: onLoop, loop: loop) { entry in
            if case .opened = entry.event { place.yield(loop.events.thread.isCurrent) }
        }
        let retention = environment.handle(for: EventSourceRequest(target: "?quiet")).retain()

        for await isOnLoop in places {
            #expect(isOnLoop == onLoop)
            break
        }

        retention.release()
        await environment.end()
    }

    @Test("loses nothing for an owner alone, however small its limit", arguments: [true, false], [1, 16, 256])
    func nothingIsLost(onLoop: Bool, limit: Int) async throws {
        let server = try Self.counting()
        let environment = try Self.environment(server, onLoop: onLoop)
        let count = [1: 500, 16: 4000][limit] ?? 20_000

        var last = 0
        for try await delivery in environment.handle(for: EventSourceRequest()).deliveries(limit: limit) {
            guard case .payload(let event) = delivery else { continue }
            guard Int(event.data.text) == last + 1 else {
                Issue.record("\(event.data.text) after \(last)")
                break
            }
            last += 1
            if last.isMultiple(of: 97) { await Task.yield() }
            if last == count { break }
        }

        #expect(last == count)
        await environment.end()
        #expect(environment.running == 0)
        #expect(await server.waitUntil { $0.openConnections == 0 })
    }

    @Test("opens, closes, parks and opens again for many subscriptions at once", arguments: [true, false])
    func parking(onLoop: Bool) async throws {
        let server = try Self.counting()
        let environment = try Self.environment(server, onLoop: onLoop)
        // More than their owners take: some are held back while they are parked.
        let handles = (0..<20).map { environment.handle(for: EventSourceRequest(target: "?n=\($0)")) }
        var deliveries = handles.map { $0.deliveries(limit: 8) }

        for round in 1...3 {
            for handle in handles { _ = await handle.status { $0.stream.isOpen && $0.events > 0 } }
            environment.isActive = false
            #expect(!handles.contains { $0.isActive })
            #expect(await server.waitUntil { $0.openConnections == 0 })
            environment.isActive = true
            for handle in handles { #expect(await handle.status { $0.stream.isOpen }.resumptions == round) }
        }

        // An optimizer lets go of an array that nobody reads again.
        withExtendedLifetime(deliveries) {}
        deliveries = []
        #expect(deliveries.isEmpty && !handles.contains { $0.isActive })
        #expect(await server.waitUntil { $0.openConnections == 0 })
        await environment.end()
        #expect(environment.running == 0)
    }

    @Test("ends from a task on the loop's own thread, streams held back and all", arguments: [true, false])
    func endedOnTheLoop(onLoop: Bool) async throws {
        let server = try Self.counting()
        let loop = try CurlLoop()
        let environment = try Self.environment(server, onLoop: onLoop, loop: loop)
        let handle = environment.handle(for: EventSourceRequest())
        let stuck = handle.deliveries(limit: 4)
        _ = await handle.status { $0.events > 0 }

        await withTaskExecutorPreference(loop.executor) { await environment.end() }

        #expect(environment.running == 0)
        await #expect(throws: SubscriptionEnd.self) { for try await _ in stuck {} }
        #expect(await server.waitUntil { $0.openConnections == 0 })
    }

    @Test("ends each subscription once the loop has been shut down, and a retry ends again", arguments: [true, false])
    func loopIsShutDown(onLoop: Bool) async throws {
        let server = try Self.counting()
        let loop = try CurlLoop()
        let environment = try Self.environment(server, onLoop: onLoop, loop: loop)
        let handle = environment.handle(for: EventSourceRequest(target: "?quiet"))
        let retention = handle.retain()
        _ = await handle.status { $0.events == 1 }

        await loop.shutdown()

        let status = await handle.status { if case .ended(.environment) = $0.stream { true } else { false } }
        #expect(status.error?.kind == .environment)
        handle.retry()
        _ = await handle.status { if case .ended(.environment) = $0.stream { true } else { false } }
        retention.release()
        await environment.end()
        #expect(environment.running == 0)
    }

    @Test("comes back after a cut, a resumption", arguments: [true, false])
    func comesBack(onLoop: Bool) async throws {
        let server = try Self.counting()
        let environment = try Self.environment(server, onLoop: onLoop)
        let handle = environment.handle(for: EventSourceRequest(target: "?cut"))
        let retention = handle.retain()
        for _ in 0..<3 {
            _ = await handle.status { if case .waiting = $0.stream { true } else { false } }
            handle.retry()
        }
        let status = await handle.status { $0.resumptions == 3 }

        #expect(status.events >= 3)
        retention.release()
        await environment.end()
    }
}

extension StreamState {
    fileprivate var isOpen: Bool { if case .open = self { true } else { false } }
}

@Suite("The transport's contract over a real socket", .timeLimit(.minutes(5)))
struct CurlContractTests {
    /// Answers by the last word of the target or of the query, and counts who is connected.
    private static func server(event: String, completion: [ReplayServer.Step]) throws -> ReplayServer {
        try ReplayServer { _, request in
            let body = String(decoding: request.body, as: UTF8.self)
            func asks(_ word: String) -> Bool { request.target.hasSuffix(word) || body.contains(word) }
            /// A connection that is kept would be taken for a stream.
            func refuses(_ status: Int) -> [ReplayServer.Step] {
                [.send(ReplayServer.response(status, [("Connection", "close")])), .close]
            }
            if asks("silent") { return [.silence] }
            if asks("endless") { return [.send(head + event), .silence] }
            if asks("completing") { return [.send(head + event + event)] + completion }
            if asks("empty") { return refuses(204) }
            if asks("refused") { return refuses(403) }
            if asks("unavailable") { return refuses(503) }
            if asks("flooding") { return [.send(head), .sendForever(Array(event.utf8))] }
            return [.send(head + event), .close]
        }
    }

    private static func broken<Transport: SubscriptionTransport>(
        _ transport: Transport,
        _ server: ReplayServer,
        _ request: (String) -> Transport.Request
    ) async -> [String] {
        let contract = TransportContract(
            transport,
            // Beside the other tests, under a sanitizer, some megabytes of buffers take their time to fill.
            patience: .seconds(60),
            connections: { server.journal.openConnections },
            openings: { server.journal.requestCount },
            sent: { server.journal.bytesSent }
        )
        return await contract.check(
            endless: request("endless"),
            completing: request("completing"),
            cutOff: request("cut"),
            silent: request("silent"),
            refused: request("refused"),
            unavailable: request("unavailable"),
            flooding: request("flooding"),
            empty: request("empty")
        )
    }

    @Test("is kept for plain event streams, but for the completion that they have no word for")
    func eventSource() async throws {
        let server = try Self.server(event: "data: 1\n\n", completion: [.close])
        let broken = await Self.broken(try plain(server), server) { EventSourceRequest(target: "?\($0)") }
        // WHATWG HTML 9.2: a plain stream that ends is to be opened again; it has no word for its completion.
        #expect(broken.count == 1)
        #expect(broken.first?.hasPrefix("a completed stream failed: network") == true)
    }

    @Test("is kept for GraphQL over SSE")
    func graphQLOverSSE() async throws {
        let server = try Self.server(
            event: "event: next\ndata: {\"data\":1}\n\n",
            completion: [.send("event: complete\n\n"), .close]
        )
        let broken = await Self.broken(try graphQL(server), server) {
            GraphQLRequest(query: "subscription { \($0) }")
        }
        #expect(broken == [])
    }
}
