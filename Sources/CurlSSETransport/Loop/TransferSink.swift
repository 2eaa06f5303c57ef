// The bytes of one open stream to payloads, on the loop's thread: parser, dialect and channel put together.

internal import SubscriptionRuntime

/// What became of a chunk.
enum SinkVerdict {
    /// Read; payloads may be pending.
    case taken
    /// Read as far as it counts: the stream is over.
    case ended(SinkEnding)
}

/// Why a stream is over by what it said.
enum SinkEnding {
    case completed
    case failed(DialectFailure)
}

/// Takes the body of one response.
///
/// Called on the loop's thread; `cancel` by any.
protocol TransferSink: AnyObject {
    /// Reads the body's next bytes.
    func read(_ chunk: RawSpan) -> SinkVerdict

    /// Whether there is room; when not, the stream is to be held back until `LoopCommand.resume` comes.
    func hasRoom() -> Bool

    /// Whether the reader is gone.
    var isAbandoned: Bool { get }

    /// The body has ended.
    ///
    /// - Returns: Whether half an event is discarded with its end.
    func finish() -> Bool

    /// Hands over what is pending.
    ///
    /// - Returns: Who waits for it on the pool, to be resumed.
    func flush() -> Waiter?

    /// The stream ended; hands over what is pending first.
    func end(_ ending: StreamEnding)

    /// The last `retry` of the stream, where its dialect heeds it.
    var retry: Duration? { get }

    /// How much was read, for the counters.
    var payloadCount: Int { get }
}

/// Reads one response by a dialect.
final class StreamSink<D: Dialect>: TransferSink {
    /// A segment has so many payloads at most: half an owner's default limit, which is what the runtime asks for at most.
    static var segmentCount: Int { 128 }

    private let channel: PayloadChannel<D.Payload>
    private var handOver: HandOverMark
    private var parser: EventStreamParser
    private var reader: D.Reader
    private var pending = PendingSegments<D.Payload>()
    private var position: StreamPosition
    private let resumes: Bool
    private let onComment: (@Sendable (String) -> Void)?
    private(set) var payloadCount = 0

    /// A sink for one response.
    ///
    /// - Parameters:
    ///   - dialect: Makes the reader.
    ///   - channel: Where payloads go.
    ///   - position: Where the stream before was left.
    ///   - maxEventBytes: The parser's limit.
    ///   - onComment: Called for each comment line.
    init(
        dialect: D,
        channel: PayloadChannel<D.Payload>,
        position: StreamPosition,
        maxEventBytes: Int,
        onComment: (@Sendable (String) -> Void)?
    ) {
        self.channel = channel
        handOver = HandOverMark(highWater: channel.highWater)
        parser = EventStreamParser(
            lastEventID: position.lastEventID,
            maxEventBytes: maxEventBytes,
            keepsComments: onComment != nil
        )
        reader = dialect.makeReader()
        self.position = position
        resumes = dialect.resumes
        self.onComment = onComment
    }

    var retry: Duration? { resumes ? position.retry : nil }

    @specialized(where D == EventSource)
    @specialized(where D == GraphQLSSE)
    func read(_ chunk: RawSpan) -> SinkVerdict { parse(chunk) }

    /// Not inlined: what it needs where the dialect is not known would be looked up where it is, too.
    @inline(never)
    private func parse(_ chunk: RawSpan) -> SinkVerdict {
        // Moved out for the length of the chunk: the parser's loop works on locals, without exclusivity checks.
        var visitor = SinkVisitor<D>(
            reader: reader,
            pending: pending,
            position: position,
            resumes: resumes,
            onComment: onComment,
            channel: channel,
            handOver: handOver
        )
        pending = PendingSegments()
        var failure: DialectFailure?
        do {
            try parser.parse(chunk, to: &visitor)
        } catch {
            failure = DialectFailure(kind: .network, message: "\(error)")
        }
        reader = visitor.reader
        pending = visitor.pending
        position = visitor.position
        payloadCount += visitor.count
        handOver = visitor.handOver
        // What came before the end goes out by `end`.
        if let ending = visitor.ending { return .ended(ending) }
        if let failure { return .ended(.failed(failure)) }
        return .taken
    }

    @specialized(where D == EventSource)
    @specialized(where D == GraphQLSSE)
    func hasRoom() -> Bool {
        guard handOver.isFull(with: pending.bytes) else { return true }
        handOver.found(room: channel.room)
        guard handOver.isFull(with: pending.bytes) else { return true }
        // Pending payloads are not in the channel yet, and would wait for its reader too.
        flush()?.resume()
        return !channel.hold()
    }

    var isAbandoned: Bool { channel.isAbandoned }

    func finish() -> Bool { parser.finish() }

    @specialized(where D == EventSource)
    @specialized(where D == GraphQLSSE)
    func flush() -> Waiter? {
        guard !pending.isEmpty else { return nil }
        var segments = pending.takeAll()
        let (room, reader) = channel.append(&segments)
        handOver.found(room: room)
        return reader
    }

