// A transport that a test plays by hand.

public import SubscriptionRuntime

/// A transport whose every opening waits for the test: to be accepted, fed, completed or failed.
///
/// ```swift
/// let transport = ScriptedTransport<String, Int>()
/// let environment = SubscriptionEnvironment(transport: transport, clock: TestClock())
/// let retention = environment.handle(for: "prices").retain()
/// let opening = try await transport.nextOpening()
/// opening.accept()
/// opening.feed(1, 2)
/// opening.fail(.network(Dropped()))
/// ```
///
/// It keeps a transport's contract, or breaks the one point a test asks it to. From any thread.
public final class ScriptedTransport<Request: Hashable & Sendable, Payload: Sendable>: SubscriptionTransport {
    /// One call of `open`, and the stream it became.
    public typealias Opening = ScriptedOpening<Request, Payload>

    /// What the transport does by itself.
    public struct Manner: Sendable {
        /// Whether a cancelled opening goes on as if nothing had been said: it returns when the test answers it.
        public var isDeaf = false

        /// Whether every opening is accepted at once.
        public var acceptsAtOnce = false

        /// Whether a stream is live no more as soon as the task that opened it is cancelled, also between two calls.
        ///
        /// For who opens in tasks that let go of their streams before they end, as the runtime does.
        package var watchesTasks = false

        /// Makes a transport that listens, and waits for the test.
        ///
        /// - Parameters:
        ///   - isDeaf: Whether it ignores cancellation while it opens.
        ///   - acceptsAtOnce: Whether it accepts without being told.
        public init(isDeaf: Bool = false, acceptsAtOnce: Bool = false) {
            self.isDeaf = isDeaf
            self.acceptsAtOnce = acceptsAtOnce
        }
    }

    private struct State {
        var untold: [Opening] = []
        var firstUntold = 0
        var watchers = Watchers<Opening>()
    }

    private let manner: Manner
    private let detach: @Sendable (Payload) -> Payload
    private let onCancel: (@Sendable (Opening) -> Void)?
    private let state = Lock(State())
    private let tally: ScriptedTally<Request>

    /// Runs the runtime's reading; nil for the global pool.
    public let driverExecutor: (any TaskExecutor)?

    /// Makes a transport with no opening yet.
    ///
    /// - Parameters:
    ///   - manner: What it does by itself.
    ///   - driverExecutor: Where the runtime reads it. Default: the global pool.
    ///   - detach: What a payload becomes when it is kept. Default: itself.
    ///   - onCancel: Called inside the cancellation of an opening or of a stream that is being read, on the thread that
    ///     cancels.
    public init(
        _ manner: Manner = Manner(),
        driverExecutor: (any TaskExecutor)? = nil,
        detach: @escaping @Sendable (Payload) -> Payload = { $0 },
        onCancel: (@Sendable (Opening) -> Void)? = nil
    ) {
        self.manner = manner
        tally = ScriptedTally(watchesTasks: manner.watchesTasks)
        self.driverExecutor = driverExecutor
        self.detach = detach
        self.onCancel = onCancel
    }

    /// The next call of `open`, each told once, in the order they came.
    ///
    /// - Returns: The call; waits while every one has been told.
    /// - Throws: `CancellationError` when the task is cancelled, before or while it waits. The next call of `open` is
    ///   then told to who asks next.
    public func nextOpening() async throws(CancellationError) -> Opening {
        try await state.wait(in: \.watchers) { state in
            guard state.firstUntold < state.untold.count else { return nil }
            let opening = state.untold[state.firstUntold]
            state.firstUntold += 1
            if state.firstUntold == state.untold.count {
                state.untold = []
                state.firstUntold = 0
            }
            return opening
        }
    }

    /// How often `open` was called.
    public var opened: Int { tally.counts.opened }

    /// How many openings wait for the test and how many streams are open, that were not cancelled.
    ///
    /// A stream is from its opening on until it is let go of, its end is taken, or a call finds its task cancelled:
    /// also while nobody reads it.
    public var live: Int { tally.live }

    /// The most there ever were at once of ``live``.
    public var mostLive: Int { tally.counts.mostLive }

    /// The most there ever were at once of ``live`` for one request; counted where tasks are watched, and exactly.
    package var mostLiveOfOne: Int { tally.counts.mostLiveOfOne }

    /// How many openings and streams there are that were not closed, cancelled or not.
    public var unclosed: Int { tally.counts.unclosed }

