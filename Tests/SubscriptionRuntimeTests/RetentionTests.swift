import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("A retention", .timeLimit(.minutes(10)))
struct RetentionTests {
    // A01
    @Test("opens the stream at once, once, and the first opening is no resumption")
    func opensAtOnce() async throws {
        let rig = Rig()

        let retention = rig.handle.retain()

        #expect(rig.handle.status.isConnecting)
        let opening = try await rig.transport.nextOpening()
        #expect(opening.request == "prices")
        #expect(opening.resuming == nil)
        opening.accept()
        let status = await rig.handle.reaches { $0.isOpen }
        #expect(status.resumptions == 0)
        #expect(status.events == 0)
        opening.feed(1)
        await rig.handle.reaches(events: 1)
        #expect(rig.handle.latest == 1)
        #expect(rig.transport.opened == 1)
        retention.release()
    }

    // A02, A03
    @Test("shares the stream with others, whose releases do not show")
    func sharesTheStream() async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        let whileConnecting = rig.handle.retain()
        _ = try await rig.openStream()
        let whileOpen = rig.handle.retain()
        let revision = rig.handle.revision

        whileConnecting.release()
        first.release()

        #expect(rig.handle.revision == revision)
        #expect(rig.handle.status.isOpen)
        #expect(rig.transport.opened == 1)
        whileOpen.release()
        #expect(rig.handle.status.isIdle)
    }

    // A04
    @Test("released last while the stream connects, cancels the opening and is idle at once")
    func releasedWhileConnecting() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.transport.nextOpening()

        retention.release()

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.error == nil)
        try await opening.cancellation()
        try await opening.closing()
        await rig.rest()
        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.error == nil)
    }

    // A05
    @Test("released last while the stream is open, closes it, and nothing more is counted")
    func releasedWhileOpen() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()

        retention.release()
        opening.feed(1)

        #expect(rig.handle.status.isIdle)
        try await opening.closing()
        await rig.rest()
        #expect(rig.handle.events == 0)
        #expect(rig.handle.latest == nil)
    }

    // A06
    @Test("released last while the stream waits, drops the wait")
    func releasedWhileWaiting() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        for _ in 0..<3 {
            try await rig.transport.nextOpening().fail(.dropped)
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        try await rig.transport.nextOpening().fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }

        retention.release()

        #expect(rig.handle.status.isIdle)
        #expect(rig.environment.waits == 0)
        rig.clock.advance(by: .seconds(3600))
        #expect(rig.transport.opened == 4)
        #expect(rig.handle.status.isIdle)
    }

    // A07
    @Test("counts once, however often it is released")
    func releasedTwice() async {
        let rig = Rig()
        var retention: Retention? = rig.handle.retain()
        let other = rig.handle.retain()

        retention?.release()
        retention?.release()
        retention = nil

        #expect(rig.handle.status.isConnecting)
        other.release()
        #expect(rig.handle.status.isIdle)
    }

    // A08, A09
    @Test("taken anew while a deaf opening goes on, is not answered by that one")
    func aDeafOpening() async throws {
        let rig = Rig(.watched(isDeaf: true))
        let first = rig.handle.retain()
        let deaf = try await rig.transport.nextOpening()
        deaf.feed(1, 2, 3)
        first.release()
        let second = rig.handle.retain()
        let heard = try await rig.transport.nextOpening()

        deaf.accept()
        try await deaf.closing()

        #expect(deaf.taken == 0)
        #expect(rig.handle.status.isConnecting)
        heard.accept()
        let status = await rig.handle.reaches { $0.isOpen }
        #expect(status.resumptions == 0)
        #expect(status.events == 0)
        second.release()
    }

    // A10
    @Test("released around the answer of its opening, in either order, leaves nothing open", arguments: [true, false])
    func releasedAroundTheAnswer(answersFirst: Bool) async throws {
        // The driver runs when it is let: both come before it has seen the first.
        let drivers = HeldExecutor()
        let rig = Rig(.watched(isDeaf: true), driverExecutor: drivers)
        let retention = rig.handle.retain()
        drivers.run()
        let opening = try await rig.transport.nextOpening()
        opening.feed(1)

        if answersFirst { opening.accept() }
        retention.release()
        opening.accept()
        drivers.run()

        #expect(opening.isClosed)
        #expect(opening.taken == 0)
        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.events == 0)
        #expect(rig.environment.running == 0)
    }

    // A11
    @Test("that is the first after a last forgets all but the counts")
    func forgetsAllButTheCounts() async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        for round in 1...3 {
            let opening = try await rig.openStream()
            opening.feed(contentsOf: [round, round], point: ResumePoint([UInt8(round)]))
            await rig.handle.reaches(events: 2 * round)
            opening.fail(.dropped)
            await rig.handle.reaches { $0.isWaiting }
            if round < 3 { rig.clock.advance(to: try await rig.clock.nextDeadline()) }
        }
        #expect(rig.handle.error != nil)
        #expect(rig.handle.latest == 3)

        first.release()
        let second = rig.handle.retain()

        let status = rig.handle.status
        #expect(status.isConnecting)
        #expect(status.events == 6)
        #expect(status.resumptions == 2)
        #expect(status.error == nil)
        #expect(rig.handle.latest == nil)
        let opening = try await rig.transport.nextOpening()
        #expect(opening.resuming == nil)
        opening.fail(.dropped)
        let until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(1))
        second.release()
    }

    // A12
    @Test("that is not kept releases at once")
    func notKept() async throws {
        let rig = Rig()

        _ = rig.handle.retain()

        #expect(rig.handle.status.isIdle)
        let opening = try await rig.transport.nextOpening()
        try await opening.cancellation()
    }

    // A13
    @Test("taken and released without pause never has two live streams, and leaves no task behind")
    func takenAndReleasedWithoutPause() async throws {
        let rig = Rig(.watched(isDeaf: true))
        let rounds = Seeded.count(20_000, full: 100_000)
        let answers = Task {
            for _ in 0..<rounds { try await rig.transport.nextOpening().accept() }
        }

        for _ in 0..<rounds { rig.handle.retain().release() }

        try await answers.value
        await rig.environment.end()
        #expect(rig.environment.running == 0)
        #expect(rig.transport.opened == rounds)
        #expect(rig.transport.mostLiveOfOne <= 1)
        #expect(rig.transport.unclosed == 0)
    }

    // R20
    @Test("cancels the opening before, before the next one starts")
    func cancelsBeforeTheNextStarts() async throws {
        // The cancellation of the first opening retains anew from inside itself: the second must still start after it.
        struct Inside {
            var handle: Handle?
            var retention: Retention?
            var wasStarted: Bool?
        }
        let inside = Lock(Inside())
        let rig = Rig(
            .watched(isDeaf: true),
            onCancel: { _ in
                guard let handle = inside.withLock({ $0.handle.take() }) else { return }
                let retention = handle.retain()
                let wasStarted = handle.isStarted
                inside.withLock { $0 = Inside(retention: retention, wasStarted: wasStarted) }
            }
        )
        inside.withLock { $0.handle = rig.handle }
        let retention = rig.handle.retain()
        let first = try await rig.transport.nextOpening()

        retention.release()

        #expect(inside.withLock { $0.wasStarted } == false)
        #expect(rig.handle.status.isConnecting)
        let second = try await rig.transport.nextOpening()
        #expect(first.isCancelled)
        second.accept()
        await rig.handle.reaches { $0.isOpen }
        first.accept()
        inside.withLock { $0.retention }?.release()
        #expect(rig.handle.status.isIdle)
    }

    // A32
    @Test("hands the point of what was accepted to the next opening")
    func handsTheResumePointOn() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()
        opening.feed(contentsOf: [1, 2], point: ResumePoint([7]))
        await rig.handle.reaches(events: 2)

        opening.fail(.dropped)
        rig.clock.advance(to: try await rig.clock.nextDeadline())

        #expect(try await rig.transport.nextOpening().resuming == ResumePoint([7]))
        retention.release()
    }
}
