import SubscriptionTesting
import Testing

/// What nobody but a server or a proxy may see, a word for each place that it is planted in.
private let secrets = ["user", "word", "query", "header", "cookie", "body", "proxy", "answer"].map {
    "hunter2\($0)"
}

@Suite("What the tool keeps to itself", .timeLimit(.minutes(5)))
struct ToolSecretTests {
    /// The ways to print.
    static let outputs: [[String]] = [[], ["--json"], ["--verbose"], ["--json", "--verbose"], ["--quiet"]]

    @Test("secrets of the command line are in nothing that it prints of a failure", arguments: outputs)
    func failures(output: [String]) async throws {
        let certificates = try Certificates.shared()
        let answer = ReplayServer.response(403, [("X-Echo", "hunter2answer")], body: "hunter2answer")
        let server = try ReplayServer(otherwise: [.expectRequest, .send(answer), .close])
        let nginx = try await Nginx(to: server)
        let head = ReplayServer.eventStreamHead
        let cut = try ReplayServer(otherwise: [.expectRequest, .send(head + ": a\n\ndata: a\n\ndata: b"), .reset])
        let unauthorized = try ReplayServer { _, _ in [.send(ReplayServer.response(407, body: "hunter2answer"))] }
        let closing = try ReplayServer()
        let trusting = ["--cacert", certificates.authority]
        func url(_ scheme: String, _ port: Int) -> String {
            "\(scheme)://hunter2user:hunter2word@127.0.0.1:\(port)/?q=hunter2query"
        }
        func proxy(_ scheme: String, _ server: ReplayServer) -> [String] {
            ["--proxy", "\(scheme)://hunter2user:hunter2proxy@127.0.0.1:\(server.port)"] + trusting
        }
        let secure = url("https", nginx.port)
        let cases: [(what: String, words: [String])] = [
            ("refused", [secure] + trusting),
            ("refused over HTTP/1.1", [secure, "--http", "1.1"] + trusting),
            ("nobody vouches", [secure, "--cacert", certificates.otherAuthority]),
            ("no CA file", [secure, "--cacert", "/nowhere"]),
            ("cut", [url("http", Int(cut.port))]),
            ("closed", [url("http", Int(closing.port))]),
            ("407 to CONNECT", [secure] + proxy("http", unauthorized)),
            ("407 to the request", [url("http", 9)] + proxy("http", unauthorized)),
            ("proxy closes", [secure] + proxy("http", closing)),
            ("SOCKS closes", [secure] + proxy("socks5h", closing)),
            ("a proxy that is none", [secure, "--proxy", "hunter2://hunter2user:hunter2proxy@127.0.0.1:9"]),
            ("no URL", ["hunter2word"]),
            ("a header that cannot be sent", [url("http", 9), "--header", "X-Own: hunter2header\rhunter2cookie"]),
            ("a header that is none", [url("http", 9), "--header", "hunter2header"]),
        ]
        for (what, words) in cases {
            let asked = [
                "--plain", "--once", "--comments", "--header", "Authorization: Bearer hunter2header",
                "--header", "Cookie: hunter2cookie", "--data", "hunter2body",
            ]
            let (lines, code) = try await ToolProcess(words + asked + output, readsErrors: true).output()
            #expect(code != 0, "\(what)")
            #expect(!lines.isEmpty || output == ["--quiet"], "\(what)")
            for line in lines {
                for secret in secrets { #expect(!line.contains(secret), "\(what): \(line)") }
            }
        }
    }
}
