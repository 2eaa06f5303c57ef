// What was read and not yet taken. Pure: the channel of the loop guards it by its lock.

/// Payloads that were read together, and where the stream stood among them.
struct PayloadSegment<Payload: Sendable>: Sendable {
    /// In order.
    var payloads: [Payload] = []

    /// What the payloads hold in memory, about.
    var bytes = 0

    /// Where the stream stood once the first `after` payloads were taken, in rising order, each until the next.
    var positions: [(after: Int, position: StreamPosition)] = []

    /// Whether there is nothing in it.
    var isEmpty: Bool { payloads.isEmpty && positions.isEmpty }

    /// The stream moved to a position.
    mutating func moved(to position: StreamPosition) {
        if let last = positions.last, last.after == payloads.count { positions.removeLast() }
        positions.append((payloads.count, position))
    }
}

/// Segments that were read and not yet handed over.
struct PendingSegments<Payload: Sendable>: Sendable {
    private var closed: [PayloadSegment<Payload>] = []

    /// The segment that payloads are added to.
    var last = PayloadSegment<Payload>()

    /// What all of it holds in memory, about.
    private(set) var bytes = 0

    /// Whether there is nothing to hand over.
    var isEmpty: Bool { closed.isEmpty && last.isEmpty }

    /// Adds a payload.
    mutating func append(_ payload: consuming Payload, bytes count: Int) {
        last.payloads.append(payload)
        last.bytes += count
        bytes += count
    }

    /// Adds payloads, at most so many.
    ///
    /// - Parameters:
    ///   - most: How many.
    ///   - add: Appends them, and returns what they hold in memory, about.
    @inline(__always)
    mutating func append(atMost most: Int, _ add: (inout OutputSpan<Payload>) -> Int) {
        var added = 0
        last.payloads.append(addingCapacity: most) { added = add(&$0) }
        last.bytes += added
        bytes += added
    }

    /// Begins another segment, which is expected to become as long.
    mutating func close() {
        let count = last.payloads.count
        closed.append(last)
        last = PayloadSegment()
        last.payloads.reserveCapacity(count)
    }

    /// Takes everything.
    mutating func takeAll() -> [PayloadSegment<Payload>] {
        if !last.isEmpty { closed.append(last) }
        defer { self = PendingSegments() }
        return closed
    }
}

/// A queue of segments, bounded in bytes.
///
/// Full at the high water and not before: the chunk that passes it is still taken, so it holds at most the high water
/// and what one chunk makes. It stays full until half of it has been taken, so that a stream is not held back and let
/// go by turns.
struct PayloadBuffer<Payload: Sendable>: Sendable {
    private let highWater: Int
    private var segments: [PayloadSegment<Payload>?] = []
    private var head = 0
    private(set) var bytes = 0

    /// An empty buffer that is full at so many bytes, at least 1.
    init(highWater: Int) {
        self.highWater = highWater
    }

    /// Whether there is no payload and no position.
    var isEmpty: Bool { head == segments.count }

    /// How many bytes more it takes before it is full; not above 0 once it is.
    var room: Int { highWater - bytes }

    /// Whether no more is to be read.
    var isFull: Bool { room <= 0 }

    /// Whether reading may go on after the buffer was full.
    var isLow: Bool { bytes <= highWater / 2 }

    /// Adds what was read.
    mutating func append(_ segment: PayloadSegment<Payload>) {
        guard !segment.isEmpty else { return }
        bytes += segment.bytes
        // A stream that only moves adds nothing: the last position of a run without payloads holds alone.
        if segment.payloads.isEmpty, !isEmpty, let position = segment.positions.last?.position,
            let last = segments.indices.last, segments[last] != nil
        {
            segments[last]?.moved(to: position)
            return
        }
        segments.append(segment)
    }

    /// Takes the oldest segment; nil for none.
    mutating func take() -> PayloadSegment<Payload>? {
        guard head < segments.count, let segment = segments[head] else { return nil }
        segments[head] = nil
        head += 1
        if head == segments.count {
            segments.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 32, head * 2 > segments.count {
            segments.removeFirst(head)
            head = 0
        }
        bytes -= segment.bytes
        return segment
    }

    /// Drops everything.
    mutating func removeAll() {
        segments = []
        head = 0
        bytes = 0
    }
}
