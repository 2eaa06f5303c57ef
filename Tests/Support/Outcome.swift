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
        var parser = parser
        var recorder = Recorder(stopAfter: stopAfter)
        var error: EventStreamError?
        for chunk in chunks {
            do {
                let bytes = Array(chunk)
                try parser.parse(bytes.span.bytes, to: &recorder)
            } catch let thrown {
                error = thrown
            }
        }
        happenings = recorder.happenings
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
