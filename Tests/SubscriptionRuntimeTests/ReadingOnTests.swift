// An owner that reads on in the driver's place, and what may happen to the subscription meanwhile.

import Foundation
import SubscriptionTesting
import Synchronization
import Testing

@testable import SubscriptionRuntime

/// Counts who reads: the driver by waiting, an owner by not.
private final class Reads: Sendable {
    private let counts = Lock((waiting: 0, ready: 0))

    var waiting: Int { counts.withLock { $0.waiting } }
    var ready: Int { counts.withLock { $0.ready } }

    func waited() { counts.withLock { $0.waiting += 1 } }
    func wasReady() { counts.withLock { $0.ready += 1 } }
}

/// The numbers from 1 on, as many at once as are asked for; completes after the last.
private struct Counting: SubscriptionTransport, PayloadSequence {
    typealias Element = Int
    typealias Failure = SubscriptionFailure

    let count: Int
    let reads: Reads
    let driverExecutor: (any TaskExecutor)?

    func open(_ request: String, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Counting { self }

    func makeAsyncIterator() -> Iterator { Iterator(count: count, reads: reads) }

    struct Iterator: PayloadIterator {
        let count: Int
        let reads: Reads
        private var last = 0

        init(count: Int, reads: Reads) {
            self.count = count
            self.reads = reads
        }

        private mutating func take(_ most: Int) -> [Int]? {
            guard last < count else { return nil }
            let numbers = Array(last + 1...Swift.min(count, last + most))
            last += numbers.count
            return numbers
        }

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Int? {
            take(1)?.first
        }

        mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Int]? {
            reads.waited()
            return take(count)
        }

        mutating func nextIfReady(atMost count: Int) -> [Int]? {
            defer { reads.wasReady() }
            return take(count)
        }
    }
}

@Suite("An owner that has nothing left", .timeLimit(.minutes(1)))
struct ReadingOnTests {
    @Test("takes what is there itself, and leaves the end to the driver", arguments: [1, 2, 16, 256])
    func alone(limit: Int) async throws {
        let reads = Reads()
        let window = max(1, limit / 2)
        // In turns: the driver is suspended before the owner gets to what it brought.
        let thread = OneThread(label: "turns")
        let transport = Counting(count: 10 * window, reads: reads, driverExecutor: thread)
        let environment = SubscriptionEnvironment(transport: transport)
        let numbers = try await Task(executorPreference: thread) {
            var numbers: [Int] = []
            for try await delivery in environment.handle(for: "numbers").deliveries(limit: limit) {
                if case .payload(let number) = delivery { numbers.append(number) }
            }
            return numbers
        }.value
        #expect(numbers == Array(1...10 * window))
        // The first batch and the end are the driver's; the end is found out to be none of the owner's.
        #expect(reads.waiting == 2)
        #expect(reads.ready == 10)
    }

    @Test("lets others have their turn where it runs, however much there is", arguments: [1, 2, 16, 256])
    func turns(limit: Int) async throws {
        let thread = OneThread(label: "turns")
        let transport = Counting(count: .max, reads: Reads(), driverExecutor: thread)
        let environment = SubscriptionEnvironment(transport: transport)
        let owner = Task(executorPreference: thread) {
            var count = 0
            for try await delivery in environment.handle(for: "numbers").deliveries(limit: limit) {
                if case .payload = delivery { count += 1 }
            }
            return count
        }
        // Never a turn of its own, and never an end of the loop, if the owner did not leave any.
        let canceller = Task(executorPreference: thread) {
            for _ in 0..<20 { await Task.yield() }
            owner.cancel()
        }
        #expect(try await owner.value > 0)
        await canceller.value
    }

    /// Played at the one moment when an owner has read and nothing is accepted yet.
    private final class Moment: Sendable {
        private let act = Lock<(@Sendable () -> Void)?>(nil)

        func set(_ body: (@Sendable () -> Void)?) {
            act.withLock { $0 = body }
        }

        func comes() {
            let body = act.withLock { act in
                defer { act = nil }
                return act
            }
            body?()
        }
    }

    /// An environment in which an owner with a limit of 8 has taken 1...4, and reads on at the last of them.
    private struct Scene {
        let moment = Moment()
        let transport: Transport
        let environment: Environment
        let handle: Handle
        let opening: Transport.Opening
        var owner: Deliveries<Int>.Iterator

