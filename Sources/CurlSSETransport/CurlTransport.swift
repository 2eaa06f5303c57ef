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

    private let url: String
    private let dialect: D
    private let configuration: Configuration
    private let credentials: Credentials?
    private let loop: CurlLoop
    private let trusted: Set<Origin>

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
        _ = try Self.target(url, appending: "")
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
        self.url = url
        self.dialect = dialect
        self.configuration = configuration
        self.credentials = credentials
        self.trusted = trusted
        if let loop {
            self.loop = loop
        } else {
            self.loop = try CurlLoop()
        }
    }

    /// The loop, to share it with another transport or to shut it down.
    public var curlLoop: CurlLoop { loop }

    /// Where the runtime reads streams: the global pool, or the loop's thread by ``Configuration/readsOnLoop``.
    public var driverExecutor: (any TaskExecutor)? { configuration.readsOnLoop ? loop.executor : nil }

    /// What the transport's loop has done so far, all of its transports together.
    public var counters: TransportCounters {
        let counters = loop.events.counters
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
        do {
            return try await opened(request, resuming: resuming)
        } catch {
            throw SubscriptionFailure(error)
        }
    }

    private func opened(
        _ request: D.Request,
        resuming: ResumePoint?
    ) async throws(TransportError) -> PayloadStream<D.Payload> {
        let position = dialect.resumes ? resuming.flatMap { StreamPosition($0) } : nil
        let http = try dialect.httpRequest(for: request, resuming: position)
        var fields: [HTTPField] = []
        if let credentials { fields = try await credentials.fields(refused: false, on: loop.events) }
        if let stream = try await attempt(http, position, credentials: fields, mayAuthenticate: credentials != nil) {
            return stream
        }
        guard let credentials else {
            throw TransportError(kind: .request, message: "the server asked for credentials, and there are none")
        }
        fields = try await credentials.fields(refused: true, on: loop.events)
        if let stream = try await attempt(http, position, credentials: fields, mayAuthenticate: false) { return stream }
        throw TransportError(kind: .request, message: "the server refused the credentials twice", status: 401)
    }

    /// Opens once; nil when the server refused the credentials and others may do.
    private func attempt(
        _ http: HTTPRequest,
        _ position: StreamPosition?,
        credentials: [HTTPField],
        mayAuthenticate: Bool
    ) async throws(TransportError) -> PayloadStream<D.Payload>? {
        let plan = try plan(http, position, credentials: credentials, mayAuthenticate: mayAuthenticate)
        let start = StreamPosition(lastEventID: http.lastEventID, retry: position?.retry)
        let channel = PayloadChannel<D.Payload>(highWater: configuration.highWater)
        let sink = StreamSink(
            dialect: dialect,
            channel: channel,
            position: start,
            maxEventBytes: configuration.maxEventBytes,
            onComment: configuration.onComment
        )
        // The loop would begin to connect before it heard of the cancellation.
        guard !Task.isCancelled else { throw Self.cancelled }
        let transfer = LoopTransfer(plan: plan, sink: sink)
        let mailbox = loop.events.mailbox
        mailbox.post(.start(transfer))
        let outcome = await withTaskCancellationHandler {
            await transfer.promise.value()
        } onCancel: {
            mailbox.post(.cancel(transfer))
        }
        switch outcome {
        case .opened:
            return PayloadStream(
                lease: StreamLease(
                    channel: channel,
                    transfer: transfer,
                    loop: loop,
                    start: dialect.resumes ? start : nil,
                    detached: D.Reader.detached
                )
            )
        case .authenticate:
            return nil
        case .failed(let error):
            throw error
        case .cancelled:
            throw Self.cancelled
        }
    }

    private func plan(
        _ http: HTTPRequest,
        _ position: StreamPosition?,
        credentials: [HTTPField],
        mayAuthenticate: Bool
    ) throws(TransportError) -> TransferPlan {
        try HeaderRules.check(method: http.method)
        try HeaderRules.check(target: http.target)
        let own = try HeaderRules.merged(dialect: Self.identity + http.fields, caller: [])
        var all = try HeaderRules.merged(
            dialect: Self.identity + http.fields,
            caller: http.callerFields,
            credentials: credentials
        )
        if let field = HeaderRules.lastEventIDField(http.lastEventID) { all.append(field) }
        return TransferPlan(
            request: http,
            start: try Self.target(url, appending: http.target),
            lines: HeaderRules.lines(all),
            foreignLines: HeaderRules.lines(own),
            options: EasyOptions(configuration, method: http.method),
            limits: TransferStateMachine.Limits(
                admission: UInt64(clamping: configuration.admissionTimeout.nanoseconds),
                connect: UInt64(clamping: configuration.connectTimeout.nanoseconds),
                firstByte: UInt64(clamping: configuration.firstByteTimeout.nanoseconds),
                idle: UInt64(clamping: configuration.idleTimeout.nanoseconds)
            ),
            socketOptions: SocketOptions(
                keepaliveProbes: Int32(clamping: configuration.keepaliveProbes),
                userTimeout: Int32(clamping: configuration.tcpUserTimeout.milliseconds)
            ),
            trusted: trusted,
            openingLimit: configuration.maxConcurrentOpenings,
            mayAuthenticate: mayAuthenticate,
            retry: position?.retry,
            readErrors: GraphQLError.errors(inBody:)
        )
    }

    private static var cancelled: TransportError {
        TransportError(kind: .network, message: "the opening was cancelled")
    }

    /// Who asks.
    private static var identity: [HTTPField] { [HTTPField("User-Agent", "swift-subscriptions/\(Version.current)")] }

    private static func target(_ url: String, appending target: String) throws(TransportError) -> RedirectRules.Target {
        do {
            let parsed = try CurlURL.parse(url).appending(target)
            return RedirectRules.Target(url: parsed.text, origin: parsed.origin)
        } catch {
            throw TransportError(kind: .request, message: "the URL cannot be used: \(error.text)")
        }
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

extension EasyOptions {
    /// The options that a configuration decides.
    fileprivate init(_ configuration: Configuration, method: String) {
        let proxy: Proxy =
            switch configuration.proxy {
            case .none: .none
            case .url(let url): .url(url)
            case .fromEnvironment: .environment
            }
        let version: HTTPVersion =
            switch configuration.httpVersion {
            // A paused stream of HTTP/2 stalls for ever in some versions.
            case .automatic: CurlGlobal.info.stallsPausedStreams ? .http1 : .automatic
            case .http1_1: .http1
            case .http2: .http2
            }
        self.init(
            url: "",
            isHTTPS: false,
            method: method,
            headerLines: [],
            body: nil,
            httpVersion: version,
            connectTimeout: configuration.connectTimeout.milliseconds,
            bufferSize: 128 << 10,
            keepaliveIdle: configuration.keepaliveIdle.wholeSeconds,
            keepaliveInterval: configuration.keepaliveInterval.wholeSeconds,
            caFile: configuration.tls.caFile,
            caPath: configuration.tls.caPath,
            clientCertificate: configuration.tls.clientCertificate,
            clientKey: configuration.tls.clientKey,
            minimumTLS13: configuration.tls.minimumVersion == .tls1_3,
            pinnedPublicKey: configuration.tls.pinnedPublicKey,
            verifiesPeer: !configuration.tls.insecureSkipsVerification,
            proxy: proxy,
            unixSocket: configuration.unixSocket,
            interface: configuration.interface,
            resolve: configuration.resolve.map(\.entry)
        )
    }
}
