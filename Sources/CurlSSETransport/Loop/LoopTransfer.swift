// One opening and its stream, as the loop drives it: from the line of its origin over redirects to its end.
//
// Thread: made on any; everything else on the loop's.

internal import SubscriptionRuntime

/// How an opening went.
enum OpenOutcome: Sendable {
    case opened
    /// The server refused the credentials, and may be asked once more with others.
    case authenticate
    indirect case failed(TransportError)
    case cancelled
}

/// What all openings of one transport have in common.
final class TransferTerms: Sendable {
    /// Everything of the easy handle that the request does not decide.
    let options: EasyOptions
    let limits: TransferStateMachine.Limits
    let socketOptions: SocketOptions
    let trusted: Set<Origin>
    /// How many openings of the origin may be under way at once.
    let openingLimit: Int
    let readErrors: @Sendable ([UInt8]) -> [GraphQLError]

    init(
        options: EasyOptions,
        limits: TransferStateMachine.Limits,
        socketOptions: SocketOptions,
        trusted: Set<Origin>,
        openingLimit: Int,
        readErrors: @escaping @Sendable ([UInt8]) -> [GraphQLError]
    ) {
        self.options = options
        self.limits = limits
        self.socketOptions = socketOptions
        self.trusted = trusted
        self.openingLimit = openingLimit
        self.readErrors = readErrors
    }
}

/// What one opening sends and how: plain values.
///
/// Small, as many openings may wait in line: fields and not lines, whose texts are mostly those of all openings.
struct TransferPlan: Sendable {
    var request: HTTPRequest
    /// The URL asked first.
    var start: RedirectRules.Target
    /// The caller's fields, the credentials and `Last-Event-ID` among them.
    var fields: [HTTPField]
    /// The dialect's own fields alone, for a foreign origin.
    var foreignFields: [HTTPField]
    var terms: TransferTerms
    /// A 401 may be answered by other credentials.
    var mayAuthenticate: Bool
    /// The floor under the wait that a failure to open is followed by; the stream's own once it is open.
    var retry: Duration?
}

/// One opening and its stream.
///
/// The loop owns it from `start` to its end; its caller and its reader hold it to be able to cancel.
final class LoopTransfer: CurlReceiver, @unchecked Sendable {
    /// What the response turned out to be.
    private enum Response {
        case none
        case open
        case completed
        case redirect(status: Int, location: String?)
        case authenticate
        case collect
        indirect case unreadable(TransportError)
    }

    /// What an opening needs and an open stream does not, of which there are many.
    private final class Opening {
        let plan: TransferPlan
        var rules: RedirectRules
        var keepsBody: Bool
        let promise: OneShot<OpenOutcome>

        init(_ plan: TransferPlan, _ promise: OneShot<OpenOutcome>) {
            self.plan = plan
            self.promise = promise
            keepsBody = plan.request.body != nil
            rules = RedirectRules(
                method: plan.request.method,
                hasBody: plan.request.body != nil,
                start: plan.start,
                trusted: plan.terms.trusted
            )
        }
    }

    /// What the loop is to do with a transfer that libcurl has finished with.
    enum Next {
        case end(StreamEnding, OpenOutcome)
        case hop(to: RedirectRules.Target)
    }

    /// Names the transfer in the loop's tables; 0 before its start.
    private(set) var id: UInt64 = 0

    /// Which deadline holds; nil before the start.
    private(set) var machine: TransferStateMachine?

    /// The hop under way; of an open stream the origin alone.
    private(set) var target: RedirectRules.Target

    /// The earliest entry the loop's heap has for it.
    var armedAt: UInt64?

    /// Whether the loop's list of sinks to flush has it.
    var isDirty = false

    /// How many chunks of the body this turn of the loop has brought; while it has brought none, the turn before that did.
    var chunksOfTurn = 0

    /// The loop's name of the hop's easy handle; nil while there is none.
    private(set) var easyKey: UInt?

    /// The name of the hop's connection; nil while there is none, and where it has none.
    private(set) var connection: ConnectionName?

    /// Others were heard on the connection that this one has waited on.
    var isOnLiveConnection = false

    /// Bytes of the body, of the last hop.
    private(set) var bytesReceived = 0

