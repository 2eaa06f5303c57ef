import SubscriptionTesting
import Synchronization
import Testing

@testable import SubscriptionRuntime

@Suite("An environment's activity", .timeLimit(.minutes(10)))
struct ActivityTests {
    // E01
    @Test("given up closes an open stream and keeps its owners; taken up opens it again, a resumption")
    func openStream() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()

        rig.environment.isActive = false

        #expect(rig.handle.status.isIdle)
        opening.fail(.dropped)
        try await opening.closing()
        await rig.rest()
        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.error == nil)
        rig.environment.isActive = true
        #expect(rig.handle.status.isConnecting)
        #expect(rig.handle.resumptions == 0)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        retention.release()
    }

    // E02
    @Test("given up and taken up while a stream connects, cancels that opening and opens another")
    func connectingStream() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let first = try await rig.transport.nextOpening()

        rig.environment.isActive = false
        rig.environment.isActive = true

        try await first.cancellation()
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        retention.release()
    }

    // E03
    @Test("given up drops a wait; taken up opens at once")
    func waitingStream() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }

        rig.environment.isActive = false

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.error != nil)
        #expect(rig.environment.waits == 0)
        rig.clock.advance(by: .seconds(3600))
        #expect(rig.transport.opened == 1)
        rig.environment.isActive = true
        _ = try await rig.openStream()
        #expect(rig.transport.opened == 2)
        retention.release()
    }

    // E04, E05
    @Test("changes nothing for what is ended, or retained by nobody")
    func endedOrUnretained() async throws {
        let rig = Rig()
        rig.environment.isActive = false
        rig.environment.isActive = true
        #expect(rig.handle.status.isIdle)
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.refused)
        await rig.handle.reaches { $0.isEnded }
        let revision = rig.handle.revision

        rig.environment.isActive = false
        rig.environment.isActive = true

        #expect(rig.handle.revision == revision)
        #expect(rig.transport.opened == 1)
        retention.release()
    }

    // E06, E07
    @Test("absent parks a new retention; taken up opens it, a resumption, unless it was released")
    func retainedWhileInactive() async throws {
        let rig = Rig()
        rig.environment.isActive = false
        let released = rig.environment.handle(for: "released")
        released.retain().release()

        let retention = rig.handle.retain()

        #expect(rig.handle.status.isIdle)
        rig.environment.isActive = true
        #expect(released.status.isIdle)
        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        #expect(rig.transport.opened == 1)
        retention.release()
    }

    // E08
    @Test("given up, is seen by a machine that has not been told: it is parked by whatever happens next")
    func flippedButNotTold() {
        let now = ContinuousClock.now
        func connecting() -> (SubscriptionStateMachine, SubscriptionStateMachine.StreamID)? {
            var machine = SubscriptionStateMachine()
            return machine.retained(active: true).opened.map { (machine, $0) }
        }
        guard var (opened, stream) = connecting() else {
            Issue.record("it did not open")
            return
        }
        var failed = opened
        var waiting = opened

        guard case .stop = opened.opened(stream, active: false) else {
            Issue.record("an opened stream is not closed")
            return
        }
        #expect(opened.status.isIdle)
        #expect(opened.status.resumptions == 0)

        _ = failed.failed(.dropped, on: stream, now: now, chance: 1, active: false)
        #expect(failed.status.isIdle)

        guard case .wait(let wait, _) = waiting.failed(.dropped, on: stream, now: now, chance: 1, active: true) else {
            Issue.record("it does not wait")
            return
        }
        _ = waiting.elapsed(wait, active: false)
        #expect(waiting.status.isIdle)
        stream = wait
    }

    /// What happens to a stream whose handle has not been told yet.
    enum Untold: CaseIterable {
        case opened, failedToOpen, failed, elapsed
    }

    // E08
    @Test("given up, is seen by a handle that has not been told, whatever happens next", arguments: Untold.allCases)
    func flippedAndTheHandleNotTold(_ untold: Untold) async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        var opening = try await rig.transport.nextOpening()
        switch untold {
        case .opened, .failedToOpen:
            break
        case .failed:
            opening.accept()
            await rig.handle.reaches { $0.isOpen }
        case .elapsed:
            opening.fail(.dropped)
            await rig.handle.reaches { $0.isWaiting }
        }

        let revision = rig.handle.revision
        rig.flipUntold()
        switch untold {
        case .opened: opening.accept()
        case .failedToOpen, .failed: opening.fail(.dropped)
        case .elapsed: rig.clock.advance(to: try await rig.clock.nextDeadline())
        }

        let status = try #require(await rig.handle.core.status(after: revision)?.status)
        try #require(status.isIdle)
        #expect(status.resumptions == 0)
        #expect((status.error == nil) == (untold == .opened))
        try await opening.closing()
        #expect(rig.environment.waits == 0)
        #expect(rig.transport.opened == 1)
        rig.environment.isActive = true
        opening = try await rig.transport.nextOpening()
        opening.accept()
        #expect(await rig.handle.reaches { $0.isOpen }.resumptions == 1)
        retention.release()
    }

    // E09
    @Test(
        "given up, and the handle not told, keeps no completion and no refusal from ending",
        arguments: [true, false]
    )
    func endsAndTheHandleNotTold(completes: Bool) async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()

        rig.flipUntold()
        if completes { opening.complete() } else { opening.fail(.refused) }

        let status = await rig.handle.reaches { !$0.isOpen }
        #expect(completes ? status.isCompleted : status.isRefused)
        retention.release()
    }

    // E09
    @Test("given up, does not keep a completion or a refusal from ending the stream")
    func endsWhileInactive() {
        for failure in [nil, SubscriptionFailure.refused] {
            var machine = SubscriptionStateMachine()
            guard let stream = machine.retained(active: true).opened else {
                Issue.record("it did not open")
                return
            }
            _ = machine.opened(stream, active: true)

            if let failure {
                _ = machine.failed(failure, on: stream, now: .now, chance: 1, active: false)
            } else {
                _ = machine.completed(stream)
            }

            #expect(machine.status.isEnded)
        }
    }

    // E04, E06
    @Test(
        "absent parks an ended stream that is retained anew, and taken up opens it, a resumption",
        arguments: [true, false]
    )
    func retainedAnewWhileInactive(completes: Bool) async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        let opening = try await rig.openStream()
        if completes { opening.complete() } else { opening.fail(.refused) }
        await rig.handle.reaches { $0.isEnded }
        rig.environment.isActive = false
        let revision = rig.handle.revision

        let second = rig.handle.retain()

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.revision == revision + 1)
        #expect((rig.handle.error == nil) == completes)
        rig.environment.isActive = true
        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        first.release()
        second.release()
    }

    // E10
    @Test("set to what it is does nothing")
    func setToWhatItIs() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        _ = try await rig.openStream()
        let revision = rig.handle.revision

        rig.environment.isActive = true
        #expect(rig.handle.revision == revision)
        rig.environment.isActive = false
        rig.environment.isActive = false
        #expect(rig.handle.revision == revision + 1)
        #expect(!rig.environment.isActive)
        retention.release()
    }

    // E11
    @Test("set at random by several threads ends where it was set last")
    func setAtRandom() async {
        let rig = Rig(.watched(acceptsAtOnce: true))
        let environment = rig.environment
        let retention = rig.handle.retain()
        await withTaskGroup { group in
            for thread in 0..<4 {
                group.addTask {
                    var generator = Seeded(seed: UInt64(thread))
                    for _ in 0..<Seeded.count(2500, full: 10_000) { environment.isActive = .random(using: &generator) }
                }
            }
        }

        environment.isActive = true
        await rig.handle.reaches { $0.isOpen }
        #expect(rig.transport.mostLiveOfOne <= 1)
        environment.isActive = false

        #expect(rig.transport.live == 0)
        #expect(rig.handle.status.isIdle)
        #expect(!rig.handle.isStarted)
        await environment.end()
        #expect(rig.transport.unclosed == 0)
        retention.release()
    }

    // E11
    @Test("is given up, for everybody, for one who sets it while another who set it is still telling")
    func givenUpWhileItIsGivenUp() async throws {
        struct Inside {
            var environment: Environment?
            var live: Int?
        }
        let inside = Lock(Inside())
        let rig = Rig(onCancel: { opening in
            // Of the first stream to be closed: every other one is still to be told.
            let environment = inside.withLock { inside in
                defer { inside.environment = nil }
                return inside.environment
            }
            guard let environment else { return }
            environment.isActive = false
            let others = (0..<8).map { environment.handle(for: "\($0)") }.filter { $0.isActive }
            inside.withLock { $0.live = others.count }
            withExtendedLifetime(opening) {}
        })
        let handles = (0..<8).map { rig.environment.handle(for: "\($0)") }
        let retentions = handles.map { $0.retain() }
        for _ in handles { _ = try await rig.transport.nextOpening() }
        inside.withLock { $0.environment = rig.environment }

        rig.environment.isActive = false

        #expect(inside.withLock { $0.live } == 0)
        #expect(rig.transport.live == 0)
        for retention in retentions { retention.release() }
    }

    /// A transport that knows which of its calls run in a task that was not cancelled.
    struct Watched: SubscriptionTransport {
        /// Read under the lock alone, by which a call leaves before its task may end.
        struct Call: @unchecked Sendable {
            var task: UnsafeCurrentTask?
        }

        let base = Transport()
        let calls = Lock<[Call]>([])

        var uncancelled: Int { calls.withLock { $0.count { $0.task?.isCancelled == false } } }

        func open(
            _ request: String,
            resuming point: ResumePoint?
        ) async throws(SubscriptionFailure) -> ScriptedPayloads<String, Int> {
            calls.withLock { calls in withUnsafeCurrentTask { calls.append(Call(task: $0)) } }
            defer { calls.withLock { calls in withUnsafeCurrentTask { task in calls.removeAll { $0.task == task } } } }
            return try await base.open(request, resuming: point)
        }
    }

    // E11
    @Test("given up is true of a stream that another thread is about to close")
    func givenUpWhileItIsReleased() async throws {
        let transport = Watched()
        let environment = Environment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        let threads = AtOnce(2)
        let uncancelled = Lock(0)
        for _ in 0..<Seeded.count(3000, full: 100_000) {
            let retention = handle.retain()
            _ = try await transport.base.nextOpening()

            await threads.run(
                { retention.release() },
                {
                    environment.isActive = false
                    uncancelled.withLock { $0 += transport.uncancelled }
                }
            )

            environment.isActive = true
        }
        #expect(uncancelled.withLock { $0 } == 0)
        await environment.end()
    }

    // E12
    @Test("given up leaves no stream of many handles live; taken up opens those that are retained and not ended")
    func manyHandles() async throws {
        let count = Seeded.count(1000, full: 10_000)
        let owned = count / 10 * 9
        let transport = Transport(.watched())
        let environment = Environment(transport: transport, clock: TestClock())
        let handles = (0..<count).map { environment.handle(for: "\($0)") }
        let retentions = handles.prefix(owned).map { $0.retain() }
        var openings: [Transport.Opening] = []
        for _ in 0..<owned {
            let opening = try await transport.nextOpening()
            openings.append(opening)
            guard let number = Int(opening.request) else { continue }
            switch number % 5 {
            case 0: opening.accept()
            case 1: opening.fail(.dropped)
            case 2: opening.fail(.refused)
            case 3:
                opening.accept()
                opening.complete()
            default: break
            }
            await handles[number].reaches { status in
                switch number % 5 {
                case 0: status.isOpen
                case 1: status.isWaiting
                case 2: status.isRefused
                case 3: status.isCompleted
                default: status.isConnecting
                }
            }
        }

        environment.isActive = false

        #expect(transport.live == 0)
        #expect(environment.waits == 0)
        #expect(!handles.contains { $0.isActive })
        for opening in openings { try await opening.closing() }
        environment.isActive = true
        for (number, handle) in handles.enumerated() {
            #expect(handle.isActive == (number < owned && ![2, 3].contains(number % 5)))
        }
        await environment.end()
        #expect(environment.running == 0)
        for retention in retentions { retention.release() }
    }

    // E13
    @Test("may be given up from a loop over statuses")
    func givenUpFromALoop() async throws {
        let rig = Rig()
        let environment = rig.environment
        let retention = rig.handle.retain()
        let loop = Task {
            for await status in rig.handle.statuses where status.isWaiting {
                environment.isActive = false
                return
            }
        }

        try await rig.transport.nextOpening().fail(.dropped)

        await loop.value
        #expect(rig.handle.status.isIdle)
        retention.release()
    }

    // E14, A8
    @Test("given up loses nothing that was accepted: it comes before the baseline of the next opening")
    func acceptedPayloadsComeFirst() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        let first = try await rig.openStream()
        first.feed(1, 2)
        await rig.handle.reaches(events: 2)

        rig.environment.isActive = false
        rig.environment.isActive = true
        let second = try await rig.openStream()
        second.feed(3)

        var taken: [Delivery<Int>?] = []
        for _ in 0..<5 { taken.append(try await deliveries.next()) }
        #expect(
            taken == [.baseline(.opened), .payload(1), .payload(2), .baseline(.resumed(1)), .payload(3)]
        )
    }

    // E15
    @Test("given up while the stream is held back drops what was not accepted")
    func heldBack() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        let first = try await rig.openStream()
        first.feed(1, 2, 3)
        await rig.handle.reaches(events: 2)

        rig.environment.isActive = false
        try await first.closing()
        rig.environment.isActive = true
        _ = try await rig.openStream()

        var taken: [Delivery<Int>?] = []
        for _ in 0..<4 { taken.append(try await deliveries.next()) }
        #expect(taken == [.baseline(.opened), .payload(1), .payload(2), .baseline(.resumed(1))])
        #expect(rig.handle.events == 2)
    }

    // E15, R20
    @Test("given up while the stream is held back tells the transport so before the flag is set")
    func heldBackIsTold() async throws {
        // The driver has no turn until it is let: what the transport is told, it is told by whoever sets the flag.
        let drivers = HeldExecutor()
        let rig = Rig(driverExecutor: drivers)
        let deliveries = rig.handle.deliveries(limit: 4)
        drivers.run()
        let first = try await rig.transport.nextOpening()
        first.feed(1, 2, 3)
        first.accept()
        drivers.run()
        #expect(rig.handle.events == 2)
        #expect(rig.handle.core.heldBack != nil)

        rig.environment.isActive = false
        #expect(first.isCancelled)

        rig.environment.isActive = true
        drivers.run()
        #expect(first.isClosed)
        #expect(rig.transport.opened == 2)
        withExtendedLifetime(deliveries) {}
    }

    // E16
    @Test("flipped at the moment a handle is made and retained leaves it in no other state")
    func flippedAsItIsRetained() async {
        let transport = Transport(.watched())
        let environment = Environment(transport: transport, clock: TestClock())
        let threads = AtOnce(2)
        let held = Lock<[(handle: Handle, retention: Retention)]>([])
        for round in 0..<Seeded.count(1000, full: 10_000) {
            for isActive in [false, true] {
                let live = Lock(0)
                await threads.run(
                    {
                        let handle = environment.handle(for: "\(round) \(isActive)")
                        let retention = handle.retain()
                        held.withLock { $0.append((handle, retention)) }
                    },
                    {
                        environment.isActive = isActive
                        live.withLock { $0 = transport.live }
                    }
                )

                if !isActive { #expect(live.withLock { $0 } == 0) }
                #expect(held.withLock { $0.allSatisfy { $0.handle.isActive == isActive } })
            }
            held.withLock { held in
                defer { held = [] }
                return held
            }.forEach { $0.retention.release() }
        }
        await environment.end()
        #expect(environment.running == 0)
        #expect(transport.unclosed == 0)
    }

    // E16
    @Test("flipped while handles are made and retained leaves none in the other state")
    func flippedWhileRetained() async {
        let transport = Transport(.watched(acceptsAtOnce: true))
        let environment = Environment(transport: transport, clock: TestClock())
        let rounds = Seeded.count(2000, full: 10_000)
        let retained = Task {
            (0..<rounds).map { number in
                let handle = environment.handle(for: "\(number)")
                return (handle, handle.retain())
            }
        }
        for _ in 0..<50 {
            environment.isActive = false
            #expect(transport.live == 0)
            environment.isActive = true
        }
        let handles = await retained.value

        #expect(handles.allSatisfy { $0.0.isActive })
        environment.isActive = false
        #expect(!handles.contains { $0.0.isActive })
        await environment.end()
        #expect(transport.unclosed == 0)
    }
}

