// What a loop has done, counted by the loop and read by anyone.

internal import Synchronization

/// Numbers of one loop.
final class LoopCounters: Sendable {
    /// One number.
    struct Counter: ~Copyable {
        private let value = Atomic<Int>(0)

        /// Adds to it.
        func add(_ count: Int) { value.add(count, ordering: .relaxed) }

        /// What it is now.
        var count: Int { value.load(ordering: .relaxed) }
    }

    /// How often the loop has waited.
    let waits = Counter()
    /// Transfers that were started.
    let openings = Counter()
    /// Streams that are open now.
    let openStreams = Counter()
    /// Openings and streams that failed.
    let failures = Counter()
    /// Bytes of bodies of open streams.
    let bytes = Counter()
    /// Payloads of streams that have ended.
    let payloads = Counter()
    /// Calls that libcurl refused and should not have.
    let faults = Counter()
}