    /// One call, held until the test answers.
    public func open(
        _ request: Request,
        resuming point: ResumePoint?
    ) async throws(SubscriptionFailure) -> ScriptedPayloads<Request, Payload> {
        let opening = Opening(
            request: request,
            resuming: point,
            isDeaf: manner.isDeaf,
            tally: tally,
            detach: detach,
            onCancel: onCancel
        )
        if manner.acceptsAtOnce { opening.accept() }
        try await opening.answer { tell(opening) }
        return ScriptedPayloads(opening)
    }

    /// Tells who waits for an opening, or asks next.
    private func tell(_ opening: Opening) {
        let watcher = state.withLock { state in
            let watcher = state.watchers.takeFirst()
            if watcher == nil { state.untold.append(opening) }
            return watcher
        }
        watcher?.resume(returning: .success(opening))
    }
}

/// What a scripted transport counts.
final class ScriptedTally<Request: Hashable & Sendable>: Sendable {
    struct Counts {
        var opened = 0
        var mostLive = 0
        var mostLiveOfOne = 0
        var unclosed = 0
    }

    /// The task of one that is live, which lets go of it before its own end.
    @safe private struct Caller: @unchecked Sendable {
        var task: UnsafeCurrentTask?

        var isUncancelled: Bool { unsafe task?.isCancelled == false }
    }

    private struct State {
        var counts = Counts()
        var live = 0
        var lastPlace = 0
        /// Those that are live, where tasks are watched.
        var callers: [Request: [Int: Caller]] = [:]

        var uncancelled: Int {
            callers.values.reduce(0) { sum, callers in sum + callers.values.count(where: \.isUncancelled) }
        }
    }

    private let watchesTasks: Bool
    private let state = Lock(State())

    init(watchesTasks: Bool) {
        self.watchesTasks = watchesTasks
    }

    var counts: Counts { state.withLock { $0.counts } }

    var live: Int { state.withLock { watchesTasks ? $0.uncancelled : $0.live } }

    func began() {
        state.withLock { state in
            state.counts.opened += 1
            state.counts.unclosed += 1
        }
    }

    /// The calling task opens.
    ///
    /// - Returns: What it leaves by.
    func entered(_ request: Request) -> Int {
        let caller = watchesTasks ? unsafe withUnsafeCurrentTask { unsafe Caller(task: $0) } : nil
        return state.withLock { state in
            state.live += 1
            state.lastPlace += 1
            if let caller {
                state.callers[request, default: [:]][state.lastPlace] = caller
                let ofOne = state.callers[request]?.values.count(where: \.isUncancelled) ?? 0
                state.counts.mostLiveOfOne = max(state.counts.mostLiveOfOne, ofOne)
            }
            state.counts.mostLive = max(state.counts.mostLive, state.live)
            return state.lastPlace
        }
    }

    func left(_ request: Request, _ place: Int) {
        state.withLock { state in
            state.live -= 1
            state.callers[request]?[place] = nil
            if state.callers[request]?.isEmpty == true { state.callers[request] = nil }
        }
    }

    func closed() {
        state.withLock { $0.counts.unclosed -= 1 }
    }
}

/// One call of a scripted transport's `open`, and the stream it became.
public final class ScriptedOpening<Request: Hashable & Sendable, Payload: Sendable>: Sendable {
    fileprivate enum End {
        case completed
        case failed(SubscriptionFailure)
    }

    private struct State {
        var isAccepted = false
        /// How the opening failed: nothing accepts it then.
        var refusal: SubscriptionFailure?
        var items: [(payload: Payload, point: ResumePoint?)] = []
        var firstItem = 0
        var taken = 0
        var end: End?
        var isCancelled = false
        var isClosed = false
        /// What it leaves the tally by, while it is live.
        var place: Int?
        var asked: HandOver<Result<Void, SubscriptionFailure>>?
        var reader: CheckedContinuation<Void, Never>?
        var awaitingCancellation = Watchers<Void>()
        var awaitingClose = Watchers<Void>()
    }

    /// What was asked for.
    public let request: Request

    /// Where it was asked to resume.
    public let resuming: ResumePoint?

    private let isDeaf: Bool
    private let tally: ScriptedTally<Request>
    fileprivate let detach: @Sendable (Payload) -> Payload
    private let onCancel: (@Sendable (ScriptedOpening) -> Void)?
    private let state = Lock(State())

    init(
        request: Request,
        resuming: ResumePoint?,
        isDeaf: Bool,
        tally: ScriptedTally<Request>,
        detach: @escaping @Sendable (Payload) -> Payload,
        onCancel: (@Sendable (ScriptedOpening) -> Void)?
    ) {
        self.request = request
        self.resuming = resuming
        self.isDeaf = isDeaf
        self.tally = tally
        self.detach = detach
        self.onCancel = onCancel
        tally.began()
    }

