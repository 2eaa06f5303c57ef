import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("A retention")
struct RetentionTests {
    // A01
    @Test("opens the stream at once, once, and the first opening is no resumption")
    func opensAtOnce() async {
        let rig = Rig()

        let retention = rig.handle.retain()

        #expect(rig.handle.status.isConnecting)
        let opening = await rig.transport.nextOpening()
        #expect(opening.request == "prices")
        opening.accept()
        let status = await rig.handle.reaches { $0.isOpen }
        #expect(status.resumptions == 0)
        #expect(status.events == 0)
        opening.feed(1)
        await rig.handle.reaches(events: 1)
        #expect(rig.handle.latest == 1)
        #expect(rig.transport.opened == 1)
        retention.release()
        #expect(rig.handle.status.isIdle)
        await opening.closing()
    }

    @Test("an owner's loop takes what comes")
    func loop() async throws {
        let rig = Rig()
        let deliveries = rig.handle.deliveries(limit: 4)
        let opening = await rig.transport.nextOpening()
        opening.feed(contentsOf: Array(1...50))
        opening.complete()
        opening.accept()

        var taken: [Delivery<Int>] = []
        for try await delivery in deliveries { taken.append(delivery) }

        #expect(taken == [.baseline(.opened)] + (1...50).map { .payload($0) })
        await opening.closing()
        await rig.environment.end()
        #expect(rig.environment.running == 0)
    }
}
