// What threads do to one another. Run under ThreadSanitizer too.

import Foundation
import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("Threads at once", .timeLimit(.minutes(20)))
struct RaceTests {
    /// Answers every opening, at random, up to and with the one whose request is "last".
    ///
    /// The payloads are numbered through, `PropertyTests.Log.stride` apart from one stream to the next.
    static func answer(_ transport: Transport, seed: UInt64) -> Task<Void, any Error> {
        Task {
            var generator = Seeded(seed: seed)
            var streams = 0
            try await withThrowingDiscardingTaskGroup { group in
                while true {
                    let opening = try await transport.nextOpening()
                    guard opening.request != "last" else { return opening.accept() }
                    streams += 1
                    let first = streams * PropertyTests.Log.stride
                    let own = Seeded(seed: generator.next())
                    group.addTask { await play(opening, from: first, own) }
                }
            }
        }
    }

    /// Answers one opening: at once or later, maybe too late, by any failure or a stream, which any end may cut.
    private static func play(_ opening: Transport.Opening, from first: Int, _ own: Seeded) async {
        var generator = own
        var next = first
        func pause() async {
            for _ in 0..<Int.random(in: 0..<6, using: &generator) { await Task.yield() }
        }
        func feed(_ count: Int) {
            opening.feed(contentsOf: Array(next..<next + count))
            next += count
        }
        let failures: [SubscriptionFailure] = [
            .dropped, .dropped, .refused, .environment(.transport(Dropped())), .environment(.gone),
        ]
        await pause()
        if Int.random(in: 0..<8, using: &generator) == 0 {
            // Too late, where its owners are quick.
            for _ in 0..<100 where !opening.isCancelled { await Task.yield() }
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            opening.fail(failures.randomElement(using: &generator) ?? .dropped)
            return
        }
        if Bool.random(using: &generator) { feed(3) }
        opening.accept()
        for _ in 0..<Int.random(in: 0..<4, using: &generator) {
            await pause()
            feed(Int.random(in: 0..<20, using: &generator))
        }
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: opening.complete()
        case 1...3: opening.fail(failures.randomElement(using: &generator) ?? .dropped)
        // It says nothing more.
        default: break
        }
    }

    // M01
    @Test(
        "that do everything to one subscription leave nothing of it, and never two streams",
        arguments: [true, false]
    )
    func everything(isDeaf: Bool) async throws {
        let rig = Rig(.watched(isDeaf: isDeaf))
        let environment = rig.environment
        let handle = rig.handle
        let clock = rig.clock
        let seed = Seeded().seed
        let answers = Self.answer(rig.transport, seed: seed)
        await withTaskGroup { group in
            for number in 0..<6 {
                group.addTask {
                    var generator = Seeded(seed: seed &+ UInt64(number))
                    var held: [Retention] = []
                    for _ in 0..<Seeded.races() {
                        switch Int.random(in: 0..<10, using: &generator) {
                        case 0, 1: held.append(handle.retain())
                        case 2, 3: _ = held.popLast()
                        case 4: held.popLast()?.release()
                        case 5: environment.isActive = Int.random(in: 0..<3, using: &generator) > 0
                        case 6: handle.retry()
                        case 7: clock.advance(by: .milliseconds(400))
                        case 8:
                            let deliveries = handle.deliveries(limit: Int.random(in: 1...8, using: &generator))
                            let loop = Task {
                                for try await _ in deliveries where Bool.random() { break }
                            }
                            if Bool.random(using: &generator) { await Task.yield() }
                            loop.cancel()
                            _ = try? await loop.value
                        default:
                            let statuses = handle.statuses
                            let loop = Task {
                                for await _ in statuses where Bool.random() { break }
                            }
                            await Task.yield()
                            loop.cancel()
                            await loop.value
                        }
                    }
                }
            }
        }

        #expect(!handle.isActive, "seed \(seed)")
        await environment.end()
        #expect(environment.running == 0)
        #expect(environment.waits == 0)
        #expect(handle.watchers == 0)
        #expect(rig.transport.unclosed == 0)
        #expect(rig.transport.live == 0)
        #expect(rig.transport.mostLiveOfOne <= 1, "seed \(seed)")
        let last = rig.transport.opened
        _ = handle.retain()
        #expect(rig.transport.opened == last)
        _ = try? await rig.transport.open("last", resuming: nil)
        try await answers.value
    }

    // M02
    @Test("of which one releases last while the other accepts, leave it closed")
    func releasedWhileAccepted() async throws {
        let rig = Rig(.watched(isDeaf: true))
        for _ in 0..<Seeded.races() {
            let retention = rig.handle.retain()
            let opening = try await rig.transport.nextOpening()

            async let accepted: Void = opening.accept()
            async let released: Void = retention.release()
            _ = await (accepted, released)

            try await opening.closing()
            #expect(rig.handle.status.isIdle)
        }
        await rig.environment.end()
        #expect(rig.environment.running == 0)
    }

    // M03
    @Test(
        "of which one lets the wait end, one parks, one retries and one may end it all, open once at most",
        arguments: [true, false]
    )
    func aroundAWait(ends: Bool) async throws {
        let threads = AtOnce(4)
        for round in 0..<Seeded.races() {
            let rig = Rig(.watched(acceptsAtOnce: true))
            let environment = rig.environment
            let handle = rig.handle
            let clock = rig.clock
            let retention = handle.retain()
            try await rig.transport.nextOpening().fail(.dropped)
            await handle.reaches { $0.isWaiting }
            let deadline = try await clock.nextDeadline()

            await threads.run(
                { clock.advance(to: deadline) },
                { environment.isActive = false },
                {
                    // Half of the time just as the sleeper has taken the wait out and is about to say so.
                    while round.isMultiple(of: 2), environment.waits > 0 { sched_yield() }
                    handle.retry()
                },
                { if ends { await environment.end() } }
            )

            #expect(ends ? handle.status.isGone : handle.status.isIdle)
            #expect(rig.transport.live == 0)
            await environment.end()
            #expect(rig.transport.opened <= 2)
            #expect(rig.transport.mostLiveOfOne <= 1)
            #expect(environment.running == 0)
            #expect(environment.waits == 0)
            retention.release()
        }
    }

    // M04
    @Test("around a stream that is held back let it go on, or end, once", arguments: [false, true], [false, true])
    func aroundAStreamHeldBack(parks: Bool, ends: Bool) async throws {
        let threads = AtOnce(4)
        for _ in 0..<Seeded.races() {
            let rig = Rig(.watched(acceptsAtOnce: true))
            let environment = rig.environment
            let handle = rig.handle
            let owner = Lock<Deliveries<Int>.Iterator?>(handle.deliveries(limit: 2).makeAsyncIterator())
            let other = Lock<Deliveries<Int>?>(handle.deliveries(limit: 2))
            let opening = try await rig.transport.nextOpening()
            opening.feed(1, 2, 3, 4, 5, 6)
            while handle.core.heldBack == nil { await Task.yield() }

            await threads.run(
                {
                    // What is there: it is the second that lets the stream go on.
                    guard var iterator = owner.withLock({ $0.take() }) else { return }
                    for _ in 0..<2 { _ = try? await iterator.next() }
                    let rest = iterator
                    owner.withLock { $0 = rest }
                },
                { other.withLock { $0.take() }.map { _ = $0 } },
                { if parks { environment.isActive = false } },
                { if ends { await environment.end() } }
            )

            if parks || ends { #expect(rig.transport.live == 0) }
            if ends { #expect(environment.running == 0) }
            if !parks, !ends {
                var iterator = try #require(owner.withLock { $0.take() })
                for number in 2...6 { #expect(try await iterator.next() == .payload(number)) }
            }
            owner.withLock { $0 = nil }
            try await opening.closing()
            await environment.end()
            #expect(environment.running == 0)
        }
    }

    /// What comes while an owner waits.
    enum Coming: CaseIterable {
        case payloadsAndCompletion, cancellation, end
    }

    // M05
    @Test("around an owner's next resume it once, and lose nothing", arguments: Coming.allCases)
    func aroundNext(_ coming: Coming) async throws {
        let threads = AtOnce(3)
        for _ in 0..<Seeded.races() {
            let rig = Rig(.watched(acceptsAtOnce: true))
            let environment = rig.environment
            let deliveries = rig.handle.deliveries()
            let opening = try await rig.transport.nextOpening()
            let loop = Task {
                var numbers: [Int] = []
                do {
                    for try await case .payload(let number) in deliveries { numbers.append(number) }
                } catch {}
                return numbers
            }

            await threads.run(
                { opening.feed(contentsOf: Array(1...10)) },
                { opening.complete() },
                {
                    switch coming {
                    case .cancellation: loop.cancel()
                    case .end: await environment.end()
                    case .payloadsAndCompletion: break
                    }
                }
            )

            let numbers = await loop.value
            #expect(numbers == Array(Array(1...10).prefix(numbers.count)))
            // Nothing but a cancellation and an end takes a batch apart.
            if coming == .payloadsAndCompletion { #expect(numbers.isEmpty || numbers.count == 10) }
            try await opening.closing()
            await environment.end()
            #expect(environment.running == 0)
        }
    }

    // M05
    @Test("around an owner's next lose nothing of what came before the completion")
    func aroundNextWithoutALoss() async throws {
        let threads = AtOnce(2)
        for _ in 0..<Seeded.races() {
            let rig = Rig(.watched(acceptsAtOnce: true))
            let deliveries = rig.handle.deliveries()
            let opening = try await rig.transport.nextOpening()
            let numbers = Lock<[Int]>([])

            await threads.run(
                {
                    do {
                        for try await case .payload(let number) in deliveries { numbers.withLock { $0.append(number) } }
                    } catch {
                        Issue.record("it ended by \(error)")
                    }
                },
                {
                    opening.feed(contentsOf: Array(1...10))
                    opening.complete()
                }
            )

            #expect(numbers.withLock { $0 } == Array(1...10))
        }
    }

    // M07
    @Test("around a loop over statuses resume it once")
    func aroundStatuses() async {
        let rig = Rig()
        let handle = rig.handle
        for _ in 0..<Seeded.races() {
            let loop = Task {
                for await _ in handle.statuses {}
            }
            async let published: Void = handle.retain().release()
            async let cancelled: Void = loop.cancel()
            _ = await (published, cancelled)
            await loop.value
        }
        #expect(handle.watchers == 0)
        await rig.environment.end()
    }

    /// A payload whose end releases.
    final class Releasing: Sendable {
        let retention: Retention

        init(_ retention: Retention) {
            self.retention = retention
        }
    }

    // M09
    @Test("may release inside a payload's deinit, wherever the payload is let go of")
    func releasedInADeinit() async throws {
        let transport = ScriptedTransport<String, Releasing>(.init(acceptsAtOnce: true))
        let environment = SubscriptionEnvironment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        func payloads(_ count: Int) -> [Releasing] { (0..<count).map { _ in Releasing(handle.retain()) } }
        let retention = handle.retain()
        let opening = try await transport.nextOpening()

        // Replaced as the latest.
        opening.feed(contentsOf: payloads(3))
        await handle.reaches(events: 3)
        // Lost by an owner that lags, and by one that is let go of.
        var fast = handle.deliveries(limit: 4).makeAsyncIterator()
        var stuck: Deliveries<Releasing>? = handle.deliveries(limit: 4)
        opening.feed(contentsOf: payloads(10))
        for _ in 0...10 { _ = try await fast.next() }
        opening.feed(contentsOf: payloads(2))
        await handle.reaches(events: 15)
        stuck = nil
        // Dropped by the last release.
        retention.release()
        opening.feed(contentsOf: payloads(2))
        // Dropped by the end.
        await environment.end()
        _ = stuck
        #expect(environment.running == 0)
    }

    // M09
    @Test("may release inside a failure's deinit, wherever the failure is let go of")
    func releasedInAFailuresDeinit() async throws {
        struct Refusal: Error {
            var releasing: Releasing
        }
        let rig = Rig()
        let refusal = { SubscriptionFailure.request(Refusal(releasing: Releasing(rig.handle.retain()))) }
        // Refused, and its loop does not go on to learn of it.
        let unlooped = rig.handle.deliveries()
        var opening = try await rig.openStream()
        opening.fail(refusal())
        await rig.handle.reaches { $0.isRefused }
        // Replaced by the next, and cleared by an opening.
        rig.handle.retry()
        try await rig.transport.nextOpening().fail(refusal())
        await rig.handle.reaches { $0.isRefused }
        rig.handle.retry()
        opening = try await rig.openStream()
        // Only the owner has the first by now.
        let unloopedToo = rig.handle.deliveries()
        opening.fail(refusal())
        await rig.handle.reaches { $0.isRefused }
        rig.handle.retry()
        opening = try await rig.openStream()

        await rig.environment.end()

        #expect(rig.handle.status.isGone)
        for deliveries in [unlooped, unloopedToo] {
            await #expect(throws: SubscriptionEnd.self) {
                for try await _ in deliveries {}
            }
        }
    }

    // M09
    @Test("may release inside a transport's cancellation")
    func releasedInACancellation() async throws {
        let held = Lock<[Retention]>([])
        let rig = Rig(onCancel: { _ in
            let retentions = held.withLock { held in
                defer { held = [] }
                return held
            }
            for retention in retentions { retention.release() }
        })
        let other = rig.environment.handle(for: "other")
        held.withLock { $0 = [rig.handle.retain(), other.retain()] }
        _ = try await rig.transport.nextOpening()
        _ = try await rig.transport.nextOpening()

        rig.environment.isActive = false

        #expect(held.withLock { $0.isEmpty })
        rig.environment.isActive = true
        #expect(rig.handle.status.isIdle)
        #expect(other.status.isIdle)
        await rig.environment.end()
    }
}
