import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("The backoff", .timeLimit(.minutes(5)))
struct BackoffTests {
    // C01
    @Test("doubles from one second to thirty, half of each step by chance", arguments: [0, 0.5, 1])
    func doubles(chance: Double) {
        for (attempt, seconds) in [1, 2, 4, 8, 16, 30, 30, 30].enumerated() {
            let step = Duration.seconds(seconds)
            let expected = step / 2 + .milliseconds(Int(Double(seconds) * 500 * chance))

            #expect(Backoff.step(attempt) == step)
            #expect(Backoff.delay(after: attempt, chance: chance, retryAfter: nil) == expected)
        }
    }

    // C02
    @Test("stays at its cap after any number of waits")
    func staysAtItsCap() {
        #expect(Backoff.delay(after: 1_000_000, chance: 1, retryAfter: nil) == .seconds(30))
        #expect(Backoff.delay(after: .max, chance: 0, retryAfter: nil) == .seconds(15))
        #expect(Backoff.step(-1) == .seconds(1))
    }

    // C02
    @Test("stays at its cap for a machine that has waited any number of times")
    func machineStaysAtItsCap() {
        var machine = SubscriptionStateMachine()
        let now = ContinuousClock.now
        var stream = machine.retained(active: true).opened
        for _ in 0..<Seeded.count(20_000, full: 1_000_000) {
            guard let id = stream,
                case .wait(let wait, let until) = machine.failed(.dropped, on: id, now: now, chance: 1, active: true)
            else {
                Issue.record("it does not wait")
                return
            }
            guard now.duration(to: until) <= .seconds(30) else {
                Issue.record("a wait of \(now.duration(to: until))")
                return
            }
            stream = machine.elapsed(wait, active: true).opened
        }
        #expect(machine.attempt == Seeded.count(20_000, full: 1_000_000))
    }

    // C06
    @Test("is the first step after each payload, though what cannot be read follows it, and grows where nothing can be")
    func unreadable() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        var waits: [Duration] = []
        for round in 0..<8 {
            let opening = try await rig.openStream()
            // An event that cannot be read is a network failure of the transport's, and no payload.
            if round < 4 { opening.feed(round) }
            opening.fail(.network(Dropped()))
            let until = await rig.handle.reaches { $0.isWaiting }.until
            waits.append(rig.clock.now.duration(to: until ?? .now))
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        #expect(waits == [1, 1, 1, 1, 2, 4, 8, 16].map { .seconds($0) })
        retention.release()
    }

    // C09
    @Test("takes its chance to the nanosecond")
    func takesItsChanceExactly() {
        #expect(Backoff.delay(after: 0, chance: 0.37, retryAfter: nil) == .milliseconds(685))
        #expect(Backoff.delay(after: 2, chance: 0.37, retryAfter: nil) == .milliseconds(2740))
    }

    @Test("brings a chance outside of zero to one into it", arguments: [(-1, 0.5), (2, 1), (.nan, 1)])
    func foreignChance(chance: Double, seconds: Double) {
        #expect(Backoff.delay(after: 0, chance: chance, retryAfter: nil) == .seconds(seconds))
    }

    // A16
    @Test("is never shorter than the server's word, jittered upward by up to a half")
    func retryAfter() {
        #expect(Backoff.delay(after: 0, chance: 0, retryAfter: .seconds(10)) == .seconds(10))
        #expect(Backoff.delay(after: 0, chance: 1, retryAfter: .seconds(10)) == .seconds(15))
        #expect(Backoff.delay(after: 5, chance: 0, retryAfter: .seconds(10)) == .seconds(15))
        #expect(Backoff.delay(after: 0, chance: 1, retryAfter: .zero) == .seconds(1))
        #expect(Backoff.delay(after: 0, chance: 1, retryAfter: .seconds(-5)) == .seconds(1))
        #expect(Backoff.delay(after: 0, chance: 1, retryAfter: .seconds(Int64.max)) == .seconds(900))
    }

