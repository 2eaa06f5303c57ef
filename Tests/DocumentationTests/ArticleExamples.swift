import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Test("a resumption makes the ledger fetch again")
func resumption() async throws {
    let clock = TestClock()
    let transport = ScriptedTransport<PriceQuery, Price>()
    let environment = SubscriptionEnvironment(transport: transport, clock: clock)
    let service = Task { try await mirror(environment.handle(for: query), into: ledger) }

    let first = try await transport.nextOpening()
    first.accept()
    first.feed(Price(1), Price(2))
    first.fail(.network(Dropped()))

    clock.advance(to: try await clock.nextDeadline())  // the wait, over at once
    let second = try await transport.nextOpening()
    second.accept()
    second.complete()

    try await service.value
    #expect(await ledger.fetches == 2)
}

@Test("a server that is down is left alone for half a second at least")
func firstWait() async throws {
    let clock = TestClock()
    let transport = ScriptedTransport<PriceQuery, Price>()
    let environment = SubscriptionEnvironment(transport: transport, clock: clock, chance: 0)
    let retention = environment.handle(for: query).retain()

    try await transport.nextOpening().fail(.network(Dropped()))

    let wait = clock.now.duration(to: try await clock.nextDeadline())
    #expect(wait == .milliseconds(500))
    retention.release()
    #expect(environment.waiting == 0)
}

// What the articles' examples stand on, and the examples over a socket.

struct PriceQuery: Hashable {
    var symbol: String
}

struct Price {
    var cents: Int

    init(_ cents: Int) {
        self.cents = cents
    }
}

struct Dropped: Error {}

/// Stands for the service's own state.
actor PriceLedger {
    private(set) var fetches = 0
    private(set) var last: Price?

    func fetch() {
        fetches += 1
    }

    func apply(_ price: Price) {
        last = price
    }
}

/// Stands for the code under test.
func mirror(_ handle: SubscriptionHandle<PriceQuery, Price>, into ledger: PriceLedger) async throws {
    for try await delivery in handle.deliveries() {
        switch delivery {
        case .baseline: await ledger.fetch()
        case .payload(let price): await ledger.apply(price)
        }
    }
}

private let query = PriceQuery(symbol: "ACME")
private let ledger = PriceLedger()

@Test("a server that is cut off and then busy is asked twice", .timeLimit(.minutes(1)))
func cutOffAndBusy() async throws {
    let server = try ReplayServer(scripts: [
        [.expectRequest, .send(ReplayServer.eventStreamHead), .send("data: 1\n\n"), .reset],
        [.expectRequest, .send(ReplayServer.response(503, [("Retry-After", "1")]))],
    ])
    defer { server.stop() }
    let transport = try EventSourceTransport(server.url, dialect: EventSource())
    let environment = SubscriptionEnvironment(transport: transport)
    let retention = environment.handle(for: EventSourceRequest()).retain()
    #expect(await server.waitUntil { $0.connections == 2 })
    retention.release()
    await environment.end()
}

@Test("the transport keeps the contract", .timeLimit(.minutes(1)))
func contract() async throws {
    let payload = "event: next\ndata: {\"data\":1}\n\n"
    let accepted = ReplayServer.eventStreamHead + payload
    @Sendable func refused(_ status: Int) -> [ReplayServer.Step] {
        [.send(ReplayServer.response(status, [("Connection", "close")])), .close]
    }
    let server = try ReplayServer { _, request in
        let asked = String(decoding: request.body, as: UTF8.self)
        if asked.contains("endless") { return [.send(accepted), .silence] }
        if asked.contains("completing") { return [.send(accepted), .send("event: complete\n\n"), .close] }
        if asked.contains("cutOff") { return [.send(accepted), .close] }
        if asked.contains("refused") { return refused(403) }
        if asked.contains("unavailable") { return refused(503) }
        if asked.contains("flooding") { return [.send(accepted), .sendForever(Array(payload.utf8))] }
        if asked.contains("empty") { return refused(204) }
        return [.silence]
    }
    defer { server.stop() }
    let contract = TransportContract(
        try GraphQLTransport(server.url, dialect: GraphQLSSE()),
        connections: { server.journal.openConnections },
        openings: { server.journal.requestCount },
        sent: { server.journal.bytesSent }
    )

    let broken = await contract.check(
        endless: GraphQLRequest(query: "subscription { endless }"),
        completing: GraphQLRequest(query: "subscription { completing }"),
        cutOff: GraphQLRequest(query: "subscription { cutOff }"),
        silent: GraphQLRequest(query: "subscription { silent }"),
        refused: GraphQLRequest(query: "subscription { refused }"),
        unavailable: GraphQLRequest(query: "subscription { unavailable }"),
        flooding: GraphQLRequest(query: "subscription { flooding }"),
        empty: GraphQLRequest(query: "subscription { empty }")
    )

    #expect(broken == [])
}
