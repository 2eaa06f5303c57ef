import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private typealias Recorded = ReplayServer.RecordedRequest

private let head = ReplayServer.eventStreamHead

/// A server that sends every path it has an answer for to a Location, and streams one event for any other.
private func redirecting(_ locations: [String: (status: Int, location: String?)] = [:]) throws -> ReplayServer {
    try ReplayServer { _, request in
        guard let (status, location) = locations[request.target] else {
            return [.send(head + "id: 1\ndata: here\n\n"), .close]
        }
        let fields = location.map { [("Location", $0)] } ?? []
        return [.send(ReplayServer.response(status, fields, body: "moved, data: x\n\n"))]
    }
}

@Suite("Redirects over real servers", .timeLimit(.minutes(5)))
struct RedirectTests {
    @Test(
        "every redirect of a GET is followed at the same origin, with all of the request",
        arguments: [301, 302, 303, 307, 308]
    )
    func sameOrigin(status: Int) async throws {
        let server = try redirecting(["/a": (status, "/b?x=1")])
        let credentials = Credentials(deadline: .seconds(300)) { _ in [HTTPField("Authorization", "Bearer t")] }
        let read = try await plain(server, "/a", credentials: credentials).read(
            EventSourceRequest(headers: [HTTPField("X-Api-Key", "k")], lastEventID: "7")
        )
        #expect(read.payloads.map(\.data.text) == ["here"])
        let requests = server.journal.requests
        #expect(requests.map(\.target) == ["/a", "/b?x=1"])
        for request in requests {
            #expect(request.method == "GET")
            #expect(request.field("Authorization") == "Bearer t")
            #expect(request.field("X-Api-Key") == "k")
            #expect(request.field("Last-Event-ID") == "7")
            #expect(request.all("Accept") == ["text/event-stream"])
        }
    }

    @Test("S1: a hop to another origin carries the dialect's fields alone, and so does the way back")
    func crossOrigin() async throws {
        let back = Recorder<String>()
        let first = try ReplayServer { _, request in
            if request.target == "/back" { return [.send(head + "data: back\n\n"), .close] }
            return [.send(ReplayServer.response(307, [("Location", back.values[0])]))]
        }
        let second = try redirecting(["/there": (307, first.url + "/back")])
        back.append(second.url + "/there")
        let credentials = Credentials(deadline: .seconds(300)) { _ in [HTTPField("Authorization", "Bearer t")] }
        let url = "http://user:word@127.0.0.1:\(first.port)/a"
        let read = try await plain(url, credentials: credentials).read(
            EventSourceRequest(headers: [HTTPField("X-Api-Key", "k"), HTTPField("Cookie", "c=1")], lastEventID: "7")
        )
        #expect(read.payloads.map(\.data.text) == ["back"])
        let hops = first.journal.requests.prefix(1) + second.journal.requests + first.journal.requests.dropFirst()
        #expect(hops.map(\.target) == ["/a", "/there", "/back"])
        #expect(hops[0].field("Authorization") == "Bearer t")
        #expect(hops[0].field("Cookie") == "c=1")
        for request in hops.dropFirst() {
            let names = Set(request.fields.map { $0.name.lowercased() })
            #expect(names == ["host", "accept", "cache-control", "user-agent"])
            #expect(request.all("Accept") == ["text/event-stream"])
        }
    }

    @Test("a trusted origin gets all of the request, its content included")
    func trusted() async throws {
        let second = try redirecting()
        let first = try redirecting(["/a": (308, second.url + "/b")])
        let credentials = Credentials(deadline: .seconds(300)) { _ in [HTTPField("Authorization", "Bearer t")] }
        let read = try await plain(first, "/a", credentials: credentials) { $0.trustedOrigins = [second.url] }.read(
            EventSourceRequest(
                method: "POST",
                headers: [HTTPField("X-Api-Key", "k")],
                body: Array("question".utf8),
                lastEventID: "7"
            )
        )
        #expect(read.payloads.map(\.data.text) == ["here"])
        let request = try #require(second.journal.requests.first)
        #expect(request.method == "POST")
        #expect(request.body == Array("question".utf8))
        #expect(request.field("Authorization") == "Bearer t")
        #expect(request.field("X-Api-Key") == "k")
        #expect(request.field("Last-Event-ID") == "7")
    }

    @Test(
        "H4: a request with content is sent again by 307 and 308 and refused by the others",
        arguments: [301, 302, 303, 307, 308]
    )
    func content(status: Int) async throws {
        let server = try redirecting(["/a": (status, "/b")])
        let read = try await plain(server, "/a").read(
            EventSourceRequest(method: "POST", body: Array("question".utf8))
        )
        let requests = server.journal.requests
        if status >= 307 {
            #expect(read.payloads.map(\.data.text) == ["here"])
            #expect(requests.map(\.method) == ["POST", "POST"])
            #expect(requests.map(\.body) == Array(repeating: Array("question".utf8), count: 2))
        } else {
            #expect(read.end == .failed(.request))
            #expect(read.error?.status == status)
            #expect(read.error?.message.hasSuffix("it would turn the POST into a GET without its content") == true)
            #expect(requests.count == 1)
        }
    }

