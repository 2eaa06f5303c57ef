import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

@Suite("Healthy streams among failing ones", .timeLimit(.minutes(5)))
struct StormTests {
    @Test("two hundred streams miss nothing while a thousand each of redirects, refusals, resets and 503s pass by")
    func storm() async throws {
        let scale = Setting.count("TRANSPORT_STORM", default: 250)
        let events = 200
        let healthy = try ReplayServer { _, request in
            let name = request.target
            let pieces = (0..<events).flatMap { number -> [ReplayServer.Step] in
                let text = "event: next\ndata: {\"data\":\"\(name) \(number)\"}\n\n"
                return number % 20 == 0 ? [.pause(.milliseconds(20)), .send(text)] : [.send(text)]
            }
            return [.send(head)] + pieces + [.send("event: complete\n\n"), .silence]
        }
        let failing = try ReplayServer { connection, request in
            switch request.target {
            case "/redirect": [.send(ReplayServer.response(307, [("Location", "/moved")]))]
            case "/reset": connection % 2 == 0 ? [.reset] : [.send(head + "data: a"), .reset]
            case "/busy": [.send(ReplayServer.response(503, [("Retry-After", "1")]))]
            default: [.send(ReplayServer.response(404))]
            }
        }
        let gone = try ReplayServer()
        gone.refuseConnections()

        let loop = try CurlLoop()
        let outcomes = Recorder<String>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                let transport = try GraphQLTransport(healthy.url + "/\(number)", dialect: GraphQLSSE(), loop: loop)
                group.addTask {
                    let read = await transport.read(GraphQLRequest(query: "subscription { a }"))
                    #expect(read.end == .completed)
                    let expected = (0..<events).map { "{\"data\":\"/\(number) \($0)\"}" }
                    #expect(read.payloads.map(\.text) == expected)
                    outcomes.append("healthy")
                }
            }
            let failures = [("/redirect", failing), ("/reset", failing), ("/busy", failing), ("/refused", gone)]
            for (path, server) in failures {
                let transport = try plain(server, path, loop: loop)
                for worker in 0..<8 {
                    group.addTask {
                        for _ in 0..<scale / 8 + (worker < scale % 8 ? 1 : 0) {
                            let read = await transport.read(EventSourceRequest())
                            #expect(read.end == .failed(path == "/redirect" ? .request : .network))
                            outcomes.append(path)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        var counts: [String: Int] = [:]
        for outcome in outcomes.values { counts[outcome, default: 0] += 1 }
        #expect(
            counts
                == ["healthy": 200, "/redirect": scale, "/reset": scale, "/busy": scale, "/refused": scale]
        )
        await loop.shutdown()
        #expect(await healthy.reaches { $0.openConnections == 0 })
        #expect(await failing.reaches { $0.openConnections == 0 })
    }
}
