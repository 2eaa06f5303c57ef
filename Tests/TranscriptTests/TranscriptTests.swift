import CurlSSETransport
import Foundation
import SubscriptionRuntime
import SubscriptionTesting
import Testing

/// What real servers answered, byte for byte, played again: see scripts/record-transcripts.
@Suite("Recorded answers of real servers", .timeLimit(.minutes(1)))
struct TranscriptTests {
    /// What a transcript must yield, written by hand.
    struct Expectation: Decodable {
        struct Event: Decodable, Equatable {
            var type: String
            var data: String
            var lastEventID: String
        }

        var dialect: String
        var payloads: [String]?
        var events: [Event]?
        var end: String
        var messages: [String]?
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/transcripts")

    private static func expectations() throws -> [String: Expectation] {
        let file = try Data(contentsOf: folder.appending(path: "expected.json"))
        return try JSONDecoder().decode([String: Expectation].self, from: file)
    }

    /// The answer as it is played: with its transfer coding over HTTP/1.1, else the body under a head of our own.
    private static func answer(_ name: String) throws -> [UInt8] {
        if let raw = FileManager.default.contents(atPath: folder.appending(path: "\(name).raw").path) {
            return Array(raw)
        }
        let recorded = try Data(contentsOf: folder.appending(path: "\(name).http"))
        let blank = try #require(recorded.firstRange(of: Data("\r\n\r\n".utf8)))
        return Array(ReplayServer.eventStreamHead.utf8) + recorded[blank.upperBound...]
    }

    private func payloads<D: Dialect>(
        _ dialect: D,
        _ request: D.Request,
        _ answer: [UInt8]
    ) async throws -> (payloads: [D.Payload], failure: SubscriptionFailure?) {
        let server = try ReplayServer(scripts: [[.expectRequest, .send(answer), .close]])
        defer { server.stop() }
        let transport = try CurlTransport(server.url, dialect: dialect)
        var payloads: [D.Payload] = []
        do throws(SubscriptionFailure) {
            for try await payload in try await transport.open(request, resuming: nil) { payloads.append(payload) }
        } catch {
            return (payloads, error)
        }
        return (payloads, nil)
    }

    private func end(_ failure: SubscriptionFailure?) -> (name: String, messages: [String]) {
        switch failure {
        case nil: ("completed", [])
        case .network: ("network", [])
        case .request(let error): ("request", (error as? TransportError)?.graphQLErrors.map(\.message) ?? [])
        case .environment: ("environment", [])
        }
    }

    @Test("every recording is named in expected.json, and yields what stands there")
    func recordings() async throws {
        let expectations = try Self.expectations()
        let recorded = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
            .filter { $0.hasSuffix(".http") }.map { String($0.dropLast(5)) }
        // A redirect is no stream.
        #expect(Set(recorded).subtracting(expectations.keys) == ["mounted"])

        for (name, expectation) in expectations.sorted(by: { $0.key < $1.key }) {
            let answer = try Self.answer(name)
            let failure: SubscriptionFailure?
            if expectation.dialect == "graphql" {
                let result = try await payloads(GraphQLSSE(), GraphQLRequest(query: "subscription { a }"), answer)
                #expect(result.payloads.map(\.text) == expectation.payloads, "\(name)")
                failure = result.failure
            } else {
                let result = try await payloads(EventSource(), EventSourceRequest(), answer)
                let events = result.payloads.map {
                    Expectation.Event(type: $0.type, data: $0.data.text, lastEventID: $0.lastEventID)
                }
                #expect(events == expectation.events, "\(name)")
                failure = result.failure
            }
            #expect(end(failure).name == expectation.end, "\(name)")
            #expect(end(failure).messages == expectation.messages ?? [], "\(name)")
        }
    }
}
