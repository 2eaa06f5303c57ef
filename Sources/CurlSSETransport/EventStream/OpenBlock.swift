// The block that a chunk's end cuts, assembled line by line: the parser's slow path.
//
// What is kept here is what the standard's buffers keep (WHATWG HTML 9.2.6: data buffer, event type buffer, last event
// ID buffer) and one unfinished line, so that bytes may come one at a time. Every buffer stops at the limit.
//
// Pure: no clock, no lock. Called by the parser, on its thread.

/// One block, read up to any byte of it.
struct OpenBlock: Sendable {
    /// What the block says when it, or one of its lines, is whole.
    enum Notice {
        /// The block is whole and has data, which is to be taken or dropped now.
        case event

        /// The block is whole and has none: the ID where the block has one, the type where it is not empty.
        case end(id: String?, type: String?)

        case retry(Duration)
        case comment(EventData)
    }

    /// Where in a line the next byte is.
    ///
    ///     start --> name --> afterColon --> value --> start
    ///       |         |                       ^
    ///       |         +--> skipped            |
    ///       +--> skipped or, of a comment, ---+
    private enum Place {
        case start, name, afterColon, value, skipped
    }

    /// How much of an emptied buffer's memory is kept for the next block, in bytes.
    private static let keptCapacity = 256

    /// How much of the memory of data that was dropped is kept, in bytes.
    private static let keptData = 128 << 10

    private let limit: Int
    private let keepsComments: Bool

    private var place = Place.start
    /// The field of the line, in `name`, `afterColon` and `value`.
    private var field = Field.comment
    /// How many bytes of the field's name have come, in `name`.
    private var matched = 0

    private var data: [UInt8] = []
    /// The size of the last assembled data: the next is often of that size.
    private var expectedCount = 0
    private var hasData = false
    private var type: [UInt8] = []
    private var id: [UInt8] = []
    private var hasID = false
    /// The line's value so far, of an `event` or `id` field or a comment.
    private var value: [UInt8] = []
    private var retry = RetryValue()

    /// Whether the last line ended by a CR that was its chunk's last byte: an LF that follows belongs to it.
    private(set) var endsInReturn = false

    /// An empty block.
    init(limit: Int, keepsComments: Bool) {
        self.limit = limit
        self.keepsComments = keepsComments
    }

    /// Whether the block would lose something of an event if nothing more came.
    var hasPartOfEvent: Bool {
        if hasData || hasID || !type.isEmpty { return true }
        switch place {
        case .start, .skipped: return false
        case .name, .afterColon, .value: return field != .comment && field != .retry
        }
    }

    /// The line has begun with bytes that no known field begins with.
    mutating func skipLine() {
        place = .skipped
    }

    /// Reads on, to the next notice or the chunk's end.
    ///
    /// - Parameters:
    ///   - chunk: The bytes.
    ///   - position: Where to read; moved past what was read.
    ///   - ends: Searched for positions up to this one at most.
    /// - Returns: nil at the chunk's end.
    /// - Throws: When a buffer would pass the limit.
    mutating func read(
        _ chunk: RawSpan,
        from position: inout Int,
        ends: inout LineEnds
    ) throws(EventStreamError) -> Notice? {
        endsInReturn = false
        while position < chunk.byteCount {
            let byte = chunk.byte(position)
            let isLineEnd = byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
            switch place {
            case .start where isLineEnd:
                passLineEnd(chunk, &position)
                return finishBlock()
            case .start:
                position += 1
                if byte == UInt8(ascii: ":"), keepsComments {
                    field = .comment
                    value.removeAll(keepingCapacity: true)
                    place = .value
                } else if let named = Field(firstByte: byte) {
                    field = named
                    let colon = position - 1 + named.nameCount
                    if colon < chunk.byteCount, named.isNamed(in: chunk, from: position - 1, to: colon),
                        chunk.byte(colon) == UInt8(ascii: ":")
                    {
                        position = colon + 1
                        try beginValue()
                        place = .afterColon
                    } else {
                        matched = 1
                        place = .name
                    }
                } else {
                    place = .skipped
                }
            case .name where isLineEnd:
                passLineEnd(chunk, &position)
                place = .start
                guard matched == field.nameCount else { continue }
                try beginValue()
                if let notice = finishLine() { return notice }
            case .name:
                position += 1
                if matched == field.nameCount, byte == UInt8(ascii: ":") {
                    try beginValue()
                    place = .afterColon
                } else if matched < field.nameCount, byte == field.nameByte(matched) {
                    matched += 1
                } else {
                    place = .skipped
                }
            case .afterColon:
                if byte == UInt8(ascii: " ") { position += 1 }
                place = .value
            case .value:
                let end = isLineEnd ? position : ends.next(in: chunk, from: position)
                try appendValue(chunk, from: position, to: end)
                position = end
                guard end < chunk.byteCount else { return nil }
                passLineEnd(chunk, &position)
                place = .start
                if let notice = finishLine() { return notice }
            case .skipped:
                position = isLineEnd ? position : ends.next(in: chunk, from: position)
                guard position < chunk.byteCount else { return nil }
                passLineEnd(chunk, &position)
                place = .start
            }
        }
        return nil
    }

