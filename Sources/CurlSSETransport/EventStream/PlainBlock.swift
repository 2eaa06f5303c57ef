// The block that most streams are made of, found without a record.
//
// A shortcut beside `BlockBatch`: whatever is not of this shape is left to it. Pure; called by the parser, on its thread.

/// What a plain block's lines begin with up to its data, where the next blocks are likely to begin the same.
struct PlainPrefix {
    let start: Int
    /// 0 where it says nothing of other blocks: the byte after the colon, which may be a space, is not part of it.
    let count: Int
    let typeStart: UInt32
    let typeCount: UInt32
}

/// An `event` line of under 16 bytes or none, one `data` line, and LFs: as ranges of a chunk of at most 1 GiB.
struct PlainBlock {
    /// The end of the data line and an empty one: two LFs.
    private static var emptyLine: UInt16 { 0x0A0A }

    /// Room for the words looked at, where the event line has its 15 bytes.
    private static var leastRoom: Int { 24 }

    /// The data.
    let start: UInt32
    let count: UInt32
    /// The `event` field; empty for none.
    let typeStart: UInt32
    let typeCount: UInt32
    /// Where the next block begins.
    let next: Int

    /// Where the data is, and the `event` field.
    var data: Range<Int> { Int(start)..<Int(start) + Int(count) }
    var type: Range<Int> { Int(typeStart)..<Int(typeStart) + Int(typeCount) }

    /// Reads a block; nil where it is of another shape, is cut or passes the limit.
    @inline(__always)
    init?(_ chunk: RawSpan, at start: Int, _ ends: inout LineEnds, limit: Int) {
        let end = chunk.byteCount
        var position = start
        var typeStart = 0
        var typeCount = 0
        guard end - position >= Self.leastRoom else { return nil }
        if chunk.byte(position) == UInt8(ascii: "e") {
            let count = chunk.lineCount16(position)
            guard count < 16, chunk.byte(position + count) == UInt8(ascii: "\n"),
                let value = Field.event.value(of: chunk, from: position, to: position + count)
            else { return nil }
            typeStart = value
            typeCount = position + count - value
            position += count + 1
        }
        guard chunk.word(position) == Field.dataWord, chunk.byte(position + 4) == UInt8(ascii: ":") else { return nil }
        let lineEnd = ends.next(in: chunk, from: position + 5)
        guard lineEnd + 1 < end, chunk.halfWord(lineEnd) == Self.emptyLine else { return nil }
        let value = position + (chunk.byte(position + 5) == UInt8(ascii: " ") ? 6 : 5)
        let count = lineEnd - value
        guard count <= limit, typeCount <= limit else { return nil }
        self.start = UInt32(truncatingIfNeeded: value)
        self.count = UInt32(truncatingIfNeeded: count)
        self.typeStart = UInt32(truncatingIfNeeded: typeStart)
        self.typeCount = UInt32(truncatingIfNeeded: typeCount)
        next = lineEnd + 2
    }

    /// Reads a block that begins as another of the chunk did; nil where it does not, or is no plain block.
    @inline(__always)
    init?(_ chunk: RawSpan, at start: Int, like prefix: PlainPrefix, _ ends: inout LineEnds, limit: Int) {
        // Offsets of a chunk: no sum of two is too large for an Int.
        let value = start &+ prefix.count
        // Room as above: where there is less, ends of lines are searched from the block's start, and must not have been
        // searched from further on.
        guard prefix.count > 0, chunk.byteCount &- start >= Self.leastRoom, value < chunk.byteCount,
            chunk.hasSameBytes(at: prefix.start, start, count: prefix.count)
        else { return nil }
        let lineEnd = ends.next(in: chunk, from: value)
        guard lineEnd &+ 1 < chunk.byteCount, chunk.halfWord(lineEnd) == Self.emptyLine,
            lineEnd &- value <= limit
        else { return nil }
        self.start = UInt32(truncatingIfNeeded: value)
        self.count = UInt32(truncatingIfNeeded: lineEnd &- value)
        typeStart = prefix.typeStart
        typeCount = prefix.typeCount
        next = lineEnd &+ 2
    }

    /// What this block, which begins at an offset, begins with.
    func prefix(of chunk: RawSpan, from offset: Int) -> PlainPrefix {
        let count = Int(start) - offset
        let saysAll = count >= 6 && chunk.byte(Int(start) - 1) == UInt8(ascii: " ")
        return PlainPrefix(start: offset, count: saysAll ? count : 0, typeStart: typeStart, typeCount: typeCount)
    }

    /// Whether two blocks have the same `event` field.
    @inline(__always)
    func hasSameType(as other: PlainBlock, in chunk: RawSpan) -> Bool {
        typeStart == other.typeStart
            || typeCount == other.typeCount
                && (typeCount == 0 || chunk.isEqual(at: Int(typeStart), Int(other.typeStart), count: Int(typeCount)))
    }
}