    @Test("a request with content does not go to another origin")
    func contentCrossOrigin() async throws {
        let second = try redirecting()
        let first = try redirecting(["/a": (307, second.url + "/b")])
        let read = try await plain(first, "/a").read(EventSourceRequest(method: "POST", body: [1]))
        #expect(read.end == .failed(.request))
        #expect(read.error?.message.contains("another origin, which is not trusted") == true)
        #expect(second.journal.connections == 0)
    }

    @Test(
        "H3: a Location that is missing, broken or leads elsewhere fails the request, with no connection to anywhere",
        arguments: [
            nil, "", "http://[::", "ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1/", "http://",
            "http://user:word@127.0.0.1:1/", "unix:///x", "/b c\u{7F}", "//", "javascript:alert(1)",
        ]
    )
    func badLocation(location: String?) async throws {
        let server = try redirecting(["/a": (302, location)])
        let read = try await plain(server, "/a").read(EventSourceRequest())
        #expect(read.end == .failed(.request), "\(String(describing: location))")
        #expect(read.error?.status == 302)
        #expect(read.error?.message.contains("answered 302 (HTTP/1.1), which was not followed: ") == true)
        #expect(server.journal.requestCount == 1)
    }

    @Test("a loop is refused, and so is the eleventh hop; the tenth is followed")
    func loops() async throws {
        let loop = try redirecting(["/a": (302, "/b"), "/b": (302, "/a")])
        let looped = try await plain(loop, "/a").read(EventSourceRequest())
        #expect(looped.end == .failed(.request))
        #expect(looped.error?.message.contains("leads back to a URL that was asked before") == true)
        #expect(loop.journal.requestCount == 2)

        let itself = try redirecting(["/a": (302, "/a#fragment")])
        let selfLooped = try await plain(itself, "/a").read(EventSourceRequest())
        #expect(selfLooped.end == .failed(.request))
        #expect(itself.journal.requestCount == 1)

        var hops: [String: (status: Int, location: String?)] = [:]
        for hop in 0..<11 { hops["/\(hop)"] = (302, "/\(hop + 1)") }
        let long = try redirecting(hops)
        let tooLong = try await plain(long, "/0").read(EventSourceRequest())
        #expect(tooLong.end == .failed(.request))
        #expect(tooLong.error?.message.contains("one more than the 10 redirects") == true)
        #expect(long.journal.requestCount == 11)
        let tenth = try await plain(long, "/1").read(EventSourceRequest())
        #expect(tenth.payloads.map(\.data.text) == ["here"])
    }

    @Test("a hop that cannot be connected to fails by its own facts, and not by those of the hop before")
    func deadHop() async throws {
        let gone = try ReplayServer()
        let dead = gone.url
        let port = gone.port
        gone.stop()
        let server = try redirecting(["/a": (302, dead + "/b")])
        let read = try await plain(server, "/a").read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.host == "127.0.0.1:\(port)")
        #expect(read.error?.status == nil)
        #expect(read.error?.httpVersion == nil)
        #expect(read.error?.curlCode == 7)
    }

    @Test("the way from http to https is followed, as another origin")
    func upgrade() async throws {
        let secure = try ReplayServer(otherwise: [.silence])
        let server = try redirecting(["/a": (302, "https://127.0.0.1:\(secure.port)/b")])
        let read = try await plain(server, "/a") { $0.connectTimeout = .milliseconds(300) }.read(EventSourceRequest())
        #expect(read.error?.message == "no connection to 127.0.0.1:\(secure.port) within 300 ms")
        #expect(secure.journal.connections == 1)
    }

    @Test("many redirects at once, through one place in the line, all arrive")
    func burst() async throws {
        let server = try redirecting(["/a": (307, "/b"), "/b": (307, "/c")])
        let transport = try plain(server, "/a") { $0.maxConcurrentOpenings = 1 }
        let count = 200
        let arrived = await withTaskGroup { group in
            for _ in 0..<count { group.addTask { await transport.read(EventSourceRequest()).payloads.count } }
            return await group.reduce(0, +)
        }
        #expect(arrived == count)
        #expect(transport.counters.faults == 0)
    }

    @Test("a redirect that is there before the request has left keeps the order of the next origin's line")
    func early() async throws {
        // Accepts, and says nothing of TLS: an opening holds its place for the whole of the connect deadline.
        let silent = try ReplayServer(otherwise: [.silence])
        let redirect = ReplayServer.response(302, [("Location", "https://127.0.0.1:\(silent.port)/")])
        let eager = try ReplayServer(otherwise: [.send(redirect), .silence])
        let transport = try plain(eager) {
            $0.httpVersion = .http1_1
            $0.maxConcurrentOpenings = 1
            $0.connectTimeout = .seconds(2)
            $0.admissionTimeout = .seconds(30)
        }
        let messages = await withTaskGroup { group in
            for _ in 0..<4 { group.addTask { await transport.read(EventSourceRequest()).error?.message } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(messages == Array(repeating: "no connection to 127.0.0.1:\(silent.port) within 2 s", count: 4))
        #expect(await silent.reaches { $0.connections == 4 && $0.openConnections == 0 })
        let records = silent.journal.records
        for (earlier, later) in zip(records, records.dropFirst()) {
            #expect((earlier.ended ?? .now) <= later.accepted)
        }
    }
}
