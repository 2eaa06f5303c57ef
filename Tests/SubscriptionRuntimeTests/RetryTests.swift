import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("A retry", .timeLimit(.minutes(10)))
struct RetryTests {
    // D01
    @Test("opens a waiting stream at once, and the wait is gone")
    func whileWaiting() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        let deadline = try await rig.clock.nextDeadline()

        rig.handle.retry()

        #expect(rig.handle.status.isConnecting)
        #expect(rig.handle.error != nil)
        #expect(rig.environment.waits == 0)
        _ = try await rig.transport.nextOpening()
        rig.clock.advance(to: deadline)
        #expect(rig.transport.opened == 2)
        retention.release()
    }

    // D02
    @Test("by a hundred tasks opens once")
    func byManyTasks() async throws {
        let rig = Rig()
        let handle = rig.handle
        let retention = handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        await handle.reaches { $0.isWaiting }

        await withTaskGroup { group in
            for _ in 0..<100 { group.addTask { handle.retry() } }
        }

        _ = try await rig.openStream()
        #expect(rig.transport.opened == 2)
        retention.release()
    }

    // D03
    @Test("does nothing to a stream that connects, is open, is parked, is nobody's or is gone")
    func whereThereIsNothingToRetry() async throws {
        let rig = Rig()
        func retryDoesNothing(_ comment: Comment) {
            let revision = rig.handle.revision
            rig.handle.retry()
            #expect(rig.handle.revision == revision, comment)
        }
        retryDoesNothing("unretained")
        let retention = rig.handle.retain()
        retryDoesNothing("connecting")
        _ = try await rig.openStream()
        retryDoesNothing("open")
        rig.environment.isActive = false
        retryDoesNothing("parked")
        retention.release()
        retryDoesNothing("released")
        await rig.environment.end()
        retryDoesNothing("gone")
    }

    // D04, D07
    @Test("opens an ended stream, whatever ended it; the error stays until the opening, which is a resumption")
    func whileEnded() async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        let second = rig.handle.retain()
        let ends: [(Transport.Opening) -> Void] = [
            { $0.complete() },
            { $0.fail(.refused) },
            { $0.fail(.environment(.transport(Dropped()))) },
        ]
        for (round, end) in ends.enumerated() {
            let opening = try await rig.openStream()
            #expect(rig.handle.resumptions == round)
            #expect(rig.handle.error == nil)
            end(opening)
            let ended = await rig.handle.reaches { $0.isEnded }

            rig.handle.retry()

            #expect(rig.handle.status.isConnecting)
            #expect((rig.handle.error == nil) == (ended.error == nil))
        }
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 3)
        first.release()
        second.release()
    }

    // D05
    @Test("of an ended stream while the environment is inactive, arms it for the activity", arguments: [true, false])
    func whileInactive(completes: Bool) async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()
        if completes { opening.complete() } else { opening.fail(.refused) }
        await rig.handle.reaches { $0.isEnded }
        rig.environment.isActive = false
        #expect(rig.handle.status.isEnded)
        let revision = rig.handle.revision

        rig.handle.retry()

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.revision == revision + 1)
        #expect((rig.handle.error == nil) == completes)
        rig.environment.isActive = true
        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        retention.release()
    }

    // D06
    @Test("or a release, a parking or an end that comes before the wait's last moment makes that moment stale")
    func aStaleElapse() {
        let inputs: [(inout SubscriptionStateMachine) -> Void] = [
            { _ = $0.retried(active: true) },
            { _ = $0.released() },
            { _ = $0.activityChanged(active: false) },
            { _ = $0.environmentEnded() },
        ]
        for input in inputs {
            var machine = SubscriptionStateMachine()
            guard let stream = machine.retained(active: true).opened else {
                Issue.record("it did not open")
                return
            }
            let action = machine.failed(.dropped, on: stream, now: .now, chance: 1, active: true)
            guard case .wait(let wait, _) = action else {
                Issue.record("it did not wait")
                return
            }
            input(&machine)
            let revision = machine.revision

            _ = machine.elapsed(wait, active: true)

            #expect(machine.revision == revision)
        }
    }

    // D08
    @Test("from the catch of the only loop does nothing: its owner is released")
    func fromTheCatchOfTheOnlyLoop() async throws {
        let rig = Rig()
        let loop = Task {
            do {
                for try await _ in rig.handle.deliveries() {}
            } catch {
                rig.handle.retry()
                return rig.handle.status
            }
            return rig.handle.status
        }

        try await rig.transport.nextOpening().fail(.refused)

        #expect(await loop.value.isIdle)
        #expect(rig.transport.opened == 1)
    }

    // D09
    @Test("refused again ends again, and is no resumption")
    func refusedAgain() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.refused)
        await rig.handle.reaches { $0.isEnded }
        let revision = rig.handle.revision

        rig.handle.retry()
        try await rig.transport.nextOpening().fail(.refused)

        let status = await rig.handle.reaches { $0.isEnded }
        #expect(rig.handle.revision == revision + 2)
        #expect(status.resumptions == 0)
        retention.release()
    }

    // D10
    @Test("at every wait of a server that is down keeps no wait and no memory behind")
    func againAndAgain() async throws {
        let rounds = Seeded.count(2000, full: 10_000)
        // A process of its own: its memory is this test's alone.
        await #expect(processExitsWith: .success) { [rounds = rounds as Int] in
            let rig = Rig()
            let retention = rig.handle.retain()
            let failures = Task {
                for _ in 0...rounds { try await rig.transport.nextOpening().fail(.dropped) }
            }

            // The sleep has begun: one whose wait is dropped before that ends at once, and another is begun.
            _ = try await rig.clock.nextDeadline()
            var resident = 0
            for round in 0..<rounds {
                if round == rounds / 2 { resident = ProcessMemory.resident }
                await rig.handle.reaches { $0.isWaiting }
                rig.handle.retry()
            }
            #expect(ProcessMemory.resident - resident <= ProcessMemory.slack)

            try await failures.value
            await rig.handle.reaches { $0.isWaiting }
            #expect(rig.transport.opened == rounds + 1)
            #expect(rig.environment.waits == 1)
            #expect(rig.environment.core.state.sleeper.armings == 1)
            retention.release()
            #expect(rig.environment.waits == 0)
        }
    }
}
