// How many openings of one origin are under way, and who waits for a place. Pure.

/// Lets a bounded number of openings an origin go on at once, in the order they came.
///
/// A burst then multiplexes over the connections that the first openings make, where all at once would make a
/// connection and a resolver's thread each.
struct Admission<Key: Hashable, ID: Hashable> {
    private var gates: [Key: Gate] = [:]

    private struct Gate {
        var admitted: Set<ID> = []
        /// The line, places left early being nil; the first `head` have gone.
        var waiting: [ID?] = []
        var head = 0
        /// Each waiting opening's place, counted from the first there ever was; `base` of them are not stored.
        var positions: [ID: Int] = [:]
        var base = 0

        mutating func popFirst() -> ID? {
            defer {
                if head == waiting.count || head > 256 && head * 2 > waiting.count {
                    waiting.removeFirst(head)
                    base += head
                    head = 0
                }
            }
            while head < waiting.count {
                let next = waiting[head]
                head += 1
                guard let next else { continue }
                positions[next] = nil
                return next
            }
            return nil
        }
    }

    /// How many openings wait for a place, at all origins.
    var waitingCount: Int { gates.values.reduce(0) { $0 + $1.positions.count } }

    /// How many openings hold a place, at all origins.
    var admittedCount: Int { gates.values.reduce(0) { $0 + $1.admitted.count } }

    /// An opening asks for a place.
    ///
    /// - Parameters:
    ///   - id: The opening.
    ///   - key: The origin.
    ///   - limit: How many at once, as the opening's own configuration has it.
    /// - Returns: True when it has a place at once; else it waits in line.
    mutating func requested(_ id: ID, at key: Key, limit: Int) -> Bool {
        var gate = gates.removeValue(forKey: key) ?? Gate()
        defer { gates[key] = gate }
        if gate.admitted.count < limit {
            gate.admitted.insert(id)
            return true
        }
        gate.positions[id] = gate.base + gate.waiting.count
        gate.waiting.append(id)
        return false
    }

    /// An opening gives its place back, or leaves the line.
    ///
    /// - Returns: The opening that has the place now; nil for none.
    mutating func released(_ id: ID, at key: Key) -> ID? {
        guard var gate = gates.removeValue(forKey: key) else { return nil }
        defer { if !gate.admitted.isEmpty || !gate.positions.isEmpty { gates[key] = gate } }
        guard gate.admitted.remove(id) != nil else {
            if let position = gate.positions.removeValue(forKey: id) { gate.waiting[position - gate.base] = nil }
            return nil
        }
        guard let next = gate.popFirst() else { return nil }
        gate.admitted.insert(next)
        return next
    }
}
