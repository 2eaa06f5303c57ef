/// One event that an event stream dispatched (WHATWG HTML 9.2.6).
public struct ServerSentEvent: Hashable, Sendable {
    /// The `event` field; `message` where the block had none.
    public var type: String

    /// The `data` lines, joined by LF.
    public var data: EventData

    /// The last event ID string at the dispatch: the last `id` field of the stream, of this block or one before it.
    public var lastEventID: String

    /// Makes an event.
    public init(type: String = "message", data: EventData, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}

/// Bytes as the server sent them, a slice of a buffer that neighbouring events may share.
///
/// Whoever keeps one for long keeps ``detached()`` instead, which holds no more than twice its own bytes.
public struct EventData: Sendable {
    /// The shared buffer.
    @usableFromInline let buffer: [UInt8]
    @usableFromInline let start: Int

    /// How many bytes.
    public let count: Int

    @inlinable
    init(buffer: [UInt8], start: Int, count: Int) {
        self.buffer = buffer
        self.start = start
        self.count = count
    }

    /// Bytes with a buffer of their own.
    public init(_ bytes: [UInt8]) {
        self.init(buffer: bytes, start: 0, count: bytes.count)
    }

    /// The UTF-8 of the text, with a buffer of its own.
    public init(_ text: String) {
        self.init(Array(text.utf8))
    }

    /// The bytes, not copied: the slice keeps the shared buffer alive.
    public var bytes: ArraySlice<UInt8> { buffer[start..<start + count] }

    /// The bytes as text, made anew at each call; what is not UTF-8 becomes U+FFFD.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The same bytes, holding at most twice their own memory alive.
    public func detached() -> EventData {
        buffer.count <= 2 * count ? self : EventData(Array(bytes))
    }
}

extension EventData: Hashable {
    /// Whether the bytes are the same.
    public static func == (left: EventData, right: EventData) -> Bool { left.bytes == right.bytes }

    /// Feeds the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
