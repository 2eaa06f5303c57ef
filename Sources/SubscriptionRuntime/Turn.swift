// How long a loop has gone on without its task being suspended.

/// A task's turn on its executor: it ends by a suspension, or is to be ended by one.
///
/// A loop over what is always there would never let anybody else run where it runs: on its actor, or on a pool of one
/// thread. Not even a task that is to cancel it.
package struct Turn: Sendable {
    /// How long it lasts: some hundred times what it costs to begin another.
    private static let length = Duration.milliseconds(1)

    /// What the clock's instants are told from: those themselves are of a size that only their library knows.
    private static let epoch = ContinuousClock.now

    private static var now: Duration { epoch.duration(to: .now) }

    /// When the first thing was taken at once since the task was suspended; nil for nothing since.
    private var began: Duration?

    package init() {}

    /// Something was taken without a suspension.
    package mutating func wentOn() {
        if began == nil { began = Self.now }
    }

    /// The task was suspended.
    package mutating func suspended() { began = nil }

    /// Whether others are to have theirs; asked before something is taken, and true once.
    package mutating func isOver() -> Bool {
        guard let began, Self.now - began >= Self.length else { return false }
        self.began = nil
        return true
    }
}
