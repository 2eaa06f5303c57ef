// The service loop of the README, compiled and run. What stands between the marks is the README's first Swift block.

// begin
import CurlSSETransport
import SubscriptionRuntime

struct Tick: Decodable {
    var price: Double
}

func follow(_ symbol: String, at url: String, in ledger: Ledger) async throws {
    let transport = try GraphQLTransport(url, dialect: GraphQLSSE())
    let environment = SubscriptionEnvironment(transport: transport)
    let request = try GraphQLRequest(
        query: "subscription($symbol: String!) { price(of: $symbol) }",
        variables: ["symbol": symbol]
    )

    for try await delivery in environment.handle(for: request).deliveries() {
        switch delivery {
        case .baseline:  // Opened, or opened again: what came in between was missed.
            try await ledger.fetch(symbol)
        case .payload(let result):
            guard let tick = try result.decode(Tick.self).data else { continue }
            await ledger.apply(tick.price)
        }
    }
    await environment.end()
}
// end

/// Stands for the service's own state.
actor Ledger {
    private(set) var log: [String] = []

    func fetch(_ symbol: String) throws {
        log.append("fetched \(symbol)")
    }

    func apply(_ price: Double) {
        log.append("\(price)")
    }
}