@Suite("The resumptions and the error", .timeLimit(.minutes(10)))
struct ResumptionTests {
    // F01, F02
    @Test("are none at a first opening, and one after failures before it")
    func beforeTheFirstOpening() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        for _ in 0..<3 {
            try await rig.transport.nextOpening().fail(.dropped)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }

        _ = try await rig.openStream()

        #expect(rig.handle.resumptions == 1)
        retention.release()
    }

    // F03, F06
    @Test("rise by one for one outage, however many attempts; the error stays until the opening")
    func oneOutage() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.openStream().fail(.dropped)
        for _ in 0..<6 {
            await rig.handle.reaches { $0.isWaiting }
            #expect(rig.handle.error != nil)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
            let opening = try await rig.transport.nextOpening()
            #expect(rig.handle.error != nil)
            #expect(rig.handle.resumptions == 0)
            opening.fail(.dropped)
        }
        rig.clock.advance(to: try await rig.clock.nextDeadline())

        _ = try await rig.openStream()

        #expect(rig.handle.resumptions == 1)
        #expect(rig.handle.error == nil)
        retention.release()
    }

    // F04
    @Test("have risen before the first payload of the new stream")
    func beforeTheFirstPayload() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        try await rig.openStream().fail(.dropped)
        rig.clock.advance(to: try await rig.clock.nextDeadline())
        let opening = try await rig.transport.nextOpening()
        opening.feed(1)
        opening.accept()
        await rig.handle.reaches { $0.isOpen }

        #expect(try await deliveries.next() == .baseline(.resumed(1)))
        #expect(rig.handle.resumptions == 1)
        #expect(try await deliveries.next() == .payload(1))
        #expect(rig.handle.events >= 1)
    }

    // F07
    @Test("are told apart from a completion, which clears the error")
    func completion() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        rig.clock.advance(to: try await rig.clock.nextDeadline())

        try await rig.openStream().complete()

        #expect(await rig.handle.reaches { $0.isCompleted }.error == nil)
        retention.release()
    }

    // F08
    @Test("do not rise for a retention after the last release")
    func afterTheLastRelease() async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        try await rig.openStream().fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }
        first.release()

        let second = rig.handle.retain()
        _ = try await rig.openStream()

        #expect(rig.handle.resumptions == 0)
        second.release()
    }
}
