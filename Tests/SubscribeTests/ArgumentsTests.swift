import Testing

@testable import subscribe

@Suite("The command line")
struct ArgumentsTests {
    private static let plain = ["http://localhost/", "--plain"]

    private func options(_ words: [String]) throws -> Options {
        guard case .subscribe(let options) = try Arguments.parse(words) else {
            throw UsageError(message: "not a subscription")
        }
        return options
    }

    @Test("a URL and --plain are a plain event stream, with every default")
    func aPlainStream() throws {
        let options = try options(Self.plain)

        #expect(
            options
                == Options(
                    url: "http://localhost/",
                    dialect: .plain(method: nil, data: nil, lastEventID: nil)
                )
        )
    }

    @Test("every option of a GraphQL subscription is read, before or after the URL, with a blank or with =")
    func aGraphQLSubscription() throws {
        let options = try options([
            "--query=subscription { a }", "--variables", "{\"a\":1}", "https://h/graphql", "--operation", "A",
            "--header", "Authorization: Bearer x", "--header", "X-Empty:", "--cacert", "ca.pem", "--cert=c.pem",
            "--key=k.pem", "--insecure", "--proxy", "http://proxy:1", "--http", "2", "--connect-timeout", "0.5",
            "--first-byte-timeout", "3", "--idle-timeout=10", "--max-event-bytes", "1024", "--comments", "--count", "3",
            "--max-time", "1.25", "--once", "--json", "--verbose",
        ])

        var expected = Options(
            url: "https://h/graphql",
            dialect: .graphQL(query: .text("subscription { a }"), variables: "{\"a\":1}", operation: "A")
        )
        expected.headers = [
            Header(name: "Authorization", value: "Bearer x"), Header(name: "X-Empty", value: ""),
        ]
        expected.authority = "ca.pem"
        expected.certificate = "c.pem"
        expected.key = "k.pem"
        expected.insecure = true
        expected.proxy = "http://proxy:1"
        expected.http = .http2
        expected.connectTimeout = .milliseconds(500)
        expected.firstByteTimeout = .seconds(3)
        expected.idleTimeout = .seconds(10)
        expected.maxEventBytes = 1024
        expected.comments = true
        expected.count = 3
        expected.maxTime = .milliseconds(1250)
        expected.once = true
        expected.output = Output(json: true, quiet: false, verbose: true)
        #expect(options == expected)
    }

    @Test("a plain stream takes a method, a body or a file of it, and a place to begin")
    func aPlainRequest() throws {
        let text = try options(Self.plain + ["--method", "PUT", "--data", "x=1", "--last-event-id", "7"])
        let file = try options(Self.plain + ["--data=@body.json"])

        #expect(text.dialect == .plain(method: "PUT", data: .text("x=1"), lastEventID: "7"))
        #expect(file.dialect == .plain(method: nil, data: .file("body.json"), lastEventID: nil))
    }

    @Test("a header's name ends at the first colon, and the blanks around its value are not sent")
    func aHeader() throws {
        let options = try options(Self.plain + ["--header", "X-Time:\t 12:30 \t"])

        #expect(options.headers == [Header(name: "X-Time", value: "12:30")])
    }

    @Test("what follows -- is no option, and a value may begin with a dash")
    func dashes() throws {
        let options = try options(["--plain", "--last-event-id", "-1", "--", "--odd"])

        #expect(options.url == "--odd")
        #expect(options.dialect == .plain(method: nil, data: nil, lastEventID: "-1"))
    }

    @Test("help wins over everything that is right, then the version, then the demo")
    func commands() throws {
        #expect(try Arguments.parse(["--help"]) == .help)
        #expect(try Arguments.parse(["-h", "--version", "--demo"]) == .help)
        #expect(try Arguments.parse(["--version", "--demo"]) == .version(verbose: false))
        #expect(try Arguments.parse(["--version", "--verbose"]) == .version(verbose: true))
        #expect(try Arguments.parse(["--demo", "--json"]) == .demo(Output(json: true)))
    }

    @Test(
        "what is wrong is said in one sentence",
        arguments: [
            ([], "which URL?"),
            (["--plain"], "which URL?"),
            (["http://a", "http://b", "--plain"], "more than one URL"),
            (["http://a", "http://user:secret@b", "--plain"], "more than one URL"),
            (["http://a", "--plain", "-HAuthorization: Bearer secret"], "there is no option -H"),
            (["http://a"], "--query or --query-file for GraphQL, --plain for any other event stream?"),
            (["http://a", "--plain", "--query", "x"], "--plain is for streams that are not GraphQL: not with --query"),
            (["http://a", "--query", "x", "--query-file", "y"], "--query and --query-file are one too many"),
            (["http://a", "--plain", "--variables", "{}"], "--variables goes with --query or --query-file"),
            (["http://a", "--plain", "--operation", "A"], "--operation goes with --query or --query-file"),
            (
                ["http://a", "--query", "x", "--method", "GET"],
                "--method goes with --plain: a GraphQL subscription is a POST of its own body"
            ),
            (["http://a", "--plain", "--nonsense"], "there is no option --nonsense"),
            (["http://a", "--plain", "-x"], "there is no option -x"),
            (["http://a", "--plain", "--count"], "--count wants a value"),
            (["http://a", "--plain", "--count", "0"], "--count wants a whole number of at least 1, and not '0'"),
            (["http://a", "--plain", "--count", "1.5"], "--count wants a whole number of at least 1, and not '1.5'"),
            (["http://a", "--plain", "--max-time", "nan"], "--max-time wants seconds, more than none, and not 'nan'"),
            (["http://a", "--plain", "--max-time", "inf"], "--max-time wants seconds, more than none, and not 'inf'"),
            (
                ["http://a", "--plain", "--idle-timeout", "-1"],
                "--idle-timeout wants seconds, more than none, and not '-1'"
            ),
            (["http://a", "--plain", "--http", "3"], "--http is 1.1 or 2, and not '3'"),
            (["http://a", "--plain", "--once=yes"], "--once takes no value"),
            (["http://a", "--plain", "--once", "--once"], "--once is given twice"),
            (["http://a", "--plain", "--key", "k"], "--key wants --cert beside it"),
            (["http://a", "--plain", "--quiet", "--verbose"], "--quiet and --verbose say opposite things"),
            (["--demo", "http://a"], "--demo brings its own server: beside it only --json, --quiet and --verbose"),
            (["--demo", "--once"], "--demo brings its own server: beside it only --json, --quiet and --verbose"),
        ] as [([String], String)]
    )
    func mistakes(_ words: [String], _ sentence: String) {
        #expect(throws: UsageError(message: sentence)) { try Arguments.parse(words) }
    }

    @Test("a header that cannot be read is not repeated: it may be a secret", arguments: ["Bearer-s3cret", ": s3cret"])
    func aSecret(_ header: String) {
        #expect(throws: UsageError(message: "--header wants 'Name: value'")) {
            try Arguments.parse(Self.plain + ["--header", header])
        }
    }

    @Test("every option of the help is one, and every option stands in the help")
    func theHelpIsWhole() throws {
        let named = Set(Help.text.matches(of: /--[a-z0-9-]+/).map { String($0.output) })

        for option in named {
            do {
                _ = try Arguments.parse(["http://a", option, "1"])
            } catch {
                #expect(error.message != "there is no option \(option)")
            }
        }
        #expect(named.count == 29)
    }
}