    /// What the way to the stream needs; nil once it is open.
    private var opening: Opening?
    private let terms: TransferTerms
    private let sink: any TransferSink
    private unowned var core: LoopCore?
    private var easy: EasyHandle?
    private var headParser = ResponseHeadParser()
    private var classifier: ResponseClassifier
    private var response = Response.none
    private var httpVersion: String?
    private var status: Int?
    private var ending: SinkEnding?
    private var isDiscarding = false
    /// libcurl came to the hop's end, and not this side.
    private var isFinished = false
    private var wasConnected = false
    private var hasExpired = false
    private var socketError: Int32 = 0

    /// A transfer that is ready to start, and will settle `promise` by how its opening went.
    init(plan: TransferPlan, sink: any TransferSink, promise: OneShot<OpenOutcome>) {
        opening = Opening(plan, promise)
        terms = plan.terms
        self.sink = sink
        target = plan.start
        classifier = ResponseClassifier(mayAuthenticate: plan.mayAuthenticate, readErrors: plan.terms.readErrors)
        super.init(socketOptions: plan.terms.socketOptions)
    }

    // MARK: What the loop does with it

    /// Joins the loop.
    func start(id: UInt64, core: LoopCore, now: UInt64) {
        self.id = id
        self.core = core
        machine = TransferStateMachine(limits: terms.limits, now: now)
    }

    /// Has its place: makes the hop's easy handle.
    ///
    /// - Parameters:
    ///   - multi: Takes the handle.
    ///   - files: Names the configuration's files by what is in them.
    ///   - looksUpAnew: Whether an answer of the resolver that libcurl keeps is not used.
    ///   - connectsAnew: Whether a connection that libcurl keeps is not used.
    ///   - now: The loop's time.
    /// - Throws: An error of kind `environment`, or `request`, for what libcurl does not take.
    func connect(
        to multi: borrowing MultiHandle,
        files: inout FileVersions,
        looksUpAnew: Bool,
        connectsAnew: Bool,
        now: UInt64
    ) throws(TransportError) {
        guard let opening else { return }
        let plan = opening.plan
        machine?.admitted(now: now)
        var options = terms.options
        options.url = target.url
        options.method = plan.request.method
        options.isHTTPS = target.origin.scheme == "https"
        options.headerLines = HeaderRules.lines(
            opening.rules.keepsHeaders ? plan.fields : plan.foreignFields
        )
        options.body = opening.keepsBody ? plan.request.body : nil
        options.looksUpAnew = looksUpAnew
        options.connectsAnew = connectsAnew
        let keepalive = Keepalive(
            idle: options.keepaliveIdle,
            interval: options.keepaliveInterval,
            probes: Int(socketOptions.keepaliveProbes),
            userTimeout: Int(terms.socketOptions.userTimeout),
            chance: .random(in: 0..<1)
        )
        options.keepaliveIdle = keepalive.idle
        socketOptions.userTimeout = Int32(clamping: keepalive.userTimeout)
        if options.isHTTPS { files.apply(to: &options) }
        do {
            let easy = try EasyHandle.make(options, receiver: self)
            guard multi.add(easy) else {
                throw TransportError(kind: .network, message: "libcurl had no memory for a transfer")
            }
            easyKey = easy.key
            self.easy = consume easy
        } catch let error as CurlSetupError {
            throw TransportError(
                kind: error.kind,
                message: "libcurl refused \(error.option): \(error.code.text) (curl \(error.code.rawValue))",
                curlCode: error.code.rawValue,
                host: target.origin.hostAndPort
            )
        } catch let error as TransportError {
            throw error
        } catch {
            throw TransportError(kind: .network, message: "\(error)")
        }
    }

    /// Leaves the multi handle: the hop's connection closes, or its HTTP/2 stream is reset.
    func disconnect(from multi: borrowing MultiHandle) {
        guard easyKey != nil else { return }
        easyKey = nil
        connection = nil
        isDiscarding = true
        if let easy = easy.take() {
            // A stream of HTTP/2 that is left alone on its connection is not known to be left: see `keepsResets`.
            if !isFinished, CurlGlobal.info.keepsResets { easy.forbidReuse() }
            // What a paused stream holds would be lost with it in some versions.
            if machine?.isHeld == true, CurlGlobal.info.leaksPausedStreams { _ = easy.resume() }
            core?.check(multi.remove(easy))
        }
        isDiscarding = false
    }

