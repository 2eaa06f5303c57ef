// What the tests of the runtime share: an environment played by hand.

import Foundation
import SubscriptionTesting
import Synchronization

@testable import SubscriptionRuntime

/// Stands for whatever a transport would say.
struct Dropped: Error {}

/// Stands for a server's refusal.
struct Refused: Error, Equatable {
    var number = 0
}

typealias Environment = SubscriptionEnvironment<String, Int>
typealias Handle = SubscriptionHandle<String, Int>
typealias Transport = ScriptedTransport<String, Int>

extension ScriptedTransport.Manner {
    /// Of a transport whose streams are opened by handles alone.
    static func watched(isDeaf: Bool = false, acceptsAtOnce: Bool = false) -> Self {
        var manner = Self(isDeaf: isDeaf, acceptsAtOnce: acceptsAtOnce)
        manner.watchesTasks = true
        return manner
    }
}

extension SubscriptionFailure {
    static var dropped: SubscriptionFailure { .network(Dropped()) }
    static var refused: SubscriptionFailure { .request(Refused()) }
}

/// An environment with a transport, a clock and a fixed chance.
struct Rig {
    let clock = TestClock()
    let transport: Transport
    let environment: Environment
    let handle: Handle

    init(
        _ manner: Transport.Manner = .watched(),
        chance: Double = 1,
        driverExecutor: (any TaskExecutor)? = nil,
        onCancel: (@Sendable (Transport.Opening) -> Void)? = nil
    ) {
        transport = Transport(manner, driverExecutor: driverExecutor, onCancel: onCancel)
        environment = Environment(transport: transport, clock: clock, chance: chance)
        handle = environment.handle(for: "prices")
    }

    /// Returns once no call into the transport runs: what a stream says after its end has been said.
    func rest() async {
        await environment.core.state.drain()
    }

    /// The environment is inactive, and its handles have not been told yet.
    func flipUntold() {
        environment.core.state.phase.store(.inactive, ordering: .sequentiallyConsistent)
    }

    /// A stream that has been accepted, and the handle told so.
    func openStream() async throws -> Transport.Opening {
        let opening = try await transport.nextOpening()
        opening.accept()
        await handle.reaches { $0.isOpen }
        return opening
    }
}

extension SubscriptionHandle {
    /// Returns once the status is as described.
    @discardableResult
    func reaches(_ condition: (SubscriptionStatus) -> Bool) async -> SubscriptionStatus {
        for await status in statuses where condition(status) { return status }
        return status
    }

    /// Returns once that many payloads were accepted.
    func reaches(events: Int) async {
        await reaches { $0.events >= events }
    }
}

/// Whether it comes to be so within twenty seconds: for memory alone, whose release no one is told of.
func settles(_ condition: () -> Bool) async -> Bool {
    let patience = ContinuousClock.now + .seconds(20)
    while !condition() {
        guard ContinuousClock.now < patience else { return false }
        await Task.yield()
    }
    return true
}

extension SubscriptionStatus {
    var isIdle: Bool { if case .idle = stream { true } else { false } }
    var isConnecting: Bool { if case .connecting = stream { true } else { false } }
    var isOpen: Bool { if case .open = stream { true } else { false } }
    var isWaiting: Bool { until != nil }
    var isCompleted: Bool { if case .ended(nil) = stream { true } else { false } }
    var isRefused: Bool { if case .ended(.request) = stream { true } else { false } }
    var isGone: Bool { if case .ended(.environment(.gone)) = stream { true } else { false } }
    var isEnded: Bool { if case .ended = stream { true } else { false } }

    var until: ContinuousClock.Instant? {
        if case .waiting(let until) = stream { until } else { nil }
    }
}

extension SubscriptionStateMachine.Action {
    /// The stream to open, if it says so.
    var opened: SubscriptionStateMachine.StreamID? {
        if case .open(let id) = self { id } else { nil }
    }
}

extension Seeded {
    /// The numbers of the seed in `SUBSCRIPTION_SEED`, or of a new one.
    init() {
        self.init(seed: Seeded.given ?? .random(in: .min ... .max))
    }

    /// The seed of the run to play again.
    static var given: UInt64? {
        ProcessInfo.processInfo.environment["SUBSCRIPTION_SEED"].flatMap { UInt64($0) }
    }

    /// Whether the counts of the catalogue are asked for, by `SUBSCRIPTION_FULL`; minutes in a debug build.
    static var isFull: Bool { ProcessInfo.processInfo.environment["SUBSCRIPTION_FULL"] != nil }

    /// How often a test does something: fewer times unless the full count is asked for, which is reported then.
    static func count(
        _ reduced: Int,
        full: Int,
        file: StaticString = #fileID,
        of function: StaticString = #function
    ) -> Int {
        guard isFull else { return reduced }
        report("COUNT \(file) \(function) \(full)")
        return full
    }

    /// How many random scripts a test runs: what `SUBSCRIPTION_SCRIPTS` says, or 4000, or the full 20,000.
    static func scripts(file: StaticString = #fileID, of function: StaticString = #function) -> Int {
        ProcessInfo.processInfo.environment["SUBSCRIPTION_SCRIPTS"].flatMap { Int($0) }
            ?? count(4000, full: 20_000, file: file, of: function)
    }

    /// How often a race is run: what `SUBSCRIPTION_RACES` says, or 300 times, or the full 10,000.
    static func races(file: StaticString = #fileID, of function: StaticString = #function) -> Int {
        ProcessInfo.processInfo.environment["SUBSCRIPTION_RACES"].flatMap { Int($0) }
            ?? count(300, full: 10_000, file: file, of: function)
    }

    /// Writes a line of figures to the standard error.
    static func report(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
    }
}

extension SubscriptionHandle {
    /// How many loops wait for the next status.
    var watchers: Int { core.watchers }

    /// How many changes observers were told of.
    var revision: Int { core.revision }

    /// The name of the stream or of the wait.
    var current: SubscriptionStateMachine.StreamID? { core.current }

    /// Whether a driver runs for the current state; false while an opening is held back.
    var isStarted: Bool { core.isStarted }
}
