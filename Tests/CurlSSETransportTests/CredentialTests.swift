import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

/// A server that knows one token, and streams one event to whoever has it.
private func guarded(_ token: String) throws -> ReplayServer {
    try ReplayServer { _, request in
        guard request.field("Authorization") == token else {
            return [.send(ReplayServer.response(401, [("WWW-Authenticate", "Bearer")], body: "who are you?"))]
        }
        return [.send(head + "data: in\n\n"), .close]
    }
}

@Suite("Credentials", .timeLimit(.minutes(5)))
struct CredentialTests {
    struct Broken: Error {}

    @Test("the provider is asked anew for each opening, and its fields replace the caller's of the same name")
    func eachOpening() async throws {
        let server = try ReplayServer.answering(head)
        let asked = Recorder<Bool>()
        let credentials = Credentials(deadline: .seconds(300)) { refused in
            asked.append(refused)
            return [HTTPField("authorization", "token-\(asked.values.count)")]
        }
        let transport = try plain(server, credentials: credentials)
        for _ in 0..<2 { _ = await transport.read(EventSourceRequest(headers: [HTTPField("Authorization", "own")])) }
        #expect(server.journal.requests.map { $0.all("Authorization") } == [["token-1"], ["token-2"]])
        #expect(asked.values == [false, false])
    }

    @Test("a 401 asks the provider once more, as refused, and the server again")
    func refusedOnce() async throws {
        let server = try guarded("new")
        let asked = Recorder<Bool>()
        let credentials = Credentials(deadline: .seconds(300)) { refused in
            asked.append(refused)
            return [HTTPField("Authorization", refused ? "new" : "old")]
        }
        let read = try await plain(server, credentials: credentials).read(EventSourceRequest())
        #expect(read.payloads.map(\.data.text) == ["in"])
        #expect(asked.values == [false, true])
        #expect(server.journal.requests.map { $0.field("Authorization") } == ["old", "new"])
    }

    @Test("a second 401 is a request error with the server's words")
    func refusedTwice() async throws {
        let server = try guarded("unknown")
        let credentials = Credentials(deadline: .seconds(300)) { refused in
            [HTTPField("Authorization", refused ? "new" : "old")]
        }
        let read = try await plain(server, credentials: credentials).read(EventSourceRequest())
        #expect(read.end == .failed(.request))
        #expect(read.error?.status == 401)
        #expect(read.error?.bodyPrefix == Array("who are you?".utf8))
        #expect(server.journal.requestCount == 2)
    }

    @Test("a 401 without a provider is a request error at once")
    func nobodyToAsk() async throws {
        let server = try guarded("unknown")
        let read = try await plain(server).read(EventSourceRequest())
        #expect(read.end == .failed(.request))
        #expect(read.error?.status == 401)
        #expect(server.journal.requestCount == 1)
    }

    @Test("a 401 of another origin, which the credentials did not go to, asks nobody")
    func foreign() async throws {
        let server = try guarded("new")
        let first = try ReplayServer { _, _ in [.send(ReplayServer.response(302, [("Location", server.url)]))] }
        let asked = Recorder<Bool>()
        let credentials = Credentials(deadline: .seconds(300)) { refused in
            asked.append(refused)
            return [HTTPField("Authorization", "new")]
        }
        let read = try await plain(first, credentials: credentials).read(EventSourceRequest())
        #expect(read.end == .failed(.request))
        #expect(read.error?.status == 401)
        #expect(asked.values == [false])
        #expect(server.journal.requests.map { $0.field("Authorization") } == [nil])
    }

    @Test("a provider that throws is a network failure that names the error's type and not its text")
    func throwing() async throws {
        let server = try ReplayServer.answering(head)
        let read = try await plain(server, credentials: Credentials(deadline: .seconds(300)) { _ in throw Broken() })
            .read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.message == "the credentials provider failed with Broken")
        #expect(server.journal.connections == 0)
    }

    @Test("a deadline below zero is refused where it is given")
    func negativeDeadline() throws {
        let error = #expect(throws: TransportError.self) {
            try EventSourceTransport(
                "http://127.0.0.1:1",
                dialect: EventSource(),
                credentials: Credentials(deadline: .seconds(-1)) { _ in [] }
            )
        }
        #expect(error?.kind == .environment)
        #expect(error?.message == "the credentials' deadline is -1.0 seconds, not 0 s or more")
    }

    @Test(
        "a provider that hangs is a network failure at its deadline, and its task is cancelled",
        arguments: [true, false]
    )
    func hanging(first: Bool) async throws {
        let server = try guarded("unknown")
        let cancelled = Recorder<Bool>()
        let credentials = Credentials(deadline: .seconds(1)) { refused in
            guard refused != first else { return [] }
            let (never, _) = AsyncStream<Void>.makeStream()
            for await _ in never {}
            cancelled.append(Task.isCancelled)
            return []
        }
        let transport = try plain(server, credentials: credentials)
        // Where the pool is busy even a provider that answers at once may be late: then it is asked again.
        for _ in 0..<60 where cancelled.values.isEmpty {
            let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
            #expect(read.end == .failed(.network))
            #expect(read.error?.message == "the credentials provider did not answer within 1.0 seconds")
            #expect(elapsed >= .seconds(1))
            if first { break }
        }
        #expect(await holds { cancelled.values.first == true })
        #expect(first ? server.journal.requestCount == 0 : server.journal.requestCount > 0)
    }

    @Test("an opening that is cancelled while the provider is asked ends at once, and so does the provider's task")
    func cancelled() async throws {
        let server = try ReplayServer.answering(head)
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let (cancelled, mark) = AsyncStream<Void>.makeStream()
        let transport = try plain(
            server,
            credentials: Credentials(deadline: .seconds(300)) { _ in
                asking.yield()
                let (never, _) = AsyncStream<Void>.makeStream()
                for await _ in never {}
                mark.yield()
                return []
            }
        )
        let opening = Task { await transport.read(EventSourceRequest()) }
        for await _ in asked { break }
        opening.cancel()
        #expect(await opening.value.end == .failed(.network))
        for await _ in cancelled { break }
        #expect(server.journal.connections == 0)
    }

    @Test("a loop that has ended is an environment failure, also where credentials would be asked for")
    func ended() async throws {
        let server = try ReplayServer.answering(head)
        let transport = try plain(
            server,
            credentials: Credentials(deadline: .seconds(300)) { _ in
                let (never, _) = AsyncStream<Void>.makeStream()
                for await _ in never {}
                return []
            }
        )
        await transport.curlLoop.shutdown()
        let read = await transport.read(EventSourceRequest())
        #expect(read.end == .failed(.environment))
    }

    @Test("fields of the credentials that cannot be sent are a request error, before any byte is sent")
    func invalid() async throws {
        let server = try ReplayServer.answering(head)
        for value in ["a\r\nX-Evil: hunter2", "hunter2\0", "hunter2\n"] {
            let credentials = Credentials(deadline: .seconds(300)) { _ in [HTTPField("Authorization", value)] }
            let read = try await plain(server, credentials: credentials).read(EventSourceRequest())
            #expect(read.end == .failed(.request))
            #expect(read.error?.message.contains("hunter2") == false)
        }
        #expect(server.journal.connections == 0)
    }
}
