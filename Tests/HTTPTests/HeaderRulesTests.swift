import Testing

@testable import CurlSSETransport

@Suite("A request's header fields")
struct HeaderRulesTests {
    private func refusal(_ name: String, _ value: String) -> TransportError? {
        #expect(throws: TransportError.self) {
            try HeaderRules.merged(dialect: [], caller: [HTTPField(name, value)])
        }
    }

    @Test(
        "S2: a name that is no token is refused, and what follows its first bad byte is not repeated",
        arguments: ["", "X Y", "X:", "X\r\nX-Evil: 1", "X\0", "N\u{e4}me", "X;", "Secret: hunter2", " X", ":path"]
    )
    func badNames(name: String) throws {
        let error = try #require(refusal(name, "value"))

        #expect(error.kind == .request)
        #expect(error.message.contains("5.1"))
        #expect(!error.message.contains("hunter2") && !error.message.contains("Evil"))
        #expect(error.message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    }

    @Test(
        "S2: a value with a control byte is refused, by name and rule and never by value",
        arguments: [
            "a\r\nX-Evil: hunter2", "hunter2\nX: 1", "hunter2\0b", "hunter2\u{7F}", "\rhunter2", "hunter2\u{1}",
        ]
    )
    func badValues(value: String) throws {
        let error = try #require(refusal("X-Key", value))

        #expect(error.kind == .request)
        #expect(error.message.contains("'X-Key'") && error.message.contains("5.5"))
        #expect(!error.message.contains("hunter2"))
    }

    @Test("a value of visible ASCII, tabs, spaces and bytes from 0x80 is sent")
    func goodValues() throws {
        let field = HTTPField("X", "a\tb c ~!\"\\ gr\u{fc}n \u{1F600}")
        #expect(try HeaderRules.merged(dialect: [], caller: [field]) == [field])
    }

    @Test("every token is a name")
    func goodNames() throws {
        let field = HTTPField("aZ09!#$%&'*+-.^_`|~", "x")
        #expect(try HeaderRules.merged(dialect: [], caller: [field]) == [field])
    }

    @Test(
        "a reserved field is refused in any case, by name",
        arguments: [
            "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Expect", "Trailer",
            "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "HTTP2-Settings", "Last-Event-ID",
        ]
    )
    func reserved(name: String) throws {
        for spelling in [name, name.lowercased(), name.uppercased()] {
            let error = try #require(refusal(spelling, "hunter2"))
            #expect(error.kind == .request)
            #expect(error.message.contains("'\(spelling)'") && error.message.contains("reserved"))
            #expect(!error.message.contains("hunter2"))
        }
    }

    @Test("a dialect's and a provider's fields pass the same rules")
    func everyLayerIsChecked() {
        #expect(throws: TransportError.self) {
            try HeaderRules.merged(dialect: [HTTPField("Host", "x")], caller: [])
        }
        #expect(throws: TransportError.self) {
            try HeaderRules.merged(dialect: [], caller: [], credentials: [HTTPField("X", "a\nb")])
        }
    }

    @Test("a caller's field replaces the dialect's of that name, whatever the case, and is sent once")
    func callerReplacesDialect() throws {
        let fields = try HeaderRules.merged(
            dialect: [HTTPField("Accept", "text/event-stream"), HTTPField("Content-Type", "application/json")],
            caller: [HTTPField("X-A", "1"), HTTPField("accept", "text/*")]
        )

        #expect(
            fields == [
                HTTPField("accept", "text/*"), HTTPField("Content-Type", "application/json"), HTTPField("X-A", "1"),
            ]
        )
    }

    @Test("a caller's field also replaces a name that the dialect gives twice, once")
    func callerReplacesTwo() throws {
        let fields = try HeaderRules.merged(
            dialect: [HTTPField("X", "1"), HTTPField("Y", "2"), HTTPField("x", "3")],
            caller: [HTTPField("X", "4")]
        )
        #expect(fields == [HTTPField("X", "4"), HTTPField("Y", "2")])
    }

    @Test("what a caller gives twice is sent twice, in order")
    func callerRepeats() throws {
        let fields = try HeaderRules.merged(
            dialect: [HTTPField("X", "0"), HTTPField("Y", "0")],
            caller: [HTTPField("X", "1"), HTTPField("Z", "1"), HTTPField("x", "2"), HTTPField("z", "2")]
        )
        #expect(
            fields == [
                HTTPField("X", "1"), HTTPField("x", "2"), HTTPField("Y", "0"), HTTPField("Z", "1"), HTTPField("z", "2"),
            ]
        )
    }

    @Test("G10: a provider's field replaces the caller's: the fresh token wins")
    func credentialsReplaceCaller() throws {
        let fields = try HeaderRules.merged(
            dialect: [],
            caller: [HTTPField("Authorization", "old")],
            credentials: [HTTPField("authorization", "new")]
        )
        #expect(fields == [HTTPField("authorization", "new")])
    }

    @Test(
        "a line for libcurl has no blank that would change it, and an empty value keeps its field",
        arguments: [
            ("v", "X: v"), ("", "X;"), ("   ", "X;"), ("\t", "X;"), (" v w\t", "X: v w"), (";", "X: ;"),
        ]
    )
    func lines(value: String, line: String) throws {
        let fields = try HeaderRules.merged(dialect: [], caller: [HTTPField("X", value)])
        #expect(fields.map(HeaderRules.line) == [line])
    }

    @Test("H7: what libcurl would add by itself is taken out, unless somebody asked for it")
    func linesOfARequest() {
        #expect(HeaderRules.lines([]) == ["Accept:", "Content-Type:", "Expect:"])
        #expect(
            HeaderRules.lines([HTTPField("accept", "a/b"), HTTPField("CONTENT-TYPE", "")])
                == ["accept: a/b", "CONTENT-TYPE;", "Expect:"]
        )
    }

    @Test(
        "a last event ID is sent as it is",
        arguments: ["1", "a\tb", "\u{2603}", String(repeating: "x", count: 4096)]
    )
    func lastEventID(id: String) {
        #expect(HeaderRules.lastEventIDField(id) == HTTPField("Last-Event-ID", id))
    }

    @Test(
        "F11: an empty last event ID, one with control bytes or one over 4 KiB is not sent",
        arguments: ["", " ", "\t ", "a\nb", "a\rb", "a\0", "\u{7F}", "\u{1B}[0m", String(repeating: "x", count: 4097)]
    )
    func noLastEventID(id: String) {
        #expect(HeaderRules.lastEventIDField(id) == nil)
    }

    @Test("a method is a token", arguments: ["GET", "POST", "QUERY", "get", "M-SEARCH"])
    func goodMethods(method: String) throws {
        try HeaderRules.check(method: method)
    }

    @Test(
        "S2: a method that is no token, or whose answer is never a stream, is refused",
        arguments: ["", "GET /x HTTP/1.1\r\n", "G T", "GET\n", "CONNECT", "HEAD", "POST\0"]
    )
    func badMethods(method: String) throws {
        let error = try #require(throws: TransportError.self) { try HeaderRules.check(method: method) }
        #expect(error.kind == .request)
        #expect(error.message.contains("9.1") || error.message.contains("9.3"))
        #expect(error.message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    }

    @Test("a target is empty, a path or a query", arguments: ["", "/", "/a/b?c=d", "?q=%20"])
    func goodTargets(target: String) throws {
        try HeaderRules.check(target: target)
    }

    @Test(
        "a target that would break the request line is refused, and not repeated",
        arguments: [
            "hunter2", "/hunter2\r\nX: 1", "/hunter2 x", "/hunter2\0", "/hunter2#f", "?hunter2=\u{e4}",
            "http://hunter2",
        ]
    )
    func badTargets(target: String) throws {
        let error = try #require(throws: TransportError.self) { try HeaderRules.check(target: target) }
        #expect(error.kind == .request)
        #expect(!error.message.contains("hunter2"))
    }
}
