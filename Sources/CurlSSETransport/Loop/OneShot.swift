// One value that one task waits for and any thread settles.

internal import SubscriptionRuntime

/// A value that is settled once.
///
/// The first value holds.
final class OneShot<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: Waiter?
    }

    private let state = Lock(State())

    /// Settles the value, from any thread.
    func settle(_ value: Value) {
        let waiter = state.withLock { state -> Waiter? in
            guard state.value == nil else { return nil }
            state.value = value
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// The value; nil before it is settled.
    var settled: Value? { state.withLock { $0.value } }

    /// Waits for the value.
    ///
    /// One task.
    func value() async -> Value {
        while true {
            if let value = settled { return value }
            await wait()
        }
    }

    /// Waits until the value is settled, and does not look at it.
    ///
    /// One task.
    func wait() async {
        await Waiter.wait { waiter in
            let isSettled = state.withLock { state in
                guard state.value == nil else { return true }
                state.waiter = waiter
                return false
            }
            if isSettled { waiter.resume() }
        }
    }
}
