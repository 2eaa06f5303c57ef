/// Takes what a parser reads, in the order of the stream.
///
/// Each method says whether the parser goes on. After false nothing more of the stream is read, the rest of the chunk
/// included.
public protocol EventStreamVisitor {
    /// An event was dispatched.
    ///
    /// It is the visitor's: one that keeps it takes it without a copy.
    mutating func event(_ event: consuming ServerSentEvent) -> Bool

    /// A block ended that had an `event` field and no data. The standard dispatches nothing for it.
    mutating func blockWithoutData(type: String) -> Bool

    /// The last event ID string moved without an event, at the end of a block without data.
    mutating func lastEventIDMoved(to id: String) -> Bool

    /// A `retry` field of digits alone was read.
    mutating func retryChanged(to retry: Duration) -> Bool

    /// A comment line was read: all after its colon. Called only by a parser that keeps comments.
    mutating func comment(_ comment: EventData) -> Bool
}

extension EventStreamVisitor {
    /// Goes on.
    public mutating func blockWithoutData(type: String) -> Bool { true }

    /// Goes on.
    public mutating func lastEventIDMoved(to id: String) -> Bool { true }

    /// Goes on.
    public mutating func retryChanged(to retry: Duration) -> Bool { true }

    /// Goes on.
    public mutating func comment(_ comment: EventData) -> Bool { true }
}
