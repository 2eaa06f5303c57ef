// The waits of one environment to one sleep of its clock: until the earliest of them.
//
// One sleep and not one a wait: a sleep is a task of two kilobytes, and a cancelled one keeps its memory until its
// deadline. Called by handles on any thread, under none of their locks.

/// Sleeps for everybody who waits in one environment.
final class Sleeper: Sendable {
    /// A sleep under way.
    private struct Armed {
        var number: Int
        var until: ContinuousClock.Instant
        var task: Task<Void, Never>
    }

    private struct State {
        var heap = WaitHeap()
        var armed: Armed?
        var armings = 0
        var isStopped = false
    }

    private let clock: any SubscriptionClock
    private let state = Lock(State())

    /// Sleeps by this clock.
    init(clock: any SubscriptionClock) {
        self.clock = clock
    }

    /// How many wait.
    var count: Int { state.withLock { $0.heap.count } }

    /// How often a sleep was begun because a wait came that was earlier than all others.
    var armings: Int { state.withLock { $0.armings } }

    /// Adds a wait.
    ///
    /// One that was dropped before stays out.
    func add(_ wait: Wait) {
        let replaced = state.withLock { state -> Task<Void, Never>? in
            guard !state.isStopped else { return nil }
            state.heap.insert(wait)
            guard let earliest = state.heap.earliest else { return nil }
            if let armed = state.armed, armed.until <= earliest { return nil }

            state.armings += 1
            let number = state.armings
            let replaced = state.armed?.task
            let task = Task.detached { await self.sleep(number) }
            state.armed = Armed(number: number, until: earliest, task: task)
            return replaced
        }
        replaced?.cancel()
    }

    /// Drops a wait: it is never reported after this, unless it is being reported already.
    ///
    /// A sleep for it goes on. It ends with nothing to do, which costs less than a new one.
    func drop(_ wait: Wait) {
        state.withLock { state in
            // Its place was in the heap that is gone.
            guard !state.isStopped else { return }
            state.heap.drop(wait)
        }
    }

    /// Drops all waits, for good.
    func stop() {
        let (task, heap) = state.withLock { state in
            let dropped = (state.armed?.task, state.heap)
            state.armed = nil
            state.heap = WaitHeap()
            state.isStopped = true
            return dropped
        }
        task?.cancel()
        // The waits hold handles: they go here, under no lock.
        _ = heap
    }

    private func sleep(_ number: Int) async {
        while let until = nextInstant(for: number) {
            // A sleep may end early by the clock's doing, or throw by its cancellation: what is due decides.
            try? await clock.sleep(until: until, tolerance: nil)
            while let wait = popDue(at: clock.now) { wait.report() }
        }
    }

    /// Until when the sleep of this number goes on; nil where another replaced it, or nobody waits.
    private func nextInstant(for number: Int) -> ContinuousClock.Instant? {
        state.withLock { state in
            guard state.armed?.number == number else { return nil }
            guard let earliest = state.heap.earliest else {
                state.armed = nil
                return nil
            }
            state.armed?.until = earliest
            return earliest
        }
    }

    private func popDue(at now: ContinuousClock.Instant) -> Wait? {
        state.withLock { $0.heap.popDue(at: now) }
    }
}