    // MARK: Played by the test

    /// Has `open` return; it has effect once, and none after a failure.
    public func accept() {
        let asked = state.withLock { state -> HandOver<Result<Void, SubscriptionFailure>>? in
            guard !state.isAccepted, state.refusal == nil, !state.isClosed else { return nil }
            state.isAccepted = true
            return state.asked.take()
        }
        asked?.resume(returning: .success(()))
    }

    /// Adds payloads to the stream, which may not be accepted yet.
    ///
    /// - Parameter payloads: In order.
    public func feed(_ payloads: Payload...) {
        feed(contentsOf: payloads)
    }

    /// Adds payloads to the stream, which may not be accepted yet.
    ///
    /// - Parameters:
    ///   - payloads: In order.
    ///   - point: Where to resume once all of them are taken.
    public func feed(contentsOf payloads: [Payload], point: ResumePoint? = nil) {
        let reader = state.withLock { state in
            for payload in payloads { state.items.append((payload, nil)) }
            if let point, !payloads.isEmpty { state.items[state.items.count - 1].point = point }
            return state.reader.take()
        }
        reader?.resume()
    }

    /// Ends the stream as the server's completion does, after what was fed.
    public func complete() {
        end(.completed)
    }

    /// Has `open` throw, or the stream fail after what was fed, if it was accepted.
    ///
    /// - Parameter failure: What to throw.
    public func fail(_ failure: SubscriptionFailure) {
        let (isAccepted, asked) = state.withLock { state in
            if !state.isAccepted, state.refusal == nil { state.refusal = failure }
            return (state.isAccepted, state.isAccepted ? nil : state.asked.take())
        }
        if isAccepted { return end(.failed(failure)) }
        guard let asked else { return }
        close()
        asked.resume(returning: .failure(failure))
    }

    private func end(_ end: End) {
        let reader = state.withLock { state in
            if state.end == nil { state.end = end }
            return state.reader.take()
        }
        reader?.resume()
    }

    // MARK: Watched by the test

    /// Whether `open` has been told to return.
    public var isAccepted: Bool { state.withLock { $0.isAccepted } }

    /// Whether the opening, or the reading of the stream, has been cancelled.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Whether the opening failed, or the stream has ended or been let go of.
    public var isClosed: Bool { state.withLock { $0.isClosed } }

    /// How many payloads were taken from the stream.
    public var taken: Int { state.withLock { $0.taken } }

    /// Returns once it has been cancelled.
    ///
    /// - Throws: `CancellationError` when the calling task is cancelled, before or while it waits.
    public func cancellation() async throws(CancellationError) {
        try await state.wait(in: \.awaitingCancellation) { $0.isCancelled ? () : nil }
    }

    /// Returns once it is closed.
    ///
    /// - Throws: `CancellationError` when the calling task is cancelled, before or while it waits.
    public func closing() async throws(CancellationError) {
        try await state.wait(in: \.awaitingClose) { $0.isClosed ? () : nil }
    }

    // MARK: Called by the runtime

    /// Waits for the test's answer, which is told of once it is live.
    func answer(_ tell: () -> Void) async throws(SubscriptionFailure) {
        let answer = await withTaskCancellationHandler {
            enter()
            tell()
            return await HandOver.wait { asked in
                let answer = state.withLock { state -> Result<Void, SubscriptionFailure>? in
                    if let refusal = state.refusal { return .failure(refusal) }
                    if state.isAccepted { return .success(()) }
                    if state.isCancelled, !isDeaf { return .failure(.network(CancellationError())) }
                    state.asked = asked
                    return nil
                }
                if let answer { asked.resume(returning: answer) }
            }
        } onCancel: {
            cancel()
        }
        if case .failure = answer { close() }
        try answer.get()
    }

    /// The next payloads; nil at the completion and after a cancellation.
    func take(_ count: Int) async throws(SubscriptionFailure) -> (payloads: [Payload], point: ResumePoint?)? {
        while true {
            let (payloads, point, end) = takeIfReady(count)
            if !payloads.isEmpty { return (payloads, point) }
            switch end {
            case nil: break
            case .completed:
                close()
                return nil
            case .failed(let failure):
                close()
                throw failure
            }
            await more()
        }
    }

