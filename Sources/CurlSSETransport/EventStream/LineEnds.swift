/// Finds the ends of lines in one chunk, in linear time whatever mixture of LF and CR it has.
///
/// Keeps the next LF and how far the chunk is known to have no CR, so no byte is searched twice: a stream without CR
/// costs one extra memchr(3) a window, not one a line. Asked for positions that only grow.
struct LineEnds {
    /// How far a search for CR goes past the line it is made for, in bytes: within a first-level cache.
    private static let window = 16 << 10

    /// The first LF at or after the last position asked for, or the chunk's end; unknown while it is before it.
    private var lineFeed = -1

    /// The first CR likewise where `hasReturn`; else there is none before this offset.
    private var carriageReturn = 0
    private var hasReturn = false

    /// From where on the chunk is known to have neither.
    private let emptyFrom: Int

    /// Has looked at nothing yet.
    ///
    /// - Parameter emptyFrom: From where on the chunk is known to have neither LF nor CR. Default: nowhere.
    init(emptyFrom: Int = .max) {
        self.emptyFrom = emptyFrom
    }

    /// The offset of the first LF or CR at or after `position`; the chunk's end where there is none.
    @inline(__always)
    mutating func next(in chunk: RawSpan, from position: Int) -> Int {
        if position >= emptyFrom { return chunk.byteCount }
        if lineFeed < position {
            lineFeed = chunk.firstOffset(of: UInt8(ascii: "\n"), from: position, to: chunk.byteCount)
        }
        if carriageReturn < position {
            carriageReturn = position
            hasReturn = false
        }
        if !hasReturn, carriageReturn < lineFeed {
            findReturn(in: chunk)
        }
        return hasReturn ? min(carriageReturn, lineFeed) : lineFeed
    }

    /// Searches from where CR is not yet ruled out to the LF, and a window on.
    private mutating func findReturn(in chunk: RawSpan) {
        let end = min(chunk.byteCount, emptyFrom, max(lineFeed, carriageReturn + Self.window))
        carriageReturn = chunk.firstOffset(of: UInt8(ascii: "\r"), from: carriageReturn, to: end)
        hasReturn = carriageReturn < end
    }
}
