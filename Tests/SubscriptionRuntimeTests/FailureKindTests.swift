import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("A failure's kind", .timeLimit(.minutes(5)))
struct FailureKindTests {
    // B01
    @Test("network, at the opening, makes the stream wait")
    func networkAtTheOpening() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()

        try await rig.transport.nextOpening().fail(.dropped)

        let status = await rig.handle.reaches { $0.isWaiting }
        #expect(status.error != nil)
        #expect(status.resumptions == 0)
        #expect(!status.stream.isActive)
        retention.release()
    }

    // B03
    @Test("request, at the opening, ends it for good")
    func requestAtTheOpening() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()

        try await rig.transport.nextOpening().fail(.request(Refused(number: 3)))

        let status = await rig.handle.reaches { $0.isEnded }
        guard case .request(let refusal)? = status.error else {
            Issue.record("the error is \(String(describing: status.error))")
            return
        }
        #expect(refusal as? Refused == Refused(number: 3))
        #expect(rig.environment.waits == 0)
        rig.clock.advance(by: .seconds(3600))
        #expect(rig.transport.opened == 1)
        retention.release()
    }

    // B04
    @Test("no transport, ends it at once and at each retry, until the environment's end")
    func noTransport() async throws {
        let environment = Environment(transport: nil)
        let handle = environment.handle(for: "prices")

        let retention = handle.retain()

        guard case .ended(.environment(.noTransport)?) = handle.stream else {
            Issue.record("the stream is \(handle.stream)")
            return
        }
        let revision = handle.revision
        handle.retry()
        #expect(handle.revision > revision)
        guard case .ended(.environment(.noTransport)?) = handle.stream else {
            Issue.record("the stream is \(handle.stream)")
            return
        }
        await #expect(throws: SubscriptionEnd.self) {
            for try await _ in handle.deliveries() {}
        }
        await environment.end()
        #expect(handle.status.isGone)
        retention.release()
    }

    // B05, B06
    @Test("network, on an open stream, waits the first step after a payload and a longer one after none")
    func networkWhileOpen() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        rig.clock.advance(to: try await rig.clock.nextDeadline())

        try await rig.openStream().fail(.dropped)
        var until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(2))

        rig.clock.advance(to: try await rig.clock.nextDeadline())
        let opening = try await rig.openStream()
        opening.feed(1)
        opening.fail(.dropped)
        until = try #require(await rig.handle.reaches { $0.isWaiting }.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(1))
        retention.release()
    }

    // B07
    @Test("request, on an open stream, is thrown once to its owner")
    func requestWhileOpen() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries().makeAsyncIterator()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()
        #expect(try await deliveries.next() == .baseline(.opened))

        opening.fail(.refused)

        await #expect(throws: SubscriptionEnd.self) { try await deliveries.next() }
        #expect(try await deliveries.next() == nil)
        #expect(rig.handle.status.isRefused)
        retention.release()
    }

    // B08
    @Test("environment, from the transport, ends it, and a retry may try")
    func environmentWhileOpen() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()

        opening.fail(.environment(.transport(Dropped())))
        await rig.handle.reaches { $0.isEnded }
        rig.handle.retry()

        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 1)
        retention.release()
    }

    // B08, A28
    @Test(
        "environment, gone by the transport's own word, ends it no more than another: only the environment's end is final"
    )
    func goneByTheTransport() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let deliveries = rig.handle.deliveries()
        try await rig.openStream().fail(.environment(.gone))
        // Also for a loop over statuses, which ends with the environment.
        await rig.handle.reaches { $0.isEnded }
        await #expect(throws: SubscriptionEnd.self) {
            for try await _ in deliveries {}
        }

        rig.handle.retry()

        #expect(rig.handle.status.isConnecting)
        try await rig.openStream().fail(.environment(.gone))
        await rig.handle.reaches { $0.isEnded }
        let another = rig.handle.retain()
        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(rig.handle.resumptions == 2)
        #expect(rig.environment.handle(for: "other").status.isIdle)
        retention.release()
        another.release()
    }

    // B09, B10
    @Test(
        "none: a completion ends it without an error, even one that comes with the opening",
        arguments: [true, false]
    )
    func completion(comesWithTheOpening: Bool) async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.transport.nextOpening()

        let revision = rig.handle.revision

        if comesWithTheOpening { opening.complete() }
        opening.accept()
        opening.complete()

        let status = await rig.handle.reaches { $0.isEnded }
        // Open, then ended.
        #expect(rig.handle.revision == revision + 2)
        #expect(status.isCompleted)
        #expect(status.error == nil)
        #expect(status.events == 0)
        #expect(rig.environment.waits == 0)
        rig.clock.advance(by: .seconds(3600))
        #expect(rig.transport.opened == 1)
        retention.release()
    }

    // B11
    @Test("network, over a cancellation that nobody here caused, is a failure like any other")
    func aForeignCancellation() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()

        try await rig.transport.nextOpening().fail(.network(CancellationError()))

        #expect(await rig.handle.reaches { $0.isWaiting }.error != nil)
        retention.release()
    }

    // B12
    @Test("none: the end of an iterator that a parking cancelled is no completion")
    func theEndOfACancelledIterator() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        let opening = try await rig.openStream()

        rig.environment.isActive = false
        let revision = rig.handle.revision
        try await opening.closing()
        await rig.rest()

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.revision == revision)
        retention.release()
    }

    // B13
    @Test("request, from an opening that was cancelled, changes nothing")
    func aRefusalAfterTheCancellation() async throws {
        let rig = Rig(.watched(isDeaf: true))
        let retention = rig.handle.retain()
        let opening = try await rig.transport.nextOpening()
        rig.environment.isActive = false

        opening.fail(.refused)
        try await opening.closing()
        await rig.rest()

        #expect(rig.handle.status.isIdle)
        #expect(rig.handle.error == nil)
        retention.release()
    }

    // B14
    @Test("network, fed together with a payload, comes after it")
    func aPayloadBeforeTheFailure() async throws {
        let rig = Rig()
        let retention = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        rig.clock.advance(to: try await rig.clock.nextDeadline())

        let next = try await rig.openStream()
        next.feed(1)
        next.fail(.dropped)
        let later = await rig.handle.reaches { $0.isWaiting }
        #expect(later.events == 1)
        let until = try #require(later.until)
        #expect(rig.clock.now.duration(to: until) == .seconds(1))
        retention.release()
    }
}
