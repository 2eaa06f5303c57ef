// One owner's deliveries: the sequence, its iterator's way without a lock, and the owner behind both.

internal import Synchronization

/// One owner: retains the subscription until it is detached or let go of.
@usableFromInline
final class Owner: Sendable {
    @usableFromInline let gauge: Gauge
    private let number: Int
    private let core: HandleCore
    /// Only held.
    private let handle: any AnyObject & Sendable
    private let isIterated = Atomic<Bool>(false)
    private let isDetached = Atomic<Bool>(false)

    init(_ core: HandleCore, number: Int, gauge: Gauge, handle: any AnyObject & Sendable) {
        self.core = core
        self.handle = handle
        self.number = number
        self.gauge = gauge
    }

    deinit {
        detach()
    }

    /// Releases the subscription, once.
    @usableFromInline
    func detach() {
        guard !isDetached.exchange(true, ordering: .relaxed) else { return }
        core.detach(number)
    }

    /// One loop begins; another's life must be over.
    func beginIteration() {
        let wasIterated = isIterated.exchange(true, ordering: .relaxed)
        precondition(
            !wasIterated || isDetached.load(ordering: .relaxed),
            "one loop at a time takes the deliveries of one owner"
        )
    }

    /// Looks at the handle because the gauge called.
    func attend() -> Attention {
        core.attend(number)
    }

    /// The next piece, if it is there.
    func takeNow() -> Taken? {
        core.takeNow(number)
    }

    /// The next piece; suspends while there is none.
    nonisolated(nonsending) func take() async -> Taken {
        await core.take(number)
    }
}

/// Every payload from the asking on, in order, and a baseline wherever something may have been missed.
///
/// Made by ``SubscriptionHandle/deliveries(limit:)``, and a retention until its loop is left, by break or by its end, or
/// until it is let go of without a loop. One loop at a time, and one in all: after it the sequence is finished.
///
/// It ends by nil at the server's completion, or when the task of the loop is cancelled; by a throw, once, for a failure
/// that is not a wait. What had been accepted comes before, except at the environment's end, which comes at once.
public struct Deliveries<Payload: Sendable>: AsyncSequence, Sendable {
    /// A baseline or a payload.
    public typealias Element = Delivery<Payload>

    /// What is not a wait.
    public typealias Failure = SubscriptionEnd

    private let owner: Owner

    init(_ owner: Owner) {
        self.owner = owner
    }

    /// Begins the loop.
    public func makeAsyncIterator() -> Iterator {
        owner.beginIteration()
        return Iterator(owner)
    }

    /// Takes deliveries in turn.
    ///
    /// Payloads come from the handle by the batch, and one by one from here: without a lock, and without suspending,
    /// while the batch lasts.
    public struct Iterator: AsyncIteratorProtocol {
        /// The loop: its end is the owner's, though the sequence may be held longer.
        private final class Loop: Sendable {
            private let owner: Owner

            init(_ owner: Owner) {
                self.owner = owner
            }

            deinit {
                owner.detach()
            }
        }

        private let loop: Loop
        @usableFromInline let owner: Owner
        @usableFromInline let gauge: Gauge

        /// The batch in hand, let go of with its last payload: in order where other owners have it too, and else the other
        /// way round and without those that were handed out, which are moved from its end and not copied.
        @usableFromInline var batch: [Payload] = []

        /// Whether it is this owner's alone.
        @usableFromInline var isSole = false

        /// How many of it are left.
        @usableFromInline var left = 0

        /// How many it had.
        @usableFromInline var count = 0

        /// The batch that came when the last of the one before was handed out.
        private var next: Batch?

        /// The payloads of the batches that were handed out whole.
        private var consumed = 0
        private var turn = Turn()

        init(_ owner: Owner) {
            self.loop = Loop(owner)
            self.owner = owner
            self.gauge = owner.gauge
        }

        /// The next delivery.
        ///
        /// Always inlined: a call that suspends only once a batch costs twice as much as all else that is done for a payload.
        ///
        /// - Parameter actor: Where the caller runs, and this stays.
        /// - Returns: A baseline or a payload; nil at the end, and when the task is cancelled.
        /// - Throws: What ended the deliveries, once.
        @inlinable
        @inline(__always)
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionEnd) -> Delivery<Payload>? {
            while true {
                if left > 0, !Task.isCancelled {
                    left -= 1
                    let payload = isSole ? batch.removeLast() : batch[count - 1 - left]
                    if left > 0 ? !gauge.isVoid : finishBatch() { return .payload(payload) }
                }
                // What is left of a batch is void here.
                batch = []
                left = 0
                switch try await refill(isolation: actor) {
                case .payloads(let next):
                    isSole = next.isSole
                    batch = next.payloads()
                    count = batch.count
                    left = count
                case .baseline(let cause): return .baseline(cause)
                case nil: return nil
                }
            }
        }

        /// Counts the batch in hand, whose last payload was taken, and looks at the handle where the gauge calls.
        ///
        /// Not inlined: `next` is, into every loop.
        ///
        /// - Returns: Whether the deliveries go on; if not, that payload is void too.
        @usableFromInline
        mutating func finishBatch() -> Bool {
            consumed += count
            batch = []
            guard owner.gauge.isCalled(at: consumed) else { return true }
            switch owner.attend() {
            case .over:
                return false
            case .goesOn:
                return true
            case .payloads(let batch):
                next = batch
                return true
            }
        }

        private mutating func take(isolation actor: isolated (any Actor)?) async -> Taken {
            if let taken = owner.takeNow() {
                turn.wentOn()
                return taken
            }
            turn.suspended()
            return await owner.take()
        }

        /// What the owner's queue has next.
        @usableFromInline
        enum Piece {
            case baseline(Delivery<Payload>.Cause)
            case payloads(Batch)
        }

        /// Takes the next piece; nil at the end.
        @usableFromInline
        mutating func refill(isolation actor: isolated (any Actor)?) async throws(SubscriptionEnd) -> Piece? {
            if turn.isOver() { await Task.yield() }
            let batch = next
            next = nil
            guard !Task.isCancelled else {
                owner.detach()
                return nil
            }
            if let batch, !gauge.isVoid {
                turn.wentOn()
                return .payloads(batch)
            }
            switch await take(isolation: actor) {
            case .baseline(let marker):
                return .baseline(Delivery<Payload>.Cause(marker))
            case .payloads(let batch):
                return .payloads(batch)
            case .finished(let end):
                owner.detach()
                if let end { throw end }
                return nil
            case .detached:
                return nil
            }
        }
    }
}
