// The words of a command line into what is to be done, or into the sentence that says what is wrong with them.
//
// Pure: no file is read and no environment looked at. Called once, at the start, on the main thread.

/// What a command line asks for.
enum Command: Equatable {
    case subscribe(Options)
    case demo(Output)
    case version(verbose: Bool)
    case help
}

/// How to print.
struct Output: Equatable {
    /// One JSON object a line for everything that happens, instead of payloads alone.
    var json = false
    /// Nothing about the stream's state on standard error.
    var quiet = false
    /// More about it.
    var verbose = false
}

/// Text that stands on the command line, or in a file named there.
enum Source: Equatable {
    case text(String)
    /// `-` is standard input.
    case file(String)
}

/// A header field as it is to be sent.
struct Header: Equatable {
    var name: String
    var value: String
}

/// One subscription.
struct Options: Equatable {
    /// What is asked, and in which dialect.
    enum Dialect: Equatable {
        case plain(method: String?, data: Source?, lastEventID: String?)
        case graphQL(query: Source, variables: String?, operation: String?)
    }

    /// The HTTP version to hold to.
    enum HTTP: String, Equatable {
        case http1 = "1.1"
        case http2 = "2"
    }

    var url: String
    var dialect: Dialect
    var headers: [Header] = []
    var authority: String?
    var certificate: String?
    var key: String?
    /// Whether the server's certificate goes unchecked.
    var insecure = false
    var proxy: String?
    var http: HTTP?
    /// Nil leaves the transport's default, as in those that follow.
    var connectTimeout: Duration?
    var firstByteTimeout: Duration?
    var idleTimeout: Duration?
    var maxEventBytes: Int?
    var comments = false
    /// End after so many payloads, at least one.
    var count: Int?
    var maxTime: Duration?
    /// Do not come back after a failure.
    var once = false
    var output = Output()
}

/// What is wrong with a command line, in one sentence.
struct UsageError: Error, Equatable {
    var message: String
}

/// Reads a command line.
struct Arguments {
    private var words: ArraySlice<String>
    /// The option just read, and the value that came with it after `=`.
    private var option = ""
    private var attached: String?

    private var urls: [String] = []
    private var query: Source?
    private var plain = false
    private var method: String?
    private var data: Source?
    private var lastEventID: String?
    private var variables: String?
    private var operation: String?
    private var isDemo = false
    private var isVersion = false
    private var isHelp = false
    private var isSeen: Set<String> = []
    private var options = Options(url: "", dialect: .plain(method: nil, data: nil, lastEventID: nil))

    /// Reads the words after the program's name.
    ///
    /// - Parameter words: The words.
    /// - Returns: What they ask for. `--help` wins over everything, then `--version`.
    /// - Throws: The first thing that is wrong.
    static func parse(_ words: [String]) throws(UsageError) -> Command {
        var arguments = Arguments(words: words[...])
        try arguments.readAll()
        return try arguments.command()
    }

    private init(words: ArraySlice<String>) {
        self.words = words
    }

    private mutating func readAll() throws(UsageError) {
        while let word = words.popFirst() {
            if word == "--" {
                urls += words
                words = []
            } else if word == "-h" {
                isHelp = true
            } else if word.hasPrefix("--") {
                try readOption(word)
            } else if word.hasPrefix("-") {
                // What may follow in the same word, such as a header field, is not repeated.
                throw UsageError(message: "there is no option \(word.prefix(2))")
            } else {
                urls.append(word)
            }
        }
    }

    private mutating func readOption(_ word: String) throws(UsageError) {
        attached = nil
        option = word
        if let equals = word.firstIndex(of: "=") {
            option = String(word[..<equals])
            attached = String(word[word.index(after: equals)...])
        }
        if option != "--header", !isSeen.insert(option).inserted {
            throw UsageError(message: "\(option) is given twice")
        }

        switch option {
        case "--plain": plain = try flag()
        case "--query": try setQuery(.text(value()))
        case "--query-file": try setQuery(.file(value()))
        case "--variables": variables = try value()
        case "--operation": operation = try value()
        case "--method": method = try value()
        case "--header": options.headers.append(try header())
        case "--data": data = Self.source(try value())
        case "--last-event-id": lastEventID = try value()
        case "--cacert": options.authority = try value()
        case "--cert": options.certificate = try value()
        case "--key": options.key = try value()
        case "--insecure": options.insecure = try flag()
        case "--proxy": options.proxy = try value()
        case "--http": options.http = try http()
        case "--connect-timeout": options.connectTimeout = try seconds()
        case "--first-byte-timeout": options.firstByteTimeout = try seconds()
        case "--idle-timeout": options.idleTimeout = try seconds()
        case "--max-event-bytes": options.maxEventBytes = try number()
        case "--comments": options.comments = try flag()
        case "--count": options.count = try number()
        case "--max-time": options.maxTime = try seconds()
        case "--once": options.once = try flag()
        case "--json": options.output.json = try flag()
        case "--quiet": options.output.quiet = try flag()
        case "--verbose": options.output.verbose = try flag()
        case "--demo": isDemo = try flag()
        case "--version": isVersion = try flag()
        case "--help": isHelp = try flag()
        default: throw UsageError(message: "there is no option \(option)")
        }
    }

