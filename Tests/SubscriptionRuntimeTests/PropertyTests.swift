// The runtime against what may be said of any run of it.

import Foundation
import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("Any run", .timeLimit(.minutes(5)))
struct PropertyTests {
    /// What one owner took.
    struct Log {
        var deliveries: [Delivery<Int>] = []

        /// Payloads are numbered through, a million apart from one stream to the next.
        static let stride = 1_000_000

        /// The first place where something is missing and no baseline says so, or the order is wrong.
        var firstGap: String? {
            var last: Int?
            var isMarked = false
            var isResumed = false
            for delivery in deliveries {
                switch delivery {
                case .baseline(let cause):
                    isMarked = true
                    if case .resumed = cause { isResumed = true }
                case .payload(let number):
                    if let last, isResumed, number / Self.stride == last / Self.stride {
                        return "\(number) of the stream of \(last), which was opened again"
                    }
                    if let last {
                        if number <= last { return "\(number) after \(last)" }
                        if !isMarked, number != last + 1 { return "\(number) after \(last), and no baseline" }
                    } else if !isMarked {
                        return "\(number) before any baseline"
                    }
                    last = number
                    (isMarked, isResumed) = (false, false)
                }
            }
            return nil
        }

        var payloads: [Int] {
            deliveries.compactMap { if case .payload(let number) = $0 { number } else { nil } }
        }

        var losses: Int {
            deliveries.reduce(0) { if case .baseline(.lagged(let dropped)) = $1 { $0 + dropped } else { $0 } }
        }
    }

    // K04, H05
    @Test(
        "gives each owner what the server sent, in order, and a baseline where something is missing",
        arguments: [1, 2, 8]
    )
    func deliveries(owners: Int) async throws {
        let seed = Seeded().seed
        let rig = Rig()
        let handle = rig.handle
        let loops = (0..<owners).map { owner in
            let limit = owner % 3 == 0 ? 64 : owner % 3 == 1 ? 5 : 1
            let deliveries = handle.deliveries(limit: limit)
            return Task {
                var generator = Seeded(seed: seed &+ UInt64(owner))
                var log = Log()
                for try await delivery in deliveries {
                    log.deliveries.append(delivery)
                    if Int.random(in: 0..<8, using: &generator) == 0 { await Task.yield() }
                }
                return log
            }
        }

        var generator = Seeded(seed: seed)
        var sent: [Int] = []
        let rounds = 40
        for round in 0..<rounds {
            let opening = try await rig.transport.nextOpening()
            opening.accept()
            var next = round * Log.stride
            for _ in 0..<Int.random(in: 0..<40, using: &generator) {
                let batch = Array(next..<next + Int.random(in: 0..<30, using: &generator))
                opening.feed(contentsOf: batch)
                sent += batch
                next += batch.count
                if Int.random(in: 0..<4, using: &generator) == 0 { await Task.yield() }
            }
            if round == rounds - 1 {
                opening.complete()
            } else {
                opening.fail(.dropped)
                await handle.reaches { $0.isWaiting }
                handle.retry()
            }
        }

        for (owner, loop) in loops.enumerated() {
            let log = try await loop.value
            #expect(log.firstGap == nil, "owner \(owner), seed \(seed)")
            if owners == 1 {
                #expect(log.payloads == sent, "seed \(seed)")
                #expect(log.losses == 0)
            }
        }
    }

    /// An owner that takes deliveries, and what it must be given.
    private struct Taking {
        var iterator: Deliveries<Int>.Iterator
        var expected: [Delivery<Int>] = []
        /// How it ends after them: nil while it does not.
        var end: SubscriptionEnd??

        init(_ handle: Handle, isOpen: Bool) {
            iterator = handle.deliveries().makeAsyncIterator()
            if isOpen { expected = [.baseline(.opened)] }
        }

        /// A baseline, merged with one before it that was not taken.
        mutating func mark(_ resumption: Int?) {
            guard end == nil else { return }
            if case .baseline(let earlier)? = expected.last {
                expected[expected.count - 1] = .baseline(resumption.map { .resumed($0) } ?? earlier)
            } else {
                expected.append(.baseline(resumption.map { .resumed($0) } ?? .opened))
            }
        }

        mutating func finish(_ end: SubscriptionEnd?, dropping: Bool = false) {
            if dropping { expected = [] }
            if self.end == nil || dropping { self.end = .some(end) }
        }

        /// Takes all that there must be.
        ///
        /// - Returns: What is wrong with it; nil where nothing is.
        mutating func takeAll() async -> String? {
            for delivery in expected {
                let taken = try? await iterator.next()
                guard taken == delivery else { return "took \(String(describing: taken)), not \(delivery)" }
            }
            expected = []
            guard let end else { return nil }
            do throws(SubscriptionEnd) {
                let taken = try await iterator.next()
                return taken == nil && end == nil ? nil : "ended by \(String(describing: taken))"
            } catch {
                return end.map { "\($0)" == "\(error)" } ?? false ? nil : "ended by \(error)"
            }
        }
    }

