// One value from one task to another that waits for it.

/// A task that waits for a value, to be resumed exactly once, by any thread.
///
/// The continuation carries nothing, and the value goes through a lock: ThreadSanitizer does not see the concurrency
/// library's own hand-over, and takes a value that a continuation carries for a race.
package struct HandOver<Value: Sendable>: Sendable {
    private let continuation: CheckedContinuation<Void, Never>
    private let value: Lock<Value?>

    /// Suspends the calling task.
    ///
    /// - Parameters:
    ///   - isolation: The caller's, where `body` is called.
    ///   - body: Stores the hand-over, or resumes it at once. Called before the task suspends.
    /// - Returns: What it was resumed with.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (HandOver) -> Void
    ) async -> Value {
        let value = Lock<Value?>(nil)
        while true {
            await withCheckedContinuation { body(HandOver(continuation: $0, value: value)) }
            if let value = value.withLock({ $0 }) { return value }
        }
    }

    private init(continuation: CheckedContinuation<Void, Never>, value: Lock<Value?>) {
        self.continuation = continuation
        self.value = value
    }

    /// Lets the task go on, on its own executor, with a value.
    package func resume(returning value: Value) {
        self.value.withLock { $0 = value }
        continuation.resume()
    }
}
