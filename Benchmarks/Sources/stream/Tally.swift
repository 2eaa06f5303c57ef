// What all loops counted.

internal import CurlSSETransport
internal import Synchronization

/// Shared counts.
///
/// A trickle's loops write it at each event, a blast's at their end.
final class Tally: Sendable {
    struct Delays {
        var median: Double
        var p99: Double
        var maximum: Double
    }

    private let eventCount = Atomic<Int>(0)
    private let lostCount = Atomic<Int>(0)
    private let sumOfBytes = Atomic<UInt64>(0)
    private let failureCount = Atomic<Int>(0)
    private let hasBegun = Atomic<Bool>(false)
    private let hasEnded = Atomic<Bool>(false)
    private let failure = Mutex<String?>(nil)
    private let nanoseconds = Mutex<[UInt64]>([])

    var events: Int { eventCount.load(ordering: .relaxed) }
    /// A byte of each payload, its middle one, as the ceilings add it up.
    var sum: UInt64 { sumOfBytes.load(ordering: .relaxed) }

    var lostPayloads: Int { lostCount.load(ordering: .relaxed) }
    var failures: Int { failureCount.load(ordering: .relaxed) }

    /// Whether the window of a trickle is open.
    var isInWindow: Bool { hasBegun.load(ordering: .relaxed) }

    func begin() { hasBegun.store(true, ordering: .relaxed) }
    func add(_ count: Int) { eventCount.add(count, ordering: .relaxed) }
    func add(sum: UInt64) { sumOfBytes.add(sum, ordering: .relaxed) }
    func lost(_ count: Int) { lostCount.add(count, ordering: .relaxed) }

    /// The window is over: what ends from now on has been told to.
    func close() { hasEnded.store(true, ordering: .relaxed) }

    /// Counts a failure; the first is kept to be told.
    func failed(_ what: @autoclosure () -> String) {
        guard !hasEnded.load(ordering: .relaxed) else { return }
        if failureCount.add(1, ordering: .relaxed).oldValue == 0 { failure.withLock { $0 = what() } }
    }

    var firstFailure: String? { failure.withLock { $0 } }
    func add(delays: [UInt64]) { nanoseconds.withLock { $0 += delays } }

    /// In microseconds; nil where none was measured.
    var delays: Delays? {
        let sorted = nanoseconds.withLock { $0.sorted() }
        guard let last = sorted.last else { return nil }
        return Delays(
            median: Double(sorted[sorted.count / 2]) / 1e3,
            p99: Double(sorted[sorted.count * 99 / 100]) / 1e3,
            maximum: Double(last) / 1e3
        )
    }
}

extension EventData {
    /// The byte in the middle; 0 where there is none.
    fileprivate var middle: UInt64 {
        count > 0 ? UInt64(bytes[bytes.startIndex + count / 2]) : 0
    }
}

/// One loop's counts.
struct Counter {
    private let tally: Tally
    private let isLive: Bool
    private let isStamped: Bool
    private let limit: Int
    private var events = 0
    private var lostPayloads = 0
    private var sum: UInt64 = 0
    private var delays: [UInt64] = []

    init(_ tally: Tally, _ arguments: Arguments) {
        self.tally = tally
        isLive = arguments.kind.hasWindow
        isStamped = arguments.kind == .lat || arguments.kind == .late
        limit = arguments.limit ?? .max
    }

    /// Counts an event.
    ///
    /// - Parameter payload: The event.
    /// - Returns: Whether more are to be counted.
    @inline(__always)
    mutating func took(_ payload: borrowing some Carrier) -> Bool {
        events += 1
        sum &+= payload.carried.middle
        if isLive { tally.add(1) }
        if isStamped, !isLive || tally.isInWindow { stamp(payload.carried) }
        return events + lostPayloads < limit
    }

    /// Counts payloads that the owner was told it lost.
    ///
    /// - Parameter count: How many.
    /// - Returns: Whether more are to be counted.
    mutating func lost(_ count: Int) -> Bool {
        lostPayloads += count
        tally.lost(count)
        return events + lostPayloads < limit
    }

    /// `{"t":` and nineteen digits: the sender's clock.
    private mutating func stamp(_ data: EventData) {
        guard data.count > 24 else { return }
        let now = monotonicNanoseconds()
        let sent = data.bytes.dropFirst(5).prefix(19).reduce(UInt64(0)) { $0 * 10 + UInt64($1 &- 48) }
        delays.append(now &- sent)
    }

    /// Adds the loop's counts to all.
    func end() {
        if !isLive { tally.add(events) }
        tally.add(sum: sum)
        if isStamped { tally.add(delays: delays) }
    }
}