        init() async throws {
            transport = Transport(detach: { [moment] payload in
                moment.comes()
                return payload
            })
            environment = Environment(transport: transport, clock: TestClock())
            handle = environment.handle(for: "prices")
            owner = handle.deliveries(limit: 8).makeAsyncIterator()
            opening = try await transport.nextOpening()
            opening.feed(contentsOf: Array(1...20))
            opening.accept()
            #expect(try await owner.next() == .baseline(.opened))
            for number in 1...3 { #expect(try await owner.next() == .payload(number)) }
            // Only now may the driver be held to be suspended: it is what is taken by the fourth.
            while handle.core.heldBack == nil { await Task.yield() }
        }
    }

    @Test("reads into an environment that ends meanwhile, and what it read is void")
    func environmentEnds() async throws {
        var scene = try await Scene()
        let environment = scene.environment
        scene.moment.set { environment.core.end() }
        #expect(try await scene.owner.next() == .payload(4))
        await #expect(throws: SubscriptionEnd.self) { try await scene.owner.next() }
        #expect(try await scene.owner.next() == nil)
        #expect(scene.handle.status.events == 4)
        try await scene.opening.closing()
    }

    @Test("reads into an environment that is parked meanwhile, and what it read comes after no baseline")
    func environmentIsParked() async throws {
        var scene = try await Scene()
        let environment = scene.environment
        scene.moment.set { environment.isActive = false }
        #expect(try await scene.owner.next() == .payload(4))
        #expect(scene.handle.status.isIdle)
        #expect(scene.handle.status.events == 4)
        try await scene.opening.closing()
        environment.isActive = true
        let opening = try await scene.transport.nextOpening()
        opening.feed(21)
        opening.accept()
        #expect(try await scene.owner.next() == .baseline(.resumed(1)))
        #expect(try await scene.owner.next() == .payload(21))
    }

    @Test("reads of a stream that another has followed meanwhile, and nothing of that comes into the new one's")
    func anotherStreamIsOpen() async throws {
        // Not on a thread of the pool's, which the new stream's driver needs.
        try await Task(executorPreference: OneThread(label: "reads on")) {
            var scene = try await Scene()
            let (environment, handle) = (scene.environment, scene.handle)
            let transport = scene.transport
            let next = Task {
                let opening = try await transport.nextOpening()
                opening.accept()
                return opening
            }
            scene.moment.set {
                environment.isActive = false
                environment.isActive = true
                while !handle.status.isOpen { sched_yield() }
            }
            #expect(try await scene.owner.next() == .payload(4))

            #expect(scene.opening.taken == 8)
            #expect(handle.status.events == 4)
            #expect(handle.latest == 4)
            try await next.value.feed(21)
            #expect(try await scene.owner.next() == .baseline(.resumed(1)))
            #expect(try await scene.owner.next() == .payload(21))
        }.value
    }

    @Test("reads in a task that is cancelled meanwhile, and takes nothing more")
    func taskIsCancelled() async throws {
        try await Task {
            var scene = try await Scene()
            scene.moment.set { withUnsafeCurrentTask { $0?.cancel() } }
            #expect(try await scene.owner.next() == .payload(4))
            #expect(try await scene.owner.next() == nil)
            #expect(try await scene.owner.next() == nil)
            #expect(scene.handle.status.isIdle)
        }.value
    }

    @Test("reads for another that joins meanwhile too")
    func anotherJoins() async throws {
        var scene = try await Scene()
        let handle = scene.handle
        let joined = Lock<Deliveries<Int>?>(nil)
        scene.moment.set {
            let deliveries = handle.deliveries(limit: 8)
            joined.withLock { $0 = deliveries }
        }
        #expect(try await scene.owner.next() == .payload(4))
        var other = try #require(joined.withLock { $0.take() }).makeAsyncIterator()
        #expect(try await other.next() == .baseline(.opened))
        for number in 5...20 {
            #expect(try await scene.owner.next() == .payload(number))
            #expect(try await other.next() == .payload(number))
        }
    }

    @Test("and leaves meanwhile has read for a retention that stays")
    func ownerLeaves() async throws {
        var scene = try await Scene()
        let retention = scene.handle.retain()
        let owner = scene.owner.owner
        scene.moment.set { owner.detach() }
        #expect(try await scene.owner.next() == .payload(4))
        #expect(try await scene.owner.next() == nil)
        await scene.handle.reaches(events: 20)
        #expect(scene.handle.latest == 20)
        retention.release()
    }

