// A task that waits, and one value from one task to another that waits for it.
//
// Classes: a continuation is of a size that only its library knows, and what holds one in place is as slow as generic
// code.

/// A task that waits, to be resumed exactly once, by any thread.
///
/// It carries no value: what it waits for is read under a lock afterwards. ThreadSanitizer takes a value that a
/// continuation carries from a Dispatch queue, and the inlined resumption of an `UnsafeContinuation`, for races.
package final class Waiter: Sendable {
    private let continuation: CheckedContinuation<Void, Never>

    @usableFromInline
    package init(_ continuation: CheckedContinuation<Void, Never>) {
        self.continuation = continuation
    }

    /// Suspends the calling task.
    ///
    /// - Parameters:
    ///   - isolation: The caller's, where `body` is called.
    ///   - body: Stores the waiter, or resumes it at once. Called before the task suspends.
    @inlinable
    package static func wait(isolation: isolated (any Actor)? = #isolation, _ body: (Waiter) -> Void) async {
        await withCheckedContinuation { body(Waiter($0)) }
    }

    /// Lets the task go on, on its own executor.
    package func resume() {
        continuation.resume()
    }
}

/// A task that waits for a value, to be resumed exactly once, by any thread.
///
/// The continuation carries nothing, and the value goes through a lock, see `Waiter`.
package final class HandOver<Value: Sendable>: Sendable {
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
