import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("A scripted transport", .timeLimit(.minutes(1)))
struct ScriptedTransportTests {
    /// A payload whose end looks at its stream.
    final class Looking: Sendable {
        private let opening: ScriptedOpening<String, Looking>

        init(_ opening: ScriptedOpening<String, Looking>) {
            self.opening = opening
        }

        deinit {
            _ = opening.taken
        }
    }

    @Test("may be looked at in a payload's deinit, wherever the payload is let go of")
    func lookedAtInADeinit() async throws {
        let transport = ScriptedTransport<String, Looking>(.init(acceptsAtOnce: true))
        let payloads = try await transport.open("prices", resuming: nil)
        let opening = try await transport.nextOpening()
        opening.feed(Looking(opening), Looking(opening))

        var iterator = payloads.makeAsyncIterator()
        for _ in 0..<2 { _ = try await iterator.next() }

        #expect(opening.taken == 2)
    }
}
