import SubscriptionRuntime
import Testing

@testable import CurlSSETransport

/// What a payload counts beside its bytes.
private let overhead = 64

/// A chunk as libcurl hands it over at most, of whole events of 48 bytes of data each.
private let chunk = Array(String(repeating: "data: \(String(repeating: "x", count: 48))\n\n", count: 292).utf8)
private let chunkCost = 292 * (48 + overhead)

/// A sink and its reader, both of them here.
private struct Pipe {
    let channel: PayloadChannel<ServerSentEvent>
    let sink: StreamSink<EventSource>
    /// What was read of the stream and not taken, as the channel counts it.
    private(set) var unread = 0
    /// The stream is held back until there is room.
    private(set) var isHeld = false

    init(highWater: Int) {
        channel = PayloadChannel(highWater: highWater)
        sink = StreamSink(
            dialect: EventSource(),
            channel: channel,
            position: StreamPosition(lastEventID: ""),
            maxEventBytes: 1 << 20,
            onComment: nil
        )
    }

    /// Reads a chunk, as a transfer does; false where the stream is to be held back before it.
    mutating func read() -> Bool {
        guard !isHeld else { return false }
        guard sink.hasRoom() else {
            isHeld = true
            return false
        }
        guard case .taken = sink.read(chunk.span.bytes) else { return false }
        unread += chunkCost
        return true
    }

    /// Takes so many segments at most.
    ///
    /// - Returns: How many there were.
    mutating func take(atMost count: Int) -> Int {
        for taken in 0..<count {
            guard case .segment(let segment)? = channel.takeIfReady(resume: { isHeld = false }) else { return taken }
            unread -= segment.payloads.reduce(0) { $0 + Int($1.count) + overhead }
        }
        return count
    }
}

/// Every third event is none of the caller's; one that says so ends the stream.
private struct Picky: Dialect {
    var resumes: Bool { true }

    func httpRequest(for request: String, resuming position: StreamPosition?) throws(TransportError) -> HTTPRequest {
        HTTPRequest(method: "GET", target: request)
    }

    func makeReader() -> Reader { Reader() }

    struct Reader: DialectReader {
        private var count = 0

        mutating func read(_ event: consuming ServerSentEvent) -> CurlSSETransport.Reading<String> {
            count += 1
            let text = event.data.text
            if text.hasPrefix("done") { return .completed }
            if text.hasPrefix("bad") { return .failure(DialectFailure(kind: .request, message: text)) }
            return count % 3 == 0 ? .nothing : .payload(text)
        }
    }
}

@Suite("What a stream keeps for its reader")
struct StreamSinkTests {
    @Test(
        "is its high water and a chunk at most, whatever the reader's pace",
        arguments: [1024, 20_000, 64 << 10, 256 << 10],
        [0, 1, 2, 3, 7]
    )
    func bound(highWater: Int, pace: Int) {
        var pipe = Pipe(highWater: highWater)
        var read = 0
        for _ in 0..<500 {
            if pipe.read() { read += 1 }
            #expect(pipe.unread <= highWater + chunkCost)
            _ = pipe.take(atMost: pace)
        }
        // A chunk is three segments, the last a part: so many fill the high water where none is taken. A reader of one or two
        // for each chunk is not kept waiting but for a turn or two by each, nor is one that is faster.
        let fills = (highWater + chunkCost - 1) / chunkCost
        switch pace {
        case 0: #expect((fills...fills + 1).contains(read))
        case 1, 2: #expect(read >= 100 * pace * 3 / 4)
        default: #expect(read >= 250)
        }
    }

    @Test("comes in large pieces where the reader takes all that is there")
    func pieces() {
        var pipe = Pipe(highWater: 256 << 10)
        var pieces: [Int] = []
        for _ in 0..<100 {
            let isRead = pipe.read()
            #expect(isRead)
            let taken = pipe.take(atMost: .max)
            if taken > 0 { pieces.append(taken) }
        }
        // 192 KiB are 1,756 payloads, and they come in whole segments of 128.
        #expect(pieces.count == 100 * 292 / (14 * 128))
        #expect(pieces.allSatisfy { $0 == 14 }, "\(pieces)")
    }

    @Test("is not taken for full by what was known of a reader that has gone on since")
    func room() {
        var mark = HandOverMark(highWater: 256 << 10)
        #expect(!mark.isReached(by: 191 << 10, inWholeSegments: true))
        #expect(mark.isReached(by: 192 << 10, inWholeSegments: true))
        #expect(!mark.isReached(by: 223 << 10, inWholeSegments: false))
        #expect(mark.isReached(by: 224 << 10, inWholeSegments: false))
        mark.found(room: 64 << 10)
        #expect(!mark.isFull(with: 63 << 10))
        #expect(mark.isFull(with: 64 << 10))
        mark.found(room: 256 << 10)
        #expect(!mark.isFull(with: 64 << 10))
        mark.found(room: 0)
        #expect(mark.isFull(with: 0))
    }

    /// Reads a body in chunks of a size, and says what came of it.
    private func read(_ body: [UInt8], inChunksOf size: Int) -> (payloads: [String], count: Int, ending: String) {
        let channel = PayloadChannel<String>(highWater: 1 << 30)
        let sink = StreamSink(
            dialect: Picky(),
            channel: channel,
            position: StreamPosition(lastEventID: ""),
            maxEventBytes: 1 << 20,
            onComment: nil
        )
        var ending = "none"
        var start = 0
        while start < body.count, ending == "none" {
            let end = min(body.count, start + size)
            switch sink.read(body.span.extracting(start..<end).bytes) {
            case .taken: break
            case .ended(.completed): ending = "completed"
            case .ended(.failed(let failure)): ending = failure.message
            }
            start = end
        }
        sink.end(.completed)
        var payloads: [String] = []
        while case .segment(let segment)? = channel.takeIfReady(resume: {}) {
            #expect(segment.payloads.count <= 128)
            // 15 bytes of data, as the channel counts them.
            #expect(segment.bytes == segment.payloads.count * (15 + overhead))
            payloads += segment.payloads
        }
        return (payloads, sink.payloadCount, ending)
    }

    @Test(
        "is what its dialect makes of each event, however many of them are found together",
        arguments: ["done", "bad"],
        [0, 1, 2, 63, 64, 65, 66, 127, 128, 129, 130, 1000]
    )
    func dialects(last: String, count: Int) {
        let number = { (number: Int) in String(repeating: "0", count: 15 - "\(number)".count) + "\(number)" }
        let events = (0..<count).map(number) + [last, "more"] + (0..<200).map(number)
        let body = Array(events.map { "event: x\ndata: \($0)\n\n" }.joined().utf8)
        let expected = events.prefix(count).enumerated().filter { $0.offset % 3 != 2 }.map(\.element)
        for size in [1, 7, 100, 16 << 10, 1 << 20] {
            let (payloads, payloadCount, ending) = read(body, inChunksOf: size)
            #expect(payloads == expected)
            #expect(payloadCount == expected.count)
            #expect(ending == (last == "done" ? "completed" : "bad"))
        }
    }
}
