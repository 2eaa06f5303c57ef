import CurlSSETransport
import Foundation

/// One thing a parser reported.
enum Happening: Equatable, CustomStringConvertible {
    case event(ServerSentEvent)
    case blockWithoutData(String)
    case idMoved(String)
    case retry(Duration)
    case comment(EventData)

    var description: String {
        switch self {
        case .event(let event): "event(\(event.type), \(event.data.text.debugDescription), id \(event.lastEventID))"
        case .blockWithoutData(let type): "blockWithoutData(\(type))"
        case .idMoved(let id): "idMoved(\(id))"
        case .retry(let duration): "retry(\(duration))"
        case .comment(let comment): "comment(\(comment.text.debugDescription))"
        }
    }
}

/// Keeps everything reported, and stops after a number of things.
struct Recorder: EventStreamVisitor {
    var happenings: [Happening] = []
    var stopAfter = Int.max

    private mutating func record(_ happening: Happening) -> Bool {
        happenings.append(happening)
        return happenings.count < stopAfter
    }

    mutating func event(_ event: ServerSentEvent) -> Bool { record(.event(event)) }
    mutating func blockWithoutData(type: String) -> Bool { record(.blockWithoutData(type)) }
    mutating func lastEventIDMoved(to id: String) -> Bool { record(.idMoved(id)) }
    mutating func retryChanged(to retry: Duration) -> Bool { record(.retry(retry)) }
    mutating func comment(_ comment: EventData) -> Bool { record(.comment(comment)) }
}

/// Looks at every event, and has some of them made.
struct Looker: EventStreamVisitor {
    static var looks: Bool { true }

    /// Whether the event of a number, from 0 on, is to be made.
    let wants: (Int) -> Bool
    var recorder: Recorder
    private(set) var looked: [(data: [UInt8], type: [UInt8])] = []
    /// Whether each event that was made is the one that was looked at before.
    private(set) var isInStep = true
    private var isAwaited = false

    init(stopAfter: Int, _ wants: @escaping (Int) -> Bool) {
        self.wants = wants
        recorder = Recorder(stopAfter: stopAfter)
    }

    mutating func look(at data: RawSpan, type: RawSpan) -> Bool {
        isInStep = isInStep && !isAwaited
        looked.append((Array(copying: data), Array(copying: type)))
        isAwaited = wants(looked.count - 1)
        return isAwaited
    }

    mutating func event(_ event: consuming ServerSentEvent) -> Bool {
        let type = looked.last.map { $0.type.isEmpty ? "message" : String(decoding: $0.type, as: UTF8.self) }
        isInStep = isInStep && isAwaited && looked.last?.data == Array(event.data.bytes) && type == event.type
        isAwaited = false
        return recorder.event(event)
    }

    mutating func blockWithoutData(type: String) -> Bool { recorder.blockWithoutData(type: type) }
    mutating func lastEventIDMoved(to id: String) -> Bool { recorder.lastEventIDMoved(to: id) }
    mutating func retryChanged(to retry: Duration) -> Bool { recorder.retryChanged(to: retry) }
    mutating func comment(_ comment: EventData) -> Bool { recorder.comment(comment) }
}

extension Array where Element == UInt8 {
    /// The bytes of a span.
    fileprivate init(copying span: RawSpan) {
        self = (0..<span.byteCount).map { span.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
}

/// All that a stream comes to.
struct Outcome: Equatable {
    var happenings: [Happening]
    var lastEventID: String
    var retry: Duration?
    var halfEventDiscarded: Bool
    var error: EventStreamError?

    var events: [ServerSentEvent] {
        happenings.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    var comments: [EventData] {
        happenings.compactMap { if case .comment(let comment) = $0 { comment } else { nil } }
    }

    /// Feeds chunks to a parser, then ends it.
    init(of chunks: some Sequence<some Collection<UInt8>>, by parser: EventStreamParser, stopAfter: Int = .max) {
        var recorder = Recorder(stopAfter: stopAfter)
        self.init(of: chunks, by: parser, to: &recorder)
        happenings = recorder.happenings
    }

    /// Feeds chunks to a parser whose visitor looks at events first, and wants some.
    ///
    /// nil where what it was shown is not what came.
    init?(
        of chunks: some Sequence<some Collection<UInt8>>,
        by parser: EventStreamParser,
        stopAfter: Int = .max,
        looking wants: @escaping (Int) -> Bool
    ) {
        var looker = Looker(stopAfter: stopAfter, wants)
        self.init(of: chunks, by: parser, to: &looker)
        guard looker.isInStep else { return nil }
        happenings = looker.recorder.happenings
    }

    private init(
        of chunks: some Sequence<some Collection<UInt8>>,
        by parser: EventStreamParser,
        to visitor: inout some EventStreamVisitor
    ) {
        var parser = parser
        var error: EventStreamError?
        for chunk in chunks {
            do {
                let bytes = Array(chunk)
                try parser.parse(bytes.span.bytes, to: &visitor)
            } catch let thrown {
                error = thrown
            }
        }
        happenings = []
        lastEventID = parser.lastEventID
        retry = parser.retry
        halfEventDiscarded = parser.finish()
        self.error = error
    }
}

extension Array where Element == UInt8 {
    /// The bytes in chunks, cut before each of the offsets, which rise.
    func cut(at offsets: some Sequence<Int>) -> [ArraySlice<UInt8>] {
        var chunks: [ArraySlice<UInt8>] = []
        var start = 0
        for offset in offsets {
            chunks.append(self[start..<offset])
            start = offset
        }
        chunks.append(self[start...])
        return chunks
    }

    /// The bytes in chunks of one size; the last may be shorter.
    func chunks(of size: Int) -> [ArraySlice<UInt8>] {
        cut(at: stride(from: size, to: count, by: size))
    }
}

extension Seeded {
    /// The seed of this run: `SEED` of the environment, or a random one.
    static let ofTheRun: UInt64 = {
        let given = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 0 ... .max)
        print("event stream cuttings: SEED=\(seed)")
        return seed
    }()
}
