// What the handles of one environment share, whatever their streams are made of.
//
// Handles hold it; `EnvironmentCore` holds it too, and changes it.

internal import Synchronization

/// The part of an environment that is not generic.
final class EnvironmentState: Sendable {
    /// Whether handles may open.
    enum Phase: UInt8, AtomicRepresentable {
        case active, inactive, ended
    }

    private struct Drivers {
        var running = 0
        var drained: [Waiter] = []
    }

    /// Whether there is a transport to open anything by.
    let hasTransport: Bool
    let clock: any SubscriptionClock
    let unit: @Sendable () -> Double
    let log: SubscriptionLog?
    let sleeper: Sleeper
    let phase = Atomic<Phase>(.active)

    private let drivers = Lock(Drivers())

    init(
        hasTransport: Bool,
        clock: any SubscriptionClock,
        unit: @escaping @Sendable () -> Double,
        log: SubscriptionLog?
    ) {
        self.hasTransport = hasTransport
        self.clock = clock
        self.unit = unit
        self.log = log
        self.sleeper = Sleeper(clock: clock)
    }

    /// Whether handles may open streams; read inside each of their transactions.
    var isActive: Bool { phase.load(ordering: .sequentiallyConsistent) == .active }

    /// How many calls into the transport are under way.
    var running: Int { drivers.withLock { $0.running } }

    // MARK: Drivers

    /// A call into the transport begins.
    func driverStarted() {
        drivers.withLock { $0.running += 1 }
    }

    /// A call into the transport has returned.
    func driverFinished() {
        let drained = drivers.withLock { drivers -> [Waiter] in
            drivers.running -= 1
            guard drivers.running == 0 else { return [] }
            defer { drivers.drained = [] }
            return drivers.drained
        }
        for waiter in drained { waiter.resume() }
    }

    /// Returns once no call into the transport is under way.
    func drain() async {
        await Waiter.wait { waiter in
            let isDrained = drivers.withLock { drivers in
                if drivers.running > 0 { drivers.drained.append(waiter) }
                return drivers.running == 0
            }
            if isDrained { waiter.resume() }
        }
    }
}
