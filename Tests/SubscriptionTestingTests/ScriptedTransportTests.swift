import SubscriptionRuntime
import Testing

@testable import SubscriptionTesting

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

    struct Dropped: Error {}

    @Test("accepts no opening that has failed, though its call had not begun to wait yet", arguments: [false, true])
    func acceptedAfterAFailure(completesFirst: Bool) async {
        let opening = ScriptedOpening<String, Int>(
            request: "prices",
            resuming: nil,
            isDeaf: false,
            tally: ScriptedTally(watchesTasks: false),
            detach: { $0 },
            onCancel: nil
        )
        if completesFirst { opening.complete() }
        opening.fail(.network(Dropped()))
        opening.accept()

        await #expect(throws: SubscriptionFailure.self) { try await opening.answer {} }
        #expect(!opening.isAccepted)
        #expect(opening.isClosed)
    }

    @Test("counts a stream as live from its opening on until it is let go of, also while nobody reads it")
    func liveUnread() async throws {
        let transport = ScriptedTransport<String, Int>(.init(acceptsAtOnce: true))
        let first = try await transport.open("prices", resuming: nil)
        let second = try await transport.open("prices", resuming: nil)
        #expect(transport.live == 2)
        #expect(transport.mostLive == 2)

        _ = consume first
        #expect(transport.live == 1)
        try await transport.nextOpening().feed(1)
        let opening = try await transport.nextOpening()
        opening.feed(1)
        opening.complete()
        var iterator = second.makeAsyncIterator()
        while try await iterator.next() != nil { #expect(transport.live == 1) }

        #expect(transport.live == 0)
        #expect(transport.mostLive == 2)
    }

    @Test("that watches tasks counts no stream of a cancelled one, also between two of its calls")
    func liveBetweenCalls() async throws {
        var manner = ScriptedTransport<String, Int>.Manner(acceptsAtOnce: true)
        manner.watchesTasks = true
        let transport = ScriptedTransport<String, Int>(manner)
        let (opened, isOpen) = AsyncStream<Void>.makeStream()
        let (gate, goOn) = AsyncStream<Void>.makeStream()
        let reading = Task {
            let payloads = try await transport.open("prices", resuming: nil)
            isOpen.finish()
            // Not in a call of the transport's, and deaf to the cancellation.
            await Task { for await _ in gate {} }.value
            _ = consume payloads
        }
        for await _ in opened {}
        #expect(transport.live == 1)

        reading.cancel()

        #expect(transport.live == 0)
        #expect(transport.unclosed == 1)
        let other = try await transport.open("prices", resuming: nil)
        #expect(transport.mostLiveOfOne == 1)
        let another = try await transport.open("prices", resuming: nil)
        #expect(transport.mostLiveOfOne == 2)
        goOn.finish()
        try await reading.value
        #expect(transport.unclosed == 2)
        withExtendedLifetime((other, another)) {}
    }
}
