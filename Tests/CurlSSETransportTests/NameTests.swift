import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import SystemProbe
import Testing

private let head = ReplayServer.eventStreamHead

@Suite("The names of servers", .timeLimit(.minutes(5)))
struct NameTests {
    /// A server that gives each connection one event, and then says nothing.
    private func oneEvent() throws -> ReplayServer {
        try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
    }

    @Test("L7: a name whose server is gone is looked up anew by the next opening, and not while its server is there")
    func moved() async throws {
        let server = try oneEvent()
        // Nobody listens on the server's port there.
        probe_set_name("moved.test", "127.0.0.2")
        let transport = try plain("http://moved.test:\(server.port)/")
        let gone = await transport.read(EventSourceRequest())
        #expect(gone.error?.curlCode == 7)
        probe_set_name("moved.test", "127.0.0.1")
        var streams = [try await transport.open(EventSourceRequest(), resuming: nil)]
        #expect(probe_lookups("moved.test") == 2)
        streams.append(try await transport.open(EventSourceRequest(), resuming: nil))
        #expect(probe_lookups("moved.test") == 2)
        #expect(server.journal.requestCount == 2)
        withExtendedLifetime(streams) {}
    }

    @Test("L7: nor does a stream that went silent come back to the address it had", arguments: [true, false])
    func silent(opens: Bool) async throws {
        let server = try opens ? oneEvent() : ReplayServer(otherwise: [.expectRequest, .silence])
        let name = "silent-\(opens).test"
        probe_set_name(name, "127.0.0.1")
        let transport = try plain("http://\(name):\(server.port)/") {
            $0.idleTimeout = .milliseconds(100)
            $0.firstByteTimeout = opens ? .seconds(60) : .milliseconds(100)
        }
        let silent = await transport.read(EventSourceRequest())
        #expect(silent.payloads.count == (opens ? 1 : 0))
        #expect(silent.error?.message.contains(opens ? "said nothing" : "did not answer") == true)
        probe_set_name(name, "127.0.0.2")
        let gone = await transport.read(EventSourceRequest())
        #expect(gone.error?.curlCode == 7)
        #expect(server.journal.connections == 1)
    }

    @Test("L7: the connections that are kept to a host that does not answer are not all tried in turn")
    func keptConnections() async throws {
        // Each connection answers once, and never again.
        let server = try ReplayServer(otherwise: [
            .expectRequest, .pause(.milliseconds(300)), .send(ReplayServer.response(404, body: "no")),
            .expectRequest, .silence,
        ])
        let transport = try plain(server) { $0.firstByteTimeout = .seconds(1) }
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { #expect(await transport.read(EventSourceRequest()).error?.status == 404) }
            }
        }
        #expect(server.journal.connections == 4)
        let silent = await transport.read(EventSourceRequest())
        #expect(silent.error?.message.contains("did not answer within 1 s") == true)
        #expect(server.journal.connections == 4)
        #expect(await transport.read(EventSourceRequest()).error?.status == 404)
        #expect(server.journal.connections == 5)
    }

    @Test("a name that no resolver answers for holds up its own opening alone, to its deadline")
    func unanswered() async throws {
        probe_set_name("unanswered.test", "")
        defer { probe_set_name("unanswered.test", "127.0.0.1") }
        let loop = try CurlLoop()
        let transport = try plain("http://unanswered.test/", loop: loop) { $0.connectTimeout = .milliseconds(300) }
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.error?.message == "no connection to unanswered.test:80 within 300 ms")
        #expect(elapsed >= .milliseconds(300))
        #expect(probe_lookups("unanswered.test") == 1)
        // The resolver's thread is where it was, and the loop goes on.
        let server = try oneEvent()
        let stream = try await plain(server, loop: loop).open(EventSourceRequest(), resuming: nil)
        withExtendedLifetime(stream) {}
        await loop.shutdown()
    }

    @Test("an opening that is cancelled while its name is looked up ends then, and so does its loop")
    func cancelled() async throws {
        probe_set_name("cancelled.test", "")
        defer { probe_set_name("cancelled.test", "127.0.0.1") }
        let loop = try CurlLoop()
        let server = try oneEvent()
        let transport = try plain("http://cancelled.test:\(server.port)/", loop: loop)
        let task = Task { await transport.read(EventSourceRequest()) }
        #expect(await holds { probe_lookups("cancelled.test") == 1 })
        task.cancel()
        let read = await task.value
        #expect(read.error?.message == "the opening was cancelled")
        let stream = try await plain(server, loop: loop).open(EventSourceRequest(), resuming: nil)
        withExtendedLifetime(stream) {}
        let other = Task { await transport.read(EventSourceRequest()) }
        #expect(await holds { probe_lookups("cancelled.test") == 2 })
        await loop.shutdown()
        #expect(await other.value.end == .failed(.environment))
        #expect(server.journal.connections == 1)
    }
}
