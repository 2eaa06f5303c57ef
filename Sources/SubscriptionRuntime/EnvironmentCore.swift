// What the handles of one environment share.
//
// Handles and drivers hold it; the public environment holds it too and, by its own end, ends it. Locks are taken in one
// order: a handle's, then one of these.

internal import Synchronization

/// The shared part of one environment.
final class EnvironmentCore<Request: Hashable & Sendable, Payload: Sendable>: Sendable {
    /// Where a handle is found, while anybody holds it: a box, since a weak field is read safely only in place.
    private final class Entry {
        let number: Int
        weak var handle: SubscriptionHandle<Request, Payload>?

        init(_ handle: SubscriptionHandle<Request, Payload>) {
            self.number = handle.core.number
            self.handle = handle
        }
    }

    private struct Registry {
        var entries: [Request: Entry] = [:]
        var made = 0
    }

    let transport: (any SubscriptionTransport<Request, Payload>)?
    let executor: (any TaskExecutor)?
    let state: EnvironmentState

    /// How many threads are flipping the phase, or telling the handles that it flipped.
    private let telling = Atomic<Int>(0)

    private let registry = Lock(Registry())

    init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        clock: any SubscriptionClock,
        unit: @escaping @Sendable () -> Double,
        log: SubscriptionLog?
    ) {
        self.transport = transport
        self.executor = transport?.driverExecutor
        state = EnvironmentState(hasTransport: transport != nil, clock: clock, unit: unit, log: log)
    }

    /// How many handles are registered.
    var registered: Int { registry.withLock { $0.entries.count } }

    // MARK: Handles

    /// The one handle of the request.
    func handle(for request: Request) -> SubscriptionHandle<Request, Payload> {
        let handle = registry.withLock { registry in
            if let handle = registry.entries[request]?.handle { return handle }
            registry.made += 1
            let handle = SubscriptionHandle(request: request, number: registry.made, environment: self)
            registry.entries[request] = Entry(handle)
            return handle
        }
        // After the registration: either this sees the end, or the end sees the handle.
        if state.phase.load(ordering: .sequentiallyConsistent) == .ended { handle.core.environmentEnded() }
        return handle
    }

    /// Forgets a handle that is gone, unless another has taken its place.
    func forget(_ request: Request, number: Int) {
        // The entry's request, which may be older than this equal one, ends here and not under the lock.
        _ = registry.withLock { registry -> (Request, Entry)? in
            guard let index = registry.entries.index(forKey: request), registry.entries[index].value.number == number
            else { return nil }
            return registry.entries.remove(at: index)
        }
    }

    private var handles: [SubscriptionHandle<Request, Payload>] {
        registry.withLock { $0.entries.values.compactMap(\.handle) }
    }

    // MARK: Activity

    /// Flips the activity and tells every handle.
    ///
    /// After the end: nothing.
    func setActive(_ isActive: Bool) {
        let (from, to): (EnvironmentState.Phase, EnvironmentState.Phase) =
            isActive ? (.inactive, .active) : (.active, .inactive)
        telling.add(1, ordering: .sequentiallyConsistent)
        defer { telling.subtract(1, ordering: .sequentiallyConsistent) }
        // The flag flips before any handle is told. A handle's transaction reads it under the handle's lock, so one
        // that read the old value came before this handle is told.
        let flip = state.phase.compareExchange(expected: from, desired: to, ordering: .sequentiallyConsistent)
        // Who flipped it may still be telling: no stream is live when this returns, either.
        let mayBeLive = !isActive && telling.load(ordering: .sequentiallyConsistent) > 1
        guard flip.exchanged || mayBeLive else { return }
        for handle in handles { handle.core.activityChanged() }
    }

    /// Ends every handle, for good.
    ///
    /// May be called again.
    func end() {
        telling.add(1, ordering: .sequentiallyConsistent)
        defer { telling.subtract(1, ordering: .sequentiallyConsistent) }
        state.phase.store(.ended, ordering: .sequentiallyConsistent)
        for handle in handles { handle.core.environmentEnded() }
        state.sleeper.stop()
    }
}