    /// The payloads that are there, which may be none, and the end, which stays where it is.
    fileprivate func takeIfReady(_ count: Int) -> (payloads: [Payload], point: ResumePoint?, end: End?) {
        // Whose deinit runs is not known: what was taken is let go of after the lock.
        var spent: [(payload: Payload, point: ResumePoint?)] = []
        return state.withLock { state in
            var payloads: [Payload] = []
            var point: ResumePoint?
            // What is buffered goes with a cancelled stream.
            while !state.isCancelled, payloads.count < count, state.firstItem < state.items.count {
                let item = state.items[state.firstItem]
                state.firstItem += 1
                payloads.append(item.payload)
                point = item.point ?? point
            }
            if state.firstItem == state.items.count {
                swap(&spent, &state.items)
                state.firstItem = 0
            }
            state.taken += payloads.count
            return (payloads, point, state.isCancelled ? .completed : state.end)
        }
    }

    private func more() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let mayWait = state.withLock { state in
                    guard state.items.isEmpty, state.end == nil, !state.isCancelled else { return false }
                    state.reader = reader
                    return true
                }
                if !mayWait { reader.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// The opening begins: it is live from now on.
    ///
    /// Inside a cancellation handler's reach: one that is cancelled leaves before `cancel()` of its task returns, and
    /// one that was cancelled before never enters.
    private func enter() {
        state.withLock { state in
            guard !state.isCancelled else { return }
            state.place = tally.entered(request)
        }
    }

    private func leave(_ state: inout State) {
        guard let place = state.place.take() else { return }
        tally.left(request, place)
    }

    fileprivate func cancel() {
        onCancel?(self)
        let (asked, reader, watchers) = state.withLock { state in
            state.isCancelled = true
            leave(&state)
            return (isDeaf ? nil : state.asked.take(), state.reader.take(), state.awaitingCancellation.takeAll())
        }
        asked?.resume(returning: .failure(.network(CancellationError())))
        reader?.resume()
        for watcher in watchers { watcher.resume(returning: .success(())) }
    }

    fileprivate func close() {
        let (watchers, wasOpen) = state.withLock { state in
            let wasOpen = !state.isClosed
            state.isClosed = true
            leave(&state)
            return (state.awaitingClose.takeAll(), wasOpen)
        }
        if wasOpen { tally.closed() }
        for watcher in watchers { watcher.resume(returning: .success(())) }
    }
}

/// The payloads of one scripted opening.
public struct ScriptedPayloads<Request: Hashable & Sendable, Payload: Sendable>: PayloadSequence {
    /// What is fed.
    public typealias Element = Payload

    /// How it fails.
    public typealias Failure = SubscriptionFailure

    /// Held by the sequence and its iterators: the last to let go of it closes the stream.
    fileprivate final class Connection: Sendable {
        let opening: ScriptedOpening<Request, Payload>

        init(_ opening: ScriptedOpening<Request, Payload>) {
            self.opening = opening
        }

        deinit {
            opening.close()
        }
    }

    private let connection: Connection

    init(_ opening: ScriptedOpening<Request, Payload>) {
        connection = Connection(opening)
    }

    /// Begins the reading.
    public func makeAsyncIterator() -> Iterator {
        Iterator(connection)
    }

    /// A cancellation of the opening.
    public func close() {
        connection.opening.cancel()
    }

    /// Reads what is fed.
    public struct Iterator: PayloadIterator {
        /// What is fed.
        public typealias Element = Payload

        private let connection: Connection

        /// The point of the last payload taken that had one.
        public private(set) var resumePoint: ResumePoint?

        fileprivate init(_ connection: Connection) {
            self.connection = connection
        }

        /// The next payload.
        ///
        /// - Parameter actor: Not used.
        /// - Returns: The payload; nil at the completion.
        /// - Throws: What the test had the stream fail by.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Payload? {
            guard let (payloads, point) = try await connection.opening.take(1) else { return nil }
            resumePoint = point ?? resumePoint
            return payloads.first
        }

        /// The payloads that were fed.
        ///
        /// - Parameter count: The most to take.
        /// - Returns: At least one; nil at the completion.
        /// - Throws: What the test had the stream fail by.
        public mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Payload]? {
            guard let (payloads, point) = try await connection.opening.take(count) else { return nil }
            resumePoint = point ?? resumePoint
            return payloads
        }

        /// The payloads that were fed, without waiting for one.
        ///
        /// - Parameter count: The most to take.
        /// - Returns: At least one; nil where there is none, and at the end.
        public mutating func nextIfReady(atMost count: Int) -> [Payload]? {
            let (payloads, point, _) = connection.opening.takeIfReady(count)
            resumePoint = point ?? resumePoint
            return payloads.isEmpty ? nil : payloads
        }

        /// What the transport was made with.
        public func detached(_ payload: Payload) -> Payload {
            connection.opening.detach(payload)
        }
    }
}
