// Some of a chunk to what its whole blocks say, as ranges in the chunk: the parser's fast path.
//
// A block is the lines up to and including an empty one. A block that the chunk's end cuts, or that passes a limit,
// is left to `OpenBlock`. Nothing is copied here, and the two arrays are the only allocations, about one each a chunk.
//
// Pure: no clock, no lock. Called by the parser, on its thread.

/// What some whole blocks of one chunk say, in the order of the stream.
struct BlockBatch {
    /// A range of the chunk.
    struct Line {
        var start: UInt32
        var count: UInt32
    }

    /// One thing to report.
    struct Record {
        enum Kind: UInt8 {
            /// A block with data.
            case event
            /// A block without data that has an ID or an event type.
            case block
            /// A `retry` field; `start` and `count` are its digits.
            case retry
            /// A comment; `start` and `count` are what follows its colon.
            case comment
        }

        var kind: Kind
        /// Whether the block has an `id` field that counts.
        var hasID = false
        /// The one line's data, or the size of all lines with the LFs between them.
        var start: UInt32 = 0
        var count: UInt32 = 0
        /// How many `data` lines; where more than one, they are `lines` from `firstLine` on.
        var lineCount: UInt32 = 0
        var firstLine: UInt32 = 0
        /// The `event` field; empty for none.
        var typeStart: UInt32 = 0
        var typeCount: UInt32 = 0
        var idStart: UInt32 = 0
        var idCount: UInt32 = 0
        /// What the block is called, by its number among the batch's labels.
        var label: UInt32 = 0

        /// Whether the data goes into the batch's one buffer.
        var sharesBuffer: Bool { kind == .event && count < BlockBatch.ownBufferSize }

        /// The place of the data's lines in `lines`.
        var lineRange: Range<Int> { Int(firstLine)..<Int(firstLine) + Int(lineCount) }
    }

    /// From how many bytes on an event's data has a buffer of its own: about where a malloc is cheap beside the copy.
    static let ownBufferSize = 4096

    /// How many records a batch has when it is full; more where one block says more.
    ///
    /// A batch, the bytes it is of and its events stay in a first-level cache from the search to the report, and
    /// no event shares its buffer with more than these.
    private static let maxCount = 128

    private(set) var records: [Record] = []
    private(set) var lines: [Line] = []

    /// What the batch's blocks are called, from the second label on; `firstLabel` where there is one alone.
    private(set) var otherLabels: [EventLabel] = []
    private(set) var firstLabel = EventLabel(type: "message", lastEventID: "")

    /// The size of all data that shares the batch's buffer.
    private(set) var sharedCount = 0

    /// Whether reading ended because there are enough records.
    private(set) var isFull = false

    /// Whether the last block ended by a CR that is the chunk's last byte: an LF that follows belongs to it.
    private(set) var endsInReturn = false

    /// Reads whole blocks, and forgets those of the batch before.
    ///
    /// - Parameters:
    ///   - chunk: At most 1 GiB.
    ///   - start: Where a block begins.
    ///   - ends: Searched for positions up to this one at most.
    ///   - limit: The most bytes of an event's data, or of a field's or a comment's value.
    ///   - keepsComments: Whether comments are reported.
    /// - Returns: Where the first block begins that was not read: it is cut, or passes the limit, or the batch is full.
    ///   The chunk's end where all were.
    mutating func read(
        _ chunk: RawSpan,
        from start: Int,
        ends: inout LineEnds,
        limit: Int,
        keepsComments: Bool
    ) -> Int {
        let end = chunk.byteCount
        // Emptying an empty array costs as much as reading a short chunk.
        if !records.isEmpty { records.removeAll(keepingCapacity: true) }
        // A guess; too low costs a copy, no more.
        let expected = min(Self.maxCount, (end - start) / 64)
        if records.capacity < expected { records.reserveCapacity(expected) }
        if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
        sharedCount = 0
        endsInReturn = false
        isFull = false
        var position = start
        var blockStart = start
        var unfinishedLine = end
        var recordsBefore = 0
        var linesBefore = 0
        var block = Record(kind: .event)

        reading: while position < end {
            if position == blockStart {
                while records.count < Self.maxCount,
                    let next = readPlainBlock(chunk, at: position, &ends, limit: limit)
                {
                    position = next
                }
                blockStart = position
                recordsBefore = records.count
                if position == end { break reading }
                if records.count >= Self.maxCount {
                    isFull = true
                    return position
                }
            }
            let first = chunk.byte(position)
            let lineEnd: Int
            if first == UInt8(ascii: "\n") || first == UInt8(ascii: "\r") {
                lineEnd = position
            } else {
                lineEnd = Self.lineEnd(of: chunk, from: position, first: first, &ends)
                if lineEnd == end {
                    unfinishedLine = position
                    break reading
                }
            }
            var next = lineEnd + 1
            if chunk.byte(lineEnd) == UInt8(ascii: "\r"), next < end, chunk.byte(next) == UInt8(ascii: "\n") {
                next += 1
            }

            if lineEnd == position {
                if block.lineCount > 0 || block.hasID || block.typeCount > 0 {
                    block.kind = block.lineCount > 0 ? .event : .block
                    append(block)
                    if block.sharesBuffer { sharedCount += Int(block.count) }
                    block = Record(kind: .event)
                }
                position = next
                blockStart = next
                recordsBefore = records.count
                linesBefore = lines.count
                endsInReturn = next == end && chunk.byte(lineEnd) == UInt8(ascii: "\r")
                continue
            }

            switch first {
            case UInt8(ascii: "d"):
                guard let value = Field.data.value(of: chunk, from: position, to: lineEnd) else { break }
                guard appendData(chunk, from: value, to: lineEnd, to: &block, limit: limit) else { break reading }
            case UInt8(ascii: "e"):
                guard let value = Field.event.value(of: chunk, from: position, to: lineEnd) else { break }
                guard lineEnd - value <= limit else { break reading }
                block.typeStart = UInt32(value)
                block.typeCount = UInt32(lineEnd - value)
            case UInt8(ascii: "i"):
                guard let value = Field.id.value(of: chunk, from: position, to: lineEnd) else { break }
                guard lineEnd - value <= limit else { break reading }
                guard chunk.firstOffset(of: 0, from: value, to: lineEnd) == lineEnd else { break }
                block.hasID = true
                block.idStart = UInt32(value)
                block.idCount = UInt32(lineEnd - value)
            case UInt8(ascii: "r"):
                guard let value = Field.retry.value(of: chunk, from: position, to: lineEnd) else { break }
                guard RetryValue(chunk, from: value, to: lineEnd).duration != nil else { break }
                append(.retry, from: value, to: lineEnd)
            case UInt8(ascii: ":") where keepsComments:
                guard lineEnd - position - 1 <= limit else { break reading }
                append(.comment, from: position + 1, to: lineEnd)
            default:
                break
            }
            position = next
        }

        // The unfinished block's lines are searched again; its last one is known to have no end.
        ends = LineEnds(emptyFrom: unfinishedLine)
        // What an unfinished block has reported is read again from its start.
        if records.count > recordsBefore { records.removeLast(records.count - recordsBefore) }
        if lines.count > linesBefore { lines.removeLast(lines.count - linesBefore) }
        return blockStart
    }

