// Waits for sockets to the instant by which a silence may be judged. Pure.

/// Knows since when every socket that had something has been read.
///
/// A wait tells of so many at most, those that were told of longest ago first. After a loop that was kept from its turns
/// has told of some, others have not been silent: they have not been read.
struct WaitSeries: Sendable {
    /// How many waits in a row told of as many sockets as one can.
    private var count = 0
    /// When the first of them began to tell.
    private var began: UInt64 = 0

    /// A wait has told, and what it told of was read.
    ///
    /// - Parameters:
    ///   - sockets: Of how many.
    ///   - most: Of how many one can, at least 1.
    ///   - watched: How many are watched.
    ///   - instant: When it told, in nanoseconds of the loop's clock.
    /// - Returns: The instant since which everything that was there has been read: by then, and not later, a limit may
    ///   have run out. nil where some have not been read.
    mutating func told(of sockets: Int, most: Int, watched: Int, at instant: UInt64) -> UInt64? {
        guard sockets == most else {
            count = 0
            return instant
        }
        if count == 0 { began = instant }
        count += 1
        guard count * most >= watched else { return nil }
        count = 0
        // What was read by the first of the waits may have had something since, while the loop was kept from the next.
        return began
    }
}
