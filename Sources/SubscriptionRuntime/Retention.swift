// One retention of one handle; whoever holds it is an owner.

internal import Synchronization

/// Somebody that holds subscriptions open by retentions.
protocol Retained: AnyObject, Sendable {
    /// One retention less.
    func released()
}

/// Holds a subscription open, until it is released or let go of.
///
/// A `let` that is not used again may be let go of before its scope ends: hold a retention where it lives as long as
/// the owner, or release it at the end. Letting go of it is a release on that thread.
public final class Retention: Sendable {
    private let handle: any Retained
    private let isReleased = Atomic<Bool>(false)

    init(_ handle: any Retained) {
        self.handle = handle
    }

    deinit {
        release()
    }

    /// Ends the retention; the last one's end closes the stream at once.
    ///
    /// Only the first call counts. From any thread.
    public func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        handle.released()
    }
}
