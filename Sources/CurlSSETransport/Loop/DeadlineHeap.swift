// Instants that something waits for, the earliest first. Pure.

/// A heap of deadlines.
///
/// An entry is never taken out early: whoever armed it looks at its fire whether it still holds, and arms another when
/// it was moved. A deadline that moves with every byte costs nothing that way.
struct DeadlineHeap<Key> {
    private var entries: [(instant: UInt64, key: Key)] = []

    /// How many entries, outdated ones included.
    var count: Int { entries.count }

    /// The earliest instant, in the loop's nanoseconds; nil for none.
    var earliest: UInt64? { entries.first?.instant }

    /// Adds an entry.
    ///
    /// O(log n).
    mutating func insert(_ key: Key, at instant: UInt64) {
        entries.append((instant, key))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].instant < entries[parent].instant else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes the earliest entry that is due; nil for none.
    mutating func popDue(now: UInt64) -> Key? {
        guard let first = entries.first, first.instant <= now else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first.key }
        entries[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].instant < entries[child].instant { child += 1 }
            guard entries[child].instant < entries[parent].instant else { break }
            entries.swapAt(child, parent)
            parent = child
        }
        return first.key
    }
}

extension DeadlineHeap {
    /// Takes out what nobody waits for any more.
    ///
    /// O(n).
    mutating func compact(keeping isLive: (Key) -> Bool) {
        let kept = entries.filter { isLive($0.key) }
        entries.removeAll(keepingCapacity: false)
        for entry in kept { insert(entry.key, at: entry.instant) }
    }
}
