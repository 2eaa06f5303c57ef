import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("The transport's contract", .timeLimit(.minutes(1)))
struct TransportContractTests {
    struct Cut: Error {}

    /// Plays the server of a scripted transport, until the last opening says so.
    private func play(
        _ transport: ScriptedTransport<String, Int>,
        cutEnds: SubscriptionFailure?
    ) -> Task<Void, any Error> {
        Task {
            while true {
                let opening = try await transport.nextOpening()
                switch opening.request {
                case "endless":
                    opening.accept()
                    opening.feed(1)
                case "completing":
                    opening.accept()
                    opening.feed(1, 2, 3)
                    opening.complete()
                case "cut off":
                    opening.accept()
                    if let cutEnds { opening.fail(cutEnds) } else { opening.complete() }
                case "silent":
                    break
                default:
                    opening.accept()
                    return
                }
            }
        }
    }

    private func check(cutEnds: SubscriptionFailure?) async throws -> [String] {
        let transport = ScriptedTransport<String, Int>()
        let server = play(transport, cutEnds: cutEnds)
        let contract = TransportContract(transport, connections: { transport.unclosed })
        let broken = await contract.check(
            endless: "endless",
            completing: "completing",
            cutOff: "cut off",
            silent: "silent"
        )
        _ = try await transport.open("over", resuming: nil)
        try await server.value
        return broken
    }

    @Test("is kept by a transport that keeps it")
    func kept() async throws {
        #expect(try await check(cutEnds: .network(Cut())) == [])
    }

    @Test("is broken by a transport that takes a cut body for a completion, or for a refusal")
    func broken() async throws {
        #expect(
            try await check(cutEnds: nil) == ["a body that ended without the completion completed the stream"]
        )
        #expect(try await check(cutEnds: .request(Cut())).count == 1)
    }

    @Test("is broken by an iterator that loses what it has at hand")
    func losing() async throws {
        let transport = ScriptedTransport<String, Int>()
        let server = play(transport, cutEnds: .network(Cut()))
        let contract = TransportContract(Losing(transport: transport), connections: { transport.unclosed })
        let broken = await contract.check(
            endless: "endless",
            completing: "completing",
            cutOff: "cut off",
            silent: "silent"
        )
        #expect(broken == ["a stream of 3 payloads is one of 2 where nextIfReady takes them"])
        _ = try await transport.open("over", resuming: nil)
        try await server.value
    }
}

/// Loses the first payload that is taken without waiting.
private struct Losing: SubscriptionTransport {
    struct Payloads: PayloadSequence {
        typealias Element = Int
        typealias Failure = SubscriptionFailure

        let payloads: ScriptedTransport<String, Int>.Payloads

        func makeAsyncIterator() -> Iterator { Iterator(iterator: payloads.makeAsyncIterator()) }
    }

    struct Iterator: PayloadIterator {
        var iterator: ScriptedTransport<String, Int>.Payloads.AsyncIterator
        var hasLost = false

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Int? {
            try await iterator.next()
        }

        mutating func nextIfReady(atMost count: Int) -> [Int]? {
            if !hasLost {
                hasLost = true
                _ = iterator.nextIfReady(atMost: 1)
            }
            return iterator.nextIfReady(atMost: count)
        }
    }

    let transport: ScriptedTransport<String, Int>

    func open(_ request: String, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Payloads {
        Payloads(payloads: try await transport.open(request, resuming: resuming))
    }
}
