// The examples of the transport's articles and of the runtime's, compiled; the dialect is run over a socket too.

import CurlSSETransport
import Foundation
import SubscriptionRuntime
import SubscriptionTesting
import Testing

struct Completions: Dialect {
    struct Prompt: Hashable, Encodable, Sendable {
        var prompt: String
        var stream = true
    }

    func httpRequest(for request: Prompt, resuming position: StreamPosition?) throws(TransportError) -> HTTPRequest {
        guard !request.prompt.isEmpty, let body = try? JSONEncoder().encode(request) else {
            throw TransportError(kind: .request, message: "the prompt is empty or cannot be written")
        }
        return HTTPRequest(
            method: "POST",
            target: "/v1/completions",
            fields: [HTTPField("Content-Type", "application/json"), HTTPField("Accept", "text/event-stream")],
            body: Array(body)
        )
    }

    func makeReader() -> Reader { Reader() }

    struct Reader: DialectReader {
        func read(_ event: ServerSentEvent) -> Reading<String> {
            if event.data.bytes.elementsEqual("[DONE]".utf8) { return .completed }
            if event.type == "error" {
                return .failure(DialectFailure(kind: .request, message: event.data.text))
            }
            return .payload(event.data.text)
        }
    }
}

private func writingADialect() throws {
    let transport = try CurlTransport("https://api.example.com", dialect: Completions())
    _ = transport
}

private func gettingStarted(_ ledger: TickLedger) async throws {
    struct Tick: Decodable { var price: Double }

    let transport = try GraphQLTransport("https://api.example.com/graphql", dialect: GraphQLSSE())
    let environment = SubscriptionEnvironment(transport: transport)
    let request = try GraphQLRequest(
        query: "subscription($symbol: String!) { price(of: $symbol) }",
        variables: ["symbol": "ACME"]
    )

    for try await delivery in environment.handle(for: request).deliveries() {
        switch delivery {
        case .baseline: try await ledger.fetch()
        case .payload(let result):
            guard let tick = try result.decode(Tick.self).data else { continue }
            await ledger.apply(tick.price)
        }
    }
}

private func runningInProduction(_ url: String, _ credentials: Credentials) async throws {
    let loop = try CurlLoop()
    let transport = try GraphQLTransport(url, dialect: GraphQLSSE(), credentials: credentials, loop: loop)
    let environment = SubscriptionEnvironment(transport: transport)

    environment.isActive = false  // a follower holds no stream
    environment.isActive = true  // the leader opens them all
    await environment.end()  // at the end: no call into the transport is left
    await loop.shutdown()  // no connection, no descriptor
}

private func gaps(_ handle: SubscriptionHandle<Int, Double>, _ ledger: TickLedger) async throws {
    for try await delivery in handle.deliveries() {
        switch delivery {
        case .baseline: try await ledger.fetchEverything()
        case .payload(let change): await ledger.apply(change)
        }
    }
}

/// Stands for the service's own state.
private actor TickLedger {
    func fetch() throws {}

    func fetchEverything() throws {}

    func apply(_ price: Double) {}
}

@Suite("The article on writing a dialect")
struct DialectArticleTests {
    private func completion(of prompt: String, answered pieces: String) async throws -> (String, [RecordedBody]) {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(ReplayServer.eventStreamHead), .send(pieces), .silence,
        ])
        defer { server.stop() }
        let transport = try CurlTransport(server.url, dialect: Completions())
        var text = ""
        for try await piece in try await transport.open(.init(prompt: prompt), resuming: nil) { text += piece }
        return (text, server.journal.requests.map { RecordedBody(target: $0.target, bytes: $0.body) })
    }

    private struct RecordedBody {
        var target: String
        var bytes: [UInt8]
    }

    @Test("has a dialect that ends by [DONE], while the connection is still open", .timeLimit(.minutes(1)))
    func done() async throws {
        let (text, requests) = try await completion(
            of: "a \"quoted\" word",
            answered: "data: He\n\ndata: llo\n\ndata: [DONE]\n\ndata: late\n\n"
        )

        #expect(text == "Hello")
        let request = try #require(requests.first)
        #expect(request.target == "/v1/completions")
        let body = try JSONSerialization.jsonObject(with: Data(request.bytes)) as? [String: Any]
        #expect(body?["prompt"] as? String == "a \"quoted\" word")
    }

    @Test("has a dialect that fails by an event named error", .timeLimit(.minutes(1)))
    func failed() async throws {
        do {
            _ = try await completion(of: "a", answered: "data: He\n\nevent: error\ndata: too much\n\n")
            Issue.record("an error is no completion")
        } catch let failure as SubscriptionFailure {
            guard case .request(let error) = failure else {
                Issue.record(failure)
                return
            }
            #expect("\(error)".contains("too much"))
        }
    }
}
