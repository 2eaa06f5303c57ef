import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("A clock that a test moves")
struct TestClockTests {
    @Test("a sleep ends when the clock reaches its deadline, and not before")
    func aSleepEndsAtItsDeadline() async throws {
        let clock = TestClock()
        let start = clock.now
        let sleep = Task { try await clock.sleep(until: start + .seconds(5), tolerance: nil) }

        let deadline = try await clock.nextDeadline()
        #expect(deadline == start + .seconds(5))
        clock.advance(by: .seconds(5) - .nanoseconds(1))
        #expect(clock.sleepers == 1)

        clock.advance(to: deadline)
        #expect(clock.sleepers == 0)
        try await sleep.value
    }

    @Test("a sleep until an instant that is past ends at once, and is told of")
    func aPastDeadline() async throws {
        let clock = TestClock()

        try await clock.sleep(until: clock.now, tolerance: nil)

        #expect(try await clock.nextDeadline() == clock.now)
    }

    @Test("a cancelled sleep throws, and is forgotten")
    func aCancelledSleep() async throws {
        let clock = TestClock()
        let sleep = Task { try await clock.sleep(until: clock.now + .seconds(5), tolerance: nil) }
        _ = try await clock.nextDeadline()

        sleep.cancel()

        await #expect(throws: CancellationError.self) { try await sleep.value }
        #expect(clock.sleepers == 0)
    }

    @Test("moved on by several threads at once goes as far as all of them say")
    func movedAtOnce() async {
        let clock = TestClock()
        let start = clock.now

        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10_000 { clock.advance(by: .nanoseconds(1)) }
                }
            }
        }

        #expect(start.duration(to: clock.now) == .nanoseconds(40_000))
        clock.advance(by: .seconds(-1))
        #expect(start.duration(to: clock.now) == .nanoseconds(40_000))
    }
}
