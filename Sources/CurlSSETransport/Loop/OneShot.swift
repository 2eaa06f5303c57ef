// One value that one task waits for and any thread settles.

internal import SubscriptionRuntime

/// A value that is settled once.
///
/// The first value holds.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case pending
        case waiting(Waiter<Value>)
        case settled(Value)
    }

    private let state = Lock(State.pending)

    /// Settles the value, from any thread.
    func settle(_ value: Value) {
        let waiter = state.withLock { state -> Waiter<Value>? in
            switch state {
            case .pending:
                state = .settled(value)
                return nil
            case .waiting(let waiter):
                state = .settled(value)
                return waiter
            case .settled:
                return nil
            }
        }
        waiter?.resume(value)
    }

    /// Waits for the value.
    ///
    /// One task.
    func value() async -> Value {
        await Waiter.wait { waiter in
            let settled = state.withLock { state -> Value? in
                guard case .settled(let value) = state else {
                    state = .waiting(waiter)
                    return nil
                }
                return value
            }
            if let settled { waiter.resume(settled) }
        }
    }
}