    /// LF, CR LF or CR; a CR that is the chunk's last byte ends its line all the same.
    private mutating func passLineEnd(_ chunk: RawSpan, _ position: inout Int) {
        let isReturn = chunk.byte(position) == UInt8(ascii: "\r")
        position += 1
        guard isReturn else { return }
        if position == chunk.byteCount {
            endsInReturn = true
        } else if chunk.byte(position) == UInt8(ascii: "\n") {
            position += 1
        }
    }

    private mutating func beginValue() throws(EventStreamError) {
        switch field {
        case .data:
            if hasData {
                guard data.count < limit else { throw EventStreamError(part: .data, limit: limit) }
                data.append(UInt8(ascii: "\n"))
            }
            hasData = true
        case .retry:
            retry = RetryValue()
        case .event, .id, .comment:
            value.removeAll(keepingCapacity: true)
        }
    }

    private mutating func appendValue(_ chunk: RawSpan, from start: Int, to end: Int) throws(EventStreamError) {
        let count = end - start
        guard count > 0 else { return }
        switch field {
        case .data:
            guard count <= limit - data.count else { throw EventStreamError(part: .data, limit: limit) }
            chunk.append(from: start, to: end, onto: &data, limit: limit, expecting: expectedCount)
        case .retry:
            retry.append(chunk, from: start, to: end)
        case .event, .id, .comment:
            guard count <= limit - value.count else { throw EventStreamError(part: part, limit: limit) }
            chunk.append(from: start, to: end, onto: &value, limit: limit)
        }
    }

    /// The error's name for the line's field.
    private var part: EventStreamError.Part {
        switch field {
        case .data, .retry: .data
        case .event: .event
        case .id: .id
        case .comment: .comment
        }
    }

    /// A line is whole.
    private mutating func finishLine() -> Notice? {
        switch field {
        case .data:
            return nil
        case .event:
            swap(&type, &value)
            return nil
        case .id:
            // An ID with NUL is no ID: the field is ignored.
            guard !value.contains(0) else { return nil }
            swap(&id, &value)
            hasID = true
            return nil
        case .retry:
            return retry.duration.map(Notice.retry)
        case .comment:
            let comment = EventData(value)
            value = []
            return .comment(comment)
        }
    }

    /// An empty line: the block is whole.
    private mutating func finishBlock() -> Notice {
        if hasData { return .event }
        let notice = Notice.end(
            id: newID,
            type: type.isEmpty ? nil : String(decoding: type, as: UTF8.self)
        )
        empty()
        return notice
    }

    /// The ID of the whole block; nil where it has none.
    private var newID: String? { hasID ? String(decoding: id, as: UTF8.self) : nil }

    /// Lends the data of the whole block, and its `event` field.
    func withEvent(_ body: (RawSpan, RawSpan) -> Bool) -> Bool {
        data.withRawSpan { data in type.withRawSpan { type in body(data, type) } }
    }

    /// Takes the event of the whole block, for whose `lastEventID` the stream's is where the block has no ID.
    mutating func takeEvent(lastEventID: String) -> ServerSentEvent {
        expectedCount = data.count
        trimData()
        // The assembled buffer becomes the event's own: no copy.
        let event = ServerSentEvent(
            type: type.isEmpty ? "message" : String(decoding: type, as: UTF8.self),
            bytes: data,
            lastEventID: newID ?? lastEventID
        )
        data = []
        empty()
        return event
    }

    /// Drops the event of the whole block, and keeps the data's memory for the next where it is not large.
    ///
    /// - Returns: What the event's `lastEventID` would have been.
    mutating func dropEvent(lastEventID: String) -> String {
        expectedCount = data.count
        data.removeAll(keepingCapacity: data.capacity <= Self.keptData)
        defer { empty() }
        return newID ?? lastEventID
    }

    /// Forgets the whole block, but for its data.
    private mutating func empty() {
        hasData = false
        hasID = false
        Self.empty(&type)
        Self.empty(&id)
        Self.empty(&value)
    }

    /// Copies the data where its buffer is over twice as large: an event holds no more than that.
    private mutating func trimData() {
        guard data.capacity / 2 > max(data.count, Self.keptCapacity) else { return }
        var exact: [UInt8] = []
        exact.reserveCapacity(data.count)
        exact.append(contentsOf: data)
        data = exact
    }

    private static func empty(_ buffer: inout [UInt8]) {
        buffer.removeAll(keepingCapacity: buffer.capacity <= keptCapacity)
    }
}
