import Foundation
import Observation
import SubscriptionTesting
import Synchronization
import Testing

@testable import SubscriptionRuntime

@Suite("An observer", .timeLimit(.minutes(5)))
struct ObserverTests {
    // J01
    @Test("of statuses sees them in order, and the last for sure")
    func inOrder() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()
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

    /// Reads a handle over and over, on a thread beside the pool, so that it reads while the runtime writes.
    private final class Sampler: Sendable {
        private let thread: OneThread
        private let samples = Atomic<Int>(0)
        private let isOver = Atomic<Bool>(false)

        init(_ number: Int) {
            thread = OneThread(label: "sampling \(number)")
        }

        /// Begins, and records an issue for the first reading that does not hold.
        ///
        /// - Parameters:
        ///   - rig: Whose handle is read.
        ///   - gaps: How many there were, counted before the opening that makes one a resumption.
        /// - Returns: The task, to be awaited once it has been told to end.
        func begin(_ rig: Rig, gaps: Lock<Int>) -> Task<Void, Never> {
            Task(executorPreference: thread) {
                var earlier = rig.handle.status
                var isBroken = false
                while !self.isOver.load(ordering: .relaxed) {
                    // A payload is the count of gaps before its stream.
                    let payload = rig.handle.latest
                    let status = rig.handle.status
                    var broken: [String] = []
                    if status.isOpen, status.error != nil { broken.append("open with an error") }
                    if let until = status.until {
                        if status.error == nil { broken.append("waiting without an error") }
                        // The clock stands still: an instant that was the future when it was told still is.
                        if until <= rig.clock.now { broken.append("waiting for the past") }
                    }
                    if let payload, payload > status.resumptions { broken.append("a payload before its resumption") }
                    if status.resumptions > gaps.withLock({ $0 }) { broken.append("a resumption too many") }
                    if status.events < earlier.events { broken.append("events fell") }
                    if status.resumptions < earlier.resumptions { broken.append("resumptions fell") }
                    if !broken.isEmpty, !isBroken { Issue.record("\(broken): \(status) after \(earlier)") }
                    isBroken = isBroken || !broken.isEmpty
                    earlier = status
                    self.samples.add(1, ordering: .sequentiallyConsistent)
                    // Others need the processor and the handle's lock too.
                    sched_yield()
                }
            }
        }

        /// Returns once a reading that began after this call has ended.
        func catchUp() async {
            let target = samples.load(ordering: .sequentiallyConsistent) + 2
            while samples.load(ordering: .sequentiallyConsistent) < target { await Task.yield() }
        }

        func end() {
            isOver.store(true, ordering: .relaxed)
        }
    }

    // J02
    @Test("reads facts true together: open without an error, waiting with one, a payload after its resumption")
    func consistentFacts() async throws {
        var generator = Seeded()
        let rig = Rig()
        let environment = rig.environment
        let handle = rig.handle
        let gaps = Lock(0)
        let samplers = (0..<2).map { Sampler($0) }
        let sampling = samplers.map { $0.begin(rig, gaps: gaps) }
        var retention = handle.retain()
        var isFirst = true
        /// The opening is answered, and by a payload that says how many gaps were before it.
        func accept(_ opening: Transport.Opening) {
            let gap = gaps.withLock { gaps in
                if !isFirst { gaps += 1 }
                return gaps
            }
            isFirst = false
            opening.feed(gap)
            opening.accept()
        }

        for round in 0..<Seeded.count(300, full: 20_000) {
            let opening = try await rig.transport.nextOpening()
            let events = handle.events
            #expect(handle.resumptions == gaps.withLock { $0 }, "seed \(generator.seed)")
            // Half of the time a state is read while it lasts, for sure; else it passes in the middle of a reading.
            let rests = Bool.random(using: &generator)
            switch round == 0 ? 0 : Int.random(in: 0..<5, using: &generator) {
            case 0:
                accept(opening)
                if rests {
                    await handle.reaches(events: events + 1)
                    for sampler in samplers { await sampler.catchUp() }
                }
                opening.fail(.dropped)
                await handle.reaches { $0.isWaiting }
                handle.retry()
            case 1:
                opening.fail(.dropped)
                await handle.reaches { $0.isWaiting }
                if rests { for sampler in samplers { await sampler.catchUp() } }
                handle.retry()
            case 2:
                accept(opening)
                if Bool.random(using: &generator) { opening.complete() } else { opening.fail(.refused) }
                await handle.reaches { $0.isEnded }
                retention = handle.retain()
            case 3:
                accept(opening)
                await handle.reaches(events: events + 1)
                environment.isActive = false
                environment.isActive = true
            default:
                environment.isActive = false
                environment.isActive = true
            }
        }

        for sampler in samplers { sampler.end() }
        for task in sampling { await task.value }
        retention.release()
        await environment.end()
    }

