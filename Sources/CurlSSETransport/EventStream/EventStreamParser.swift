// Bytes of a `text/event-stream` body to the events it dispatches.
//
// Source: WHATWG HTML, "Server-sent events", sections 9.2.5 (parsing) and 9.2.6 (interpretation).
//
// Where this parser does more or less than the sections, on purpose:
//   - A block with an event type and no data is reported, though never dispatched: graphql-sse lets `complete` come
//     without data.
//   - An event, or a field that is kept, longer than a limit fails the stream; the sections set no bound.
//   - A CR ends its line at once, without waiting for an LF that may follow.
//   - A last line without a line end is discarded with its block, a `retry` cut in the middle of its number included.
//
// How: whole blocks of a chunk are found as ranges (`BlockBatch`), some at a time, their data copied once into one
// buffer, and reported.
// A block that a chunk's end cuts is assembled (`OpenBlock`). Either way a byte is searched and copied a fixed number
// of times, whatever the chunks.
//
// Pure: no clock, no lock. The transport calls it on the loop's thread, once per chunk libcurl delivers, in order.

/// Reads one event stream, cut into chunks anywhere.
///
/// Time is linear in the bytes for any chunks. Memory is bounded by `maxEventBytes`, apart from what is reported.
public struct EventStreamParser: Sendable {
    /// The most of a chunk that is read in one go: offsets are kept in 32 bits.
    private static let pieceSize = 1 << 30

    /// The most of a chunk that events of the plain shape share a copy of: a first-level cache's worth.
    private static let sharedSize = 16 << 10

    /// The most bytes of one event's data, of one `event` or `id` field, or of one comment that is kept.
    public let maxEventBytes: Int

    /// Whether comments are reported.
    public let keepsComments: Bool

    /// The last event ID string: that of the last event reported, or moved since by a block without data.
    public private(set) var lastEventID: String

    /// The last `retry` field of digits alone, at most `Int64.max` milliseconds; nil for none.
    public private(set) var retry: Duration?

    private var block: OpenBlock
    /// Whether `block` has read something that is not yet whole.
    private var isInBlock = false
    /// Whether the next byte, where it is an LF, belongs to a CR before it.
    private var skipsLineFeed = false
    /// How many bytes of the BOM have come; 3 once the stream has begun.
    private var markCount = 0
    private var isSpent = false

    /// Begins a stream.
    ///
    /// - Parameters:
    ///   - lastEventID: What the last event ID buffer starts with: an event without an ID has this one. Default: empty.
    ///   - maxEventBytes: The limit, in bytes, at least 0 and at most 1 GiB (others are taken as the nearest of
    ///     these). Default: 16 MiB.
    ///   - keepsComments: Whether comments are reported. Where they are not, they are skipped without being stored.
    public init(lastEventID: String = "", maxEventBytes: Int = 16 << 20, keepsComments: Bool = false) {
        self.lastEventID = lastEventID
        self.maxEventBytes = min(max(0, maxEventBytes), Self.pieceSize)
        self.keepsComments = keepsComments
        block = OpenBlock(limit: self.maxEventBytes, keepsComments: keepsComments)
    }

    /// Reads a chunk.
    ///
    /// Once the visitor has said to stop, or an error was thrown, the parser is spent and ignores everything.
    ///
    /// - Parameters:
    ///   - chunk: The stream's next bytes, cut anywhere: inside a line, a CR LF or a UTF-8 sequence. Copied where
    ///     something of them is kept.
    ///   - visitor: Is told what the chunk completes, in the order of the stream, before this returns or throws.
    /// - Throws: When something is over `maxEventBytes`, after everything before it was reported.
    public mutating func parse<Visitor: EventStreamVisitor>(
        _ chunk: RawSpan,
        to visitor: inout Visitor
    ) throws(EventStreamError) {
        var start = 0
        while start < chunk.byteCount {
            let end = min(chunk.byteCount, start + Self.pieceSize)
            try parse(piece: chunk.extracting(start..<end), to: &visitor)
            start = end
        }
    }

