import Glibc
import Testing

@testable import SubscriptionTesting

@Suite("A replay server")
struct ReplayServerTests {
    private let get = "GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"

    @Test("plays its bytes after the request, and closes at the script's end")
    func plays() async throws {
        let server = try ReplayServer(scripts: [[.expectRequest, .send("abc"), .send(""), .send("def")]])
        let client = try Client(port: server.port)
        try client.send(get)

        #expect(try client.receiveAll() == ("abcdef", false))

        #expect(await server.waitUntil { $0.openConnections == 0 })
        let journal = server.journal
        #expect(journal.connections == 1)
        #expect(journal.bytesSent == 6)
        #expect(journal[connection: 1]?.bytesSent == 6)
        #expect(journal[connection: 1]?.ended != nil)
        #expect(journal[connection: 1]?.peerEnd == nil)
        #expect(journal[connection: 2] == nil)
    }

    @Test("records a request: method, target, fields as they came")
    func recordsHead() async throws {
        let server = try ReplayServer(scripts: [[.expectRequest]])
        let client = try Client(port: server.port)
        try client.send(get)
        #expect(try client.receiveAll() == ("", false))

        let request = try #require(server.journal.requests.first)
        #expect(request.connection == 1)
        #expect(request.method == "GET")
        #expect(request.target == "/a?b=c")
        #expect(request.field("accept") == "text/event-stream")
        #expect(request.field("X") == nil)
        #expect(request.head == Array(get.utf8))
        #expect(request.body == [])
    }