    // A16
    @Test("covers one wait by the server's word, and a retry skips it")
    func retryAfterCoversOneWait() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.network(Dropped(), retryAfter: .seconds(100)))
        var until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(150))

        rig.handle.retry()
        try await rig.transport.nextOpening().fail(.dropped)

        until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(2))
        retention.release()
    }

    // C03, C05
    @Test("starts over with each payload")
    func startsOverWithAPayload() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        for _ in 0..<4 {
            try await rig.transport.nextOpening().fail(.dropped)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        for _ in 0..<8 {
            let opening = try await rig.openStream()
            opening.feed(1)
            opening.fail(.dropped)

            let until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
            #expect(rig.clock.now.duration(to: until) == .seconds(1))
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        retention.release()
    }

    // C04
    @Test("goes on over a server that accepts and drops, each opening after the first a resumption")
    func goesOnWithoutAPayload() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        for (round, seconds) in [1, 2, 4, 8, 16, 30, 30, 30].enumerated() {
            try await rig.openStream().fail(.dropped)

            let status = await rig.handle.reaches { $0.isWaiting }
            let until = try #require(status.until)
            #expect(rig.clock.now.duration(to: until) == .seconds(seconds))
            #expect(status.resumptions == round)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        retention.release()
    }

    // C07
    @Test("goes on over a parking")
    func goesOnOverAParking() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        for _ in 0..<2 {
            try await rig.transport.nextOpening().fail(.dropped)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        try await rig.transport.nextOpening().fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }

        rig.environment.isActive = false
        #expect(rig.environment.waits == 0)
        rig.clock.advance(by: .seconds(100))
        #expect(rig.transport.opened == 3)
        rig.environment.isActive = true
        try await rig.transport.nextOpening().fail(.dropped)

        let until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(8))
        retention.release()
    }

    // C08
    @Test("goes on over a retry")
    func goesOnOverARetry() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }

        rig.handle.retry()
        try await rig.transport.nextOpening().fail(.dropped)

        let until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(2))
        retention.release()
    }

    // C09
    @Test("opens at its instant and not a nanosecond earlier")
    func opensAtItsInstant() async throws {
        let rig = Rig(chance: 0.37)
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        let until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .milliseconds(685))
        #expect(try await rig.clock.nextDeadline() == until)

        rig.clock.advance(to: until - .nanoseconds(1))
        #expect(rig.clock.sleepers == 1)
        #expect(rig.handle.status.isWaiting)
        rig.clock.advance(to: until)

        _ = try await rig.transport.nextOpening()
        #expect(rig.handle.status.isConnecting)
        retention.release()
    }

    // C10
    @Test("spreads its waits evenly over the upper half of the step, each handle by itself")
    func spreadsEvenly() async throws {
        let generator = Lock(Seeded())
        let seed = generator.withLock { $0.seed }
        let clock = TestClock()
        let transport = Transport()
        let environment = Environment(
            transport: transport,
            clock: clock,
            drawing: { generator.withLock { .random(in: 0...1, using: &$0) } }
        )
        let handles = ["first", "second"].map { environment.handle(for: $0) }
        let retentions = handles.map { $0.retain() }
        let draws = Seeded.count(5000, full: 100_000)
        var parts: [String: [Double]] = [:]
        for round in 0..<draws {
            let step = Backoff.step(round)
            for _ in handles {
                let opening = try await transport.nextOpening()
                let handle = environment.handle(for: opening.request)
                opening.fail(.dropped)
                let until = try #require(await handle.reaches { $0.isWaiting }.until)
                let delay = clock.now.duration(to: until)
                guard delay >= step / 2, delay <= step else {
                    Issue.record("a wait of \(delay) in a step of \(step), seed \(seed)")
                    return
                }
                parts[opening.request, default: []].append((delay - step / 2) / (step / 2))
            }
            for handle in handles { handle.retry() }
        }
        for retention in retentions { retention.release() }
        let first = try #require(parts["first"])
        let second = try #require(parts["second"])

        // Kolmogorov-Smirnov against the uniform law: 1.95 / sqrt(n) is p = 0.001.
        for sorted in [first.sorted(), second.sorted()] {
            let distance = sorted.enumerated().reduce(0) { worst, point in
                max(worst, abs(Double(point.offset) / Double(draws) - point.element))
            }
            #expect(distance < 1.95 / Double(draws).squareRoot(), "seed \(seed)")
        }

        let mean = 0.5
        let covariance = zip(first, second).reduce(0) { $0 + ($1.0 - mean) * ($1.1 - mean) } / Double(draws)
        // The correlation of independent draws has a deviation of 1 / sqrt(n); four of them.
        #expect(abs(covariance * 12) < 4 / Double(draws).squareRoot(), "seed \(seed)")
    }

    // C10, R4
    @Test("brings no quarter of a herd back within a fifth of any wait's spread, a tenth of a second of the first")
    func spreadsAHerd() async throws {
        let generator = Lock(Seeded(seed: 1))
        let clock = TestClock()
        let transport = Transport()
        let environment = Environment(
            transport: transport,
            clock: clock,
            drawing: { generator.withLock { .random(in: 0...1, using: &$0) } }
        )
        let handles = (0..<1000).map { environment.handle(for: "\($0)") }
        let retentions = handles.map { $0.retain() }
        for wait in 0..<7 {
            for _ in handles { try await transport.nextOpening().fail(.dropped) }
            let half = Backoff.step(wait) / 2
            var bins = [Int](repeating: 0, count: 5)
            for handle in handles {
                let until = try #require(await handle.reaches { $0.isWaiting }.until)
                let part = (clock.now.duration(to: until) - half) / half
                try #require((0...1).contains(part))
                bins[min(4, Int(part * 5))] += 1
            }

            #expect(bins.allSatisfy { $0 <= 260 }, "wait \(wait): \(bins)")
            for handle in handles { handle.retry() }
        }
        for retention in retentions { retention.release() }
        await environment.end()
    }

    // C12
    @Test("slept through opens once, at the wake")
    func sleptThrough() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        _ = try await rig.clock.nextDeadline()

        rig.clock.advance(by: .seconds(3600))

        _ = try await rig.transport.nextOpening()
        #expect(rig.transport.opened == 2)
        #expect(rig.environment.waits == 0)
        retention.release()
    }

    // C11
    @Test("does not open when a clock wakes early: it sleeps on")
    func aClockThatWakesEarly() async throws {
        let clock = EarlyClock()
        let transport = Transport()
        let environment = Environment(transport: transport, clock: clock)
        let handle = environment.handle(for: "prices")
        let retention = handle.retain()
        try await transport.nextOpening().fail(.dropped)
        let until = try #require(await handle.reaches { $0.isWaiting }.until)

        // The sleep that ends early leads to another for the same instant.
        #expect(try await clock.test.nextDeadline() == until - .milliseconds(10))
        clock.test.advance(to: until - .milliseconds(10))
        #expect(try await clock.test.nextDeadline() == until)
        #expect(handle.status.isWaiting)
        #expect(transport.opened == 1)
        clock.test.advance(to: until)

        _ = try await transport.nextOpening()
        retention.release()
    }

    // C13
    @Test("of several handles ends in the order of their instants, by one sleep at a time")
    func severalHandles() async throws {
        let clock = TestClock()
        let transport = Transport()
        let chances = Lock([1, 0.5, 0])
        let environment = Environment(
            transport: transport,
            clock: clock,
            unit: { chances.withLock { $0.removeFirst() } }
        )
        var retentions: [Retention] = []
        for name in ["last", "second", "first"] {
            retentions.append(environment.handle(for: name).retain())
            try await transport.nextOpening().fail(.dropped)
            _ = try await clock.nextDeadline()
        }
        #expect(environment.waits == 3)
        #expect(environment.core.state.sleeper.armings == 3)

        var order: [String] = []
        clock.advance(by: .milliseconds(500))
        for _ in 0..<3 {
            order.append(try await transport.nextOpening().request)
            if order.count < 3 { clock.advance(to: try await clock.nextDeadline()) }
        }

        #expect(order == ["first", "second", "last"])
        for retention in retentions { retention.release() }
    }

    /// Waits for nothing that happens.
    final class Nobody: Elapsing {
        func elapsed(_ id: SubscriptionStateMachine.StreamID) {
            Issue.record("a wait was reported that nobody let end")
        }
    }

    // M03
    @Test("may be dropped after the end of all waits, by who decided so before it")
    func droppedAfterTheEnd() {
        let clock = TestClock()
        let sleeper = Sleeper(clock: clock)
        let waits = (1...3).map { number in
            Wait(Nobody(), id: .init(number: UInt64(number)), until: clock.now + .seconds(number))
        }
        for wait in waits { sleeper.add(wait) }

        sleeper.stop()
        for wait in waits { sleeper.drop(wait) }

        #expect(sleeper.count == 0)
        sleeper.add(waits[0])
        #expect(sleeper.count == 0)
    }

    /// Notes that its wait was reported.
    final class Noting: Elapsing {
        private let report: AsyncStream<Void>.Continuation

        init(_ report: AsyncStream<Void>.Continuation) {
            self.report = report
        }

        func elapsed(_ id: SubscriptionStateMachine.StreamID) {
            report.yield()
        }
    }

    // M10
    @Test("that is added, earlier than all others, just as the sleep for those ends, is reported like them")
    func addedAtTheWake() async throws {
        let threads = AtOnce(2)
        for round in 0..<Seeded.races() {
            let clock = TestClock()
            let sleeper = Sleeper(clock: clock)
            let (reports, report) = AsyncStream<Void>.makeStream()
            let noting = Noting(report)
            let late = clock.now + .seconds(10)
            sleeper.add(Wait(noting, id: .init(number: 1), until: late))
            _ = try await clock.nextDeadline()
            // Earlier than the sleep, as late, or later than where the clock goes.
            let early = clock.now + .seconds([5, 10, 12][round % 3])

            await threads.run(
                { clock.advance(to: late) },
                { sleeper.add(Wait(noting, id: .init(number: 2), until: early)) }
            )
            if early > late { clock.advance(to: try await sleepers(clock, until: early)) }

            var count = 0
            for await _ in reports {
                count += 1
                if count == 2 { break }
            }
            #expect(sleeper.count == 0)
            sleeper.stop()
        }
    }

    /// The instant, once somebody sleeps until it.
    private func sleepers(
        _ clock: TestClock,
        until instant: ContinuousClock.Instant
    ) async throws -> ContinuousClock.Instant {
        while try await clock.nextDeadline() != instant {}
        return instant
    }

    // C14
    @Test("takes no step for a failure that parks")
    func aParkedFailureTakesNoStep() {
        var machine = SubscriptionStateMachine()
        let now = ContinuousClock.now
        var id = machine.retained(active: true).opened
        for _ in 0..<3 {
            guard let stream = id else { break }
            _ = machine.failed(.dropped, on: stream, now: now, chance: 1, active: true)
            id = machine.retried(active: true).opened
        }
        guard let stream = id else {
            Issue.record("it did not open")
            return
        }

        _ = machine.failed(.dropped, on: stream, now: now, chance: 1, active: false)

        #expect(machine.status.isIdle)
        #expect(machine.status.error != nil)
        #expect(machine.attempt == 3)
        guard let next = machine.activityChanged(active: true).opened else {
            Issue.record("it did not open")
            return
        }
        _ = machine.failed(.dropped, on: next, now: now, chance: 1, active: true)
        #expect(machine.status.until == now + .seconds(8))
    }
}

/// A clock that a test moves, whose first sleep ends ten milliseconds early.
final class EarlyClock: SubscriptionClock {
    let test = TestClock()
    private let isFirst = Lock(true)

    var now: ContinuousClock.Instant { test.now }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        let isEarly = isFirst.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        try await test.sleep(until: isEarly ? deadline - .milliseconds(10) : deadline, tolerance: tolerance)
    }
}
