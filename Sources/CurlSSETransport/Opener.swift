// How a transport opens a stream: from the request, over what the loop is told, to the sequence.
//
// Any task. The frames of a task's asynchronous calls stay with it for its life, and the deepest it ever was in them is
// its size: the task that opens a stream is the one that reads it. So an asynchronous function here holds references and
// little else over its waits, and large values are the business of functions that do not wait.

internal import SubscriptionRuntime

/// What one transport opens streams by.
///
/// An object, so that a copy of the transport is one reference wherever it is kept.
final class Opener<D: Dialect>: Sendable {
    let configuration: Configuration
    let loop: CurlLoop
    private let url: String
    private let dialect: D
    private let credentials: Credentials?
    private let terms: TransferTerms

    init(
        url: String,
        dialect: D,
        configuration: Configuration,
        credentials: Credentials?,
        loop: CurlLoop,
        trusted: Set<Origin>
    ) {
        self.url = url
        self.dialect = dialect
        self.configuration = configuration
        self.credentials = credentials
        self.loop = loop
        terms = TransferTerms(
            options: EasyOptions(configuration),
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
            readErrors: GraphQLError.errors(inBody:)
        )
    }

    /// What is asked, in every try.
    private final class Question: Sendable {
        let http: HTTPRequest
        let position: StreamPosition?

        init(http: HTTPRequest, position: StreamPosition?) {
            self.http = http
            self.position = position
        }
    }

    /// One try: what the loop was told, and what its stream is read from.
    private final class Attempt: Sendable {
        let channel: PayloadChannel<D.Payload>
        let transfer: LoopTransfer
        let promise: OneShot<OpenOutcome>
        let start: StreamPosition

        init(
            channel: PayloadChannel<D.Payload>,
            transfer: LoopTransfer,
            promise: OneShot<OpenOutcome>,
            start: StreamPosition
        ) {
            self.channel = channel
            self.transfer = transfer
            self.promise = promise
            self.start = start
        }
    }

    /// Opens one stream, see ``CurlTransport/open(_:resuming:)``.
    func open(
        _ request: D.Request,
        resuming: ResumePoint?
    ) async throws(SubscriptionFailure) -> PayloadStream<D.Payload> {
        let question = try question(request, resuming: resuming)
        var fields = try await credentials?.fields(refused: false, on: loop.events) ?? []
        var attempt = try begin(question, credentials: fields, mayAuthenticate: credentials != nil)
        await wait(for: attempt)
        if let stream = try stream(of: attempt) { return stream }
        fields = try await credentials?.fields(refused: true, on: loop.events) ?? []
        attempt = try begin(question, credentials: fields, mayAuthenticate: false)
        await wait(for: attempt)
        if let stream = try stream(of: attempt) { return stream }
        throw Self.refusedTwice
    }

    @inline(never)
    private func question(
        _ request: D.Request,
        resuming: ResumePoint?
    ) throws(SubscriptionFailure) -> Question {
        do {
            let position = dialect.resumes ? resuming.flatMap { StreamPosition($0) } : nil
            return Question(http: try dialect.httpRequest(for: request, resuming: position), position: position)
        } catch {
            throw SubscriptionFailure(error)
        }
    }

    /// Tells the loop to open.
    @inline(never)
    private func begin(
        _ question: Question,
        credentials: [HTTPField],
        mayAuthenticate: Bool
    ) throws(SubscriptionFailure) -> Attempt {
        let plan: TransferPlan
        do {
            plan = try self.plan(
                question.http,
                question.position,
                credentials: credentials,
                mayAuthenticate: mayAuthenticate
            )
        } catch {
            throw SubscriptionFailure(error)
        }
        let start = StreamPosition(lastEventID: question.http.lastEventID, retry: question.position?.retry)
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
        let promise = OneShot<OpenOutcome>()
        let transfer = LoopTransfer(plan: plan, sink: sink, promise: promise)
        loop.events.mailbox.post(.start(transfer))
        return Attempt(channel: channel, transfer: transfer, promise: promise, start: start)
    }

    /// Waits until it is known how the attempt went, or its task is cancelled and the loop has heard of it.
    private func wait(for attempt: Attempt) async {
        let transfer = attempt.transfer
        let mailbox = loop.events.mailbox
        await withTaskCancellationHandler {
            await attempt.promise.wait()
        } onCancel: {
            mailbox.post(.cancel(transfer))
        }
    }

    /// The attempt's stream; nil when the server refused the credentials and others may do.
    @inline(never)
    private func stream(of attempt: Attempt) throws(SubscriptionFailure) -> PayloadStream<D.Payload>? {
        switch attempt.promise.settled {
        case .opened:
            return PayloadStream(
                lease: StreamLease(
                    channel: attempt.channel,
                    transfer: attempt.transfer,
                    loop: loop,
                    start: dialect.resumes ? attempt.start : nil,
                    detached: D.Reader.detached
                )
            )
        case .authenticate:
            return nil
        case .failed(let error):
            throw SubscriptionFailure(error)
        case .cancelled, nil:
            throw Self.cancelled
        }
    }

    @inline(never)
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
            fields: all,
            foreignFields: own,
            terms: terms,
            mayAuthenticate: mayAuthenticate,
            retry: position?.retry
        )
    }

    private static var cancelled: SubscriptionFailure {
        SubscriptionFailure(TransportError(kind: .network, message: "the opening was cancelled"))
    }

    /// Only after a first refusal, which asks for credentials: there are some.
    private static var refusedTwice: SubscriptionFailure {
        SubscriptionFailure(
            TransportError(kind: .request, message: "the server refused the credentials twice", status: 401)
        )
    }

    /// Who asks.
    private static var identity: [HTTPField] { [userAgent] }

    static func target(_ url: String, appending target: String) throws(TransportError) -> RedirectRules.Target {
        do {
            let parsed = try CurlURL.parse(url).appending(target)
            return RedirectRules.Target(url: parsed.text, origin: parsed.origin)
        } catch {
            throw TransportError(kind: .request, message: "the URL cannot be used: \(error.text)")
        }
    }
}

/// Made once, so that all openings share its text.
private let userAgent = HTTPField("User-Agent", "swift-subscriptions/\(Version.current)")

extension EasyOptions.HTTPVersion {
    /// The version for a choice, by what this libcurl can do.
    init(_ choice: Configuration.HTTPVersion, by curl: CurlInfo) {
        self =
            switch choice {
            // A paused stream of HTTP/2 stalls for ever in some versions, and some are built without it.
            case .automatic: curl.stallsPausedStreams || !curl.hasHTTP2 ? .http1 : .automatic
            case .http1_1: .http1
            case .http2: .http2
            }
    }
}

extension EasyOptions {
    /// The options that a configuration decides.
    fileprivate init(_ configuration: Configuration) {
        let proxy: Proxy =
            switch configuration.proxy {
            case .none: .none
            case .url(let url): .url(url)
            case .fromEnvironment: .environment
            }
        self.init(
            url: "",
            isHTTPS: false,
            method: "",
            headerLines: [],
            body: nil,
            httpVersion: HTTPVersion(configuration.httpVersion, by: CurlGlobal.info),
            connectTimeout: configuration.connectTimeout.milliseconds,
            // What one recv(2) may bring: each has the receive window said anew, at this side's cost. Memory that is never
            // filled is never the process's.
            bufferSize: 256 << 10,
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
