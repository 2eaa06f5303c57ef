// Owners of one speed, by a fair schedule and by real threads.

import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("Owners of one speed", .timeLimit(.minutes(10)))
struct PaceTests {
    /// What one owner saw.
    struct Taken: Sendable {
        var payloads = 0
        var baselines: [Delivery<Int>.Cause] = []
        var isInOrder = true
    }

    /// Takes everything, one payload between two suspensions.
    private static func take(_ deliveries: Deliveries<Int>) async throws -> Taken {
        var taken = Taken()
        var last = 0
        for try await delivery in deliveries {
            switch delivery {
            case .baseline(let cause):
                taken.baselines.append(cause)
                if case .lagged(let dropped) = cause { last += dropped }
            case .payload(let number):
                // A loss says exactly how many.
                if number != last + 1 { taken.isInOrder = false }
                last = number
                taken.payloads += 1
                await Task.yield()
            }
        }
        return taken
    }

    private static func run(
        owners: Int,
        limit: Int,
        count: Int,
        on executor: (any TaskExecutor)?
    ) async throws -> [Taken] {
        let transport = Transport(driverExecutor: executor)
        let environment = Environment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        let deliveries = (0..<owners).map { _ in handle.deliveries(limit: limit) }
        let opening = try await transport.nextOpening()
        opening.feed(contentsOf: Array(1...count))
        opening.complete()
        let loops = deliveries.map { deliveries in
            Task(executorPreference: executor) { try await take(deliveries) }
        }
        opening.accept()
        var taken: [Taken] = []
        for loop in loops { taken.append(try await loop.value) }
        return taken
    }

    // H04, H05
    @Test(
        "lose nothing to each other, in whatever order their turns come",
        .longComputation,
        arguments: [(owners: 2, limit: 256), (owners: 8, limit: 64)]
    )
    func fairTurns(owners: Int, limit: Int) async throws {
        let count = Seeded.count(owners == 2 ? 50_000 : 10_000, full: owners == 2 ? 1_000_000 : 100_000)
        let seed = Seeded().seed

        let taken = try await Self.run(owners: owners, limit: limit, count: count, on: FairExecutor(seed: seed))

        for owner in taken {
            #expect(owner.baselines == [.opened], "seed \(seed)")
            #expect(owner.payloads == count && owner.isInOrder, "seed \(seed)")
        }
    }

    // H05
    @Test("on real threads are told of each loss, and what is not told is not lost")
    func realThreads() async throws {
        let count = Seeded.count(20_000, full: 1_000_000)

        let taken = try await Self.run(owners: 2, limit: 256, count: count, on: nil)

        for (number, owner) in taken.enumerated() {
            let lost = owner.baselines.reduce(0) { if case .lagged(let dropped) = $1 { $0 + dropped } else { $0 } }
            #expect(owner.payloads + lost == count && owner.isInOrder)
            Seeded.report(
                "owner \(number) of two on real threads, limit 256: \(owner.baselines.count - 1) lags, "
                    + "\(lost) of \(count) payloads lost"
            )
        }
    }

    // H03, H05
    @Test(
        "on real threads are not slowed by one that is stuck, and that one is told how many it lost",
        arguments: [1, 2]
    )
    func stuckOnRealThreads(fast: Int) async throws {
        let count = Seeded.count(20_000, full: 1_000_000)
        let transport = Transport()
        let environment = Environment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        // Begins its loop and never asks again, until all is over.
        var stuck = handle.deliveries(limit: 64).makeAsyncIterator()
        let deliveries = (0..<fast).map { _ in handle.deliveries(limit: 256) }
        let opening = try await transport.nextOpening()
        opening.accept()
        #expect(try await stuck.next() == .baseline(.opened))

        let loops = deliveries.map { deliveries in Task { try await Self.take(deliveries) } }
        opening.feed(contentsOf: Array(1...count))
        opening.complete()
        for (number, loop) in loops.enumerated() {
            let taken = try await loop.value
            let lost = taken.baselines.reduce(0) { if case .lagged(let dropped) = $1 { $0 + dropped } else { $0 } }
            #expect(taken.payloads + lost == count && taken.isInOrder)
            // An owner that is alone but for a stuck one is alone.
            if fast == 1 { #expect(taken.baselines == [.opened]) }
            Seeded.report(
                "owner \(number) of \(fast) beside a stuck one: \(taken.baselines.count - 1) lags, "
                    + "\(lost) of \(count) payloads lost"
            )
        }

        #expect(try await stuck.next() == .baseline(.lagged(dropped: count)))
        #expect(try await stuck.next() == nil)
    }

    // H20
    @Test("that join between a payload's reading and its acceptance get it once, and nothing before it after it")
    func joinedInBetween() async throws {
        struct Joining {
            var handle: Handle?
            var joined: [Deliveries<Int>] = []
        }
        let joining = Lock(Joining())
        let transport = Transport(detach: { payload in
            // Called by the driver for the payload it has read, before the handle accepts it.
            if let handle = joining.withLock({ $0.handle }) {
                let deliveries = handle.deliveries()
                joining.withLock { $0.joined.append(deliveries) }
            }
            return payload
        })
        let environment = Environment(transport: transport, clock: TestClock())
        let handle = environment.handle(for: "prices")
        let retention = handle.retain()
        let opening = try await transport.nextOpening()
        opening.accept()
        await handle.reaches { $0.isOpen }
        joining.withLock { $0.handle = handle }
        for number in 1...3 {
            opening.feed(number)
            await handle.reaches(events: number)
        }
        joining.withLock { $0.handle = nil }
        opening.complete()

        let joined = joining.withLock { joining in
            defer { joining.joined = [] }
            return joining.joined
        }
        #expect(joined.count == 3)
        for (owner, deliveries) in joined.enumerated() {
            var taken: [Delivery<Int>] = []
            for try await delivery in deliveries { taken.append(delivery) }
            #expect(taken == [.baseline(.opened)] + (owner + 1...3).map { .payload($0) })
        }
        retention.release()
    }
}
