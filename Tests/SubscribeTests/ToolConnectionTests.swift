import CurlSSETransport
import SubscriptionTesting
import Testing

@testable import subscribe

/// How the tool connects, as its options say: a process, against servers and proxies on the loopback.
@Suite("The tool's way to a server", .timeLimit(.minutes(2)))
struct ToolConnectionTests {
    private let certificates: Certificates

    init() throws {
        certificates = try Certificates.shared()
    }

    /// A server that gives each connection one event, and then says nothing.
    private func oneEvent() throws -> ReplayServer {
        try ReplayServer(
            otherwise: [.expectRequest, .send(ReplayServer.eventStreamHead + "data: a\n\n"), .silence]
        )
    }

    /// Runs the tool until its first failure, or its first event.
    private func run(_ words: [String]) async throws -> (lines: [String], exitCode: Int32) {
        try await ToolProcess(words + ["--plain", "--json", "--once", "--count", "1"]).output()
    }

    private var trusting: [String] { ["--cacert", certificates.authority] }

    @Test("--cert and --key say who the client is, and a client that is nobody is refused")
    func clientCertificate() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let folder = certificates.folder

        let nobody = try await run([nginx.mutualURL] + trusting)
        let alice = try await run(
            [nginx.mutualURL, "--cert", folder.path("alice.pem"), "--key", folder.path("alice.key")] + trusting
        )
        let other = try await run(
            [nginx.mutualURL, "--cert", folder.path("alice.pem"), "--key", folder.path("bob.key")] + trusting
        )

