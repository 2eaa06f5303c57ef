// An owner that reads on in the driver's place, and what may happen to the subscription meanwhile.

import SubscriptionTesting
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
            opening = await transport.nextOpening()
            opening.feed(contentsOf: Array(1...20))
            opening.accept()
            #expect(try await owner.next() == .baseline(.opened))
            for number in 1...3 { #expect(try await owner.next() == .payload(number)) }
            // Only now may the driver be held to be suspended: it is what is taken by the fourth.
            while !handle.core.isHeldBack { await Task.yield() }
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
        await scene.opening.closing()
    }

    @Test("reads into an environment that is parked meanwhile, and what it read comes after no baseline")
    func environmentIsParked() async throws {
        var scene = try await Scene()
        let environment = scene.environment
        scene.moment.set { environment.isActive = false }
        #expect(try await scene.owner.next() == .payload(4))
        #expect(scene.handle.status.isIdle)
        #expect(scene.handle.status.events == 4)
        await scene.opening.closing()
        environment.isActive = true
        let opening = await scene.transport.nextOpening()
        opening.feed(21)
        opening.accept()
        #expect(try await scene.owner.next() == .baseline(.resumed(1)))
        #expect(try await scene.owner.next() == .payload(21))
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
        let opening = await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...20))
        opening.accept()
        #expect(try await first.next() == .baseline(.opened))
        for number in 1...3 { #expect(try await first.next() == .payload(number)) }
        while !rig.handle.core.isHeldBack { await Task.yield() }

        // The second has four: the first may read four more, and no more than that by itself.
        #expect(try await first.next() == .payload(4))
        #expect(opening.taken == 8 && rig.handle.core.isHeldBack)
        for number in 5...7 { #expect(try await first.next() == .payload(number)) }
        #expect(opening.taken == 8)

        #expect(try await second.next() == .baseline(.opened))
        for number in 1...8 { #expect(try await second.next() == .payload(number)) }
        for number in 8...20 { #expect(try await first.next() == .payload(number)) }
    }
}
