public import SubscriptionRuntime
internal import Synchronization

/// The payloads of one opened stream, in order, read once.
///
/// Ends by nil when the server completes it, by a typed failure when it fails, and by nil when the reading task is
/// cancelled. Dropping it, or its iterator, closes the connection at once.
///
/// Payloads cross from the loop's thread in batches. At most ``Configuration/highWater`` bytes wait unread, and what the
/// chunk makes that passes it, beside the batch in the reader's hand; beyond that the server's sending is held back.
public struct PayloadStream<Payload: Sendable>: PayloadSequence {
    /// The payload.
    public typealias Element = Payload

    /// What a stream fails with.
    public typealias Failure = SubscriptionFailure

    private let lease: StreamLease<Payload>

    init(lease: StreamLease<Payload>) {
        self.lease = lease
    }

    /// Begins to read.
    ///
    /// Once: a stream has one reader.
    public func makeAsyncIterator() -> AsyncIterator {
        lease.claim()
        return AsyncIterator(lease: lease)
    }

    /// Closes the connection, from any thread; whoever reads is told of a cancellation.
    public func close() { lease.close() }

    /// Reads the stream.
    public struct AsyncIterator: PayloadIterator {
        /// The segment in hand, the next payload last: taken from the end a payload is moved and not copied.
        @usableFromInline var rest: [Payload] = []
        @usableFromInline let reader: StreamReader<Payload>

        init(lease: StreamLease<Payload>) {
            reader = StreamReader(lease: lease)
        }

        /// The next payload; waits while there is none.
        ///
        /// - Parameter actor: The caller's; not needed.
        /// - Returns: The payload; nil at the server's completion and when the task is cancelled.
        /// - Throws: What ended the stream, after everything that came before it.
        @inlinable
        @inline(__always)
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(SubscriptionFailure) -> Payload? {
            if !rest.isEmpty {
                if !Task.isCancelled { return rest.popLast() }
                return giveUp()
            }
            guard let next = try await reader.take(isolation: actor) else { return nil }
            rest = next
            rest.turnRound()
            return rest.popLast()
        }

        /// What is there now, at least one and at most `count`; waits while there is nothing.
        ///
        /// - Parameter count: The most to take, at least 1.
        /// - Returns: The payloads; nil at the server's completion and when the task is cancelled.
        /// - Throws: What ended the stream, after everything that came before it.
        @specialized(where Payload == ServerSentEvent)
        @specialized(where Payload == GraphQLResult)
        public mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Payload]? {
            precondition(count > 0, "a batch has at least one payload")
            if rest.isEmpty {
                guard let next = try await reader.take(isolation: nil) else { return nil }
                // Passed on as it is, without a look at its payloads.
                if next.count <= count { return next }
                rest = next
                rest.turnRound()
            } else if Task.isCancelled {
                return giveUp()
            }
            return takeRest(atMost: count)
        }

        /// What is there now, at least one and at most `count`.
        ///
        /// - Parameter count: The most to take, at least 1.
        /// - Returns: The payloads; nil where there is none now, and at the end.
        @specialized(where Payload == ServerSentEvent)
        @specialized(where Payload == GraphQLResult)
        public mutating func nextIfReady(atMost count: Int) -> [Payload]? {
            precondition(count > 0, "a batch has at least one payload")
            if rest.isEmpty {
                guard let next = reader.takeIfReady() else { return nil }
                if next.count <= count { return next }
                rest = next
                rest.turnRound()
            }
            return takeRest(atMost: count)
        }

        /// The reader's task was cancelled: a slow one has a hundred payloads in hand, which are nobody's now.
        ///
        /// The position to resume from stays the one before them.
        @usableFromInline
        @inline(never)
        mutating func giveUp<Nothing>() -> Nothing? {
            reader.giveUp(dropping: rest.count)
            rest = []
            return nil
        }

        private mutating func takeRest(atMost count: Int) -> [Payload] {
            var batch: [Payload] = []
            batch.reserveCapacity(Swift.min(count, rest.count))
            while batch.count < count, let payload = rest.popLast() { batch.append(payload) }
            return batch
        }

        /// Where to resume, as of the last payload taken; nil where the dialect has no such thing.
        public var resumePoint: ResumePoint? { reader.resumePoint(remaining: rest.count) }

        /// The payload in memory of its own, where it holds much more than that alive.
        public func detached(_ payload: Payload) -> Payload { reader.detached(payload) }
    }
}

/// Holds a stream open: the connection closes with it.
final class StreamLease<Payload: Sendable>: Sendable {
    let channel: PayloadChannel<Payload>
    let detached: @Sendable (Payload) -> Payload
    /// nil where the dialect resumes by none.
    let start: StreamPosition?
    private let transfer: LoopTransfer
    private let loop: CurlLoop
    private let isClaimed = Atomic<Bool>(false)