    @Test("and leaves meanwhile leaves what it read to the driver, where the one that came has less room")
    func anotherReplacesIt() async throws {
        var scene = try await Scene()
        let (handle, owner) = (scene.handle, scene.owner.owner)
        let joined = Lock<Deliveries<Int>?>(nil)
        scene.moment.set {
            let deliveries = handle.deliveries(limit: 2)
            joined.withLock { $0 = deliveries }
            owner.detach()
        }
        #expect(try await scene.owner.next() == .payload(4))
        var other = try #require(joined.withLock { $0.take() }).makeAsyncIterator()
        #expect(try await other.next() == .baseline(.opened))
        for number in 5...20 { #expect(try await other.next() == .payload(number)) }
        #expect(try await scene.owner.next() == nil)
    }

    @Test("lets the driver go on where another has not had its turn, and so makes nobody lag")
    func turns() async throws {
        let rig = Rig()
        var first = rig.handle.deliveries(limit: 8).makeAsyncIterator()
        var second = rig.handle.deliveries(limit: 8).makeAsyncIterator()
        let opening = try await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...20))
        opening.accept()
        #expect(try await first.next() == .baseline(.opened))
        for number in 1...3 { #expect(try await first.next() == .payload(number)) }
        while rig.handle.core.heldBack == nil { await Task.yield() }

        // The second has four: the first may read four more, and no more than that by itself.
        #expect(try await first.next() == .payload(4))
        #expect(opening.taken == 8 && rig.handle.core.heldBack != nil)
        for number in 5...7 { #expect(try await first.next() == .payload(number)) }
        #expect(opening.taken == 8)

        #expect(try await second.next() == .baseline(.opened))
        for number in 1...8 { #expect(try await second.next() == .payload(number)) }
        for number in 8...20 { #expect(try await first.next() == .payload(number)) }
    }

    @Test("reads on by a whole window, and not by less", arguments: [(limit: 7, reads: 0), (limit: 8, reads: 1)])
    func wholeWindows(other: Int, reads expected: Int) async throws {
        let reads = Reads()
        let thread = OneThread(label: "whole windows")
        let environment = SubscriptionEnvironment(
            transport: Counting(count: 100, reads: reads, driverExecutor: thread)
        )
        let handle = environment.handle(for: "numbers")
        try await Task(executorPreference: thread) { () async throws in
            var owner = handle.deliveries(limit: 8).makeAsyncIterator()
            let second = handle.deliveries(limit: other)
            #expect(try await owner.next() == .baseline(.opened))
            for number in 1...3 { #expect(try await owner.next() == .payload(number)) }
            #expect(reads.ready == 0)
            // The other has four of them, and room for the rest of its limit.
            #expect(try await owner.next() == .payload(4))
            #expect(reads.ready == expected)
            withExtendedLifetime(second) {}
        }.value
    }

    @Test("leaves no stream open when the environment has ended, whoever still holds its reading")
    func closedAtTheEnd() async throws {
        let rig = Rig()
        var owner = rig.handle.deliveries(limit: 8).makeAsyncIterator()
        let opening = try await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...20))
        opening.accept()
        #expect(try await owner.next() == .baseline(.opened))
        while rig.handle.core.heldBack == nil { await Task.yield() }
        let stream = rig.handle.core.heldBack

        await rig.environment.end()

        #expect(opening.isClosed)
        withExtendedLifetime(stream) {}
    }

    @Test("reads on beside one whose deliveries have ended and are not taken")
    func besideAnEndedOne() async throws {
        let reads = Reads()
        let thread = OneThread(label: "turns")
        let environment = SubscriptionEnvironment(
            transport: Counting(count: 40, reads: reads, driverExecutor: thread)
        )
        let handle = environment.handle(for: "numbers")
        let ended = handle.deliveries(limit: 256)
        await handle.reaches { $0.isCompleted }

        let taken = try await Task(executorPreference: thread) {
            var taken = 0
            for try await delivery in handle.deliveries(limit: 8) {
                if case .payload = delivery { taken += 1 }
            }
            return taken
        }.value

        #expect(taken == 40)
        #expect(reads.ready == 10)
        withExtendedLifetime(ended) {}
    }

    @Test(
        "loses nothing and holds no more than its limit, however often there is nothing ready",
        arguments: [1, 2, 7, 256],
        [2, 5, 1000]
    )
    func anyPace(limit: Int, nothingIn: Int) async throws {
        let count = Seeded.count(5_000, full: 200_000)
        let life = Life()
        let transport = Unsteady(count: count, nothingIn: nothingIn, seed: UInt64(limit), life: life)
        let environment = SubscriptionEnvironment(transport: transport)
        var last = 0
        for try await delivery in environment.handle(for: "numbers").deliveries(limit: limit) {
            guard case .payload(let number) = delivery else { continue }
            #expect(number.value == last + 1)
            last = number.value
        }
        #expect(last == count)
        #expect(life.collisions == 0)
        // Beside them: the latest, and the one that the loop looks at.
        #expect(life.most <= limit + 2)
        await environment.end()
    }

    @Test("loses nothing that it is not told of, beside others of any pace that come and go", arguments: 1...4)
    func crowd(seed: UInt64) async throws {
        let count = Seeded.count(20_000, full: 500_000)
        let life = Life()
        // All are there before it opens: a baseline of an opening would say nothing of how many were lost before it.
        let (gate, opens) = AsyncStream<Void>.makeStream()
        let nothingIn = seed.isMultiple(of: 2) ? 3 : 1000
        let transport = Unsteady(count: count, nothingIn: nothingIn, seed: seed, life: life, gate: gate)
        let environment = SubscriptionEnvironment(transport: transport)
        let handle = environment.handle(for: "numbers")
        let owners = [2, 10, 64, 128].map { handle.deliveries(limit: $0) }
        opens.finish()
        try await withThrowingTaskGroup { group in
            for (pause, owner) in owners.enumerated() {
                group.addTask {
                    var last = 0
                    for try await delivery in owner {
                        switch delivery {
                        case .payload(let number):
                            #expect(number.value == last + 1)
                            last = number.value
                            if pause > 0, last.isMultiple(of: 50 * pause) { await Task.yield() }
                        case .baseline(.lagged(let dropped)):
                            last += dropped
                        case .baseline:
                            break
                        }
                    }
                    #expect(last == count)
                }
            }
            group.addTask {
                for round in 1...100 {
                    var taken = 0
                    for try await _ in handle.deliveries(limit: 1 + round % 40) {
                        taken += 1
                        if taken > round % 17 { break }
                    }
                    await Task.yield()
                }
            }
            try await group.waitForAll()
        }
        #expect(life.collisions == 0)
        await environment.end()
    }
}

/// How many payloads live, and whether two calls of an iterator ever met.
private final class Life: Sendable {
    private let counts = Lock((now: 0, most: 0, collisions: 0))
    private let isBusy = Atomic<Bool>(false)

    var most: Int { counts.withLock { $0.most } }
    var collisions: Int { counts.withLock { $0.collisions } }

    func began() {
        counts.withLock { counts in
            counts.now += 1
            counts.most = max(counts.most, counts.now)
        }
    }

    func ended() { counts.withLock { $0.now -= 1 } }

    // Without a lock: ThreadSanitizer is to see whether the callers have one between them.
    func enter() {
        if isBusy.exchange(true, ordering: .relaxed) { counts.withLock { $0.collisions += 1 } }
    }

    func leave() { isBusy.store(false, ordering: .relaxed) }
}

/// The numbers from 1 on, in parts of any size, of which often nothing is ready.
private struct Unsteady: SubscriptionTransport, PayloadSequence {
    typealias Element = Number
    typealias Failure = SubscriptionFailure

    final class Number: Sendable {
        let value: Int
        private let life: Life

        init(_ value: Int, _ life: Life) {
            self.value = value
            self.life = life
            life.began()
        }

        deinit { life.ended() }
    }

    let count: Int
    let nothingIn: Int
    let seed: UInt64
    let life: Life
    var gate = AsyncStream<Void> { $0.finish() }

    func open(_ request: String, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Unsteady {
        for await _ in gate {}
        return self
    }

    func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    struct Iterator: PayloadIterator {
        private let stream: Unsteady
        private var generator: Seeded
        private var last = 0

        init(stream: Unsteady) {
            self.stream = stream
            generator = Seeded(seed: stream.seed)
        }

        private mutating func take(_ most: Int) -> [Number]? {
            guard last < stream.count else { return nil }
            let count = Swift.min(stream.count - last, Int.random(in: 1...most, using: &generator))
            defer { last += count }
            return (last + 1...last + count).map { Number($0, stream.life) }
        }

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Number? {
            take(1)?.first
        }

        mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Number]? {
            stream.life.enter()
            defer { stream.life.leave() }
            if Int.random(in: 0..<4, using: &generator) == 0 { await Task.yield() }
            return take(count)
        }

        mutating func nextIfReady(atMost count: Int) -> [Number]? {
            stream.life.enter()
            defer { stream.life.leave() }
            return Int.random(in: 0..<stream.nothingIn, using: &generator) == 0 ? nil : take(count)
        }
    }
}
