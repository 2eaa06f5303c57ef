import Foundation
import SubscriptionTesting
import Testing

@testable import subscribe

/// The tool as a user has it: a process, against a server on the loopback.
@Suite("The tool", .timeLimit(.minutes(2)))
struct ToolProcessTests {
    private static let head = ReplayServer.Step.send(ReplayServer.eventStreamHead)

    private func server(_ scripts: [[ReplayServer.Step]]) throws -> ReplayServer {
        try ReplayServer(scripts: scripts.map { [.expectRequest] + $0 }, otherwise: [.expectRequest, .silence])
    }

    @Test("comes back to a server that closes after each event, from where it was")
    func comesBack() async throws {
        let server = try server([
            [Self.head, .send("id: 7\ndata: a\n\n")],
            [Self.head, .send("id: 8\ndata: b\n\nid: 9\ndata: c\n\n")],
            [.send(ReplayServer.response(204))],
        ])
        defer { server.stop() }

        let (lines, code) = try await ToolProcess([server.url, "--plain", "--json"]).output()

        #expect(
            lines.map(gist) == [
                "connecting", "open", "event a", "error network", "waiting", "connecting", "open", "resumed 1",
                "event b", "event c", "error network", "waiting", "connecting", "open", "resumed 2", "complete",
                "ended",
            ]
        )
        #expect(code == 0)
        #expect(server.journal.requests.map { $0.field("Last-Event-ID") } == [nil, "7", "9"])
    }

    @Test("says who refused the connection, and waits half a second to one, then one to two")
    func nobodyListens() async throws {
        let server = try server([])
        server.refuseConnections()
        defer { server.stop() }

        let tool = try ToolProcess([server.url, "--plain", "--json", "--max-time", "2.2"])
        let (lines, code) = await tool.output()

        #expect(lines.prefix(5).map(gist) == ["connecting", "error network", "waiting", "connecting", "error network"])
        #expect(lines.dropFirst().first?.contains("127.0.0.1:\(server.port)") == true)
        #expect(lines.dropFirst().first?.contains("onnection refused") == true)
        let waits = try lines.compactMap { line -> Double? in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return (object?["seconds"] as? NSNumber)?.doubleValue
        }
        let first = try #require(waits.first)
        let second = try #require(waits.dropFirst().first)
        #expect((0.5...1).contains(first))
        #expect((1.0...2).contains(second))
        #expect(code == 4)
    }

    @Test("ends after --count payloads, and leaves the rest")
    func count() async throws {
        let server = try server([[Self.head, .send("data: 1\n\ndata: 2\n\ndata: 3\n\n"), .silence]])
        defer { server.stop() }

        let (lines, code) = try await ToolProcess([server.url, "--plain", "--count", "2"]).output()

        #expect(lines == ["1", "2"])
        #expect(code == 0)
    }

    @Test("--max-time exits 0 when something had come")
    func maxTime() async throws {
        let server = try server([[Self.head, .send("data: 1\n\n"), .silence]])
        defer { server.stop() }

        let (lines, code) = try await ToolProcess([server.url, "--plain", "--max-time", "0.5"]).output()

        #expect(lines == ["1"])
        #expect(code == 0)
    }

    @Test(
        "exits by the kind of what ended it",
        arguments: [
            (ReplayServer.response(404), ["--json"], 2, "error request"),
            (ReplayServer.response(500), ["--json", "--once"], 4, "error network"),
            (ReplayServer.response(204), ["--json"], 0, "complete"),
        ] as [(String, [String], Int32, String)]
    )
    func exitCodes(_ response: String, _ options: [String], _ code: Int32, _ gistOfLast: String) async throws {
        let server = try server([[.send(response)]])
        defer { server.stop() }

        let (lines, exitCode) = try await ToolProcess([server.url, "--plain"] + options).output()

        #expect(exitCode == code)
        #expect(lines.suffix(2).map(gist) == [gistOfLast, "ended"])
    }

    @Test("exits 3 where this machine cannot make the subscription")
    func environment() async throws {
        let server = try server([])
        defer { server.stop() }

        let (lines, code) = try await ToolProcess([
            "https://127.0.0.1:\(server.port)/", "--plain", "--json", "--cacert", "/nonexistent/ca.pem",
        ]).output()

        #expect(lines.suffix(2).map(gist) == ["error environment", "ended"])
        #expect(code == 3)
    }

    @Test("a usage error exits 1, and standard output stays empty")
    func usage() async throws {
        let (lines, code) = try await ToolProcess(["--nonsense"]).output()

        #expect(lines == [])
        #expect(code == 1)
    }

    @Test(
        "INT and TERM close the connection, and exit 130 and 143",
        arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)]
    )
    func signals(_ signal: Int32, _ code: Int32) async throws {
        let server = try server([[Self.head, .send("data: 1\n\n"), .silence]])
        defer { server.stop() }

        let tool = try ToolProcess([server.url, "--plain", "--json"])
        await tool.lines(upTo: "event")
        tool.signal(signal)

        #expect(await tool.exitCode() == code)
        #expect(await server.waitUntil { $0.openConnections == 0 })
    }

    @Test("INT ends a wait, and an opening that nobody answers")
    func signalsBeforeOpen() async throws {
        let server = try server([[.close], [.silence]])
        defer { server.stop() }

        let waiting = try ToolProcess([server.url, "--plain", "--json"])
        await waiting.lines(upTo: "waiting")
        waiting.signal(SIGINT)
        let waitingCode = await waiting.exitCode()
        let connecting = try ToolProcess([server.url, "--plain", "--json"])
        #expect(await server.waitUntil { $0.requestCount == 2 })
        connecting.signal(SIGINT)

        #expect(waitingCode == 130)
        #expect(await connecting.exitCode() == 130)
    }

    @Test("USR1 parks the stream, USR2 brings it back, HUP closes and opens it")
    func parking() async throws {
        let stream: [ReplayServer.Step] = [Self.head, .send("data: 1\n\n"), .silence]
        let server = try server([stream, stream, stream])
        defer { server.stop() }

        let tool = try ToolProcess([server.url, "--plain", "--json", "--count", "3"])
        var lines = await tool.lines(upTo: "event")
        tool.signal(SIGUSR1)
        lines += await tool.lines(upTo: "idle")
        #expect(await server.waitUntil { $0.openConnections == 0 })
        tool.signal(SIGUSR2)
        lines += await tool.lines(upTo: "event")
        tool.signal(SIGHUP)
        let (rest, code) = await tool.output()
        lines += rest

        // HUP's parking is over before anybody is told of it, or not.
        let gists = lines.map(gist)
        #expect(
            gists.prefix(8) == ["connecting", "open", "event 1", "idle", "connecting", "open", "resumed 1", "event 1"]
        )
        #expect(
            gists.dropFirst(8).drop { $0 == "idle" }
                == ["connecting", "open", "resumed 2", "event 1", "idle"]
        )
        #expect(code == 0)
    }

    @Test("a standard output that is closed ends it quietly")
    func closedOutput() async throws {
        let server = try server([[Self.head, .sendForever(Array("data: 1\n\n".utf8))]])
        defer { server.stop() }

        let shell = try ToolProcess(
            ["-c", "\"$0\" \"$1\" --plain | head -n 1; exit ${PIPESTATUS[0]}", ToolProcess.path, server.url],
            program: "/bin/bash"
        )
        let (lines, code) = await shell.output()

        #expect(lines == ["1"])
        #expect(code == 141)
    }

    @Test("--comments tells them as they are, and --last-event-id is where it begins")
    func commentsAndPosition() async throws {
        let server = try server([[Self.head, .send(":\n: a  b\n\ndata: 1\n\n"), .silence]])
        defer { server.stop() }

        let tool = try ToolProcess([
            server.url, "--plain", "--json", "--comments", "--last-event-id", "41", "--count", "1",
        ])
        let (lines, _) = await tool.output()

        #expect(Set(lines.map(gist)).isSuperset(of: ["comment", "comment a  b", "event 1"]))
        #expect(server.journal.requests.first?.field("Last-Event-ID") == "41")
    }

    @Test("--last-event-id is where it begins, and not where it comes back to once an event has another ID")
    func positionMoves() async throws {
        let server = try server([[Self.head, .send("data: 1\n\n")], [Self.head, .send("id: 42\ndata: 2\n\n")]])
        defer { server.stop() }

        let tool = try ToolProcess([server.url, "--plain", "--json", "--last-event-id", "41"])
        await tool.lines(upTo: "resumed")
        #expect(await server.waitUntil { $0.requestCount == 3 })
        tool.signal(SIGTERM)

        #expect(await tool.exitCode() == 143)
        #expect(server.journal.requests.map { $0.field("Last-Event-ID") } == ["41", "41", "42"])
    }

    @Test("without --comments they are not told, and a comment alone is no payload for --count")
    func noComments() async throws {
        let server = try server([[Self.head, .send(": a\n\n: b\n\ndata: 1\n\n"), .silence]])
        defer { server.stop() }

        let (lines, code) = try await ToolProcess([server.url, "--plain", "--json", "--count", "1"]).output()

        #expect(lines.map(gist) == ["connecting", "open", "event 1", "idle"])
        #expect(code == 0)
    }

    @Test("--max-event-bytes lets an event of that size through, and fails the stream by name at one byte more")
    func maxEventBytes() async throws {
        let server = try server([[Self.head, .send("data: 1234\n\ndata: 12345\n\ndata: 1\n\n"), .silence]])
        defer { server.stop() }

        let tool = try ToolProcess([server.url, "--plain", "--json", "--once", "--max-event-bytes", "4"])
        let (lines, code) = await tool.output()

        #expect(lines.map(gist) == ["connecting", "open", "event 1234", "error network", "ended"])
        #expect(lines.contains { $0.contains("event data over the limit: maxEventBytes is 4") })
        #expect(code == 4)
        #expect(await server.waitUntil { $0.openConnections == 0 })
    }

    @Test("--max-event-bytes counts a comment only where comments are asked for", arguments: [true, false])
    func maxCommentBytes(_ tells: Bool) async throws {
        let server = try server([[Self.head, .send(":12345\n\ndata: 1\n\n"), .silence]])
        defer { server.stop() }

        let tool = try ToolProcess(
            [server.url, "--plain", "--json", "--once", "--max-event-bytes", "4", "--count", "1"]
                + (tells ? ["--comments"] : [])
        )
        let (lines, code) = await tool.output()

        let what = tells ? ["error network", "ended"] : ["event 1", "idle"]
        #expect(lines.map(gist) == ["connecting", "open"] + what)
        #expect(code == (tells ? 4 : 0))
    }

    @Test("a method, a body and header fields are sent as they are given")
    func aRequest() async throws {
        let server = try server([[.send(ReplayServer.response(204))]])
        defer { server.stop() }

        let (_, code) = try await ToolProcess([
            server.url + "/x?y=1", "--plain", "--method", "PUT", "--data", "{}", "--header", "X-A: 1", "--header",
            "Accept: text/event-stream, */*", "--quiet",
        ]).output()

        let request = try #require(server.journal.requests.first)
        #expect(request.method == "PUT")
        #expect(request.target == "/x?y=1")
        #expect(request.body == Array("{}".utf8))
        #expect(request.all("X-A") == ["1"])
        #expect(request.all("Accept") == ["text/event-stream, */*"])
        #expect(code == 0)
    }

    @Test("the demo shows a drop, a wait, a resumption, a 503 that is heeded, and the end")
    func demo() async throws {
        let (lines, code) = try await ToolProcess(["--demo", "--json"]).output()

        let payloads = Array(repeating: "payload", count: 7)
        let back = ["error network", "waiting", "connecting"]
        var expected = ["connecting", "open"] + payloads[..<3] + back + ["open", "resumed 1"]
        expected += payloads[3..<5] + back + back + ["open", "resumed 2"]
        expected += payloads[5...] + ["complete", "ended"]
        #expect(lines.map(gist) == expected)
        let waits = try lines.compactMap { line -> Double? in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return (object?["seconds"] as? NSNumber)?.doubleValue
        }
        #expect((3.0...4.5).contains(try #require(waits.last)))
        // What it takes beside the machine's own time: its waits, and the server's pauses.
        let pauses = Demo.scripts.joined().map { step -> Double in
            guard case .pause(let pause) = step else { return 0 }
            return pause / .seconds(1)
        }
        #expect(waits.reduce(0, +) + pauses.reduce(0, +) < 15)
        #expect(code == 0)
    }

    @Test("the version names libcurl, its TLS and whether it speaks HTTP/2")
    func version() async throws {
        let (lines, code) = try await ToolProcess(["--version"]).output()

        #expect(lines.first?.hasPrefix("subscribe ") == true)
        #expect(lines.dropFirst().first?.firstMatch(of: /^libcurl [0-9.]+, TLS .+, HTTP\/2 (yes|no)$/) != nil)
        #expect(code == 0)
    }
}
