// Events of the plain shape, found some at a time before the first of them is reported. Pure.

/// Events that follow one another in a chunk and have the same type and last event ID.
public struct ServerSentEventRun: ~Copyable, Sendable {
    /// Where an event's data is in the chunk.
    private struct Place {
        let start: UInt32
        let count: UInt32
    }

    /// How many it has at most: few enough to be in a first-level cache with their data.
    private static let most = 64

    /// What they share: a copy of the chunk from an offset on, and their label.
    private let block: EventBlock
    private let offset: UInt32
    private var places: [Place] = []

    /// How many.
    public var count: Int { places.count }

    /// A run without events.
    ///
    /// - Parameters:
    ///   - block: What the events will share.
    ///   - offset: Where the chunk's bytes begin that it is a copy of.
    init(block: EventBlock, offset: UInt32) {
        self.block = block
        self.offset = offset
    }

    /// An event; the first has index 0.
    public subscript(index: Int) -> ServerSentEvent {
        let place = places[index]
        return ServerSentEvent(block: block, start: place.start, count: place.count, label: 0)
    }

    /// Whether there may be more where it ends.
    var isFull: Bool { count == Self.most }

    /// Reads blocks that begin as another of the chunk did, and forgets those before.
    ///
    /// - Parameters:
    ///   - chunk: At most 1 GiB.
    ///   - start: Where the first begins.
    ///   - end: Where the data of all has to end, at most.
    ///   - prefix: What they begin with.
    ///   - ends: Searched for positions up to this one at most.
    ///   - limit: The most bytes of an event's data.
    /// - Returns: Where the block begins that is the first not to be of the run.
    mutating func read(
        _ chunk: RawSpan,
        from start: Int,
        to end: Int,
        like prefix: PlainPrefix,
        _ ends: inout LineEnds,
        limit: Int
    ) -> Int {
        var position = start
        places.removeAll(keepingCapacity: true)
        places.append(addingCapacity: Self.most) { places in
            while places.count < Self.most,
                let block = PlainBlock(chunk, at: position, like: prefix, &ends, limit: limit),
                Int(block.start) &+ Int(block.count) <= end
            {
                places.append(Place(start: block.start &- offset, count: block.count))
                position = block.next
            }
        }
        return position
    }
}
