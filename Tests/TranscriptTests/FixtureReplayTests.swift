import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

/// Keeps all that a dialect is told, blocks without data among it.
private struct Recording: Dialect {
    enum Payload: Equatable, Sendable {
        case event(ServerSentEvent)
        case blockWithoutData(String)
    }

    struct Reader: DialectReader {
        func read(_ event: ServerSentEvent) -> Reading<Payload> { .payload(.event(event)) }

        func readBlockWithoutData(type: String) -> Reading<Payload> { .payload(.blockWithoutData(type)) }
    }

    var resumes: Bool { true }

    func httpRequest(
        for request: EventSourceRequest,
        resuming position: StreamPosition?
    ) throws(TransportError) -> HTTPRequest {
        try EventSource().httpRequest(for: request, resuming: position)
    }

    func makeReader() -> Reader { Reader() }
}

/// One way to send a fixture's bytes.
private struct Sending: Sendable {
    /// Where a piece begins, sent by a call of its own.
    var cuts: [Int]
    /// Whether each piece is a chunk of a chunked body, or the body ends with the connection.
    var isChunked: Bool

    func script(_ stream: [UInt8]) -> [ReplayServer.Step] {
        let pieces = stream.cut(at: cuts).filter { !$0.isEmpty }.map(Array.init)
        guard isChunked else {
            return [.send(ReplayServer.eventStreamHead)] + pieces.map { .send($0) } + [.close]
        }
        return [.send(ReplayServer.chunkedEventStreamHead)] + pieces.map { .send(ReplayServer.chunk($0)) }
            + [.send(ReplayServer.chunk("")), .close]
    }
}

/// What came of a stream, over a socket or in memory.
private struct Result<Payload: Equatable & Sendable>: Equatable, Sendable {
    var payloads: [Payload] = []
    var comments: [String] = []
    var resumePoint: ResumePoint?
    var kind: TransportError.Kind?
    /// The limit that was passed; nil where the body just ended.
    var limit: String?
}

@Suite("A recorded event stream over a socket", .timeLimit(.minutes(2)))
struct FixtureReplayTests {
    /// In how many random cuttings each is sent, beside whole and in single bytes.
    private static let cuttings = 2

    /// Sends every fixture in every way, thirty-two at once, and compares each with the parser in memory.
    private func replay<D: Dialect>(
        _ dialect: D,
        expecting payloads: @escaping @Sendable ([Happening]) -> [D.Payload]
    ) async throws where D.Request == EventSourceRequest, D.Payload: Equatable {
        let seed = Seeded.ofTheRun
        var generator = Seeded(seed: seed)
        var runs: [(fixture: Fixture, sending: Sending)] = []
        // A transport takes no limit of 0 bytes.
        for fixture in Fixture.all where fixture.parser.maxEventBytes > 0 {
            let bytes = fixture.stream.count
            var cuts: [[Int]] = [[]]
            if bytes <= 64 { cuts.append(Array(1..<max(1, bytes))) }
            for _ in 0..<Self.cuttings {
                let count = Int.random(in: 1...max(1, min(bytes / 3, 40)), using: &generator)
                cuts.append((0..<count).map { _ in Int.random(in: 0...bytes, using: &generator) }.sorted())
            }
            for cuts in cuts {
                runs += [true, false].map { (fixture, Sending(cuts: cuts, isChunked: $0)) }
            }
        }
        let scripts = runs.map { $0.sending.script($0.fixture.stream) }
        let server = try ReplayServer { _, request in
            Int(request.target.dropFirst()).flatMap { scripts.indices.contains($0) ? scripts[$0] : nil } ?? [.close]
        }
        defer { server.stop() }
        let loop = try CurlLoop()

        await withTaskGroup(of: Void.self) { group in
            for (index, run) in runs.enumerated() {
                if index >= 32 { await group.next() }
                group.addTask {
                    let expected = Self.inMemory(run.fixture, payloads)
                    let result = await Self.overSocket(run.fixture, dialect, "\(server.url)/\(index)", loop)
                    #expect(
                        result == expected,
                        "\(run.fixture.name), SEED=\(seed), chunked: \(run.sending.isChunked), cut at \(run.sending.cuts)"
                    )
                }
            }
        }
        await loop.shutdown()
        #expect(server.journal.requestCount == runs.count)
        #expect(runs.count > 4 * 150)
    }

    private static func inMemory<Payload>(
        _ fixture: Fixture,
        _ payloads: ([Happening]) -> [Payload]
    ) -> Result<Payload> {
        let outcome = Outcome(of: [fixture.stream], by: fixture.parser)
        let position = StreamPosition(lastEventID: outcome.lastEventID, retry: outcome.retry)
        // A server that gave no ID and no retry has left nothing to resume from.
        let hasPosition = fixture.parser.lastEventID != "" || position != StreamPosition(lastEventID: "")
        return Result(
            payloads: payloads(outcome.happenings),
            comments: outcome.comments.map(\.text),
            resumePoint: hasPosition ? position.resumePoint : nil,
            kind: .network,
            limit: outcome.error.map { "\($0)" }
        )
    }

    private static func overSocket<D: Dialect>(
        _ fixture: Fixture,
        _ dialect: D,
        _ url: String,
        _ loop: CurlLoop
    ) async -> Result<D.Payload> where D.Request == EventSourceRequest {
        var result = Result<D.Payload>()
        let comments = Lock<[String]>([])
        var configuration = Configuration()
        configuration.maxEventBytes = fixture.parser.maxEventBytes
        configuration.onComment = { comment in comments.withLock { $0.append(comment) } }
        do {
            let transport = try CurlTransport(url, dialect: dialect, configuration: configuration, loop: loop)
            let request = EventSourceRequest(lastEventID: fixture.parser.lastEventID)
            let stream = try await transport.open(request, resuming: nil)
            var iterator = stream.makeAsyncIterator()
            do throws(SubscriptionFailure) {
                while let payload = try await iterator.next(isolation: nil) { result.payloads.append(payload) }
            } catch {
                guard case .network(let error as TransportError, _) = error else { return result }
                result.kind = error.kind
                // The sentence begins with the server's name.
                let sentence = error.message.split(separator: ": ", maxSplits: 1).last.map { String($0) }
                if error.message.contains(" over the limit: ") { result.limit = sentence }
            }
            result.resumePoint = iterator.resumePoint
        } catch {
            Issue.record(error)
        }
        result.comments = comments.withLock { $0 }
        return result
    }

    @Test("gives a plain event stream's owner the events of the standard, and the same resume point and error")
    func eventSource() async throws {
        try await replay(EventSource()) { happenings in
            happenings.compactMap { if case .event(let event) = $0 { event } else { nil } }
        }
    }

    @Test("tells a dialect of every event and every block without data, in order")
    func recording() async throws {
        try await replay(Recording()) { happenings in
            happenings.compactMap { happening in
                switch happening {
                case .event(let event): .event(event)
                case .blockWithoutData(let type): .blockWithoutData(type)
                case .idMoved, .retry, .comment: nil
                }
            }
        }
    }
}