    /// libcurl is done with the hop.
    ///
    /// - Parameters:
    ///   - code: libcurl's result.
    ///   - wallClock: Unix seconds, for an HTTP-date.
    /// - Returns: How the transfer goes on. The handle is still in the multi handle.
    func finished(code: CurlCode, wallClock: Int64) -> Next {
        isFinished = code.rawValue == 0
        let curl = facts(code)
        switch response {
        case .open:
            switch ending {
            case .completed: return .end(.completed, .opened)
            case .failed(let failure): return failed(error(failure))
            case nil: return sink.isAbandoned ? .end(.cancelled, .cancelled) : failed(streamError(curl))
            }
        case .completed:
            return .end(.completed, .opened)
        case .redirect(let status, let location):
            return redirected(status: status, location: location, curl, wallClock: wallClock)
        case .authenticate:
            return .end(.cancelled, .authenticate)
        case .collect:
            return failed(classifier.failure(responseFacts(curl, wallClock: wallClock)))
        case .unreadable(var error):
            error.message = "\(target.origin.hostAndPort): \(error.message)"
            return failed(withFacts(error, curl))
        case .none:
            return failed(connectionError(curl))
        }
    }

    /// A limit ran out.
    ///
    /// A response that is a failure stays one when its body does not end in time.
    func expired(_ timeout: TransferStateMachine.Timeout, wallClock: Int64) -> Next {
        if case .collect = response { return finished(code: CurlCode(rawValue: 0), wallClock: wallClock) }
        hasExpired = timeout != .admission
        return failed(timeoutError(timeout))
    }

    /// The transfer is over by an error.
    func failed(_ error: TransportError) -> Next {
        var error = error
        let retry = isOpen ? sink.retry : opening?.plan.retry
        if error.kind == .network, let retry { error.retryAfter = max(error.retryAfter ?? .zero, retry) }
        return .end(.failed(SubscriptionFailure(error)), .failed(error))
    }

    /// The error for a limit that ran out.
    private func timeoutError(_ timeout: TransferStateMachine.Timeout) -> TransportError {
        let host = target.origin.hostAndPort
        let limits = terms.limits
        let message =
            switch timeout {
            case .admission:
                "no place among the openings at \(host) became free within \(Self.seconds(limits.admission))"
            case .connect:
                "no connection to \(host) within \(Self.seconds(limits.connect))"
            case .firstByte:
                "\(host) did not answer within \(Self.seconds(limits.firstByte))"
            case .idle:
                "\(host) said nothing for \(Self.seconds(limits.idle)), after \(bytesReceived) bytes"
            }
        return withFacts(TransportError(kind: .network, message: message), facts(CurlCode(rawValue: 0)))
    }

    /// Follows a redirect: asks for a place again, by the loop.
    func hop(to target: RedirectRules.Target, now: UInt64) {
        machine?.redirected(now: now)
        self.target = target
        headParser = ResponseHeadParser()
        if let opening {
            classifier = ResponseClassifier(
                mayAuthenticate: opening.plan.mayAuthenticate && opening.rules.keepsHeaders,
                readErrors: terms.readErrors
            )
        }
        response = .none
        isFinished = false
        status = nil
        httpVersion = nil
        bytesReceived = 0
        wasConnected = false
        socketError = 0
    }

    /// Whether the stream is open.
    var isOpen: Bool {
        if case .open = response { return true }
        return false
    }

    /// Whether its failure says something of connections to its origin, and not of this request or stream alone: nothing
    /// came, or nothing more.
    var doubtsConnections: Bool { !isOnLiveConnection && (status == nil || hasExpired) }

    /// Whether the connection may be one of HTTP/2, which others share: before the head nobody knows.
    var mayBeShared: Bool {
        guard let httpVersion else {
            return terms.options.httpVersion == .http2
                || terms.options.httpVersion == .automatic && target.origin.scheme == "https"
        }
        return httpVersion == "2"
    }

    /// The reader has taken enough.
    ///
    /// - Returns: libcurl's answer; the transfer cannot go on when it is not 0.
    func resume(now: UInt64) -> CurlCode {
        machine?.resumed(now: now)
        return easy?.resume() ?? CurlCode(rawValue: 0)
    }

