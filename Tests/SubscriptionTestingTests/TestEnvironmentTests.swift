import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("A test's environment")
struct TestEnvironmentTests {
    struct Dropped: Error {}

    /// How long the first subscription's first two waits are.
    private func waits(_ environment: SubscriptionEnvironment<String, Int>, _ clock: TestClock) async -> [Duration] {
        let handle = environment.handle(for: "prices")
        let retention = handle.retain()
        var waits: [Duration] = []
        for await status in handle.statuses {
            guard case .waiting(let until) = status.stream else { continue }
            #expect(environment.waiting == 1)
            waits.append(clock.now.duration(to: until))
            if waits.count == 2 { break }
            clock.advance(to: until)
        }
        retention.release()
        #expect(environment.waiting == 0)
        return waits
    }

    /// A transport that refuses every opening.
    private struct Down: SubscriptionTransport {
        func open(
            _ request: String,
            resuming: ResumePoint?
        ) async throws(SubscriptionFailure) -> ScriptedPayloads<String, Int> {
            throw .network(Dropped())
        }
    }

    @Test("waits by the one chance it was made with", arguments: [(0.0, 500, 1000), (1, 1000, 2000)])
    func oneChance(chance: Double, first: Int, second: Int) async {
        let clock = TestClock()
        let environment = SubscriptionEnvironment(transport: Down(), clock: clock, chance: chance)

        #expect(await waits(environment, clock) == [.milliseconds(first), .milliseconds(second)])
    }

    @Test("waits by a chance drawn for each failure")
    func drawnChances() async {
        let clock = TestClock()
        let chances = Lock([0.5, 0])
        let environment = SubscriptionEnvironment(
            transport: Down(),
            clock: clock,
            drawing: { chances.withLock { $0.removeFirst() } }
        )

        #expect(await waits(environment, clock) == [.milliseconds(750), .milliseconds(1000)])
    }
}
