// The waits of one environment, the earliest first.
//
// Pure but for the position each wait keeps, so that any of them can be taken out in logarithmic time. The sleeper
// calls it under its lock.

internal import Synchronization

/// Somebody who waits for an instant.
protocol Elapsing: AnyObject, Sendable {
    /// The wait of this name is over.
    func elapsed(_ id: SubscriptionStateMachine.StreamID)
}

/// One wait of one handle.
final class Wait: Sendable {
    /// Not reported before this.
    let until: ContinuousClock.Instant

    fileprivate let id: SubscriptionStateMachine.StreamID
    private let waiter: any Elapsing

    /// Its place in the heap, or one of the two below; written under the sleeper's lock alone.
    fileprivate let position = Atomic<Int>(Wait.outside)
    fileprivate static let outside = -1
    fileprivate static let dropped = -2

    /// Names who waits, for what, until when.
    init(_ waiter: any Elapsing, id: SubscriptionStateMachine.StreamID, until: ContinuousClock.Instant) {
        self.waiter = waiter
        self.id = id
        self.until = until
    }

    /// Tells the waiter.
    ///
    /// Under no lock.
    func report() {
        waiter.elapsed(id)
    }
}

/// A binary heap of waits.
struct WaitHeap {
    /// The instant beside the wait, so that a comparison follows no reference.
    private struct Node {
        var until: ContinuousClock.Instant
        var wait: Wait
    }

    private var nodes: [Node] = []

    /// How many wait.
    var count: Int { nodes.count }

    /// The earliest instant somebody waits for.
    var earliest: ContinuousClock.Instant? { nodes.first?.until }

    /// Adds a wait, unless it has been dropped before it came here.
    mutating func insert(_ wait: Wait) {
        guard wait.position.load(ordering: .relaxed) == Wait.outside else { return }
        nodes.append(Node(until: wait.until, wait: wait))
        siftUp(from: nodes.count - 1)
    }

    /// Takes a wait out, or keeps it from ever coming in.
    mutating func drop(_ wait: Wait) {
        let position = wait.position.load(ordering: .relaxed)
        if position >= 0 { remove(at: position) }
        wait.position.store(Wait.dropped, ordering: .relaxed)
    }

    /// Takes out the earliest wait if its instant has come.
    mutating func popDue(at now: ContinuousClock.Instant) -> Wait? {
        guard let first = nodes.first, first.until <= now else { return nil }
        remove(at: 0)
        first.wait.position.store(Wait.dropped, ordering: .relaxed)
        return first.wait
    }

    private mutating func remove(at position: Int) {
        let last = nodes.removeLast()
        guard position < nodes.count else { return }
        nodes[position] = last
        siftDown(from: position)
        siftUp(from: position)
    }

    private mutating func siftUp(from start: Int) {
        let node = nodes[start]
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard node.until < nodes[parent].until else { break }
            place(nodes[parent], at: position)
            position = parent
        }
        place(node, at: position)
    }

    private mutating func siftDown(from start: Int) {
        let node = nodes[start]
        var position = start
        while true {
            var child = 2 * position + 1
            guard child < nodes.count else { break }
            if child + 1 < nodes.count, nodes[child + 1].until < nodes[child].until { child += 1 }
            guard nodes[child].until < node.until else { break }
            place(nodes[child], at: position)
            position = child
        }
        place(node, at: position)
    }

    private mutating func place(_ node: Node, at position: Int) {
        nodes[position] = node
        node.wait.position.store(position, ordering: .relaxed)
    }
}
