// What one owner has not taken yet.
//
// Kept in its handle's state and touched under that lock alone, but for the gauge, which the owner's iterator and the
// handle read and write from both sides of it.

public import Synchronization

/// What an owner's iterator and its handle tell each other without the lock.
@usableFromInline
final class Gauge: Sendable {
    /// How many payloads the iterator has handed out and let go of: those of whole batches.
    ///
    /// Written by it alone.
    private let consumed = Atomic<Int>(0)

    /// The count from which the iterator has to look at the handle.
    ///
    /// `Int.max` while there is nothing to look at; less where the stream waits for room; `Int.min` once the environment
    /// has ended. Written under the handle's lock.
    @usableFromInline let attention = Atomic<Int>(.max)

    init() {}

    // MARK: The iterator's side

    /// Whether what the iterator still holds is void: the environment has ended.
    @inlinable var isVoid: Bool { attention.load(ordering: .acquiring) == .min }

    /// Publishes the count, and says whether it is one to look at the handle at.
    func isCalled(at count: Int) -> Bool {
        // The count is seen by the handle before the call is looked for here, and the other way round there: one of the
        // two sees the other.
        consumed.store(count, ordering: .sequentiallyConsistent)
        return count >= attention.load(ordering: .sequentiallyConsistent)
    }

    // MARK: The handle's side

    /// As the iterator published it.
    var count: Int { consumed.load(ordering: .sequentiallyConsistent) }

    /// Has the iterator look at the handle from a count on.
    func call(at count: Int) {
        attention.store(count, ordering: .sequentiallyConsistent)
    }
}

/// A baseline in an owner's queue; what ``Delivery/Cause`` says, for any payload.
enum Marker: Sendable, Hashable {
    case opened
    case resumed(Int)
    case lagged(dropped: Int)

    /// The one marker that says what two neighbours say: resumed beats lagged beats opened, and lags add.
    func merged(with later: Self) -> Self {
        switch (self, later) {
        case (.resumed(let earlier), .resumed(let later)): .resumed(max(earlier, later))
        case (.resumed, _): self
        case (_, .resumed): later
        case (.lagged(let earlier), .lagged(let later)): .lagged(dropped: earlier + later)
        case (.lagged, .opened): self
        case (.opened, _): later
        }
    }
}

/// Payloads that were accepted together, as what does not know their type passes them on.
///
/// Everything between a stream and its owners' iterators is this way: generic code of another module's types is never
/// specialized, and its look-ups of types cost more than the payloads of a batch.
@usableFromInline
struct Batch: Sendable {
    /// A `BatchBox`.
    @usableFromInline let box: any AnyObject & Sendable

    /// How many.
    let count: Int

    /// Whether it was given to one owner alone, who has the payloads to himself.
    @usableFromInline var isSole = false

    init<Payload: Sendable>(_ payloads: consuming [Payload]) {
        count = payloads.count
        box = BatchBox(payloads)
    }

    /// The payloads, of the type they were made from.
    ///
    /// Specialized where it is called, and not inlined: `Deliveries.Iterator.next` has to stay small.
    ///
    /// - Returns: They, in order; where the batch is one owner's alone, the other way round, and once.
    @inlinable
    @inline(never)
    func payloads<Payload: Sendable>() -> [Payload] {
        guard let box = box as? BatchBox<Payload> else { preconditionFailure("a batch is of its handle's payloads") }
        guard isSole else { return box.payloads }
        precondition(!box.payloads.isEmpty, "one loop takes the deliveries of one owner, and no copy of its iterator")
        var payloads: [Payload] = []
        swap(&payloads, &box.payloads)
        payloads.turnRound()
        return payloads
    }

    /// The payloads, in order, of a batch that no owner has.
    func unsent<Payload: Sendable>(of type: Payload.Type) -> [Payload] {
        guard let box = box as? BatchBox<Payload> else { preconditionFailure("a batch is of its handle's payloads") }
        return box.payloads
    }
}

/// What a batch holds.
///
/// Not a `Box` of an array, whose type would be one more to look up. Written by the one owner of a batch that is his alone,
/// and else by nobody.
@usableFromInline
final class BatchBox<Payload: Sendable>: @unchecked Sendable {
    @usableFromInline var payloads: [Payload]

    init(_ payloads: consuming [Payload]) {
        self.payloads = payloads
    }
}

/// A value, where its type is not known.
final class Box<Value: Sendable>: Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// What an owner's iterator takes from its handle, at once.
enum Taken: Sendable {
    case baseline(Marker)
    /// A batch as it came; the iterator hands it out.
    case payloads(Batch)
    /// The deliveries are over, by a failure or, nil, by the server's completion. The owner is released.
    case finished(SubscriptionEnd?)
    /// The owner has been released before.
    case detached
}

/// What an owner's iterator finds where its count has reached its gauge's call.
enum Attention {
    /// The deliveries are over, and what the iterator still holds is void.
    case over
    case goesOn
    /// They go on by these, as it holds none.
    case payloads(Batch)
}

/// One owner's queue: batches as they came, and baselines between them.
///
/// Bounds: `limit` payloads, and a baseline before and after each batch.
final class Mailbox {
    fileprivate enum Piece {
        case baseline(Marker)
        case payloads(Batch)
    }

    /// How the deliveries end once the pieces are taken.
    enum End {
        case completed
        case failed(SubscriptionEnd)

