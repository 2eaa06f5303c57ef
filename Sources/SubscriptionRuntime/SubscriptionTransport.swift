/// Opens streams for the runtime.
///
/// A transport opens once and fails once: coming back is the handle's. What it owes beyond the signatures:
///
/// - ``open(_:resuming:)`` returns when the server has accepted the request, and not before. A protocol that has no
///   acceptance of its own returns when the request has been sent, and says so in its documentation.
/// - It ends in bounded time, promptly when its task is cancelled, and never tries again inside.
/// - The sequence ends by nil for the server's completion alone. A body that merely ends is `.network`.
/// - A sequence that is dropped unread, or whose reading task is cancelled, closes its connection.
/// - Reading is backpressure: beyond a bounded buffer, bytes are taken from the network only as payloads are taken.
/// - Liveness (an idle limit) is its own, or a half-open connection stays `open` for ever.
/// - Cancellation handlers run on the caller's thread: they do not block and hold no lock while they call out.
/// - Credentials are read per opening.
public protocol SubscriptionTransport<Request, Payload>: Sendable {
    /// What is asked of the server. Equal requests of one environment share one stream.
    associatedtype Request: Hashable & Sendable

    /// What the stream is made of.
    associatedtype Payload: Sendable

    /// One opened stream.
    associatedtype Payloads: PayloadSequence where Payloads.Element == Payload

    /// Opens one stream.
    ///
    /// Called from any thread, and again while an earlier, cancelled call still unwinds.
    ///
    /// - Parameters:
    ///   - request: What to ask for.
    ///   - resuming: Where the subscription's last stream was left, as that stream's iterator said; nil for a first
    ///     opening and where the protocol has no such thing.
    /// - Returns: The stream, accepted by the server.
    /// - Throws: The failure, with its kind.
    func open(_ request: Request, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Payloads

    /// Where the runtime's reading of the stream runs; nil for the global pool.
    ///
    /// An owner that takes what is there by itself does so where its loop runs, see ``PayloadIterator/nextIfReady(atMost:)``.
    ///
    /// A transport with a loop of its own offers it: one change of thread fewer a batch. Its `enqueue` is called under a
    /// lock of the runtime: it must not run the job before it returns. Read once, for an environment. Default: nil.
    var driverExecutor: (any TaskExecutor)? { get }
}

extension SubscriptionTransport {
    /// The global pool.
    public var driverExecutor: (any TaskExecutor)? { nil }
}

/// The payloads of one opened stream, in order, ending by a typed failure or by nil at the server's completion.
public protocol PayloadSequence: AsyncSequence, Sendable
where Failure == SubscriptionFailure, AsyncIterator: PayloadIterator {
    /// Does what the cancellation of a task does that waits for the next payload: closes the connection.
    ///
    /// The runtime calls it where a stream ends while its owners have no room, and so nobody waits for a payload: on the
    /// thread that decides it, before it opens another. The reading task is cancelled as well, and lets go of the iterator
    /// when it has its turn. May be called more than once, and while another thread is inside a call of the iterator; what
    /// that call returns is dropped. Does not block, and holds no lock while it calls out. The default does nothing: the
    /// connection then closes in the reading task's turn.
    func close()
}

extension PayloadSequence {
    /// Nothing: the connection closes when the iterator is let go of.
    public func close() {}
}

/// Reads a stream, one payload or one batch at a time.
///
/// By one caller at a time, but not always the same one: the task that reads the stream and, while that is suspended for
/// want of room, its owners' threads call it by turns.
public protocol PayloadIterator: AsyncIteratorProtocol where Failure == SubscriptionFailure {
    /// Takes what is there now.
    ///
    /// Waits while there is nothing. The default takes one, by `next()`.
    ///
    /// - Parameter count: The most to take, at least 1.
    /// - Returns: At least one payload and at most `count`, in order; nil at the server's completion.
    /// - Throws: What ended the stream, after everything that came before it was taken.
    mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Element]?

    /// Takes what is there now, without waiting.
    ///
    /// Saves two changes of task a batch: an owner that has emptied its queue takes the next batch by this, on its own
    /// thread, while the task that reads the stream is suspended for want of room. It does not block, and whether the
    /// calling task is cancelled does not matter to it.
    ///
    /// - Parameter count: The most to take, at least 1.
    /// - Returns: At least one payload and at most `count`, in order; nil where there is nothing now, and at the end,
    ///   which is left for ``next(atMost:)``. Default: nil.
    mutating func nextIfReady(atMost count: Int) -> [Element]?

    /// Where to resume, as of the last payload taken; nil where the protocol has no such thing, which is the default.
    ///
    /// A position the server moved without a payload counts once everything before it has been taken.
    var resumePoint: ResumePoint? { get }

    /// A copy of the payload that is fit to be kept after its batch: it holds no more than twice its own memory alive.
    ///
    /// Payloads of one batch may share a buffer. The runtime calls this for what it keeps
    /// (``SubscriptionHandle/latest``). Default: the payload itself.
    func detached(_ payload: Element) -> Element
}

extension PayloadIterator {
    /// One payload, by `next()`.
    public mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Element]? {
        guard let payload = try await next(isolation: nil) else { return nil }
        return [payload]
    }

    /// Nothing: whatever there is, it is waited for.
    public mutating func nextIfReady(atMost count: Int) -> [Element]? { nil }

    /// None.
    public var resumePoint: ResumePoint? { nil }

    /// The payload itself.
    public func detached(_ payload: Element) -> Element { payload }
}

/// What the last stream of a subscription left to resume by; opaque to the runtime.
///
/// The handle keeps the point of what it has accepted, hands it to the next opening, and forgets it at its last
/// release. It is no promise: a server need not honour it, so a resumption is counted and announced all the same.
public struct ResumePoint: Hashable, Sendable {
    /// The transport's own encoding.
    public let bytes: [UInt8]

    /// Wraps a transport's own encoding.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}