    // K03
    @Test("of one script leaves the runtime where the machine is", arguments: 0..<20)
    func runtimeAgainstTheMachine(number: Int) async throws {
        let first = Seeded().seed &+ UInt64(number)
        // Its steps wait for one another, and not for the tests that run beside them.
        try await Task(executorPreference: OneThread(label: "script")) {
            for round in 0..<Seeded.count(4, full: 50) {
                let seed = first &+ UInt64(round) &* 20
                try await Self.runtimeAgainstTheMachine(seed: seed, isDeaf: number.isMultiple(of: 2))
            }
        }.value
    }

    private static func runtimeAgainstTheMachine(seed: UInt64, isDeaf: Bool) async throws {
        var generator = Seeded(seed: seed)
        let rig = Rig(.watched(isDeaf: isDeaf), driverExecutor: FairExecutor(seed: seed))
        let handle = rig.handle
        var machine = SubscriptionStateMachine()
        var active = true
        var retentions: [Retention] = []
        var owner: Taking?
        var stream: SubscriptionStateMachine.StreamID?
        var wait: SubscriptionStateMachine.StreamID?
        var opening: Transport.Opening?
        /// Openings that nobody asks for any more, and that were not answered.
        var late: [Transport.Opening] = []
        var told = 0

        func note(_ action: SubscriptionStateMachine.Action) {
            switch action {
            case .none: break
            case .accept(let resumption): owner?.mark(resumption)
            case .open(let id): (stream, wait) = (id, nil)
            case .wait(let id, _): (stream, wait) = (nil, id)
            case .stop: (stream, wait) = (nil, nil)
            case .finish(let end):
                (stream, wait) = (nil, nil)
                owner?.finish(end)
            case .abandon:
                (stream, wait) = (nil, nil)
                owner?.finish(.environment(.gone), dropping: true)
            }
        }
        func release() {
            note(machine.released())
            owner = nil
        }

        for step in 0..<150 {
            let before = stream
            let wasOpening = machine.status.isConnecting ? opening : nil
            switch Int.random(in: 0..<16, using: &generator) {
            case 0, 1:
                note(machine.retained(active: active))
                retentions.append(handle.retain())
            case 2 where !retentions.isEmpty:
                note(machine.released())
                retentions.removeLast().release()
            case 3:
                note(machine.retried(active: active))
                handle.retry()
            case 4:
                active.toggle()
                note(machine.activityChanged(active: active))
                rig.environment.isActive = active
            case 5, 6:
                guard let id = stream, let opening, machine.status.isConnecting else { continue }
                note(machine.opened(id, active: active))
                opening.accept()
            case 7, 8:
                guard let id = stream, let opening, machine.status.isOpen else { continue }
                _ = machine.payloads(1, on: id)
                if owner?.end == nil { owner?.expected.append(.payload(step)) }
                opening.feed(step)
            case 9:
                guard let id = stream, let opening else { continue }
                let failures: [SubscriptionFailure] = [
                    .dropped, .dropped, .dropped, .refused, .environment(.transport(Dropped())), .environment(.gone),
                ]
                let failure = failures.randomElement(using: &generator) ?? .dropped
                note(machine.failed(failure, on: id, now: rig.clock.now, chance: 1, active: active))
                opening.fail(failure)
            case 10:
                guard let id = stream, let opening, machine.status.isOpen else { continue }
                note(machine.completed(id))
                opening.complete()
            case 11 where owner == nil:
                owner = Taking(handle, isOpen: machine.status.isOpen)
                if machine.isGone { owner?.finish(.environment(.gone)) }
                note(machine.retained(active: active))
            case 12:
                guard var taking = owner else { continue }
                let wrong = await taking.takeAll()
                #expect(wrong == nil, "step \(step), seed \(seed)")
                owner = taking
                // An owner whose deliveries have ended is released.
                if taking.end != nil { release() }
            case 13 where owner != nil && Int.random(in: 0..<4, using: &generator) == 0:
                release()
            case 14:
                guard let opening = late.popLast() else { continue }
                if Bool.random(using: &generator) { opening.accept() } else { opening.fail(.refused) }
                try await opening.closing()
                #expect(opening.taken == 0)
            case 15 where step > 100 && Int.random(in: 0..<4, using: &generator) == 0:
                note(machine.environmentEnded())
                rig.environment.core.end()
            default:
                guard let id = wait, let until = machine.status.until else { continue }
                // The deadline is armed, or an earlier one that was dropped still is.
                await rig.handle.reaches { $0.isWaiting }
                note(machine.elapsed(id, active: active))
                rig.clock.advance(to: until)
            }
            if isDeaf, let wasOpening, stream != before, !wasOpening.isAccepted, !wasOpening.isClosed {
                late.append(wasOpening)
            }
            if let stream, stream != before {
                opening = try await rig.transport.nextOpening()
                told += 1
            }

            // Quiescent: the runtime has told all that the machine was told.
            let expected = machine.status
            let revision = machine.revision
            for await _ in handle.statuses where handle.revision >= revision { break }
            let status = handle.status
            #expect(handle.revision == revision, "step \(step), seed \(seed)")
            #expect(status.stream.name == expected.stream.name, "step \(step), seed \(seed)")
            #expect(status.until == expected.until, "step \(step), seed \(seed)")
            #expect(status.resumptions == expected.resumptions, "step \(step), seed \(seed)")
            #expect(status.events == expected.events, "step \(step), seed \(seed)")
            #expect((status.error == nil) == (expected.error == nil), "step \(step), seed \(seed)")
            let isLive = expected.isConnecting || expected.isOpen
            #expect(rig.transport.live == (isLive ? 1 : 0), "step \(step), seed \(seed)")
        }
        #expect(rig.transport.opened == told)
        #expect(rig.transport.mostLiveOfOne <= 1)
        for opening in late { opening.accept() }
        if isDeaf { opening?.accept() }
        await rig.environment.end()
        #expect(rig.transport.unclosed == 0)
    }

