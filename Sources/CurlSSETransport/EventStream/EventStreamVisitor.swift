/// Takes what a parser reads, in the order of the stream.
///
/// Each method but ``look(at:type:)`` says whether the parser goes on. After false nothing more of the stream is read, the
/// rest of the chunk included.
public protocol EventStreamVisitor {
    /// Whether the parser asks for each event whether to make it. Default: false; every event is made.
    static var looks: Bool { get }

    /// An event is about to be dispatched: whether to make it.
    ///
    /// Called only by a visitor of a type that ``looks``, before each ``event(_:)``. An event that is made is copied, as it
    /// outlives its chunk; one that a look is enough for, to count or to filter, is copied only where a chunk cuts it or it
    /// has several `data` lines. The last event ID string moves all the same. Default: true.
    ///
    /// - Parameters:
    ///   - data: The `data` lines, joined by LF: the chunk's own bytes where there is one line.
    ///   - type: The `event` field; empty for none, which is `message`.
    /// - Returns: Whether the event is to be made, and comes next.
    mutating func look(at data: RawSpan, type: RawSpan) -> Bool

    /// An event was dispatched.
    ///
    /// It is the visitor's: one that keeps it takes it without a copy.
    mutating func event(_ event: consuming ServerSentEvent) -> Bool

    /// Events were dispatched, one after the other: called in place of ``event(_:)`` for some of those that were found
    /// together.
    ///
    /// Default: ``event(_:)`` is called with each. A visitor that keeps them saves what keeping one by one costs.
    mutating func events(_ events: borrowing ServerSentEventRun) -> Bool

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
    /// Every event is made.
    @inlinable
    public static var looks: Bool { false }

    /// The event is made.
    @inlinable
    public mutating func look(at data: RawSpan, type: RawSpan) -> Bool { true }

    /// Calls ``event(_:)`` with each, until it says false.
    @inlinable
    public mutating func events(_ events: borrowing ServerSentEventRun) -> Bool {
        for index in 0..<events.count where !event(events[index]) { return false }
        return true
    }

    /// Goes on.
    public mutating func blockWithoutData(type: String) -> Bool { true }

    /// Goes on.
    public mutating func lastEventIDMoved(to id: String) -> Bool { true }

    /// Goes on.
    public mutating func retryChanged(to retry: Duration) -> Bool { true }

    /// Goes on.
    public mutating func comment(_ comment: EventData) -> Bool { true }
}
