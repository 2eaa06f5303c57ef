import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

/// A response, and which of its bytes are the content's.
private struct Exchange {
    var bytes: [UInt8] = []
    /// How many bytes of content the first n bytes hold, for each n.
    var content: [Int] = [0]

    mutating func add(_ text: String, isContent: Bool = false) {
        for byte in text.utf8 {
            bytes.append(byte)
            content.append(content[content.count - 1] + (isContent ? 1 : 0))
        }
    }

    /// The content in chunks of so many bytes; nil for a body that ends with the connection.
    init(_ content: String, chunks size: Int?) {
        guard let size else {
            add(ReplayServer.eventStreamHead)
            add(content, isContent: true)
            return
        }
        add(ReplayServer.chunkedEventStreamHead)
        var rest = Array(content.utf8)[...]
        while !rest.isEmpty {
            let piece = String(decoding: rest.prefix(size), as: UTF8.self)
            rest = rest.dropFirst(size)
            add(String(piece.utf8.count, radix: 16) + "\r\n")
            add(piece, isContent: true)
            add("\r\n")
        }
        add("0\r\n\r\n")
    }
}

/// One way to cut.
struct Cutting: Sendable, CustomTestStringConvertible {
    var chunks: Int?
    var cut: ReplayServer.Cut

    var testDescription: String { "\(chunks.map { "chunks of \($0)" } ?? "until the end"), by \(cut)" }

    static let all = [nil, 1000, 7].flatMap { chunks in
        [ReplayServer.Cut.close, .reset].map { Cutting(chunks: chunks, cut: $0) }
    }
}

@Suite("A response that is cut after each of its bytes", .timeLimit(.minutes(5)))
struct CutTests {
    /// What became of the exchange that was cut after so many bytes.
    private struct Outcome<Payload: Sendable>: Sendable {
        var count: Int
        var read: ReadStream<Payload>
    }

    /// Plays the exchange once for each cut, thirty-two at a time.
    private func outcomes<D: Dialect>(
        _ exchange: Exchange,
        _ cutting: Cutting,
        dialect: D,
        request: D.Request
    ) async throws -> [Outcome<D.Payload>] {
        let bytes = exchange.bytes
        let server = try ReplayServer { _, request in
            let count = Int(request.target.dropFirst()) ?? 0
            return ReplayServer.cut([.send(bytes)], after: count, by: cutting.cut)
        }
        let loop = try CurlLoop()
        let transports = try (0...bytes.count).map { count in
            try CurlTransport(server.url + "/\(count)", dialect: dialect, loop: loop)
        }
        let outcomes = await withTaskGroup(of: Outcome<D.Payload>.self) { group in
            var outcomes: [Outcome<D.Payload>] = []
            for (count, transport) in transports.enumerated() {
                if count >= 32, let outcome = await group.next() { outcomes.append(outcome) }
                group.addTask { Outcome(count: count, read: await transport.read(request)) }
            }
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        let counters = transports[0].counters
        #expect(counters.openings == bytes.count + 1)
        #expect(counters.openStreams == 0)
        #expect(counters.faults == 0)
        await loop.shutdown()
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(outcomes.count == bytes.count + 1)
        return outcomes
    }

    @Test(
        "a plain stream gives the events that were whole, fails as a network does, and leaves nothing open",
        arguments: Cutting.all
    )
    func eventSource(cutting: Cutting) async throws {
        let content =
            "\u{FEFF}data: a\n\n: c\nid: 7\ndata: \u{1F600}\n\nid: 8\n\nevent: tick\ndata: b\ndata: c\n\ndata: half"
        // Where each event's last byte is, and where the ID that stands alone has come.
        let ends = ["data: a\n\n", "\u{1F600}\n\n", "c\n\n"].map { Self.end(of: $0, in: content) }
        let events = ["a", "\u{1F600}", "b\nc"]
        let ids = [("id: 8\n\n", "8"), ("\u{1F600}\n\n", "7")].map { (Self.end(of: $0.0, in: content), $0.1) }

        let exchange = Exchange(content, chunks: cutting.chunks)
        for outcome in try await outcomes(exchange, cutting, dialect: EventSource(), request: EventSourceRequest()) {
            let have = exchange.content[outcome.count]
            let whole = ends.filter { $0 <= have }.count
            #expect(outcome.read.payloads.map(\.data.text) == Array(events.prefix(whole)), "\(outcome.count)")
            #expect(outcome.read.end == .failed(.network), "\(outcome.count)")
            #expect(outcome.read.position?.lastEventID == ids.first { $0.0 <= have }?.1, "\(outcome.count)")
            #expect(outcome.read.error?.bytesReceived == have, "\(outcome.count)")
        }
    }

    @Test(
        "a GraphQL stream gives the results that were whole, and completes only once it said so",
        arguments: Cutting.all
    )
    func graphQL(cutting: Cutting) async throws {
        let content = "event: next\ndata: {\"data\":1}\n\n:\n\nevent: next\ndata: {\"data\":2}\n\nevent: complete\n\n"
        let ends = ["1}\n\n", "2}\n\n"].map { Self.end(of: $0, in: content) }
        let exchange = Exchange(content, chunks: cutting.chunks)
        let request = GraphQLRequest(query: "subscription { a }")
        for outcome in try await outcomes(exchange, cutting, dialect: GraphQLSSE(), request: request) {
            let have = exchange.content[outcome.count]
            let whole = ends.filter { $0 <= have }.count
            let results = ["{\"data\":1}", "{\"data\":2}"].prefix(whole)
            #expect(outcome.read.payloads.map(\.text) == Array(results), "\(outcome.count)")
            let isComplete = have == content.utf8.count
            #expect(outcome.read.end == (isComplete ? .completed : .failed(.network)), "\(outcome.count)")
        }
    }

    /// How many bytes the content has up to the end of a part of it.
    private static func end(of part: String, in content: String) -> Int {
        let pattern = Array(part.utf8)
        let bytes = Array(content.utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: pattern) } ?? bytes.count
        return start + pattern.count
    }
}