    /// Sends what the hop's connection has ready.
    func flushConnection() { easy?.flush() }

    /// How many openings of its origin may be under way at once.
    var openingLimit: Int { terms.openingLimit }

    /// Hands over what is pending.
    ///
    /// - Returns: Who waits for it on the pool, to be resumed.
    func flush() -> Waiter? { sink.flush() }

    /// Ends the transfer, for its caller and its reader.
    ///
    /// True the first time.
    func end(_ ending: StreamEnding, _ outcome: OpenOutcome) -> Bool {
        guard machine?.ended() ?? true else { return false }
        sink.end(ending)
        opening?.promise.settle(outcome)
        return true
    }

    /// How many payloads the stream had.
    var payloadCount: Int { sink.payloadCount }

    // MARK: What libcurl says, inside a call of it

    override func connected(_ connection: ConnectionName?) {
        wasConnected = true
        if let core, connection != self.connection {
            if let old = self.connection { core.left(old, by: self) }
            if let connection, mayBeShared { core.joined(connection, by: self) }
        }
        self.connection = connection
        guard let core, machine?.connected(now: core.now) == true else { return }
        core.gavePlaceBack(self)
    }

    override func socketMade(errno: Int32) {
        socketError = errno
    }

    override func headerLine(_ line: RawSpan) -> Bool {
        // Behind the body: a trailer, or the head of an answer to a request that libcurl has sent again.
        if case .open = response { return !beginsAnew(line) }
        do {
            guard let head = try headParser.push(line: Array(copying: line)) else { return true }
            return judge(head)
        } catch {
            response = .unreadable(error)
            return false
        }
    }

    /// Whether another response begins, where the stream is open: what follows is not its continuation.
    private func beginsAnew(_ line: RawSpan) -> Bool {
        // No field's name has a slash.
        let isStatusLine = line.byteCount > 5 && Array(copying: line.extracting(0..<5)) == Array("HTTP/".utf8)
        if isStatusLine {
            ending = .failed(
                DialectFailure(kind: .network, message: "the answer began anew after \(bytesReceived) bytes")
            )
        }
        return isStatusLine
    }

    private func judge(_ head: ResponseHead) -> Bool {
        status = head.status
        httpVersion = head.version
        switch classifier.head(head) {
        case .open:
            response = .open
            if let core {
                machine?.accepted(now: core.now)
                core.opened(self)
            }
            opening?.promise.settle(.opened)
            letGoOfOpening()
            return true
        case .completed:
            response = .completed
            return false
        case .redirect(let location):
            response = .redirect(status: head.status, location: location)
            return false
        case .authenticate:
            response = .authenticate
            return false
        case .collect:
            response = .collect
            return true
        }
    }

    /// The stream is open: nothing is asked for again.
    private func letGoOfOpening() {
        opening = nil
        classifier = ResponseClassifier(mayAuthenticate: false, readErrors: terms.readErrors)
        target.url = ""
    }

    override func bodyChunk(_ chunk: RawSpan) -> WriteVerdict {
        guard !isDiscarding else { return .taken }
        switch response {
        case .open:
            // One call of libcurl may read megabytes of a fast stream: a cancellation does not wait for its end.
            guard !sink.isAbandoned else {
                if CurlGlobal.info.keepsResets { easy?.forbidReuse() }
                return .abort
            }
            guard sink.hasRoom() else {
                // The whole chunk comes again.
                machine?.held()
                return .pause
            }
            bytesReceived += chunk.byteCount
            var goesOnAtOnce = false
            if let core {
                machine?.received(now: core.now)
                goesOnAtOnce = core.received(chunk.byteCount, by: self)
            }
            switch sink.read(chunk) {
            case .taken:
                if goesOnAtOnce { sink.flush()?.resume() }
                core?.runJobs()
                return .taken
            case .ended(let ending):
                self.ending = ending
                if CurlGlobal.info.keepsResets { easy?.forbidReuse() }
                return .abort
            }
        case .collect:
            bytesReceived += chunk.byteCount
            return classifier.body(chunk) ? .taken : .abort
        case .none, .completed, .redirect, .authenticate, .unreadable:
            // The body of something that is not the answer, such as a proxy's.
            return .taken
        }
    }

    // MARK: Facts

