// When what the loop has parsed goes to its reader, and when no more is to be read. Pure.

/// How much may be pending beside what the channel holds.
///
/// It is handed over late, as waking the reader costs more than reading hundreds of events. No more of the stream is read
/// once the two together are the channel's high water.
struct HandOverMark: Sendable {
    /// What is handed over at once, in bytes, or three quarters of the channel's high water where that is less.
    private static let least = 192 << 10

    private let least: Int
    /// What is handed over though its last segment is not whole.
    private let most: Int
    /// Of the channel, as it was found last: there is as much now, or more.
    private var room: Int

    init(highWater: Int) {
        least = min(Self.least, highWater / 4 * 3)
        most = least + least / 6
        room = highWater
    }

    /// Whether so many pending bytes are to be handed over: with its last segment a whole one, as a part of one costs its
    /// owners as much, unless that takes too long.
    @inline(__always)
    func isReached(by bytes: Int, inWholeSegments isWhole: Bool) -> Bool { bytes >= (isWhole ? least : most) }

    /// Whether so many pending bytes fill the channel, as far as is known: it is to be looked at again.
    func isFull(with bytes: Int) -> Bool { bytes >= room }

    /// The channel was found to have so much room; not above 0 where it is full.
    mutating func found(room: Int) { self.room = room }
}
