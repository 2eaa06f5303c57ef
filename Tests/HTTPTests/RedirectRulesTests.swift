import Testing

@testable import CurlSSETransport

@Suite("A redirect")
struct RedirectRulesTests {
    typealias Target = RedirectRules.Target

    /// A target from `scheme://host[:port]/path`, enough of a parser for these tests.
    static func target(_ url: String) -> Target {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        let scheme = String(parts[0].dropLast())
        let authority = parts[2].split(separator: "/", omittingEmptySubsequences: false)[0].split(separator: ":")
        let port = authority.count > 1 ? Int(authority[1]) ?? 0 : scheme == "https" ? 443 : 80
        return Target(url: url, origin: Origin(scheme: scheme, host: String(authority[0]), port: port))
    }

    private func decision(
        _ status: Int,
        method: String = "GET",
        hasBody: Bool = false,
        from: String = "https://a.example/x",
        to: String?,
        trusted: [String] = []
    ) -> RedirectDecision {
        var rules = RedirectRules(
            method: method,
            hasBody: hasBody,
            start: Self.target(from),
            trusted: Set(trusted.map { Self.target($0).origin })
        )
        return rules.redirected(status: status, to: to.map(Self.target))
    }

    private func isRefused(_ decision: RedirectDecision) -> Bool {
        if case .refuse = decision { true } else { false }
    }

    @Test("of a GET within its origin is followed with all its fields", arguments: [301, 302, 303, 307, 308])
    func sameOrigin(status: Int) {
        #expect(decision(status, to: "https://a.example/y") == .follow(keepsBody: false, keepsHeaders: true))
    }

    @Test("H4: 307 and 308 take the body along within the origin", arguments: [307, 308])
    func bodyGoesOn(status: Int) {
        let followed = decision(status, method: "POST", hasBody: true, to: "https://a.example/y")
        #expect(followed == .follow(keepsBody: true, keepsHeaders: true))
    }

    @Test(
        "H4: 301, 302 and 303 never turn a request with a body, or another method, into a GET",
        arguments: [301, 302, 303],
        [("POST", true), ("POST", false), ("GET", true), ("QUERY", true), ("DELETE", false)]
    )
    func noOtherMethod(status: Int, request: (String, Bool)) {
        let decision = decision(status, method: request.0, hasBody: request.1, to: "https://a.example/y")
        #expect(isRefused(decision))
    }

    @Test(
        "S1: to another origin drops the caller's fields",
        arguments: ["https://b.example/y", "https://a.example:444/y", "https://127.0.0.2/"]
    )
    func crossOrigin(to: String) {
        #expect(decision(302, to: to) == .follow(keepsBody: false, keepsHeaders: false))
    }

    @Test("S1: another scheme is another origin")
    func upgrade() {
        let upgraded = decision(302, from: "http://a.example:80/", to: "https://a.example:443/")
        #expect(upgraded == .follow(keepsBody: false, keepsHeaders: false))
    }

    @Test("S1: to a trusted origin keeps them, and the body")
    func trusted() {
        let trusted = ["https://b.example"]
        #expect(
            decision(302, to: "https://b.example/y", trusted: trusted) == .follow(keepsBody: false, keepsHeaders: true)
        )
        #expect(
            decision(307, method: "POST", hasBody: true, to: "https://b.example/y", trusted: trusted)
                == .follow(keepsBody: true, keepsHeaders: true)
        )
        #expect(
            decision(302, to: "https://b.example:8443/y", trusted: trusted)
                == .follow(keepsBody: false, keepsHeaders: false)
        )
    }

    @Test("S1: a body goes to no other origin", arguments: [307, 308])
    func bodyCrossOrigin(status: Int) {
        #expect(isRefused(decision(status, method: "POST", hasBody: true, to: "https://b.example/y")))
    }

    @Test("S1: fields once dropped stay dropped, also on the way back to the first origin")
    func droppedForGood() {
        var rules = RedirectRules(
            method: "GET",
            hasBody: false,
            start: Self.target("https://a.example/1"),
            trusted: [Self.target("https://c.example").origin]
        )
        let steps = ["https://c.example/2", "https://b.example/3", "https://a.example/4", "https://c.example/5"]
        let kept = steps.map { rules.redirected(status: 302, to: Self.target($0)) }

        #expect(
            kept == [true, false, false, false].map { .follow(keepsBody: false, keepsHeaders: $0) }
        )
        #expect(!rules.keepsHeaders)
    }

    @Test("from https to http is refused, also to a trusted origin", arguments: [301, 302, 303, 307, 308])
    func downgrade(status: Int) {
        #expect(isRefused(decision(status, to: "http://a.example/", trusted: ["http://a.example"])))
    }

    @Test("S6: to another scheme is refused, without naming it", arguments: ["ftp", "file", "unix", "gopher"])
    func otherSchemes(scheme: String) {
        let decision = decision(302, from: "http://a.example/", to: "\(scheme)://a.example/etc/passwd")
        #expect(decision == .refuse("it leads to a scheme other than http and https"))
    }

    @Test("H3: without a Location that can be read is refused", arguments: [301, 302, 303, 307, 308])
    func noLocation(status: Int) {
        #expect(isRefused(decision(status, to: nil)))
    }

    @Test("with a status that is no redirect's is refused", arguments: [200, 300, 304, 305, 306, 309])
    func otherStatuses(status: Int) {
        #expect(isRefused(decision(status, to: "https://a.example/y")))
    }

    @Test("H3: to a URL that was asked before is refused, whatever its fragment")
    func loop() {
        #expect(isRefused(decision(302, from: "https://a.example/x", to: "https://a.example/x")))
        #expect(isRefused(decision(302, from: "https://a.example/x", to: "https://a.example/x#part")))

        var rules = RedirectRules(method: "GET", hasBody: false, start: Self.target("https://a.example/1"))
        #expect(!isRefused(rules.redirected(status: 302, to: Self.target("https://b.example/2"))))
        #expect(isRefused(rules.redirected(status: 302, to: Self.target("https://a.example/1"))))
    }

    @Test("H3: ten are followed, and the eleventh is refused")
    func hops() {
        var rules = RedirectRules(method: "GET", hasBody: false, start: Self.target("https://a.example/0"))
        for hop in 1...10 {
            #expect(!isRefused(rules.redirected(status: 302, to: Self.target("https://a.example/\(hop)"))))
        }
        #expect(isRefused(rules.redirected(status: 302, to: Self.target("https://a.example/11"))))
    }

    @Test("S5: a refusal names an origin and never a path, query or userinfo")
    func quiet() {
        for to in ["http://u:hunter2@a.example/hunter2?hunter2", "https://b.example/hunter2?x=hunter2"] {
            let url = Target(
                url: to,
                origin: Origin(scheme: String(to.prefix(while: { $0 != ":" })), host: "h", port: 1)
            )
            var rules = RedirectRules(method: "POST", hasBody: true, start: Self.target("https://a.example/x"))
            guard case .refuse(let reason) = rules.redirected(status: 307, to: url) else {
                Issue.record("followed \(to)")
                continue
            }
            #expect(!reason.contains("hunter2"))
            #expect(reason.contains("h:1"))
        }
    }
}