    @Test("reads content by its length and by chunks, and one request after the other")
    func recordsBodies() async throws {
        let server = try ReplayServer(scripts: [[.expectRequest, .expectRequest, .expectRequest, .send("done")]])
        let client = try Client(port: server.port)
        try client.send("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello" + get)
        try client.send(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\n"
        )
        #expect(try client.receiveAll() == ("done", false))

        let bodies = server.journal.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == ["hello", "", "abc0123456789"])
        #expect(server.journal[connection: 1]?.requests == 3)
    }

    @Test("says why a request cannot be read")
    func unreadableRequest() async throws {
        let server = try ReplayServer(scripts: [[.expectRequest, .send("never")]])
        let client = try Client(port: server.port)
        try client.send("nonsense\r\n\r\n")
        #expect(try client.receiveAll() == ("", false))

        #expect(await server.waitUntil { $0[connection: 1]?.ended != nil })
        #expect(server.journal[connection: 1]?.problem == "a request line cannot be read")
        #expect(server.journal.requests.isEmpty)
    }

    @Test("resets after the peer has all the bytes")
    func resets() async throws {
        let text = String(repeating: "0123456789", count: 20_000)
        let server = try ReplayServer(scripts: [[.expectRequest, .send(text), .reset]])
        let client = try Client(port: server.port)
        try client.send(get)
        #expect(try client.receiveAll() == (text, true))
    }

    @Test("cuts after every byte of a script, by FIN and by RST", arguments: [ReplayServer.Cut.close, .reset])
    func cutsAnywhere(cut: ReplayServer.Cut) async throws {
        let script: [ReplayServer.Step] = [
            .expectRequest, .send("abc"), .sendRepeating([1], count: 0), .sendRepeating([1], count: -1),
            .sendRepeating(Array("de".utf8), count: 3), .silence,
        ]
        let whole = "abcdedede"
        let server = try ReplayServer(
            scripts: (0...whole.utf8.count).map { ReplayServer.cut(script, after: $0, by: cut) }
        )
        for count in 0...whole.utf8.count {
            let client = try Client(port: server.port)
            try client.send(get)
            #expect(try client.receiveAll() == (String(whole.prefix(count)), cut == .reset))
        }
    }

    @Test("pauses for its time")
    func pauses() async throws {
        let server = try ReplayServer(scripts: [[.send("a"), .pause(.milliseconds(50)), .send("b")]])
        let client = try Client(port: server.port)
        let start = ContinuousClock.now
        #expect(try client.receiveAll() == ("ab", false))
        #expect(start.duration(to: .now) >= .milliseconds(50))
    }

    @Test("is silent until it is told to go on, once a silence")
    func silence() async throws {
        let server = try ReplayServer(scripts: [[.send("a"), .silence, .send("b"), .silence, .send("c")]])
        let client = try Client(port: server.port)
        #expect(try client.receive(exactly: 1) == "a")
        server.proceed(2)
        server.proceed(1)
        #expect(try client.receive(exactly: 1) == "b")
        #expect(server.journal.bytesSent == 2)
        server.proceed()
        #expect(try client.receiveAll() == ("c", false))
    }

    @Test("goes through the next silence when it was told before")
    func earlyProceed() async throws {
        let server = try ReplayServer(scripts: [[.expectRequest, .silence, .send("a")]])
        let client = try Client(port: server.port)
        #expect(await server.waitUntil { $0.connections == 1 })
        server.proceed()
        try client.send(get)
        #expect(try client.receiveAll() == ("a", false))
    }

    @Test(
        "sees at once, in every step that waits, that and how the peer ended",
        arguments: [
            .silence, .pause(.seconds(3600)), .expectRequest, .sendForever(Array("x".utf8)),
        ] as [ReplayServer.Step],
        [false, true]
    )
    func peerEnds(step: ReplayServer.Step, byReset: Bool) async throws {
        let server = try ReplayServer(scripts: [[.expectRequest, .send("a"), step, .send("never")]])
        let client = try Client(port: server.port)
        try client.send(get)
        #expect(try client.receive(exactly: 1) == "a")

        let closing = ContinuousClock.now
        client.close(byReset: byReset)

        #expect(await server.waitUntil { $0[connection: 1]?.ended != nil })
        let record = try #require(server.journal[connection: 1])
        let seen = try #require(record.peerEnded)
        // A FIN that leaves bytes unread is a RST (RFC 9293, section 3.10.4).
        if case .sendForever = step {} else { #expect(record.peerEnd == (byReset ? .reset : .closed)) }
        #expect(seen >= closing)
        #expect(record.problem == (step == .expectRequest ? "the peer ended before a whole request" : nil))
    }

    @Test("half closes, and still reads")
    func halfCloses() async throws {
        let server = try ReplayServer(scripts: [[.send("a"), .halfClose, .expectRequest, .silence]])
        let client = try Client(port: server.port)
        #expect(try client.receiveAll() == ("a", false))
        try client.send(get)
        #expect(await server.waitUntil { $0.requests.count == 1 })
        #expect(server.journal.openConnections == 1)
    }

    @Test("repeats bytes as often as it is told, in order")
    func repeats() async throws {
        let count = 30_001
        let server = try ReplayServer(scripts: [[.sendRepeating(Array("0123456".utf8), count: count)]])
        let client = try Client(port: server.port)
        #expect(try client.receiveAll() == (String(repeating: "0123456", count: count), false))
        #expect(server.journal.bytesSent == 7 * count)
    }

    @Test("M1: sends without end, is held back while nobody reads, says so, and goes on")
    func backpressure() async throws {
        let server = try ReplayServer(sendBuffer: 16_384, scripts: [[.sendForever(Array("0123456789".utf8))]])
        let client = try Client(port: server.port, receiveBuffer: 16_384)
        #expect(await server.waitUntil { $0[connection: 1]?.isHeldBack == true })

        let sent = server.journal.bytesSent
        #expect(sent > 0 && sent < 1 << 20)
        let expected = String(repeating: "0123456789", count: sent / 10)
        #expect(try client.receive(exactly: expected.utf8.count) == expected)
        _ = try client.receive(exactly: 200_000)

        #expect(await server.waitUntil { $0.bytesSent > sent })
    }

    @Test("plays its scripts in order, one a connection, then the other one, and what is added later")
    func scriptsInOrder() async throws {
        let server = try ReplayServer(scripts: [[.send("1")], [.send("2")]], otherwise: [.send("x")])
        func next() throws -> String { try Client(port: server.port).receiveAll().text }
        #expect(try [next(), next(), next(), next()] == ["1", "2", "x", "x"])
        server.enqueue([.send("3")])
        #expect(try [next(), next()] == ["3", "x"])
        #expect(server.journal.connections == 6)
    }

    @Test("asks a function what to answer, request by request, and keeps the connection")
    func responds() async throws {
        let server = try ReplayServer { connection, request in
            let body = "\(connection) \(request.method) \(request.target)"
            return request.target == "/bye" ? [.send(body), .close] : [.send(ReplayServer.response(200, body: body))]
        }
        let client = try Client(port: server.port)
        let answer = "HTTP/1.1 200 \r\nContent-Length: 6\r\n\r\n1 GET "
        try client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(
            try client.receive(exactly: answer.utf8.count + 1) == "HTTP/1.1 200 \r\nContent-Length: 7\r\n\r\n1 GET /"
        )
        try client.send("GET /bye HTTP/1.1\r\n\r\n")
        #expect(try client.receiveAll() == ("1 GET /bye", false))

        let other = try Client(port: server.port)
        #expect(await server.waitUntil { $0.connections == 2 })
        other.close()
        #expect(await server.waitUntil { $0.openConnections == 0 })
        #expect(server.journal[connection: 2]?.problem == nil, "the peer may leave between two requests")
    }

    @Test("refuses connections and accepts them again on the same port, as a server that restarts")
    func restarts() async throws {
        let server = try ReplayServer(otherwise: [.send("a"), .silence])
        let client = try Client(port: server.port)
        #expect(try client.receive(exactly: 1) == "a")

        for _ in 0..<3 {
            server.refuseConnections()
            let failure = try #require(throws: Client.Failure.self) { try Client(port: server.port) }
            #expect(failure.errno == ECONNREFUSED)
            #expect(server.journal.openConnections == 1, "an open one stays")

            try server.acceptConnections()
            try server.acceptConnections()
            let next = try Client(port: server.port)
            #expect(try next.receive(exactly: 1) == "a")
            next.close()
            #expect(await server.waitUntil { $0.openConnections == 1 })
        }
    }

    @Test("ends all connections by FIN or by RST", arguments: [ReplayServer.Cut.close, .reset])
    func endsConnections(cut: ReplayServer.Cut) async throws {
        let server = try ReplayServer(otherwise: [.send("a"), .silence])
        let clients = try (0..<5).map { _ in try Client(port: server.port) }
        for client in clients { #expect(try client.receive(exactly: 1) == "a") }

        server.endConnections(by: cut)

        #expect(server.journal.openConnections == 0)
        for client in clients { #expect(try client.receiveAll() == ("", cut == .reset)) }
        #expect(try Client(port: server.port).receive(exactly: 1) == "a", "others are accepted")
    }

    @Test("serves 300 connections at once")
    func manyConnections() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .silence, .send("a")])
        let clients = try (0..<300).map { _ in try Client(port: server.port) }
        for client in clients { try client.send(get) }
        #expect(await server.waitUntil { $0.requests.count == 300 })
        #expect(server.journal.openConnections == 300)
        server.proceed()
        for client in clients { #expect(try client.receiveAll() == ("a", false)) }
    }

    @Test("sees a peer's end before the connection that came after it")
    func endsBeforeWhatFollows() async throws {
        let count = 2000
        let server = try ReplayServer(otherwise: [.silence])
        for _ in 0..<count { try Client(port: server.port).close() }
        #expect(await server.waitUntil { $0.connections == count && $0.openConnections == 0 })
        let records = server.journal.records
        for (earlier, later) in zip(records, records.dropFirst()) {
            let ended = try #require(earlier.ended)
            #expect(ended <= later.accepted, "\(earlier) and \(later)")
        }
    }

    @Test("closes everything when it stops, as often as it is told to, and keeps its journal")
    func stops() async throws {
        let server = try ReplayServer(otherwise: [.send("a"), .silence])
        let client = try Client(port: server.port)
        #expect(try client.receive(exactly: 1) == "a")

        server.stop()
        server.stop()

        #expect(try client.receiveAll() == ("", false))
        #expect(throws: Client.Failure.self) { try Client(port: server.port) }
        #expect(server.journal.connections == 1)
        #expect(server.journal.openConnections == 0)
        #expect(await server.waitUntil { $0.connections == 1 })
        #expect(await server.waitUntil(timeout: .seconds(3600)) { $0.connections == 2 } == false)
        server.proceed()
        server.refuseConnections()
        server.endConnections()
    }

    @Test("stops with its last reference")
    func stopsWithItsLastReference() async throws {
        var server: ReplayServer? = try ReplayServer(otherwise: [.silence])
        let client = try Client(port: try #require(server?.port))
        #expect(await server?.waitUntil { $0.connections == 1 } == true)
        server = nil
        #expect(try client.receiveAll() == ("", false))
    }

    @Test("can be stopped while somebody waits for it")
    func stopsAWait() async throws {
        let server = try ReplayServer()
        async let isFulfilled = server.waitUntil(timeout: .seconds(3600)) { $0.connections == 1 }
        server.stop()
        #expect(await isFulfilled == false)
    }

    @Test("ends every wait at its deadline, also while nothing happens", .timeLimit(.minutes(1)))
    func deadlines() async throws {
        let server = try ReplayServer()
        for _ in 0..<20 {
            #expect(await server.waitUntil(timeout: .milliseconds(2)) { $0.connections == 1 } == false)
        }
    }

    @Test("takes a wait's condition as it is, at its deadline, and at its task's cancellation")
    func waits() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        #expect(await server.waitUntil(timeout: .zero) { $0.connections == 0 })
        #expect(await server.waitUntil(timeout: .zero) { $0.connections == 1 } == false)

        let start = ContinuousClock.now
        #expect(await server.waitUntil(timeout: .milliseconds(30)) { $0.connections == 1 } == false)
        #expect(start.duration(to: .now) >= .milliseconds(30))

        let waiting = Task { await server.waitUntil(timeout: .seconds(3600)) { $0.connections == 1 } }
        waiting.cancel()
        #expect(await waiting.value == false)
    }

    @Test("tells all that wait")
    func manyWait() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        await withTaskGroup(of: Bool.self) { group in
            for count in 1...20 {
                group.addTask { await server.waitUntil { $0.connections >= count } }
            }
            let clients = (0..<20).compactMap { _ in try? Client(port: server.port) }
            for await isFulfilled in group { #expect(isFulfilled) }
            #expect(clients.count == 20)
        }
    }

    @Test("says which call failed when it cannot start")
    func cannotStart() throws {
        let server = try ReplayServer()
        let error = try #require(throws: ReplayServerError.self) { try ReplayServer(port: server.port) }
        #expect(error.errno == EADDRINUSE)
        #expect(throws: ReplayServerError(call: "inet_pton", errno: EINVAL)) { try ReplayServer(host: "nowhere") }
        #expect(server.url == "http://127.0.0.1:\(server.port)")
    }
}