    func end(_ ending: StreamEnding) {
        flush()?.resume()
        channel.end(ending)
    }
}

/// Takes a chunk's events: each through the dialect, into a segment.
private struct SinkVisitor<D: Dialect>: EventStreamVisitor {
    /// What a payload costs beside its bytes, about: keeps a stream of tiny events within the bound.
    private static var overhead: Int { 64 }

    var reader: D.Reader
    var pending: PendingSegments<D.Payload>
    var position: StreamPosition
    let resumes: Bool
    let onComment: (@Sendable (String) -> Void)?
    let channel: PayloadChannel<D.Payload>
    var handOver: HandOverMark
    var ending: SinkEnding?
    /// The event whose ID is the position's.
    var labelled: ServerSentEvent?
    var count = 0

    @inline(__always)
    mutating func event(_ event: consuming ServerSentEvent) -> Bool {
        let count = Int(event.count)
        let moves = resumes && !(labelled?.sharesLabel(with: event) ?? false) && hasMoved(event)
        let goesOn = take(reader.read(event), bytes: count)
        // After the payload: a position counts once what came before it was taken.
        if moves { pending.last.moved(to: position) }
        let isWhole = pending.last.payloads.count >= StreamSink<D>.segmentCount
        if isWhole { pending.close() }
        if handOver.isReached(by: pending.bytes, inWholeSegments: isWhole) { handOverPending() }
        return goesOn
    }

    /// What fits into a segment goes there together: all but the first, which has the label, and the one that closes the
    /// segment.
    ///
    /// Whether there is enough to be handed over is asked with those two alone: a run is of 16 KiB of the chunk at most.
    mutating func events(_ events: borrowing ServerSentEventRun) -> Bool {
        var index = 0
        while index < events.count {
            guard event(events[index]) else { return false }
            index += 1
            let room = StreamSink<D>.segmentCount - 1 - pending.last.payloads.count
            let end = min(events.count, index + room)
            if let other = append(events, from: &index, to: end), !take(other, bytes: 0) { return false }
        }
        return true
    }

    /// Appends the payloads of events to the segment, up to one that is none.
    ///
    /// - Returns: What that one is instead.
    @inline(__always)
    private mutating func append(
        _ events: borrowing ServerSentEventRun,
        from index: inout Int,
        to end: Int
    ) -> Reading<D.Payload>? {
        guard index < end else { return nil }
        var reader = reader
        var other: Reading<D.Payload>?
        let start = index
        pending.append(atMost: end - index) { payloads in
            var bytes = 0
            while index < end {
                let event = events[index]
                index += 1
                let count = Int(event.count)
                switch reader.read(event) {
                case .payload(let payload):
                    bytes += count + Self.overhead
                    payloads.append(payload)
                case let reading:
                    other = reading
                    return bytes
                }
            }
            return bytes
        }
        self.reader = reader
        count += index - start - (other == nil ? 0 : 1)
        return other
    }

    /// Whether an event of another label has moved the position; not inlined, as most events of a chunk have one label.
    @inline(never)
    private mutating func hasMoved(_ event: ServerSentEvent) -> Bool {
        labelled = event
        guard !event.lastEventID.hasSameBytes(as: position.lastEventID) else { return false }
        position.lastEventID = event.lastEventID
        return true
    }

    /// Not inlined: once in hundreds of events.
    @inline(never)
    private mutating func handOverPending() {
        var segments = pending.takeAll()
        let (room, reader) = channel.append(&segments)
        handOver.found(room: room)
        reader?.resume()
    }

    mutating func blockWithoutData(type: String) -> Bool {
        take(reader.readBlockWithoutData(type: type), bytes: 0)
    }

    mutating func lastEventIDMoved(to id: String) -> Bool {
        guard resumes, !id.hasSameBytes(as: position.lastEventID) else { return true }
        labelled = nil
        position.lastEventID = id
        pending.last.moved(to: position)
        return true
    }

    mutating func retryChanged(to retry: Duration) -> Bool {
        guard resumes, retry != position.retry else { return true }
        position.retry = retry
        pending.last.moved(to: position)
        return true
    }

    mutating func comment(_ comment: EventData) -> Bool {
        guard let onComment else { return true }
        // A reader that is gone hears of nothing more, not even of what was read with the rest.
        guard !channel.isAbandoned else { return false }
        onComment(comment.text)
        return true
    }

    @inline(__always)
    private mutating func take(_ reading: consuming Reading<D.Payload>, bytes: Int) -> Bool {
        switch reading {
        case .payload(let payload):
            pending.append(payload, bytes: bytes + Self.overhead)
            count += 1
            return true
        case .nothing:
            return true
        case .completed:
            ending = .completed
            return false
        case .failure(let failure):
            ending = .failed(failure)
            return false
        }
    }
}
