import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("The point to resume by", .timeLimit(.minutes(5)))
struct ResumePointTests {
    /// An environment in which something may happen between a batch's reading and its acceptance.
    private struct Scene {
        private let moment = Lock<(@Sendable () -> Void)?>(nil)
        let transport: Transport
        let environment: Environment
        let handle: Handle

        init() {
            transport = Transport(detach: { [moment] payload in
                let act = moment.withLock { moment in
                    defer { moment = nil }
                    return moment
                }
                act?()
                return payload
            })
            environment = Environment(transport: transport, clock: TestClock())
            handle = environment.handle(for: "prices")
        }

        /// Once, after the next batch has been read and before it is accepted.
        func whenRead(_ act: @escaping @Sendable () -> Void) {
            moment.withLock { $0 = act }
        }

        /// What the opening after a parking is to resume by.
        func resuming() async throws -> ResumePoint? {
            environment.isActive = false
            environment.isActive = true
            return try await transport.nextOpening().resuming
        }
    }

    // A32
    @Test("asks again for what its stream's reader had read and a parking dropped")
    func droppedByTheDriver() async throws {
        let scene = Scene()
        let environment = scene.environment
        let retention = scene.handle.retain()
        let opening = try await scene.transport.nextOpening()
        opening.feed(contentsOf: [1, 2], point: ResumePoint([2]))
        opening.accept()
        await scene.handle.reaches(events: 2)

        scene.whenRead { environment.isActive = false }
        opening.feed(contentsOf: [3, 4], point: ResumePoint([4]))
        try await opening.closing()

        #expect(opening.taken == 4)
        #expect(scene.handle.events == 2)
        #expect(try await scene.resuming() == ResumePoint([2]))
        retention.release()
    }

    // A32
    @Test("asks again for what an owner had read on and a parking dropped")
    func droppedByAnOwner() async throws {
        let scene = Scene()
        let environment = scene.environment
        var owner = scene.handle.deliveries(limit: 8).makeAsyncIterator()
        let opening = try await scene.transport.nextOpening()
        opening.feed(contentsOf: Array(1...4), point: ResumePoint([4]))
        opening.feed(contentsOf: Array(5...8), point: ResumePoint([8]))
        opening.accept()
        #expect(try await owner.next() == .baseline(.opened))
        for number in 1...3 { #expect(try await owner.next() == .payload(number)) }
        while scene.handle.core.heldBack == nil { await Task.yield() }

        scene.whenRead { environment.isActive = false }
        #expect(try await owner.next() == .payload(4))
        try await opening.closing()

        #expect(opening.taken == 8)
        #expect(scene.handle.events == 4)
        #expect(try await scene.resuming() == ResumePoint([4]))
    }

    // A32
    @Test("asks again for a batch of which a parking dropped a part, and not before all of it is accepted for the next")
    func keptInPart() async throws {
        let scene = Scene()
        let retention = scene.handle.retain()
        let opening = try await scene.transport.nextOpening()
        opening.feed(contentsOf: [0], point: ResumePoint([0]))
        opening.accept()
        await scene.handle.reaches(events: 1)
        // The reading waits for a batch of any size, and the owner that joins has room for one.
        var owner = scene.handle.deliveries(limit: 2).makeAsyncIterator()
        opening.feed(contentsOf: Array(1...20), point: ResumePoint([20]))
        #expect(try await owner.next() == .baseline(.opened))
        for number in 1...5 { #expect(try await owner.next() == .payload(number)) }

        #expect(opening.taken == 21)
        #expect(try await scene.resuming() == ResumePoint([0]))
        retention.release()
    }

    // A32
    @Test("asks again for no batch that was kept and taken to its last")
    func keptAndTaken() async throws {
        let scene = Scene()
        let retention = scene.handle.retain()
        let opening = try await scene.transport.nextOpening()
        opening.accept()
        await scene.handle.reaches { $0.isOpen }
        opening.feed(0)
        await scene.handle.reaches(events: 1)
        var owner = scene.handle.deliveries(limit: 2).makeAsyncIterator()
        opening.feed(contentsOf: Array(1...20), point: ResumePoint([20]))
        #expect(try await owner.next() == .baseline(.opened))
        for number in 1...20 { #expect(try await owner.next() == .payload(number)) }

        #expect(try await scene.resuming() == ResumePoint([20]))
        retention.release()
    }

    // A32
    @Test("asks again for what an owner had read on and left, and another that came took a part of")
    func keptByAnOwner() async throws {
        let scene = Scene()
        let handle = scene.handle
        var owner = handle.deliveries(limit: 8).makeAsyncIterator()
        let opening = try await scene.transport.nextOpening()
        opening.feed(contentsOf: Array(1...4), point: ResumePoint([4]))
        opening.feed(contentsOf: Array(5...8), point: ResumePoint([8]))
        opening.accept()
        #expect(try await owner.next() == .baseline(.opened))
        for number in 1...3 { #expect(try await owner.next() == .payload(number)) }
        while handle.core.heldBack == nil { await Task.yield() }
        let joined = Lock<Deliveries<Int>?>(nil)
        scene.whenRead { [owner = owner.owner] in
            let deliveries = handle.deliveries(limit: 2)
            joined.withLock { $0 = deliveries }
            owner.detach()
        }
        #expect(try await owner.next() == .payload(4))
        var other = try #require(joined.withLock { $0.take() }).makeAsyncIterator()
        #expect(try await other.next() == .baseline(.opened))
        for number in 5...6 { #expect(try await other.next() == .payload(number)) }

        #expect(opening.taken == 8)
        #expect(try await scene.resuming() == ResumePoint([4]))
    }
}
