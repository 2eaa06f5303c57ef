import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("A wait whose task is cancelled", .timeLimit(.minutes(1)))
struct CancelledWaitTests {
    /// Each wait there is.
    enum Wait: CaseIterable {
        case nextOpening, cancellation, closing, nextDeadline
    }

    /// A stream that is read, and a clock: nothing that is waited for has come yet.
    private struct Scene {
        let clock = TestClock()
        let transport = ScriptedTransport<Int, Int>(.init(acceptsAtOnce: true))
        let opening: ScriptedOpening<Int, Int>
        let reading: Task<Void, any Error>

        init() async throws {
            reading = Task { [transport] in
                var payloads = try await transport.open(0, resuming: nil).makeAsyncIterator()
                _ = try await payloads.next()
            }
            opening = try await transport.nextOpening()
        }

        func wait(_ wait: Wait) async throws(CancellationError) {
            switch wait {
            case .nextOpening: _ = try await transport.nextOpening()
            case .cancellation: try await opening.cancellation()
            case .closing: try await opening.closing()
            case .nextDeadline: _ = try await clock.nextDeadline()
            }
        }

        /// What each wait is for comes.
        func comes() async throws {
            reading.cancel()
            _ = await reading.result
            _ = try await transport.open(1, resuming: nil)
            try await clock.sleep(until: clock.now, tolerance: nil)
        }
    }

    /// What is told once each, in order.
    enum Told: CaseIterable {
        case openings, deadlines
    }

    /// Numbers that one side says and another is told.
    private struct Telling {
        let say: @Sendable (Int) async -> Void
        let next: @Sendable () async throws -> Int

        init(_ told: Told) {
            switch told {
            case .openings:
                let transport = ScriptedTransport<Int, Int>(.init(acceptsAtOnce: true))
                say = { _ = try? await transport.open($0, resuming: nil) }
                next = { try await transport.nextOpening().request }
            case .deadlines:
                let clock = TestClock()
                let start = clock.now
                // Past ones, whose sleeps end at once.
                say = { try? await clock.sleep(until: start - .seconds($0), tolerance: nil) }
                next = { Int(try await clock.nextDeadline().duration(to: start).components.seconds) }
            }
        }
    }

    /// Returns once every task that was begun on the thread waits.
    private func rest(_ thread: OneThread) async {
        await Task(executorPreference: thread) {}.value
    }

    @Test("throws", arguments: Wait.allCases)
    func whileItWaits(_ wait: Wait) async throws {
        let scene = try await Scene()
        let thread = OneThread(label: "waits")
        let waiting = Task(executorPreference: thread) { try await scene.wait(wait) }
        await rest(thread)

        waiting.cancel()

        await #expect(throws: CancellationError.self) { try await waiting.value }
        try await scene.comes()
    }

    @Test("before it begins throws, and takes nothing of what has come", arguments: Wait.allCases, [false, true])
    func before(_ wait: Wait, hasCome: Bool) async throws {
        let scene = try await Scene()
        if hasCome { try await scene.comes() }

        let waiting = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await scene.wait(wait)
        }

        await #expect(throws: CancellationError.self) { try await waiting.value }
        if !hasCome { try await scene.comes() }
        try await scene.wait(wait)
    }

    @Test("leaves what comes next to those who wait beside it, and to who asks next", arguments: Told.allCases, 0..<3)
    func besideOthers(_ told: Told, cancelled: Int) async throws {
        let telling = Telling(told)
        let thread = OneThread(label: "waits")
        var waiting = (0..<3).map { _ in Task(executorPreference: thread) { try await telling.next() } }
        await rest(thread)

        waiting[cancelled].cancel()

        await #expect(throws: CancellationError.self) { try await waiting[cancelled].value }
        waiting.remove(at: cancelled)
        for number in 1...3 { await telling.say(number) }
        #expect(try await waiting[0].value == 1)
        #expect(try await waiting[1].value == 2)
        #expect(try await telling.next() == 3)
    }

    @Test("just as it is handed what it waits for, has nothing lost and nothing told twice", arguments: Told.allCases)
    func handedOver(_ told: Told) async throws {
        let telling = Telling(told)
        let thread = OneThread(label: "waits")
        let threads = AtOnce(2)
        let rounds = 3000
        for round in 0..<rounds {
            let waiting = Task(executorPreference: thread) { try await telling.next() }
            // Half of the time it waits already, else it may only begin to.
            if round.isMultiple(of: 2) { await rest(thread) }

            await threads.run({ waiting.cancel() }, { await telling.say(round) })

            switch await waiting.result {
            case .success(let number): #expect(number == round)
            case .failure: #expect(try await telling.next() == round)
            }
        }
        await telling.say(rounds)
        #expect(try await telling.next() == rounds)
    }
}
