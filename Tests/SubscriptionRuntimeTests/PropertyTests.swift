// The runtime against what may be said of any run of it.

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
            for delivery in deliveries {
                switch delivery {
                case .baseline: isMarked = true
                case .payload(let number):
                    if let last {
                        if number <= last { return "\(number) after \(last)" }
                        if !isMarked, number != last + 1 { return "\(number) after \(last), and no baseline" }
                    } else if !isMarked {
                        return "\(number) before any baseline"
                    }
                    last = number
                    isMarked = false
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

    // K03
    @Test("of one script leaves the runtime where the machine is", arguments: 0..<20)
    func runtimeAgainstTheMachine(number: Int) async throws {
        let seed = Seeded().seed
        var generator = Seeded(seed: seed &+ UInt64(number))
        let rig = Rig(driverExecutor: FairExecutor(seed: seed &+ UInt64(number)))
        let handle = rig.handle
        var machine = SubscriptionStateMachine()
        var active = true
        var retentions: [Retention] = []
        var stream: SubscriptionStateMachine.StreamID?
        var wait: SubscriptionStateMachine.StreamID?
        var opening: Transport.Opening?
        var told = 0

        func note(_ action: SubscriptionStateMachine.Action) {
            switch action {
            case .none, .accept: break
            case .open(let id): (stream, wait) = (id, nil)
            case .wait(let id, _): (stream, wait) = (nil, id)
            case .stop, .finish, .abandon: (stream, wait) = (nil, nil)
            }
        }

        for step in 0..<150 {
            let before = stream
            switch Int.random(in: 0..<10, using: &generator) {
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
            case 7:
                guard let id = stream, let opening, machine.status.isOpen else { continue }
                _ = machine.payloads(1, on: id)
                opening.feed(step)
            case 8:
                guard let id = stream, let opening else { continue }
                let failure: SubscriptionFailure = Bool.random(using: &generator) ? .dropped : .refused
                note(machine.failed(failure, on: id, now: rig.clock.now, chance: 1, active: active))
                opening.fail(failure)
            default:
                guard let id = wait, let until = machine.status.until else { continue }
                // The deadline is armed, or an earlier one that was dropped still is.
                await rig.handle.reaches { $0.isWaiting }
                note(machine.elapsed(id, active: active))
                rig.clock.advance(to: until)
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
        }
        #expect(rig.transport.opened == told)
        await rig.environment.end()
    }

    // K05
    @Test("over a transport that fails in every way comes to rest with nothing left", arguments: [true, false])
    func faults(isDeaf: Bool) async throws {
        let seed = Seeded().seed
        let clock = TestClock()
        let transport = Transport(.watched(isDeaf: isDeaf))
        let environment = Environment(transport: transport, clock: clock)
        let answers = RaceTests.answer(transport, seed: seed)

        await withTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    var generator = Seeded(seed: seed &+ UInt64(number))
                    let handle = environment.handle(for: "\(number % 7)")
                    for _ in 0..<30 {
                        let deliveries = handle.deliveries(limit: Int.random(in: 1...32, using: &generator))
                        let enough = Int.random(in: 1..<20, using: &generator)
                        // A stream that says nothing more is left by a cancellation, one that waits by the clock.
                        let loop = Task {
                            var count = 0
                            for try await _ in deliveries {
                                count += 1
                                if count == enough { break }
                            }
                        }
                        for _ in 0..<Int.random(in: 0..<20, using: &generator) { await Task.yield() }
                        clock.advance(by: .milliseconds(Int.random(in: 0..<3000, using: &generator)))
                        loop.cancel()
                        _ = await loop.result
                        if !environment.isActive { environment.isActive = true }
                        if Int.random(in: 0..<20, using: &generator) == 0 { environment.isActive = false }
                    }
                }
            }
        }

        // All owners have left.
        #expect(environment.waits == 0, "seed \(seed)")
        await environment.end()
        #expect(await settles { environment.registered == 0 }, "seed \(seed)")
        #expect(environment.running == 0, "seed \(seed)")
        #expect(transport.unclosed == 0, "seed \(seed)")
        #expect(transport.live == 0, "seed \(seed)")
        // One a handle.
        #expect(transport.mostLive <= 7, "seed \(seed)")
        _ = try? await transport.open("last", resuming: nil)
        try await answers.value
    }
}