    // K05
    @Test("over a transport that fails in every way comes to rest with nothing left", arguments: [true, false])
    func faults(isDeaf: Bool) async throws {
        let seed = Seeded().seed
        for round in 0..<Seeded.count(2, full: 50) {
            try await Self.faults(seed: seed &+ UInt64(round), isDeaf: isDeaf)
        }
    }

    private static func faults(seed: UInt64, isDeaf: Bool) async throws {
        let clock = TestClock()
        // Between what a stream brings and its acceptance others have a turn: it may be left meanwhile.
        let transport = Transport(
            .watched(isDeaf: isDeaf),
            detach: { payload in
                sched_yield()
                return payload
            }
        )
        let environment = Environment(transport: transport, clock: clock)
        let answers = RaceTests.answer(transport, seed: seed)

        let handles = (0..<7).map { environment.handle(for: "\($0)") }
        for phase in 0..<3 {
            await withTaskGroup { group in
                for number in 0..<20 {
                    group.addTask {
                        var generator = Seeded(seed: seed &+ UInt64(phase * 20 + number))
                        for _ in 0..<10 {
                            let deliveries = handles[number % 7].deliveries(
                                limit: Int.random(in: 1...32, using: &generator)
                            )
                            let enough = Int.random(in: 1..<40, using: &generator)
                            // A stream that says nothing more is left by a cancellation, one that waits by the clock.
                            let loop = Task {
                                var log = Log()
                                do {
                                    for try await delivery in deliveries {
                                        log.deliveries.append(delivery)
                                        if log.deliveries.count == enough { break }
                                    }
                                } catch {}
                                return log
                            }
                            for _ in 0..<Int.random(in: 0..<40, using: &generator) { await Task.yield() }
                            clock.advance(by: .milliseconds(Int.random(in: 0..<3000, using: &generator)))
                            loop.cancel()
                            // I5: what it was given is of one stream after another, and of none that was left.
                            let log = await loop.value
                            #expect(log.firstGap == nil, "seed \(seed)")
                            if !environment.isActive { environment.isActive = true }
                            if Int.random(in: 0..<20, using: &generator) == 0 { environment.isActive = false }
                        }
                    }
                }
            }
            // I2: nothing is live of what nobody retains, and nothing while the environment is inactive.
            #expect(transport.live == 0, "seed \(seed)")
            #expect(environment.waits == 0, "seed \(seed)")
            environment.isActive = false
            let retentions = handles.map { $0.retain() }
            #expect(transport.live == 0, "seed \(seed)")
            environment.isActive = true
            for _ in 0..<100 {
                clock.advance(by: .milliseconds(500))
                await Task.yield()
            }
            environment.isActive = false
            #expect(transport.live == 0, "seed \(seed)")
            #expect(environment.waits == 0, "seed \(seed)")
            environment.isActive = true
            for retention in retentions { retention.release() }
            #expect(transport.live == 0, "seed \(seed)")
        }

        await environment.end()
        #expect(environment.running == 0, "seed \(seed)")
        #expect(transport.unclosed == 0, "seed \(seed)")
        #expect(transport.live == 0, "seed \(seed)")
        #expect(environment.registered == handles.count)
        // I1: for each handle by itself.
        #expect(transport.mostLiveOfOne <= 1, "seed \(seed)")
        _ = try? await transport.open("last", resuming: nil)
        try await answers.value
    }

    // K05
    @Test("over a transport that fails in every way leaves no handle that nobody holds")
    func noHandle() async throws {
        let seed = Seeded().seed
        let clock = TestClock()
        let transport = Transport(.watched())
        let environment = Environment(transport: transport, clock: clock)
        let answers = RaceTests.answer(transport, seed: seed)
        for number in 0..<Seeded.count(200, full: 10_000) {
            let deliveries = environment.handle(for: "\(number % 7)").deliveries()
            let loop = Task { for try await case .payload in deliveries { break } }
            for _ in 0..<number % 30 { await Task.yield() }
            loop.cancel()
            _ = await loop.result
        }

        #expect(await settles { environment.registered == 0 }, "seed \(seed)")
        #expect(environment.waits == 0, "seed \(seed)")
        await environment.end()
        #expect(environment.running == 0, "seed \(seed)")
        _ = try? await transport.open("last", resuming: nil)
        try await answers.value
    }
}
