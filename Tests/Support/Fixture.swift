import CurlSSETransport
import Foundation
import Testing

/// One pair of files in Fixtures/event-stream: a stream's bytes, and what the standard makes of them.
struct Fixture: CustomTestStringConvertible, Sendable {
    let name: String
    let stream: [UInt8]
    let expected: Expected

    var testDescription: String { name }

    struct Expected: Decodable, Sendable {
        struct Event: Decodable, Sendable {
            var type: String
            var data: String?
            var dataBase64: Data?
            var lastEventID: String
        }

        struct Options: Decodable, Sendable {
            var maxEventBytes: Int?
            var lastEventID: String?
        }

        struct Limit: Decodable, Sendable {
            var part: String
            var limit: Int
        }

        var proves: String
        var options: Options?
        var events: [Event]
        var retry: Int64?
        var comments: [String]
        var blocksWithoutData: [String]
        var lastEventID: String
        var halfEventDiscarded: Bool
        var error: Limit?
    }

    /// Every fixture, in the order of their names.
    static let all: [Fixture] = {
        do {
            return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .filter { $0.pathExtension == "sse" }
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
                .map(Fixture.init(stream:))
        } catch {
            // The test of their number fails.
            return []
        }
    }()

    private static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/event-stream")

    private init(stream file: URL) throws {
        name = file.deletingPathExtension().lastPathComponent
        stream = Array(try Data(contentsOf: file))
        let result = file.deletingPathExtension().appendingPathExtension("events.json")
        expected = try JSONDecoder().decode(Expected.self, from: Data(contentsOf: result))
    }

    /// A parser as the fixture wants it, that keeps comments.
    var parser: EventStreamParser {
        EventStreamParser(
            lastEventID: expected.options?.lastEventID ?? "",
            maxEventBytes: expected.options?.maxEventBytes ?? 16 << 20,
            keepsComments: true
        )
    }

    var expectedEvents: [ServerSentEvent] {
        expected.events.map { event in
            let data = event.data.map { EventData($0) } ?? EventData(Array(event.dataBase64 ?? Data()))
            return ServerSentEvent(type: event.type, data: data, lastEventID: event.lastEventID)
        }
    }

    var expectedError: EventStreamError? {
        expected.error.flatMap { limit in
            EventStreamError.Part(rawValue: limit.part).map { EventStreamError(part: $0, limit: limit.limit) }
        }
    }
}
