import Observation
import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("An observer", .timeLimit(.minutes(1)))
struct ObserverTests {
    // J01
    @Test("of statuses sees them in order, and the last for sure")
    func inOrder() async {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = await rig.openStream()
        let loop = Task {
            var events: [Int] = []
            for await status in rig.handle.statuses {
                events.append(status.events)
                if status.events == 500 { break }
            }
            return events
        }

        for number in 0..<500 { opening.feed(number) }

        let events = await loop.value
        #expect(zip(events, events.dropFirst()).allSatisfy { $0 < $1 })
        #expect(events.last == 500)
        retention.release()
    }

    // J02
    @Test("reads facts that were true together, whatever happens meanwhile")
    func consistentFacts() async {
        let rig = Rig(.init(acceptsAtOnce: true))
        let handle = rig.handle
        let retention = handle.retain()
        let isOver = Lock(false)
        let sampling = Task {
            var samples = 0
            while !isOver.withLock({ $0 }) || samples == 0 {
                let status = handle.status
                if status.isOpen { #expect(status.error == nil) }
                if status.isWaiting { #expect(status.error != nil) }
                samples += 1
                if samples.isMultiple(of: 100) { await Task.yield() }
            }
        }

        for round in 0..<300 {
            let opening = await rig.transport.nextOpening()
            opening.feed(round)
            opening.fail(.dropped)
            await handle.reaches { $0.isWaiting }
            handle.retry()
        }

        isOver.withLock { $0 = true }
        await sampling.value
        retention.release()
    }

    // J03
    @Test("of statuses sees the environment's end, and nothing after")
    func theEnd() async {
        let rig = Rig()
        await rig.environment.end()

        var statuses: [SubscriptionStatus] = []
        for await status in rig.handle.statuses { statuses.append(status) }

        #expect(statuses.count == 1)
        #expect(statuses.last?.isGone == true)
    }

    // J04
    @Test("of statuses that is cancelled is forgotten")
    func cancelled() async {
        let rig = Rig()
        let (reached, reach) = AsyncStream<Void>.makeStream()
        let loop = Task {
            for await _ in rig.handle.statuses { reach.yield() }
        }
        for await _ in reached { break }

        loop.cancel()

        await loop.value
        #expect(rig.handle.watchers == 0)
    }

    // J05
    @Test("by the Observation library is told of a change")
    func observation() async {
        let rig = Rig()
        let (changes, change) = AsyncStream<Void>.makeStream()

        withObservationTracking {
            _ = rig.handle.status
        } onChange: {
            change.finish()
        }
        let retention = rig.handle.retain()

        for await _ in changes {}
        #expect(rig.handle.status.isConnecting)
        retention.release()
    }

    @Test("of the log reads what happens, in names and counts")
    func log() async throws {
        let entries = Lock<[SubscriptionLogEntry]>([])
        let clock = TestClock()
        let transport = Transport()
        let environment = Environment(
            transport: transport,
            clock: clock,
            log: { entry in entries.withLock { $0.append(entry) } }
        )
        let handle = environment.handle(for: "prices")
        let retention = handle.retain()
        var opening = await transport.nextOpening()
        clock.advance(by: .milliseconds(20))
        opening.accept()
        await handle.reaches { $0.isOpen }
        opening.fail(.dropped)
        clock.advance(to: await clock.nextDeadline())
        opening = await transport.nextOpening()
        opening.feed(1)
        opening.accept()
        await handle.reaches(events: 1)
        environment.isActive = false
        environment.isActive = true
        await transport.nextOpening().fail(.refused)
        await handle.reaches { $0.isEnded }
        await environment.end()

        // The end's own entry may come before those of a driver that it ends.
        let events = entries.withLock { $0.map(\.event) }.filter { $0 != .ended(.environment) }
        #expect(
            events == [
                .opened(after: .milliseconds(20)),
                .failed(.network),
                .waiting(.seconds(1)),
                .opened(after: .zero),
                .resumed(1),
                .parked,
                .failed(.request),
                .ended(.request),
            ]
        )
        #expect(entries.withLock { $0.allSatisfy { $0.subscription == 1 } })
        retention.release()
    }
}
