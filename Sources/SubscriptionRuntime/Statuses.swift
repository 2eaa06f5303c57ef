// A handle's statuses in turn.

/// What a loop over statuses asks of the handle.
protocol StatusPublishing: AnyObject, Sendable {
    /// The status, once it is another than that of the revision; nil when the task is cancelled.
    func status(after revision: Int) async -> (status: SubscriptionStatus, revision: Int, isLast: Bool)?
}

/// What a handle's status is now, and then each time it has changed.
///
/// Conflated: a slow loop misses statuses between, never the last. Ends after the one that says the environment is gone,
/// and when its task is cancelled. It retains nothing.
public struct Statuses: AsyncSequence, Sendable {
    /// A snapshot.
    public typealias Element = SubscriptionStatus

    /// None.
    public typealias Failure = Never

    private let handle: any StatusPublishing

    init(_ handle: any StatusPublishing) {
        self.handle = handle
    }

    /// Begins a loop; any number may run.
    public func makeAsyncIterator() -> Iterator {
        Iterator(handle)
    }

    /// Takes statuses in turn.
    public struct Iterator: AsyncIteratorProtocol {
        private let handle: any StatusPublishing
        private var revision = -1
        private var isOver = false

        init(_ handle: any StatusPublishing) {
            self.handle = handle
        }

        /// The next status.
        ///
        /// - Parameter actor: Where the caller runs, and this stays.
        /// - Returns: The status; nil after the last, and when the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> SubscriptionStatus? {
            guard !isOver, let next = await handle.status(after: revision) else {
                isOver = true
                return nil
            }
            revision = next.revision
            isOver = next.isLast
            return next.status
        }
    }
}