    private func facts(_ code: CurlCode) -> CurlFacts {
        var facts =
            easy?.facts(code: code)
            ?? CurlFacts(code: code, message: "", systemError: 0, connections: 0, proxyStatus: 0, verifyResult: 0)
        facts.socketError = socketError
        facts.wasConnected = wasConnected
        return facts
    }

    private func responseFacts(_ curl: CurlFacts, wallClock: Int64) -> ResponseFacts {
        ResponseFacts(
            origin: target.origin,
            address: curl.address,
            bytesReceived: bytesReceived,
            now: wallClock
        )
    }

    private func redirected(status: Int, location: String?, _ curl: CurlFacts, wallClock: Int64) -> Next {
        let next = location.flatMap { Self.resolve($0, from: target.url) }
        switch opening?.rules.redirected(status: status, to: next) {
        case .follow(let keepsBody, _):
            guard let next else { break }
            opening?.keepsBody = keepsBody
            return .hop(to: next)
        case .refuse(let reason):
            return failed(classifier.failure(responseFacts(curl, wallClock: wallClock), refusal: reason))
        case nil:
            break
        }
        return failed(classifier.failure(responseFacts(curl, wallClock: wallClock), refusal: "it leads nowhere"))
    }

    private static func resolve(_ location: String, from url: String) -> RedirectRules.Target? {
        do {
            let base = try CurlURL.parse(url)
            let next = try base.resolving(location)
            return RedirectRules.Target(url: next.text, origin: next.origin)
        } catch {
            return nil
        }
    }

    /// The request got no answer.
    private func connectionError(_ curl: CurlFacts) -> TransportError {
        let host = target.origin.hostAndPort
        let verb = wasConnected ? "the request to \(host) failed" : "could not connect to \(host)"
        return withFacts(TransportError(kind: curl.kind, message: "\(verb): \(curl.what) (\(curl.suffix))"), curl)
    }

    /// The body ended, and the server had not said that it would.
    private func streamError(_ curl: CurlFacts) -> TransportError {
        let host = target.origin.hostAndPort
        let how = curl.code.rawValue == 0 ? "the body ended" : "\(curl.what) (\(curl.suffix))"
        var message = "the stream from \(host) ended without completing: \(how), after \(bytesReceived) bytes"
        if sink.finish() { message += ", with half an event that is discarded" }
        return withFacts(TransportError(kind: .network, message: message), curl)
    }

    /// What the server said ends the stream.
    private func error(_ failure: DialectFailure) -> TransportError {
        let error = TransportError(
            kind: failure.kind == .request ? .request : .network,
            message: "\(target.origin.hostAndPort): \(failure.message)",
            graphQLErrors: failure.graphQLErrors
        )
        return withFacts(error, facts(CurlCode(rawValue: 0)))
    }

    private func withFacts(_ error: TransportError, _ curl: CurlFacts) -> TransportError {
        var error = error
        error.status = error.status ?? status
        if curl.code.rawValue != 0, ending == nil { error.curlCode = curl.code.rawValue }
        error.errno = curl.errno
        error.host = target.origin.hostAndPort
        error.address = curl.address
        error.httpVersion = httpVersion
        error.bytesReceived = bytesReceived
        return error
    }

    private static func seconds(_ nanoseconds: UInt64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}

extension SubscriptionFailure {
    /// The case an error belongs to.
    init(_ error: TransportError) {
        self =
            switch error.kind {
            case .network: .network(error, retryAfter: error.retryAfter)
            case .request: .request(error)
            case .environment: .environment(.transport(error))
            }
    }
}

extension CurlSetupError {
    /// What a refused option means: a file or a feature that this process lacks, or a value that came with a request.
    var kind: TransportError.Kind {
        // No memory: it heals.
        if code.isOutOfMemory { return .network }
        return switch option {
        case "CURLOPT_URL", "CURLOPT_CUSTOMREQUEST", "CURLOPT_HTTPHEADER": .request
        default: .environment
        }
    }
}

extension Array where Element == UInt8 {
    /// The bytes of a span.
    init(copying span: RawSpan) {
        let bytes = Span<UInt8>(_bytes: span)
        self.init()
        reserveCapacity(bytes.count)
        for index in 0..<bytes.count { append(bytes[index]) }
    }
}