        #expect(nobody.lines.map(gist) == ["connecting", "error request", "ended"])
        #expect(nobody.exitCode == 2)
        #expect(alice.lines.map(gist) == ["connecting", "open", "event a", "idle"])
        #expect(alice.exitCode == 0)
        #expect(other.lines.map(gist) == ["connecting", "error environment", "ended"])
        #expect(other.exitCode == 3)
        #expect(server.journal.requests.map { $0.field("X-Client") } == ["CN=alice"])
    }

    @Test("--cacert is whom to trust: others are refused, and --insecure trusts anybody")
    func authority() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)

        let refused = try await run([nginx.url, "--cacert", certificates.otherAuthority])
        let trusted = try await run([nginx.url] + trusting)
        let insecure = try await run([nginx.url, "--insecure"])

        #expect(refused.lines.map(gist) == ["connecting", "error network", "ended"])
        #expect(refused.lines.contains { $0.contains("curl 60") })
        #expect(refused.exitCode == 4)
        #expect(trusted.exitCode == 0)
        #expect(insecure.exitCode == 0)
        #expect(server.journal.requestCount == 2)
    }

    @Test("--http holds to one version", arguments: [("1.1", "HTTP/1.1"), ("2", "HTTP/2.0")])
    func version(_ word: String, _ spoken: String) async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)

        let (_, code) = try await run([nginx.url, "--http", word] + trusting)

        #expect(code == 0)
        #expect(server.journal.requests.map { $0.field("X-Protocol") } == [spoken])
    }

    @Test("--proxy tunnels TLS through the proxy, which alone gets the proxy's credentials")
    func tunnel() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let proxy = try TunnelProxy()

        let (lines, code) = try await run([nginx.url, "--proxy", "http://u:p@127.0.0.1:\(proxy.port)"] + trusting)

        #expect(lines.map(gist) == ["connecting", "open", "event a", "idle"])
        #expect(code == 0)
        let asked = try #require(proxy.heads.first).lowercased()
        #expect(asked.hasPrefix("connect 127.0.0.1:\(nginx.port) http/1.1\r\n"))
        #expect(asked.contains("proxy-authorization: basic dtpw\r\n"))
        #expect(server.journal.requests.map { $0.field("Proxy-Authorization") } == [nil])
    }

    @Test("--proxy asks the proxy for a plain URL, and a proxy that nobody runs is a network failure")
    func plainProxy() async throws {
        let proxy = try oneEvent()
        let gone = try ReplayServer()
        gone.refuseConnections()

        let (_, code) = try await run(["http://server.test/a", "--proxy", proxy.url])
        let refused = try await run(["http://server.test/a", "--proxy", gone.url])

        #expect(code == 0)
        #expect(proxy.journal.requests.map(\.target) == ["http://server.test/a"])
        #expect(refused.lines.map(gist) == ["connecting", "error network", "ended"])
        #expect(refused.exitCode == 4)
    }

    @Test("--connect-timeout ends an attempt to connect, of TCP and of TLS")
    func connectTimeout() async throws {
        let port = try FullBacklog()
        let silent = try ReplayServer(otherwise: [.silence])
        for host in ["http://127.0.0.1:\(port.port)", "https://127.0.0.1:\(silent.port)"] {
            let (lines, code) = try await run([host, "--connect-timeout", "0.25"])

            #expect(lines.map(gist) == ["connecting", "error network", "ended"])
            let authority = host.split(separator: "/")[1]
            #expect(lines.contains { $0.contains("no connection to \(authority) within 250 ms") }, "\(lines)")
            #expect(code == 4)
        }
        withExtendedLifetime(port) {}
    }

    @Test("--first-byte-timeout ends the wait for the response's head")
    func firstByteTimeout() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .silence])

        let (lines, code) = try await run([server.url, "--first-byte-timeout", "0.25"])

        #expect(lines.map(gist) == ["connecting", "error network", "ended"])
        #expect(lines.contains { $0.contains("127.0.0.1:\(server.port) did not answer within 250 ms") }, "\(lines)")
        #expect(code == 4)
    }

    @Test("--idle-timeout ends a stream that has gone silent")
    func idleTimeout() async throws {
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(ReplayServer.eventStreamHead + ": a\n\n"), .silence]
        )

        let (lines, code) = try await run([server.url, "--idle-timeout", "0.25"])

        #expect(lines.map(gist) == ["connecting", "open", "error network", "ended"])
        #expect(lines.contains { $0.contains("said nothing for 250 ms, after 5 bytes") }, "\(lines)")
        #expect(code == 4)
    }

    @Test(
        "a time that no transport takes is a usage error",
        arguments: ["--connect-timeout", "--first-byte-timeout", "--idle-timeout"]
    )
    func outOfRange(_ option: String) async throws {
        let (lines, code) = try await run(["http://127.0.0.1:9/", option, "0.001"])

        #expect(lines == [])
        #expect(code == 1)
    }

    @Test("--version --verbose says what the libcurl found can do, and what is done about it")
    func doctor() async throws {
        let (lines, code) = try await ToolProcess(["--version", "--verbose"]).output()

        // What the library says of itself, and what follows from its version alone.
        let curl = CurlGlobal.info
        let numbers = curl.version.split(separator: ".").prefix(2).compactMap { Int($0) }
        let version = try #require(numbers.count == 2 ? numbers[0] * 100 + numbers[1] : nil, "\(curl.version)")
        func word(_ isSo: Bool) -> String { isSo ? "yes" : "no" }
        let tls = try #require(curl.tls)
        #expect(lines.count > 2 && lines[1] == "libcurl \(curl.version), TLS by \(tls), HTTP/2 \(word(curl.hasHTTP2))")
        #expect(tls.contains("SSL"))
        let answers = lines.filter { $0.hasSuffix(": yes") || $0.hasSuffix(": no") }
        for (line, isSo) in [
            ("names are resolved beside the loop", curl.hasAsynchronousResolver),
            ("a cancelled look-up of a name holds up nothing", CurlGlobal.leavesLookUps),
            ("libcurl is set up from any thread", curl.isThreadsafe),
            ("a paused HTTP/2 stream is resumed", version < 801),
            ("the reset of a cancelled HTTP/2 stream", version < 801),
            ("HTTP/2 without TLS", version < 800),
            ("HTTP/2 only when asked for", (810...813).contains(version)),
        ] {
            #expect(answers.filter { $0.contains(line) }.map { $0.hasSuffix(": \(word(isSo))") } == [true], "\(line)")
        }
        #expect(answers.count == 7)
        #expect(code == 0)
    }
}
