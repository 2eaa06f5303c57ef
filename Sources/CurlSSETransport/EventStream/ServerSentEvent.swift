/// One event that an event stream dispatched (WHATWG HTML 9.2.6).
///
/// One reference, to what it shares with its neighbours, and its place in it: passing an event on costs one count.
/// Whoever keeps one for long keeps ``detached()`` instead.
public struct ServerSentEvent: Sendable {
    /// What the event shares with its neighbours.
    @usableFromInline let block: EventBlock
    @usableFromInline let start: UInt32
    @usableFromInline let count: UInt32
    @usableFromInline let label: UInt32

    @inlinable
    init(block: EventBlock, start: UInt32, count: UInt32, label: UInt32) {
        self.block = block
        self.start = start
        self.count = count
        self.label = label
    }

    /// Makes an event.
    public init(type: String = "message", data: EventData, lastEventID: String = "") {
        self.init(
            block: EventBlock(bytes: data.block.bytes, EventLabel(type: type, lastEventID: lastEventID)),
            start: UInt32(data.start),
            count: UInt32(data.count),
            label: 0
        )
    }

    /// Makes an event whose data is all of the bytes.
    init(type: String, bytes: [UInt8], lastEventID: String) {
        self.init(
            block: EventBlock(bytes: bytes, EventLabel(type: type, lastEventID: lastEventID)),
            start: 0,
            count: UInt32(bytes.count),
            label: 0
        )
    }

    /// The `event` field; `message` where the block had none.
    @inlinable
    public var type: String {
        get { block[label].type }
        set { self = ServerSentEvent(type: newValue, data: data, lastEventID: lastEventID) }
    }

    /// The `data` lines, joined by LF.
    @inlinable
    public var data: EventData {
        get { EventData(block: block, start: Int(start), count: Int(count)) }
        set { self = ServerSentEvent(type: type, data: newValue, lastEventID: lastEventID) }
    }

    /// The last event ID string at the dispatch: the last `id` field of the stream, of this block or one before it.
    @inlinable
    public var lastEventID: String {
        get { block[label].lastEventID }
        set { self = ServerSentEvent(type: type, data: data, lastEventID: newValue) }
    }

    /// The same event, holding at most twice the memory of its own data alive.
    public func detached() -> ServerSentEvent {
        if block.isOneLabel, block.bytes.count <= 2 * Int(count) { return self }
        return ServerSentEvent(type: type, bytes: Array(data.bytes), lastEventID: lastEventID)
    }

    /// Whether type and ID are the same without a look at them: they are the same place in memory.
    @inline(__always)
    func sharesLabel(with other: ServerSentEvent) -> Bool { block === other.block && label == other.label }
}

extension ServerSentEvent: Hashable {
    /// Whether all three are the same bytes.
    public static func == (left: ServerSentEvent, right: ServerSentEvent) -> Bool {
        left.type.hasSameBytes(as: right.type) && left.lastEventID.hasSameBytes(as: right.lastEventID)
            && left.data == right.data
    }

    /// Feeds type, data and last event ID.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(data)
        hasher.combine(lastEventID)
    }
}

/// What an event is called.
@usableFromInline
struct EventLabel: Sendable {
    @usableFromInline let type: String
    @usableFromInline let lastEventID: String

    init(type: String, lastEventID: String) {
        self.type = type
        self.lastEventID = lastEventID
    }
}

/// What events that were read together share: their data, one after the other, and what they are called.
@usableFromInline
final class EventBlock: Sendable {
    @usableFromInline let bytes: [UInt8]
    @usableFromInline let first: EventLabel

    /// The labels from the second on.
    ///
    /// Few streams have more than one in a chunk, but for those that number their events.
    @usableFromInline let others: [EventLabel]

    init(bytes: [UInt8], _ first: EventLabel, others: [EventLabel] = []) {
        self.bytes = bytes
        self.first = first
        self.others = others
    }

    @inlinable
    subscript(label: UInt32) -> EventLabel {
        label == 0 ? first : others[Int(label) - 1]
    }

    /// Whether all events have one label.
    var isOneLabel: Bool { others.isEmpty }

    /// Whether it has one label, whose texts need no memory of their own.
    var hasSmallLabel: Bool {
        isOneLabel && first.type.utf8.count <= Self.smallText && first.lastEventID.utf8.count <= Self.smallText
    }

    /// A text of so many bytes is kept within its value.
    private static var smallText: Int { 15 }
}

/// Bytes as the server sent them, a slice of a buffer that neighbouring events may share.
///
/// Whoever keeps one for long keeps ``detached()`` instead, which holds no more than twice its own bytes. At most 4 GiB.
public struct EventData: Sendable {
    /// What holds them: an event's own, so that a look at its data counts no reference that the event does not.
    @usableFromInline let block: EventBlock
    @usableFromInline let start: Int

    /// How many bytes.
    public let count: Int

    @inlinable
    init(block: EventBlock, start: Int, count: Int) {
        self.block = block
        self.start = start
        self.count = count
    }

    /// Bytes with a buffer of their own.
    public init(_ bytes: [UInt8]) {
        self.init(
            block: EventBlock(bytes: bytes, EventLabel(type: "message", lastEventID: "")),
            start: 0,
            count: bytes.count
        )
    }

    /// The UTF-8 of the text, with a buffer of its own.
    public init(_ text: String) {
        self.init(Array(text.utf8))
    }

    /// The bytes, not copied: the slice keeps the shared buffer alive.
    @inlinable public var bytes: ArraySlice<UInt8> { block.bytes[start..<start + count] }

    /// The bytes as text, made anew at each call; what is not UTF-8 becomes U+FFFD.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The same bytes, holding at most twice their own memory alive.
    public func detached() -> EventData {
        block.hasSmallLabel && block.bytes.count <= 2 * count ? self : EventData(Array(bytes))
    }
}

extension EventData: Hashable {
    /// Whether the bytes are the same.
    public static func == (left: EventData, right: EventData) -> Bool { left.bytes == right.bytes }

    /// Feeds the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