    /// Reads a chunk and returns the events it completes.
    ///
    /// - Parameter bytes: The stream's next bytes, cut anywhere.
    /// - Returns: The events, in order. Their data may share a buffer.
    /// - Throws: When something is over `maxEventBytes`. The events before it in the chunk are lost; a visitor has them.
    public mutating func parse(_ bytes: [UInt8]) throws(EventStreamError) -> [ServerSentEvent] {
        var collector = Collector()
        try bytes.withRawSpan { chunk throws(EventStreamError) in
            try parse(chunk, to: &collector)
        }
        return collector.events
    }

    /// Ends the stream and the parser.
    ///
    /// - Returns: Whether half an event was discarded: the stream ended in a block that had data, an event type or an
    ///   ID, or inside a line that was or could have become one of these. False where the parser was spent before.
    public mutating func finish() -> Bool {
        guard !isSpent else { return false }
        let losesHalf = isInBlock && block.hasPartOfEvent
        spend()
        return losesHalf
    }

    /// Nothing more is read, and nothing more is held.
    private mutating func spend() {
        isSpent = true
        block = OpenBlock(limit: maxEventBytes, keepsComments: keepsComments)
    }

    private mutating func parse<Visitor: EventStreamVisitor>(
        piece chunk: RawSpan,
        to visitor: inout Visitor
    ) throws(EventStreamError) {
        guard !isSpent, !chunk.isEmpty else { return }
        var position = 0
        passStart(of: chunk, &position)
        var ends = LineEnds()
        while position < chunk.byteCount {
            if isInBlock {
                guard let notice = try readOpenBlock(chunk, &position, &ends) else { return }
                guard report(notice, to: &visitor) else { return spend() }
            } else {
                guard readBlocks(chunk, &position, &ends, to: &visitor) else { return spend() }
            }
        }
    }

    /// Reads whole blocks, to the first that is not or the chunk's end; false where the visitor stops.
    private mutating func readBlocks<Visitor: EventStreamVisitor>(
        _ chunk: RawSpan,
        _ position: inout Int,
        _ ends: inout LineEnds,
        to visitor: inout Visitor
    ) -> Bool {
        let goesOn =
            Visitor.looks
            ? lookAtPlainBlocks(chunk, &position, &ends, to: &visitor)
            : readPlainBlocks(chunk, &position, &ends, to: &visitor)
        guard goesOn else { return false }
        guard position < chunk.byteCount else { return true }
        var batch = BlockBatch()
        repeat {
            position = batch.read(
                chunk,
                from: position,
                ends: &ends,
                limit: maxEventBytes,
                keepsComments: keepsComments
            )
            guard batch.records.isEmpty || report(&batch, of: chunk, to: &visitor) else { return false }
        } while batch.isFull
        skipsLineFeed = batch.endsInReturn && position == chunk.byteCount
        isInBlock = position < chunk.byteCount
        return true
    }

    /// Reads blocks of the plain shape, as far as they go; false where the visitor stops.
    ///
    /// Their events share one copy of the rest of the chunk: its bytes are copied at once, the few between the data with
    /// them, and nothing is noted down between finding an event and reporting it.
    private mutating func readPlainBlocks<Visitor: EventStreamVisitor>(
        _ chunk: RawSpan,
        _ position: inout Int,
        _ ends: inout LineEnds,
        to visitor: inout Visitor
    ) -> Bool {
        let limit = min(maxEventBytes, BlockBatch.ownBufferSize - 1)
        guard var plain = PlainBlock(chunk, at: position, &ends, limit: limit) else { return true }
        let first = UInt32(truncatingIfNeeded: position)
        let bytes = chunk.copy(from: position, count: min(chunk.byteCount - position, Self.sharedSize))
        let end = position + bytes.count
        while true {
            let name = plain
            let prefix = plain.prefix(of: chunk, from: position)
            let shared = EventBlock(bytes: bytes, label(Int(name.typeStart), Int(name.typeCount), of: chunk))
            var run = ServerSentEventRun(block: shared, offset: first)
            repeat {
                position = plain.next
                guard
                    visitor.event(
                        ServerSentEvent(block: shared, start: plain.start - first, count: plain.count, label: 0)
                    )
                else { return false }
                repeat {
                    position = run.read(chunk, from: position, to: end, like: prefix, &ends, limit: limit)
                    guard run.count == 0 || visitor.events(run) else { return false }
                } while run.isFull
                guard let next = PlainBlock(chunk, at: position, &ends, limit: limit),
                    Int(next.start + next.count) <= end
                else { return true }
                plain = next
            } while plain.hasSameType(as: name, in: chunk)
        }
    }

