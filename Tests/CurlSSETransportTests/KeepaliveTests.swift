import Testing

@testable import CurlSSETransport

@Suite("A connection's keepalive")
struct KeepaliveTests {
    private func keepalive(idle: Int = 30, userTimeout: Int = 30_000, chance: Double) -> Keepalive {
        Keepalive(idle: idle, interval: 10, probes: 3, userTimeout: userTimeout, chance: chance)
    }

    @Test("begins between a half and one and a half of the silence asked for, by chance")
    func spread() {
        #expect(keepalive(chance: 0).idle == 15)
        #expect(keepalive(chance: 0.5).idle == 30)
        #expect(keepalive(chance: 0.999).idle == 45)
        #expect(keepalive(idle: 1, chance: 0).idle == 1)
        #expect(keepalive(idle: 32_767, chance: 0.999).idle == 32_767)
        // Of ten thousand that are made together few begin together.
        let idles = (0..<10_000).map { keepalive(chance: Double($0) / 10_000).idle }
        let most = Dictionary(grouping: idles) { $0 }.values.map(\.count).max() ?? 0
        #expect(most <= 400)
    }

    @Test("lets every question be asked before unacknowledged bytes end the connection")
    func userTimeout() {
        #expect(keepalive(chance: 0).userTimeout == 45_000)
        #expect(keepalive(chance: 0.5).userTimeout == 60_000)
        #expect(keepalive(userTimeout: 90_000, chance: 0.5).userTimeout == 90_000)
    }
}
