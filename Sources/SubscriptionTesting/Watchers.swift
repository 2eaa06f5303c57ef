// Those who wait for what a test is told, until their tasks are cancelled.

import SubscriptionRuntime

/// Who waits for one thing, in the order they came: part of a state that a lock guards.
struct Watchers<Value: Sendable> {
    /// Tells one wait from another.
    final class Wait: Sendable {}

    typealias Watcher = HandOver<Result<Value, CancellationError>>

    private var waiting: [(wait: Wait, watcher: Watcher)] = []

    mutating func append(_ watcher: Watcher, for wait: Wait) {
        waiting.append((wait, watcher))
    }

    /// Takes the one who came first out; to be resumed after the lock.
    mutating func takeFirst() -> Watcher? {
        waiting.isEmpty ? nil : waiting.removeFirst().watcher
    }

    /// Takes all out; to be resumed after the lock.
    mutating func takeAll() -> [Watcher] {
        defer { waiting = [] }
        return waiting.map(\.watcher)
    }

    /// Takes out the one of a wait, which may be none: it was taken before, or has not come yet.
    mutating func take(_ wait: Wait) -> Watcher? {
        waiting.firstIndex { $0.wait === wait }.map { waiting.remove(at: $0).watcher }
    }
}

extension Lock {
    /// Takes a value from the state, or waits among the state's watchers to be handed one.
    ///
    /// Whoever takes a watcher out of the state ends its wait: the cancellation of the task is one of them, so a value
    /// that another has handed over is returned, and one that nobody was handed stays.
    ///
    /// - Parameters:
    ///   - watchers: Where to wait.
    ///   - take: Takes the value, if it is there. Called under the lock, once, unless the task is cancelled.
    /// - Returns: The value.
    /// - Throws: `CancellationError` once the task is cancelled; nothing was taken then.
    func wait<Value: Sendable>(
        in watchers: any WritableKeyPath<State, Watchers<Value>> & Sendable,
        orTake take: (inout State) -> Value?
    ) async throws(CancellationError) -> Value {
        let wait = Watchers<Value>.Wait()
        let outcome = await withTaskCancellationHandler {
            await HandOver.wait { watcher in
                let outcome = withLock { state -> Result<Value, CancellationError>? in
                    // The task is cancelled before its handler is called: a handler that found no watcher is seen here.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let value = take(&state) { return .success(value) }
                    state[keyPath: watchers].append(watcher, for: wait)
                    return nil
                }
                if let outcome { watcher.resume(returning: outcome) }
            }
        } onCancel: {
            let watcher = withLock { $0[keyPath: watchers].take(wait) }
            watcher?.resume(returning: .failure(CancellationError()))
        }
        return try outcome.get()
    }
}