    private func command() throws(UsageError) -> Command {
        if isHelp { return .help }
        if isVersion { return .version(verbose: options.output.verbose) }
        if options.output.quiet, options.output.verbose {
            throw UsageError(message: "--quiet and --verbose say opposite things")
        }
        if isDemo {
            let others = isSeen.subtracting(["--demo", "--json", "--quiet", "--verbose"])
            guard urls.isEmpty, others.isEmpty, options.headers.isEmpty else {
                throw UsageError(message: "--demo brings its own server: beside it only --json, --quiet and --verbose")
            }
            return .demo(options.output)
        }

        guard urls.count == 1, !urls[0].isEmpty else {
            throw UsageError(message: urls.count > 1 ? "more than one URL" : "which URL?")
        }
        if options.key != nil, options.certificate == nil {
            throw UsageError(message: "--key wants --cert beside it")
        }
        var options = options
        options.url = urls[0]
        options.dialect = try dialect()
        return .subscribe(options)
    }

    private func dialect() throws(UsageError) -> Options.Dialect {
        guard let query else {
            guard plain else {
                throw UsageError(message: "--query or --query-file for GraphQL, --plain for any other event stream?")
            }
            for (name, isGiven) in [("--variables", variables != nil), ("--operation", operation != nil)] where isGiven
            {
                throw UsageError(message: "\(name) goes with --query or --query-file")
            }
            return .plain(method: method, data: data, lastEventID: lastEventID)
        }
        guard !plain else {
            throw UsageError(message: "--plain is for streams that are not GraphQL: not with --query")
        }
        let plainOnly = [("--method", method != nil), ("--data", data != nil), ("--last-event-id", lastEventID != nil)]
        for (name, isGiven) in plainOnly where isGiven {
            throw UsageError(message: "\(name) goes with --plain: a GraphQL subscription is a POST of its own body")
        }
        return .graphQL(query: query, variables: variables, operation: operation)
    }

    private mutating func setQuery(_ source: Source) throws(UsageError) {
        guard query == nil else { throw UsageError(message: "--query and --query-file are one too many") }
        query = source
    }

    private func flag() throws(UsageError) -> Bool {
        guard attached == nil else { throw UsageError(message: "\(option) takes no value") }
        return true
    }

    private mutating func value() throws(UsageError) -> String {
        if let attached { return attached }
        guard let word = words.popFirst() else { throw UsageError(message: "\(option) wants a value") }
        return word
    }

    private mutating func number() throws(UsageError) -> Int {
        let word = try value()
        guard let number = Int(word), number >= 1 else {
            throw UsageError(message: "\(option) wants a whole number of at least 1, and not '\(word)'")
        }
        return number
    }

    /// Seconds, fractions allowed, up to about 31 years.
    private mutating func seconds() throws(UsageError) -> Duration {
        let word = try value()
        guard let seconds = Double(word), seconds > 0, seconds <= 1e9 else {
            throw UsageError(message: "\(option) wants seconds, more than none, and not '\(word)'")
        }
        return .seconds(seconds)
    }

    private mutating func http() throws(UsageError) -> Options.HTTP {
        let word = try value()
        guard let version = Options.HTTP(rawValue: word) else {
            throw UsageError(message: "--http is 1.1 or 2, and not '\(word)'")
        }
        return version
    }

    /// A `Name: value`, which no error repeats: it may be a secret.
    private mutating func header() throws(UsageError) -> Header {
        let word = try value()
        guard let colon = word.firstIndex(of: ":"), colon != word.startIndex else {
            throw UsageError(message: "--header wants 'Name: value'")
        }
        // The blanks around a value are no part of it (RFC 9110, 5.5).
        var value = word[word.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        while let last = value.last, last == " " || last == "\t" { value.removeLast() }
        return Header(name: String(word[..<colon]), value: String(value))
    }

    private static func source(_ word: String) -> Source {
        word.hasPrefix("@") ? .file(String(word.dropFirst())) : .text(word)
    }
}
