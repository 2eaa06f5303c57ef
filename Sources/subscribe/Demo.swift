// The script of `--demo`: a server on the loopback that does what servers do, and the tool against it.

import Foundation
import SubscriptionTesting

/// A run that needs no network.
enum Demo {
    /// What the run shows, told before it.
    private static let introduction = """
        A GraphQL server on the loopback sends prices, drops the connection, sends more, drops it again, is too busy for
        three seconds (503, Retry-After: 3), sends the rest and completes. The subscription comes back by itself.


        """

    /// Runs the tool against a server of its own, at most 12 s long.
    ///
    /// - Parameters:
    ///   - output: How to print.
    ///   - requests: What signals ask for.
    /// - Returns: The exit code.
    /// - Throws: Why there is no server.
    static func run(_ output: Output, requests: AsyncStream<SignalRequest>) async throws(UsageError) -> Int32 {
        let server: ReplayServer
        do {
            server = try ReplayServer(scripts: scripts)
        } catch {
            throw UsageError(message: "the demo's server could not be started: \(error)")
        }
        defer { server.stop() }
        if !output.json, !output.quiet {
            try? FileHandle.standardError.write(contentsOf: Data(introduction.utf8))
        }
        var options = Options(
            url: server.url + "/graphql",
            dialect: .graphQL(query: .text("subscription { price(of: \"ACME\") }"), variables: nil, operation: nil)
        )
        options.output = output
        return try await Subscription(options).run(requests)
    }

    /// What each connection is given.
    static let scripts: [[ReplayServer.Step]] = [
        prices([101.25, 101.50, 101.10]) + [.reset],
        prices([103.75, 104.00]) + [.close],
        [.expectRequest, .send(busy), .close],
        prices([99.90, 100.00]) + [.send("event: complete\ndata:\n\n"), .close],
    ]

    private static let busy = ReplayServer.response(
        503,
        [("Retry-After", "3"), ("Content-Type", "text/plain"), ("Connection", "close")],
        body: "too many subscriptions\n"
    )

    private static func prices(_ prices: [Double]) -> [ReplayServer.Step] {
        [.expectRequest, .send(ReplayServer.eventStreamHead)]
            + prices.flatMap { price -> [ReplayServer.Step] in
                [.pause(.milliseconds(300)), .send("event: next\ndata: {\"data\":{\"price\":\(price)}}\n\n")]
            }
    }
}