    /// Has blocks of the plain shape looked at, as far as they go; false where the visitor stops.
    ///
    /// An event that is made has its data to itself: a visitor that looks makes few.
    private mutating func lookAtPlainBlocks<Visitor: EventStreamVisitor>(
        _ chunk: RawSpan,
        _ position: inout Int,
        _ ends: inout LineEnds,
        to visitor: inout Visitor
    ) -> Bool {
        guard var plain = PlainBlock(chunk, at: position, &ends, limit: maxEventBytes) else { return true }
        while true {
            let prefix = plain.prefix(of: chunk, from: position)
            position = plain.next
            if visitor.look(at: chunk.extracting(plain.data), type: chunk.extracting(plain.type)) {
                let data = chunk.copy(from: Int(plain.start), count: Int(plain.count))
                let label = label(Int(plain.typeStart), Int(plain.typeCount), of: chunk)
                let block = EventBlock(bytes: data, label)
                guard visitor.event(ServerSentEvent(block: block, start: 0, count: plain.count, label: 0)) else {
                    return false
                }
            }
            guard
                let next = PlainBlock(chunk, at: position, like: prefix, &ends, limit: maxEventBytes)
                    ?? PlainBlock(chunk, at: position, &ends, limit: maxEventBytes)
            else { return true }
            plain = next
        }
    }

    /// What a block with an `event` field, or an empty one, is called.
    private func label(_ typeStart: Int, _ typeCount: Int, of chunk: RawSpan) -> EventLabel {
        EventLabel(
            type: typeCount == 0 ? "message" : chunk.text(from: typeStart, count: typeCount),
            lastEventID: lastEventID
        )
    }

    /// Passes what may stand before the chunk's first line or block: a BOM, and an LF that belongs to a CR.
    @inline(__always)
    private mutating func passStart(of chunk: RawSpan, _ position: inout Int) {
        if markCount < 3 { passMark(of: chunk, &position) }
        if skipsLineFeed {
            skipsLineFeed = false
            if chunk.byte(position) == UInt8(ascii: "\n") { position += 1 }
        }
    }

    /// Passes one BOM (9.2.5: "one leading U+FEFF BYTE ORDER MARK character must be ignored if any are present").
    private mutating func passMark(of chunk: RawSpan, _ position: inout Int) {
        while markCount < 3, position < chunk.byteCount {
            let mark: UInt32 = 0xBF_BBEF
            if chunk.byte(position) == UInt8(truncatingIfNeeded: mark >> UInt32(8 * markCount)) {
                markCount += 1
                position += 1
            } else {
                // Half a BOM is the beginning of a line that is no field's.
                if markCount > 0 {
                    block.skipLine()
                    isInBlock = true
                }
                markCount = 3
            }
        }
    }

    private mutating func readOpenBlock(
        _ chunk: RawSpan,
        _ position: inout Int,
        _ ends: inout LineEnds
    ) throws(EventStreamError) -> OpenBlock.Notice? {
        do {
            let notice = try block.read(chunk, from: &position, ends: &ends)
            skipsLineFeed = block.endsInReturn
            switch notice {
            case .event, .end: isInBlock = false
            case .retry, .comment, nil: break
            }
            return notice
        } catch {
            spend()
            throw error
        }
    }

