public import SubscriptionRuntime

/// Opens event streams over HTTP with libcurl, for one server and one dialect.
///
/// ```swift
/// let transport = try GraphQLTransport("https://api.example.com/graphql", dialect: GraphQLSSE())
/// let prices = SubscriptionEnvironment(transport: transport)
/// ```
///
/// An opening is at least once: libcurl sends a request again, a POST too, when a reused connection turns out to be
/// closed before a byte of the answer, and when HTTP/2 says that it was not processed.
///
/// Copies share one loop. The loop lives until the last copy, and the last stream, are gone.
public struct CurlTransport<D: Dialect>: SubscriptionTransport, Sendable {
    /// What is asked of the server.
    public typealias Request = D.Request

    /// What the stream is made of.
    public typealias Payload = D.Payload

    private let opener: Opener<D>

    /// Makes a transport.
    ///
    /// Connects to nothing.
    ///
    /// - Parameters:
    ///   - url: The server's URL, `http` or `https`, with its scheme.
    ///   - dialect: How the server speaks.
    ///   - configuration: Its numbers, checked here.
    ///   - credentials: Read anew for each opening; nil for none.
    ///   - loop: The loop to use; nil for one of its own.
    /// - Throws: What is wrong with the URL (kind `request`) or the configuration (kind `environment`), or why there
    ///   is no loop (kind `environment`).
    public init(
        _ url: String,
        dialect: D,
        configuration: Configuration = .init(),
        credentials: Credentials? = nil,
        loop: CurlLoop? = nil
    ) throws(TransportError) {
        try configuration.validate()
        if let credentials, credentials.deadline < .zero {
            throw TransportError(
                kind: .environment,
                message: "the credentials' deadline is \(credentials.deadline), not 0 s or more"
            )
        }
        _ = try Opener<D>.target(url, appending: "")
        var trusted: Set<Origin> = []
        for text in configuration.trustedOrigins {
            do {
                trusted.insert(try CurlURL.parse(text).origin)
            } catch {
                throw TransportError(
                    kind: .environment,
                    message: "the configuration's trustedOrigins has one that is no origin: \(error.text)"
                )
            }
        }
        let own: CurlLoop
        if let loop { own = loop } else { own = try CurlLoop() }
        opener = Opener(
            url: url,
            dialect: dialect,
            configuration: configuration,
            credentials: credentials,
            loop: own,
            trusted: trusted
        )
    }

    /// The loop, to share it with another transport or to shut it down.
    public var curlLoop: CurlLoop { opener.loop }

    /// Where the runtime reads streams: the global pool, or the loop's thread by ``Configuration/readsOnLoop``.
    public var driverExecutor: (any TaskExecutor)? {
        opener.configuration.readsOnLoop ? opener.loop.executor : nil
    }

    /// What the transport's loop has done so far, all of its transports together.
    public var counters: TransportCounters {
        let counters = opener.loop.events.counters
        return TransportCounters(
            openings: counters.openings.count,
            openStreams: counters.openStreams.count,
            failures: counters.failures.count,
            bytesReceived: counters.bytes.count,
            payloads: counters.payloads.count,
            faults: counters.faults.count
        )
    }

    /// Opens one stream: returns once the server has answered 200 with an event stream.
    ///
    /// A response of 204 or 205 is a stream that completes at once. Redirects are followed within the call, and a 401
    /// asks the credentials once more; nothing else is tried twice.
    ///
    /// - Parameters:
    ///   - request: What to ask for.
    ///   - resuming: Where the last stream was left, as its iterator said; nil for a first one.
    /// - Returns: The stream. Dropping it closes it.
    /// - Throws: The failure, which carries a ``TransportError``. A cancelled call fails by a network failure.
    public func open(
        _ request: D.Request,
        resuming: ResumePoint?
    ) async throws(SubscriptionFailure) -> PayloadStream<D.Payload> {
        try await opener.open(request, resuming: resuming)
    }
}

/// A transport for GraphQL over SSE in its distinct connections mode.
public typealias GraphQLTransport = CurlTransport<GraphQLSSE>

/// A transport for any server of plain event streams.
public typealias EventSourceTransport = CurlTransport<EventSource>

/// The library's version.
public enum Version {
    /// As in `0.1.0`.
    public static let current = "0.1.0"
}