        /// As the owner's iterator is told.
        var taken: Taken {
            switch self {
            case .completed: .finished(nil)
            case .failed(let end): .finished(end)
            }
        }
    }

    /// Something to resume once the handle's lock is let go.
    typealias Waiter = HandOver<Taken>

    /// What was dropped under the lock and is to be let go of after it: a payload's deinit is not ours to run there, nor
    /// that of what a failure carries.
    struct Debris {
        fileprivate var pieces: [Piece]
        fileprivate var end: End?
    }

    let gauge: Gauge
    let limit: Int

    /// How many payloads may wait before the stream is held back for this owner.
    var window: Int { max(1, limit / 2) }

    /// Whether the owner lost its backlog and has not taken the baseline that says so.
    private(set) var isLagging = false

    /// Set once nothing more comes.
    private(set) var end: End?

    /// The iterator, suspended in `next`.
    private(set) var waiter: Waiter?

    private var pieces: [Piece] = []
    private var firstPiece = 0
    private var queued = 0
    private var taken = 0

    init(limit: Int, gauge: Gauge) {
        self.limit = limit
        self.gauge = gauge
    }

    /// Whether the environment's end cut the deliveries off.
    var isAbandoned: Bool { gauge.isVoid }

    /// Whether the owner takes part in the pace of the stream.
    var sets: Bool { end == nil && !isLagging }

    /// How many payloads wait: in the queue, and in the iterator's hand, where a batch counts until the last of it has
    /// been handed out.
    private var waiting: Int { queued + taken - gauge.count }

    /// How many payloads the stream may bring before this owner's window is full; may be negative.
    var room: Int { window - waiting }

    /// How many it may bring before this owner lags.
    var slack: Int { limit - waiting }

    /// Whether nothing waits.
    var isDrained: Bool { waiting == 0 }

    /// Whether a batch may pass the queue by: there is nothing in it, and the iterator is not to be told of its end.
    var isEmpty: Bool { firstPiece == pieces.count && end == nil }

    /// Has the iterator look at the handle once it is drained.
    func callWhenDrained() {
        gauge.call(at: queued + taken)
    }

    /// Has the iterator look at the handle no more.
    func callOff() {
        gauge.call(at: .max)
    }

    // MARK: In

    /// Adds a batch; an owner whose limit it passes loses its backlog and the batch.
    ///
    /// - Returns: How many payloads the owner has lost since it last was up to date, if this made it lag.
    func append(_ batch: Batch, _ debris: inout Debris?) -> Int? {
        guard end == nil else { return nil }
        if isLagging {
            mark(.lagged(dropped: batch.count))
            return nil
        }
        guard batch.count <= slack else {
            let dropped = queued + batch.count
            debris = drop(andMark: .lagged(dropped: dropped))
            isLagging = true
            return dropped
        }
        pieces.append(.payloads(batch))
        queued += batch.count
        return nil
    }

    /// Adds a baseline, merged with one that is the last and untaken.
    func mark(_ cause: Marker) {
        guard end == nil else { return }
        if pieces.count > firstPiece, case .baseline(let earlier) = pieces[pieces.count - 1] {
            pieces[pieces.count - 1] = .baseline(earlier.merged(with: cause))
        } else {
            pieces.append(.baseline(cause))
        }
    }

    /// Ends the deliveries after the backlog.
    func finish(_ end: End) {
        guard self.end == nil else { return }
        self.end = end
    }

    /// Ends the deliveries at once, whatever was to come.
    ///
    /// - Returns: What was to come.
    func abandon() -> Debris {
        var debris = drop(andMark: nil)
        debris.end = end
        isLagging = false
        end = .failed(.environment(.gone))
        gauge.call(at: .min)
        return debris
    }

    private func drop(andMark cause: Marker?) -> Debris {
        var mark = cause
        for case .baseline(let earlier) in pieces[firstPiece...] {
            mark = mark.map { earlier.merged(with: $0) }
        }
        let debris = Debris(pieces: pieces)
        pieces = mark.map { [.baseline($0)] } ?? []
        firstPiece = 0
        queued = 0
        return debris
    }

    // MARK: Out

    /// The next piece, or the end; nil where there is nothing yet.
    func take() -> Taken? {
        guard firstPiece < pieces.count else { return end?.taken }
        let piece = pieces[firstPiece]
        // The place keeps nothing alive, and its array goes once it is empty or half spent.
        pieces[firstPiece] = .baseline(.opened)
        firstPiece += 1
        if firstPiece == pieces.count {
            pieces.removeAll(keepingCapacity: true)
            firstPiece = 0
        } else if firstPiece > 16, firstPiece * 2 > pieces.count {
            pieces.removeFirst(firstPiece)
            firstPiece = 0
        }
        switch piece {
        case .baseline(let cause):
            isLagging = false
            return .baseline(cause)
        case .payloads(let batch):
            queued -= batch.count
            taken += batch.count
            return .payloads(batch)
        }
    }

    /// Counts a batch that the iterator is given at once, as there is nothing before it.
    func passedBy(_ batch: Batch) {
        taken += batch.count
    }

    /// Keeps the iterator until something comes.
    func wait(_ waiter: Waiter) {
        precondition(self.waiter == nil, "one loop at a time takes the deliveries of one owner")
        self.waiter = waiter
    }

    /// The iterator that waits, which is then no longer this queue's to resume.
    func takeWaiter() -> Waiter? {
        defer { waiter = nil }
        return waiter
    }
}
