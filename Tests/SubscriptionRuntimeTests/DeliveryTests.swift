import Foundation
import SubscriptionTesting
import Synchronization
import Testing

@testable import SubscriptionRuntime

@Suite("An owner's deliveries", .timeLimit(.minutes(10)))
struct DeliveryTests {
    // H01
    @Test("of an owner alone lose nothing, and are read its window ahead at most")
    func aloneAndSlow() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries(limit: 2).makeAsyncIterator()
        let opening = try await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...50))
        opening.accept()
        #expect(try await deliveries.next() == .baseline(.opened))

        for number in 1...50 {
            #expect(try await deliveries.next() == .payload(number))
            #expect(opening.taken <= number + 1)
        }
    }

    // H02
    @Test("of an owner alone lose nothing, whatever its limit and however long it sleeps", arguments: [1, 2, 16, 256])
    func aloneAtAnyPace(limit: Int) async throws {
        let rig = Rig()
        let clock = rig.clock
        let count = Seeded.count(20_000, full: 1_000_000)
        let deliveries = rig.handle.deliveries(limit: limit)
        let opening = try await rig.transport.nextOpening()
        opening.accept()
        // A sleep is over as soon as its deadline is told, and whoever was ready before goes first.
        let time = Task {
            while true { clock.advance(to: try await clock.nextDeadline()) }
        }
        @Sendable func sleep(_ generator: inout Seeded) async throws {
            let pause = Duration.milliseconds(Int.random(in: 1...1000, using: &generator))
            try await clock.sleep(until: clock.now + pause, tolerance: nil)
        }
        let feeding = Task {
            var generator = Seeded(seed: UInt64(limit))
            var next = 1
            while next <= count {
                let end = min(count, next + Int.random(in: 0..<50, using: &generator))
                opening.feed(contentsOf: Array(next...end))
                next = end + 1
                if Int.random(in: 0..<4, using: &generator) == 0 { try await sleep(&generator) }
            }
            opening.complete()
        }

        var generator = Seeded(seed: 1)
        var last = 0
        var most = 0
        for try await delivery in deliveries {
            guard case .payload(let number) = delivery else {
                #expect(delivery == .baseline(.opened))
                continue
            }
            #expect(number == last + 1)
            last = number
            most = max(most, opening.taken - number)
            if Int.random(in: 0..<64, using: &generator) == 0 { try await sleep(&generator) }
        }

        #expect(last == count)
        #expect(most <= limit)
        try await feeding.value
        time.cancel()
    }

    // H03, H07
    @Test("of one that is stuck do not slow another, and tell it what it lost")
    func stuck() async throws {
        let rig = Rig()
        var fast = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        var stuck = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        let opening = try await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...10))
        opening.accept()

        #expect(try await fast.next() == .baseline(.opened))
        for number in 1...10 { #expect(try await fast.next() == .payload(number)) }

        #expect(try await stuck.next() == .baseline(.lagged(dropped: 10)))
        opening.feed(11, 12)
        #expect(try await stuck.next() == .payload(11))
        #expect(try await stuck.next() == .payload(12))
        #expect(try await fast.next() == .payload(11))
        #expect(try await fast.next() == .payload(12))
    }

    @Test("hold the limit, what the loop has at hand included, and not one payload more")
    func theBound() {
        let gauge = Gauge()
        let mailbox = Mailbox(limit: 4, gauge: gauge)
        var debris: Mailbox.Debris?

        #expect(mailbox.append(Batch([1, 2]), &debris) == nil)
        guard case .payloads(let batch)? = mailbox.take(), batch.unsent(of: Int.self) == [1, 2] else {
            Issue.record("the batch does not come as it was")
            return
        }
        #expect(mailbox.append(Batch([3, 4]), &debris) == nil)
        #expect(mailbox.room == -2)
        #expect(mailbox.append(Batch([5]), &debris) == 3)

        #expect(mailbox.isLagging)
        guard case .baseline(.lagged(dropped: 3))? = mailbox.take() else {
            Issue.record("the loss is not told")
            return
        }
        #expect(!gauge.isCalled(at: 2))
        #expect(mailbox.append(Batch([6, 7, 8, 9]), &debris) == nil)
    }

    // H04
    @Test("of owners at one pace lose nothing to each other")
    func atOnePace() async throws {
        let rig = Rig()
        var first = rig.handle.deliveries(limit: 8).makeAsyncIterator()
        var second = rig.handle.deliveries(limit: 8).makeAsyncIterator()
        let opening = try await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...4000))
        opening.accept()
        #expect(try await first.next() == .baseline(.opened))
        #expect(try await second.next() == .baseline(.opened))

        for number in 1...4000 {
            #expect(try await first.next() == .payload(number))
            #expect(try await second.next() == .payload(number))
        }
    }

    // H06
    @Test("go on when the owner that held the stream back is gone")
    func theSlowOneLeaves() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let hung = rig.handle.deliveries(limit: 2)
        let opening = try await rig.openStream()
        opening.feed(contentsOf: Array(1...10))
        await rig.handle.reaches(events: 1)
        #expect(opening.taken == 1)

        _ = consume hung

        await rig.handle.reaches(events: 10)
        retention.release()
    }

    // H08, H09
    @Test("merge a loss and the openings after it into one baseline, and pass by what comes until it is taken")
    func mergedBaselines() async throws {
        let rig = Rig()
        var fast = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        var stuck = rig.handle.deliveries(limit: 4).makeAsyncIterator()
        var opening = try await rig.openStream()
        opening.feed(contentsOf: Array(1...10))
        #expect(try await fast.next() == .baseline(.opened))
        for number in 1...10 { #expect(try await fast.next() == .payload(number)) }
        for round in 1...3 {
            opening.fail(.dropped)
            await rig.handle.reaches { $0.isWaiting }
            rig.clock.advance(to: try await rig.clock.nextDeadline())
            opening = try await rig.openStream()
            #expect(try await fast.next() == .baseline(.resumed(round)))
        }
        opening.feed(11)
        #expect(try await fast.next() == .payload(11))

        #expect(try await stuck.next() == .baseline(.resumed(3)))
        opening.feed(12)
        #expect(try await stuck.next() == .payload(12))
    }

    // H09
    @Test("merge openings that nobody saw")
    func unseenOpenings() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        for _ in 1...3 {
            try await rig.openStream().fail(.dropped)
            await rig.handle.reaches { $0.isWaiting }
            rig.clock.advance(to: try await rig.clock.nextDeadline())
        }
        let opening = try await rig.openStream()
        opening.feed(1)

        #expect(try await deliveries.next() == .baseline(.resumed(3)))
        #expect(try await deliveries.next() == .payload(1))
    }

    // H10
    @Test("end with the loop that is left, though the sequence is held")
    func leftLoop() async throws {
        let rig = Rig()
        let deliveries = rig.handle.deliveries()
        let opening = try await rig.openStream()

        for try await _ in deliveries { break }

        #expect(rig.handle.status.isIdle)
        try await opening.closing()
        for try await _ in deliveries { Issue.record("a finished sequence goes on") }
    }

    /// When the loop's task is cancelled.
    enum Moment: CaseIterable {
        case inNext, betweenPayloads, beforeTheFirst
    }

    // H11
    @Test("end by nil when the loop's task is cancelled, and release", arguments: Moment.allCases)
    func cancelledLoop(moment: Moment) async throws {
        let rig = Rig()
        let deliveries = rig.handle.deliveries()
        let opening = try await rig.openStream()
        opening.feed(1, 2, 3)
        await rig.handle.reaches(events: 3)
        let (reached, reach) = AsyncStream<Void>.makeStream()
        let (cancelled, cancel) = AsyncStream<Void>.makeStream()
        let loop = Task {
            if moment == .beforeTheFirst {
                reach.finish()
                for await _ in cancelled {}
            }
            var taken: [Delivery<Int>] = []
            for try await delivery in deliveries {
                taken.append(delivery)
                if moment == .betweenPayloads, delivery == .payload(1) {
                    reach.finish()
                    withUnsafeCurrentTask { $0?.cancel() }
                }
                if moment == .inNext, delivery == .payload(3) { reach.finish() }
            }
            return taken
        }
        for await _ in reached {}

        loop.cancel()
        cancel.finish()

        let taken = try await loop.value
        switch moment {
        case .inNext: #expect(taken == [.baseline(.opened), .payload(1), .payload(2), .payload(3)])
        case .betweenPayloads: #expect(taken == [.baseline(.opened), .payload(1)])
        case .beforeTheFirst: #expect(taken.isEmpty)
        }
        try await opening.closing()
        #expect(rig.handle.status.isIdle)
    }

    // H12
    @Test("never looped over retain until they are let go of")
    func neverLoopedOver() async throws {
        let rig = Rig()
        let deliveries = rig.handle.deliveries()
        let opening = try await rig.openStream()
        #expect(rig.handle.status.isOpen)

        _ = consume deliveries

        #expect(rig.handle.status.isIdle)
        try await opening.closing()
    }

    /// Whether a process ended by the trap for two loops, and by no other.
    private func isTrap(_ result: ExitTest.Result?) -> Bool {
        guard let result else { return false }
        #if DEBUG
        let message = "one loop at a time takes the deliveries of one owner"
        return String(decoding: result.standardErrorContent, as: UTF8.self).contains(message)
        #else
        // A trap says nothing where it is optimized.
        return [.signal(SIGILL), .signal(SIGTRAP)].contains(result.exitStatus)
        #endif
    }

    // H13
    @Test("may not be waited for by two tasks at once, not even through copies of one iterator")
    func twoNexts() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent, \.exitStatus]) {
            let environment = Environment(transport: Transport(), clock: TestClock())
            let deliveries = environment.handle(for: "prices").deliveries()
            nonisolated(unsafe) var first = deliveries.makeAsyncIterator()
            nonisolated(unsafe) var second = first
            async let one = first.next()
            async let other = second.next()
            _ = try await (one, other)
        }
        #expect(isTrap(result))
    }

    // H13
    @Test("may not be taken by two loops at once")
    func twoLoops() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent, \.exitStatus]) {
            let environment = Environment(transport: Transport(), clock: TestClock())
            let deliveries = environment.handle(for: "prices").deliveries()
            let first = deliveries.makeAsyncIterator()
            let second = deliveries.makeAsyncIterator()
            _ = (first, second)
        }
        #expect(isTrap(result))
    }

    // H14
    @Test("end by nil after the backlog when the server completes")
    func completion() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        let opening = try await rig.openStream()
        opening.feed(1, 2)
        opening.complete()
        await rig.handle.reaches { $0.isCompleted }

        var taken: [Delivery<Int>?] = []
        for _ in 0..<5 { taken.append(try await deliveries.next()) }

        #expect(taken == [.baseline(.opened), .payload(1), .payload(2), nil, nil])
        #expect(rig.handle.status.isIdle)
    }

    // H15
    @Test("end by one throw after the backlog when the server refuses")
    func refusal() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        let opening = try await rig.openStream()
        opening.feed(1, 2)
        opening.fail(.request(Refused(number: 7)))
        await rig.handle.reaches { $0.isRefused }

        var taken: [Delivery<Int>?] = []
        for _ in 0..<3 { taken.append(try await deliveries.next()) }
        #expect(taken == [.baseline(.opened), .payload(1), .payload(2)])
        do throws(SubscriptionEnd) {
            _ = try await deliveries.next()
            Issue.record("it did not throw")
        } catch {
            guard case .request(let refusal) = error else {
                Issue.record("it threw \(error)")
                return
            }
            #expect(refusal as? Refused == Refused(number: 7))
        }
        #expect(try await deliveries.next() == nil)
    }

    // H16
    @Test("end by a throw at once when the environment ends, even within a batch", arguments: [true, false])
    func environmentEnd(withinABatch: Bool) async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        let opening = try await rig.openStream()
        opening.feed(1, 2, 3)
        await rig.handle.reaches(events: 3)
        #expect(try await deliveries.next() == .baseline(.opened))
        if withinABatch { #expect(try await deliveries.next() == .payload(1)) }

        await rig.environment.end()

        do throws(SubscriptionEnd) {
            _ = try await deliveries.next()
            Issue.record("it did not throw")
        } catch {
            guard case .environment(.gone) = error else {
                Issue.record("it threw \(error)")
                return
            }
        }
        #expect(try await deliveries.next() == nil)
    }

    // H17
    @Test("are not what a plain retention needs: it takes no part in the pace, and keeps the latest payload alone")
    func plainRetention() async throws {
        let count = Seeded.count(100_000, full: 1_000_000)
        // A process of its own: its memory is this test's alone.
        await #expect(processExitsWith: .success) { [count = count as Int] in
            let rig = Rig()
            let retention = rig.handle.retain()
            let opening = try await rig.openStream()
            var resident = 0

            for first in stride(from: 0, to: count, by: 1000) {
                if first == count / 2 { resident = ProcessMemory.resident }
                opening.feed(contentsOf: Array(first..<first + 1000))
                await rig.handle.reaches(events: first + 1000)
            }

            #expect(rig.handle.events == count)
            #expect(rig.handle.latest == count - 1)
            #expect(ProcessMemory.resident - resident <= ProcessMemory.slack)
            retention.release()
        }
    }

    // H18
    @Test("lose nothing to a plain retention")
    func besideAPlainRetention() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        var deliveries = rig.handle.deliveries(limit: 2).makeAsyncIterator()
        let opening = try await rig.openStream()
        opening.feed(contentsOf: Array(1...100))
        #expect(try await deliveries.next() == .baseline(.opened))

        for number in 1...100 { #expect(try await deliveries.next() == .payload(number)) }
        retention.release()
    }

    // H19
    @Test("begin by a baseline: at once where the stream is open, else at its next opening")
    func joining() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        var connecting = rig.handle.deliveries().makeAsyncIterator()
        let opening = try await rig.openStream()
        #expect(try await connecting.next() == .baseline(.opened))
        var open = rig.handle.deliveries().makeAsyncIterator()
        #expect(try await open.next() == .baseline(.opened))

        opening.fail(.dropped)
        await rig.handle.reaches { $0.isWaiting }
        var waiting = rig.handle.deliveries().makeAsyncIterator()
        rig.environment.isActive = false
        var parked = rig.handle.deliveries().makeAsyncIterator()
        rig.environment.isActive = true
        let next = try await rig.openStream()
        #expect(try await connecting.next() == .baseline(.resumed(1)))
        #expect(try await open.next() == .baseline(.resumed(1)))
        #expect(try await waiting.next() == .baseline(.resumed(1)))
        #expect(try await parked.next() == .baseline(.resumed(1)))
        next.complete()
        await rig.handle.reaches { $0.isCompleted }
        var ended = rig.handle.deliveries().makeAsyncIterator()
        _ = try await rig.openStream()
        #expect(try await ended.next() == .baseline(.resumed(2)))

        await rig.environment.end()
        var gone = rig.handle.deliveries().makeAsyncIterator()
        await #expect(throws: SubscriptionEnd.self) { try await gone.next() }
        retention.release()
    }

    // H19, pace
    @Test("of one that joins while a large batch is on its way lose nothing of it, however small the limit")
    func joiningDuringABatch() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()
        opening.feed(0)
        await rig.handle.reaches(events: 1)
        // The reading waits for a batch of any size: nobody set the pace when it began.
        var deliveries = rig.handle.deliveries(limit: 2).makeAsyncIterator()
        opening.feed(contentsOf: Array(1...100))

        #expect(try await deliveries.next() == .baseline(.opened))
        for number in 1...100 { #expect(try await deliveries.next() == .payload(number)) }
        retention.release()
    }

    // H21
    @Test("of ten owners that each leave in their own loop end the stream with the last")
    func leavingInTheLoop() async throws {
        let rig = Rig()
        let loops = (1...10).map { last in
            let deliveries = rig.handle.deliveries(limit: 64)
            return Task {
                for try await delivery in deliveries where delivery == .payload(last) { break }
            }
        }
        let opening = try await rig.openStream()

        opening.feed(contentsOf: Array(1...10))

        for loop in loops { try await loop.value }
        try await opening.closing()
        #expect(rig.handle.status.isIdle)
    }

    // H22
    @Test("may be used to do anything with the subscription from inside the loop")
    func fromInsideTheLoop() async throws {
        let rig = Rig()
        let environment = rig.environment
        let handle = rig.handle
        let loop = Task {
            for try await _ in handle.deliveries() {
                handle.retain().release()
                handle.retry()
                environment.isActive = false
                environment.isActive = true
                await environment.end()
            }
        }

        _ = try await rig.openStream()

        await #expect(throws: SubscriptionEnd.self) { try await loop.value }
        #expect(handle.status.isGone)
    }

    @Test("and the latest payload are fit to be kept: only the latter is detached")
    func latestIsDetached() async throws {
        let transport = Transport(detach: { -$0 })
        let environment = Environment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        var deliveries = handle.deliveries().makeAsyncIterator()
        let opening = try await transport.nextOpening()
        opening.feed(1, 2)
        opening.accept()
        await handle.reaches(events: 2)

        #expect(handle.latest == -2)
        #expect(try await deliveries.next() == .baseline(.opened))
        #expect(try await deliveries.next() == .payload(1))
    }
}