    init(
        channel: PayloadChannel<Payload>,
        transfer: LoopTransfer,
        loop: CurlLoop,
        start: StreamPosition?,
        detached: @escaping @Sendable (Payload) -> Payload
    ) {
        self.channel = channel
        self.transfer = transfer
        self.loop = loop
        self.start = start
        self.detached = detached
    }

    deinit {
        close()
    }

    func claim() {
        precondition(!isClaimed.exchange(true, ordering: .relaxed), "a stream is read once")
    }

    /// Closes the connection, from any thread.
    ///
    /// Nothing is read after it.
    func close() {
        channel.end(.cancelled)
        loop.events.mailbox.post(.cancel(transfer))
    }

    /// Whether the caller is on the loop's own thread.
    var isOnLoop: Bool { loop.events.thread.isCurrent }

    /// There is room again.
    func resume() {
        loop.events.mailbox.post(.resume(transfer))
    }
}

/// The part of an iterator that outlives a copy of it: what it took, and the end of the stream with its own.
@usableFromInline
final class StreamReader<Payload: Sendable>: @unchecked Sendable {
    private let lease: StreamLease<Payload>
    /// Of the segment in the iterator's hand.
    private var positions: [(after: Int, position: StreamPosition)] = []
    private var segmentCount = 0
    private var turn = Turn()
    /// Whether the channel knows where the reader runs.
    private var isPlaced = false
    /// Whether that is the loop's own thread, where nothing more comes while the reader goes on: it need not be told to
    /// leave others their turn.
    private var isOnLoop = false
    /// As of the end of the segment before.
    private var position: StreamPosition?
    /// The reader's task was cancelled with these in its hand.
    private var dropped = 0
    private var isOver = false

    init(lease: StreamLease<Payload>) {
        self.lease = lease
        position = lease.start
    }

    deinit {
        lease.close()
    }

    /// Ends the reading, whatever is there.
    ///
    /// - Parameter count: How many payloads of the segment were not handed out, and never are.
    func giveUp(dropping count: Int) {
        dropped = count
        isOver = true
        lease.close()
    }

    /// The next segment that has payloads; nil at the end.
    @usableFromInline
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    func take(isolation: isolated (any Actor)?) async throws(SubscriptionFailure) -> [Payload]? {
        if isOver { return nil }
        if !isPlaced { place(isolation) }
        var turn = turn
        defer { self.turn = turn }
        if !isOnLoop, turn.isOver() { await Task.yield() }
        while true {
            leave()
            let lease = lease
            switch await lease.channel.take(turn: &turn, resume: { lease.resume() }, cancel: { lease.close() }) {
            case .segment(let segment):
                enter(segment)
                if !segment.payloads.isEmpty { return segment.payloads }
            case .ended(.completed), .ended(.cancelled):
                return nil
            case .ended(.failed(let failure)):
                throw failure
            }
        }
    }

    /// The next segment that has payloads, if it is there.
    @usableFromInline
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    func takeIfReady() -> [Payload]? {
        if isOver { return nil }
        while case .segment(let segment) = lease.channel.takeIfReady(resume: { lease.resume() }) {
            leave()
            enter(segment)
            if !segment.payloads.isEmpty { return segment.payloads }
        }
        return nil
    }

    /// Says where the reader runs, as its first look finds it: it is only a matter of who resumes it.
    @inline(never)
    private func place(_ isolation: isolated (any Actor)?) {
        isPlaced = true
        isOnLoop = lease.isOnLoop
        if isolation == nil, LoopExecutor.callerIsOnPool { lease.channel.readerIsOnPool() }
    }

    /// The segment in hand has been taken.
    private func leave() {
        if let last = positions.last { position = last.position }
        positions = []
        segmentCount = 0
    }

    private func enter(_ segment: PayloadSegment<Payload>) {
        positions = segment.positions
        segmentCount = segment.payloads.count
    }

    /// The position once all but so many of the segment's payloads were taken.
    @usableFromInline
    func resumePoint(remaining: Int) -> ResumePoint? {
        guard let start = lease.start, let position else { return nil }
        let taken = segmentCount - remaining - dropped
        let current = positions.last { $0.after <= taken }?.position ?? position
        // A server that took its ID back has said something; one that never gave any has not.
        guard current != start || current != StreamPosition(lastEventID: "") else { return nil }
        return current.resumePoint
    }

    @usableFromInline
    func detached(_ payload: Payload) -> Payload { lease.detached(payload) }
}
