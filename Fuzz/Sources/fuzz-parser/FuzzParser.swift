// Any bytes, in any cutting, come to the same; nothing reported is over the limit; nothing traps.
//
// An input's first four bytes are the limit, whether comments are kept, and the seed of the cuttings; the rest is the
// stream.

import CurlSSETransport

/// All that a stream comes to.
struct Outcome: Equatable, EventStreamVisitor {
    enum Happening: Equatable {
        case event(ServerSentEvent)
        case blockWithoutData(String)
        case idMoved(String)
        case retry(Duration)
        case comment(EventData)
    }

    var happenings: [Happening] = []
    var lastEventID = ""
    var retry: Duration?
    var halfEventDiscarded = false
    var error: EventStreamError?

    mutating func event(_ event: consuming ServerSentEvent) -> Bool {
        happenings.append(.event(event))
        return true
    }

    mutating func blockWithoutData(type: String) -> Bool {
        happenings.append(.blockWithoutData(type))
        return true
    }

    mutating func lastEventIDMoved(to id: String) -> Bool {
        happenings.append(.idMoved(id))
        return true
    }

    mutating func retryChanged(to retry: Duration) -> Bool {
        happenings.append(.retry(retry))
        return true
    }

    mutating func comment(_ comment: EventData) -> Bool {
        happenings.append(.comment(comment))
        return true
    }

    /// Reads a stream in chunks whose sizes `size` says.
    init(of stream: UnsafeRawBufferPointer, limit: Int, keepsComments: Bool, chunks size: () -> Int) {
        var outcome = Outcome()
        let parser = EventStreamParser(maxEventBytes: limit, keepsComments: keepsComments)
        let end = read(stream, by: parser, to: &outcome, chunks: size)
        outcome.end(end)
        self = outcome
    }

    /// Reads it by a visitor that looks at each event first.
    init(lookingAt stream: UnsafeRawBufferPointer, limit: Int, keepsComments: Bool, chunks size: () -> Int) {
        var looker = Looker()
        let parser = EventStreamParser(maxEventBytes: limit, keepsComments: keepsComments)
        let end = read(stream, by: parser, to: &looker, chunks: size)
        looker.outcome.end(end)
        self = looker.outcome
    }

    fileprivate init() {}

    private mutating func end(_ end: (parser: EventStreamParser, error: EventStreamError?)) {
        var parser = end.parser
        error = end.error
        lastEventID = parser.lastEventID
        retry = parser.retry
        halfEventDiscarded = parser.finish()
    }

    /// Whether everything reported keeps the limit.
    ///
    /// Text may be three times as long: a byte becomes U+FFFD.
    func keeps(_ limit: Int) -> Bool {
        happenings.allSatisfy { happening in
            switch happening {
            case .event(let event):
                event.data.count <= limit && event.type.utf8.count <= max(7, 3 * limit)
                    && event.lastEventID.utf8.count <= 3 * limit
            case .blockWithoutData(let type): type.utf8.count <= 3 * limit
            case .idMoved(let id): id.utf8.count <= 3 * limit
            case .retry(let duration): duration >= .zero
            case .comment(let comment): comment.count <= limit
            }
        }
    }
}

/// Looks at each event, and wants it.
struct Looker: EventStreamVisitor {
    static var looks: Bool { true }

    var outcome = Outcome()
    private var data: [UInt8]?

    mutating func look(at data: RawSpan, type: RawSpan) -> Bool {
        precondition(self.data == nil, "an event that was wanted was not made")
        self.data = data.withUnsafeBytes { Array($0) }
        return true
    }

    mutating func event(_ event: consuming ServerSentEvent) -> Bool {
        precondition(data == Array(event.data.bytes), "an event is not what was looked at")
        data = nil
        return outcome.event(event)
    }

    mutating func blockWithoutData(type: String) -> Bool { outcome.blockWithoutData(type: type) }
    mutating func lastEventIDMoved(to id: String) -> Bool { outcome.lastEventIDMoved(to: id) }
    mutating func retryChanged(to retry: Duration) -> Bool { outcome.retryChanged(to: retry) }
    mutating func comment(_ comment: EventData) -> Bool { outcome.comment(comment) }
}

/// Feeds a stream to a parser in chunks.
private func read(
    _ stream: UnsafeRawBufferPointer,
    by parser: EventStreamParser,
    to visitor: inout some EventStreamVisitor,
    chunks size: () -> Int
) -> (parser: EventStreamParser, error: EventStreamError?) {
    var parser = parser
    var error: EventStreamError?
    var start = 0
    while start < stream.count {
        let end = min(stream.count, start + max(1, size()))
        do {
            try parser.parse(UnsafeRawBufferPointer(rebasing: stream[start..<end]).bytes, to: &visitor)
        } catch let thrown {
            error = thrown
        }
        start = end
    }
    return (parser, error)
}

/// libFuzzer's entry: 0 for "keep what this input found".
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count >= 4 else { return 0 }
    let stream = UnsafeRawBufferPointer(start: bytes + 4, count: count - 4)
    let limit = bytes[0] < 0x80 ? Int(bytes[0]) : 16 << 20
    let keepsComments = bytes[1] % 2 == 0
    var state = UInt32(bytes[2]) << 8 | UInt32(bytes[3])

    let whole = Outcome(of: stream, limit: limit, keepsComments: keepsComments) { stream.count }
    let drip = Outcome(of: stream, limit: limit, keepsComments: keepsComments) { 1 }
    func random() -> Int {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 40
    }
    let cut = Outcome(of: stream, limit: limit, keepsComments: keepsComments, chunks: random)
    let looked = Outcome(lookingAt: stream, limit: limit, keepsComments: keepsComments, chunks: random)

    precondition(whole == drip, "byte by byte differs")
    precondition(whole == cut, "a cutting differs")
    precondition(whole == looked, "a look makes a difference")
    precondition(whole.keeps(limit), "over the limit")
    return 0
}
