import SubscriptionRuntime

/// Values that any thread appends and a test reads.
final class Recorder<Value: Sendable>: Sendable {
    private let state = Lock<[Value]>([])

    /// Adds one.
    func append(_ value: Value) { state.withLock { $0.append(value) } }

    /// All so far.
    var values: [Value] { state.withLock { $0 } }
}