    // H03
    @Test("of the log is told once of an owner that falls behind")
    func lagInTheLog() async throws {
        let entries = Lock<[SubscriptionLogEntry]>([])
        let transport = Transport()
        let environment = Environment(
            transport: transport,
            clock: TestClock(),
            log: { entry in entries.withLock { $0.append(entry) } }
        )
        let handle = environment.handle(for: "prices")
        var fast = handle.deliveries(limit: 4).makeAsyncIterator()
        let stuck = handle.deliveries(limit: 4)
        let opening = try await transport.nextOpening()
        opening.feed(contentsOf: Array(1...20))
        opening.accept()
        #expect(try await fast.next() == .baseline(.opened))
        for number in 1...20 { #expect(try await fast.next() == .payload(number)) }
        await handle.reaches(events: 20)
        await environment.end()

        let lags = entries.withLock { $0.map(\.event) }.compactMap { event in
            if case .lagged(let dropped) = event { dropped } else { nil }
        }
        // As soon as it was more than its limit; never again until it has taken the baseline.
        #expect(lags.count == 1)
        #expect(lags.allSatisfy { (5...8).contains($0) })
        _ = stuck
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
    @Test("by the Observation library is not told of a change between the reading and the end of its tracking")
    func lostObservation() async {
        let rig = Rig()
        let isTold = Lock(false)
        let retention = withObservationTracking {
            _ = rig.handle.status
            return rig.handle.retain()
        } onChange: {
            isTold.withLock { $0 = true }
        }

        #expect(rig.handle.status.isConnecting)
        // swiftlang/swift#86719. This test fails once the library reports such a change: the handle is more than a
        // hint to it then, and its documentation has to say so.
        withKnownIssue { #expect(isTold.withLock { $0 }) }
        retention.release()
    }

    // J05
    @Test("by the Observation library is told of a change after it")
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

    /// Does to a subscription what may be done to it, and leaves it as it was.
    private static func useAll(_ environment: Environment, _ handle: Handle) {
        _ = handle.status
        _ = handle.latest
        handle.retain().release()
        _ = handle.deliveries()
        handle.retry()
        _ = environment.handle(for: "other").retain()
        environment.isActive = true
    }

    // J05, C3
    @Test("by the Observation library may use the subscription from its callback, whatever calls it")
    func usedFromAChange() async throws {
        let rig = Rig()
        let (handle, environment) = (rig.handle, rig.environment)
        let calls = Lock(0)
        /// Tracks the next change.
        func track() {
            withObservationTracking {
                _ = handle.status
            } onChange: {
                Self.useAll(environment, handle)
                calls.withLock { $0 += 1 }
            }
        }
        func wasCalled(_ count: Int) async -> Bool {
            await settles { calls.withLock { $0 } >= count }
        }

        track()
        let retention = handle.retain()
        #expect(await wasCalled(1))
        track()
        let opening = try await opened("prices", by: rig.transport)
        opening.accept()
        #expect(await wasCalled(2))
        track()
        opening.feed(1)
        #expect(await wasCalled(3))
        track()
        opening.fail(.dropped)
        #expect(await wasCalled(4))
        // Tried again from within.
        track()
        let next = try await opened("prices", by: rig.transport)
        next.accept()
        #expect(await wasCalled(5))
        track()
        next.complete()
        #expect(await wasCalled(6))
        track()
        environment.isActive = false
        #expect(await wasCalled(7))
        track()
        await environment.end()
        #expect(await wasCalled(8))
        #expect(handle.status.isGone)
        retention.release()
    }

    // C3
    @Test("of the log may use the subscription from its closure, at each thing that happens")
    func usedFromTheLog() async throws {
        struct Inside {
            var environment: Environment?
            var handle: Handle?
            var events: Set<String> = []
        }
        let inside = Lock(Inside())
        let clock = TestClock()
        let transport = Transport(.watched(acceptsAtOnce: true))
        let environment = Environment(
            transport: transport,
            clock: clock,
            log: { entry in
                // One level deep: what that leads to is logged too.
                let (environment, handle) = inside.withLock { inside in
                    defer { (inside.environment, inside.handle) = (nil, nil) }
                    inside.events.insert("\("\(entry.event)".prefix { $0.isLetter })")
                    return (inside.environment, inside.handle)
                }
                guard let environment, let handle else { return }
                Self.useAll(environment, handle)
                inside.withLock { ($0.environment, $0.handle) = (environment, handle) }
            }
        )
        let handle = environment.handle(for: "prices")
        inside.withLock { ($0.environment, $0.handle) = (environment, handle) }
        let retention = handle.retain()
        let stuck = handle.deliveries(limit: 2)
        var fast: Deliveries<Int>.Iterator? = handle.deliveries(limit: 2).makeAsyncIterator()
        var opening = try await opened("prices", by: transport)
        await handle.reaches { $0.isOpen }
        opening.feed(contentsOf: Array(1...8))
        for _ in 0...8 { _ = try await fast?.next() }
        fast = nil
        _ = consume stuck
        opening.fail(.dropped)
        opening = try await opened("prices", by: transport)
        await handle.reaches { $0.isOpen }
        environment.isActive = false
        environment.isActive = true
        opening = try await opened("prices", by: transport)
        await handle.reaches { $0.isOpen }
        opening.fail(.refused)
        opening = try await opened("prices", by: transport)
        await environment.end()

        let events = inside.withLock { $0.events }
        #expect(events == ["opened", "failed", "waiting", "resumed", "parked", "ended", "lagged"])
        #expect(transport.unclosed == 0)
        inside.withLock { $0 = Inside() }
        retention.release()
    }

    /// The next opening of a request, of several that there may be.
    private func opened(_ request: String, by transport: Transport) async throws -> Transport.Opening {
        while true {
            let opening = try await transport.nextOpening()
            if opening.request == request { return opening }
        }
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
        var opening = try await transport.nextOpening()
        clock.advance(by: .milliseconds(20))
        opening.accept()
        await handle.reaches { $0.isOpen }
        opening.fail(.dropped)
        clock.advance(to: try await clock.nextDeadline())
        opening = try await transport.nextOpening()
        opening.feed(1)
        opening.accept()
        await handle.reaches(events: 1)
        environment.isActive = false
        environment.isActive = true
        try await transport.nextOpening().fail(.refused)
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