    /// Adds a block of the plain shape.
    ///
    /// - Returns: Where the next block begins; nil where this one is of another shape, is cut or passes the limit.
    @inline(__always)
    private mutating func readPlainBlock(
        _ chunk: RawSpan,
        at start: Int,
        _ ends: inout LineEnds,
        limit: Int
    ) -> Int? {
        guard let block = PlainBlock(chunk, at: start, &ends, limit: limit) else { return nil }
        var record = Record(kind: .event)
        record.start = block.start
        record.count = block.count
        record.lineCount = 1
        record.typeStart = block.typeStart
        record.typeCount = block.typeCount
        append(record)
        if record.sharesBuffer { sharedCount += Int(block.count) }
        return block.next
    }

    /// Where a line ends that begins with `first`; all but data is mostly short.
    @inline(__always)
    private static func lineEnd(of chunk: RawSpan, from start: Int, first: UInt8, _ ends: inout LineEnds) -> Int {
        if first != UInt8(ascii: "d"), start <= chunk.byteCount - 16 {
            let count = chunk.lineCount16(start)
            if count < 16 { return start + count }
        }
        return ends.next(in: chunk, from: start)
    }

    /// One `data` line; false where the data passes the limit.
    @inline(__always)
    private mutating func appendData(
        _ chunk: RawSpan,
        from start: Int,
        to end: Int,
        to block: inout Record,
        limit: Int
    ) -> Bool {
        let line = Line(start: UInt32(start), count: UInt32(end - start))
        if block.lineCount == 0 {
            guard end - start <= limit else { return false }
            block.start = line.start
            block.count = line.count
            block.lineCount = 1
            return true
        }
        let count = Int(block.count) + 1 + (end - start)
        guard count <= limit else { return false }
        if block.lineCount == 1 {
            block.firstLine = UInt32(lines.count)
            lines.append(Line(start: block.start, count: block.count))
        }
        lines.append(line)
        block.lineCount += 1
        block.count = UInt32(count)
        return true
    }

    /// Names the blocks: gives each record the number of its label.
    ///
    /// - Parameters:
    ///   - chunk: What the batch was read from.
    ///   - lastEventID: The last event ID string before the batch.
    mutating func nameBlocks(of chunk: RawSpan, lastEventID: String) {
        otherLabels.removeAll(keepingCapacity: false)
        firstLabel = EventLabel(type: "message", lastEventID: lastEventID)
        var hasLabel = false
        var current: UInt32 = 0
        var typeStart = 0
        var typeCount = 0
        for index in records.indices {
            let record = records[index]
            guard record.kind == .event || record.kind == .block else { continue }
            let start = Int(record.typeStart)
            let count = Int(record.typeCount)
            let hasSameType = count == typeCount && (count == 0 || chunk.isEqual(at: start, typeStart, count: count))
            if hasLabel, hasSameType, !record.hasID {
                records[index].label = current
                continue
            }
            let before = current == 0 ? firstLabel : otherLabels[Int(current) - 1]
            let label = EventLabel(
                type: count == 0 ? "message" : hasSameType ? before.type : chunk.text(from: start, count: count),
                lastEventID: record.hasID
                    ? chunk.text(from: Int(record.idStart), count: Int(record.idCount)) : before.lastEventID
            )
            if hasLabel {
                otherLabels.append(label)
                current += 1
            } else {
                firstLabel = label
                hasLabel = true
            }
            records[index].label = current
            typeStart = start
            typeCount = count
        }
    }

    private mutating func append(_ kind: Record.Kind, from start: Int, to end: Int) {
        append(Record(kind: kind, start: UInt32(start), count: UInt32(end - start)))
    }

    @inline(__always)
    private mutating func append(_ record: Record) {
        records.append(record)
    }
}