    /// Reports what the open block says; false where the visitor stops.
    private mutating func report<Visitor: EventStreamVisitor>(
        _ notice: OpenBlock.Notice,
        to visitor: inout Visitor
    ) -> Bool {
        switch notice {
        case .event:
            if Visitor.looks, !looks(&visitor) {
                lastEventID = block.dropEvent(lastEventID: lastEventID)
                return true
            }
            let event = block.takeEvent(lastEventID: lastEventID)
            lastEventID = event.lastEventID
            return visitor.event(event)
        case .end(let id, let type):
            if let id, !id.hasSameBytes(as: lastEventID) {
                lastEventID = id
                guard visitor.lastEventIDMoved(to: id) else { return false }
            }
            return type.map { visitor.blockWithoutData(type: $0) } ?? true
        case .retry(let duration):
            retry = duration
            return visitor.retryChanged(to: duration)
        case .comment(let comment):
            return visitor.comment(comment)
        }
    }

    /// Reports what the whole blocks of a chunk say; false where the visitor stops.
    private mutating func report<Visitor: EventStreamVisitor>(
        _ batch: inout BlockBatch,
        of chunk: RawSpan,
        to visitor: inout Visitor
    ) -> Bool {
        batch.nameBlocks(of: chunk, lastEventID: lastEventID)
        // A visitor that looks makes few: each has its data to itself.
        let bytes = Visitor.looks ? [] : chunk.gather(batch)
        let shared = EventBlock(bytes: bytes, batch.firstLabel, others: batch.otherLabels)
        // The label reported last: what the last event ID string is when the visitor stops.
        var lastLabel: UInt32?
        defer { if let lastLabel { lastEventID = shared[lastLabel].lastEventID } }
        var offset: UInt32 = 0
        for record in batch.records {
            switch record.kind {
            case .event:
                lastLabel = record.label
                if Visitor.looks, !visitor.looks(at: record, of: batch, in: chunk) { continue }
                let event: ServerSentEvent
                if record.sharesBuffer, !Visitor.looks {
                    event = ServerSentEvent(block: shared, start: offset, count: record.count, label: record.label)
                    offset += record.count
                } else {
                    let count = Int(record.count)
                    let data =
                        record.lineCount == 1
                        ? chunk.copy(from: Int(record.start), count: count)
                        : chunk.join(batch.lines[record.lineRange], count: count)
                    event = ServerSentEvent(
                        block: EventBlock(bytes: data, shared[record.label]),
                        start: 0,
                        count: record.count,
                        label: 0
                    )
                }
                guard visitor.event(event) else { return false }
            case .block:
                if record.hasID {
                    let before = lastLabel.map { shared[$0].lastEventID } ?? lastEventID
                    lastLabel = record.label
                    let id = shared[record.label].lastEventID
                    if !id.hasSameBytes(as: before) {
                        guard visitor.lastEventIDMoved(to: id) else { return false }
                    }
                }
                if record.typeCount > 0 {
                    guard visitor.blockWithoutData(type: shared[record.label].type) else { return false }
                }
            case .retry:
                let value = RetryValue(chunk, from: Int(record.start), to: Int(record.start + record.count))
                guard let duration = value.duration else { continue }
                retry = duration
                guard visitor.retryChanged(to: duration) else { return false }
            case .comment:
                let comment = chunk.copy(from: Int(record.start), count: Int(record.count))
                guard visitor.comment(EventData(comment)) else { return false }
            }
        }
        return true
    }

    /// Looks at the open block's event; whether it is to be made.
    private func looks<Visitor: EventStreamVisitor>(_ visitor: inout Visitor) -> Bool {
        block.withEvent { data, type in visitor.look(at: data, type: type) }
    }

    /// Keeps events and nothing else.
    private struct Collector: EventStreamVisitor {
        var events: [ServerSentEvent] = []

        mutating func event(_ event: ServerSentEvent) -> Bool {
            events.append(event)
            return true
        }
    }
}

extension EventStreamVisitor {
    /// Looks at a record of a batch; whether it is to be made.
    fileprivate mutating func looks(at record: BlockBatch.Record, of batch: borrowing BlockBatch, in chunk: RawSpan)
        -> Bool
    {
        let type = chunk.extracting(Int(record.typeStart)..<Int(record.typeStart + record.typeCount))
        if record.lineCount == 1 {
            return look(at: chunk.extracting(Int(record.start)..<Int(record.start + record.count)), type: type)
        }
        let data = chunk.join(batch.lines[record.lineRange], count: Int(record.count))
        return data.withRawSpan { look(at: $0, type: type) }
    }
}
