/// How long a failed stream waits: a step of one second, doubled by each wait in a row to thirty, jittered over its
/// upper half.
///
/// | wait in a row | 1st | 2nd | 3rd | 4th | 5th | 6th and on |
/// |---|---|---|---|---|---|---|
/// | from | 0.5 s | 1 s | 2 s | 4 s | 8 s | 15 s |
/// | to | 1 s | 2 s | 4 s | 8 s | 16 s | 30 s |
///
/// Fixed: there is nothing to configure. An accepted payload starts it over, an opening does not: a server that accepts
/// and drops is still failing.
public enum Backoff {
    /// The first step: one second.
    public static let base: Duration = .seconds(1)

    /// The longest step: thirty seconds.
    public static let cap: Duration = .seconds(30)

    /// The longest server-directed pause that is honoured, before its jitter: ten minutes.
    public static let longestRetryAfter: Duration = .seconds(600)

    /// The whole step.
    ///
    /// - Parameter attempt: How many waits went before since the last payload, at least 0.
    /// - Returns: `base` doubled `attempt` times, at most `cap`.
    public static func step(_ attempt: Int) -> Duration {
        // 2^5 s is past the cap: no larger attempt needs the arithmetic, and none overflows it.
        let doublings = min(max(attempt, 0), 5)
        return min(base * (1 << doublings), cap)
    }

    /// One wait, to the nanosecond.
    ///
    /// - Parameters:
    ///   - attempt: As for ``step(_:)``.
    ///   - chance: The wait's one draw, uniform in 0...1; brought into the range if outside.
    ///   - retryAfter: The server's word, a floor; brought into zero to ``longestRetryAfter``. It is jittered upward by
    ///     up to a half, so that a fleet told one number does not come back in one instant.
    /// - Returns: The larger of a time between half the step and the whole, and the floor.
    static func delay(after attempt: Int, chance: Double, retryAfter: Duration?) -> Duration {
        // A chance that is no number counts as 1: the longest wait is the harmless one.
        let chance = chance >= 0 && chance <= 1 ? chance : (chance < 0 ? 0 : 1)
        let half = step(attempt) / 2
        let jittered = half + share(chance, of: half)
        guard let retryAfter else { return jittered }

        let floor = min(max(retryAfter, .zero), longestRetryAfter)
        return max(jittered, floor + share(chance, of: floor / 2))
    }

    /// A part of a duration of at most ten minutes, rounded to the nanosecond.
    private static func share(_ part: Double, of whole: Duration) -> Duration {
        let (seconds, attoseconds) = whole.components
        let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
        return .nanoseconds(Int64((nanoseconds * part).rounded()))
    }
}
