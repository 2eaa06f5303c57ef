import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("The transport's contract", .timeLimit(.minutes(1)))
struct TransportContractTests {
    struct Cut: Error {}

    /// Plays the server of a scripted transport, until the last opening says so.
    private func play(_ transport: ScriptedTransport<String, Int>, cutEnds: SubscriptionFailure?) -> Task<Void, Never> {
        Task {
            while !Task.isCancelled {
                let opening = await transport.nextOpening()
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
        await server.value
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
}
