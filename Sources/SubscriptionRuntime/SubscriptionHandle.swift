// The public face of a subscription: its types, over the transactions of `HandleCore`, which knows none.
//
// Any thread.

public import Observation

/// One subscription: what is asked for, what its stream does, and who owns it.
///
/// The stream is open while anybody retains the subscription, by ``retain()`` or ``deliveries(limit:)``, and the
/// environment is active. It comes back by itself, by the fixed ``Backoff``, after failures that may pass.
///
/// Every member may be called from any thread and does not block. The handle is `Observable`, and for a user interface
/// on one actor that is enough. It is a hint: a change another thread makes between a tracking's reads and its end is
/// not reported by the Observation library. ``statuses`` misses none.
public final class SubscriptionHandle<Request: Hashable & Sendable, Payload: Sendable>: Sendable {
    typealias StreamID = SubscriptionStateMachine.StreamID

    /// What the server is asked for.
    public let request: Request

    let core: HandleCore
    let environment: EnvironmentCore<Request, Payload>

    init(
        request: Request,
        number: Int,
        environment: EnvironmentCore<Request, Payload>
    ) {
        self.request = request
        self.environment = environment
        core = HandleCore(number: number, environment: environment.state)
        core.setLauncher(self)
    }

    deinit {
        environment.forget(request, number: core.number)
    }

    // MARK: What it says

    /// The stream, the error and the counts, read together.
    public var status: SubscriptionStatus {
        core.status
    }

    /// Where the stream is.
    public var stream: StreamState { status.stream }

    /// Whether the stream is connecting or open.
    public var isActive: Bool { status.stream.isActive }

    /// The failure that last made the stream wait, park or end.
    public var error: SubscriptionFailure? { status.error }

    /// How often the stream was opened again after a wait, a parking or an end.
    public var resumptions: Int { status.resumptions }

    /// How many payloads were accepted.
    public var events: Int { status.events }

    /// The payload accepted last; nil before the first and after the last release.
    public var latest: Payload? {
        core.latest.flatMap { ($0 as? Box<Payload>)?.value }
    }

    /// The status now, and each time it has changed.
    public var statuses: Statuses { Statuses(self) }

    // MARK: What it does

    /// Holds the stream open, with no queue: for who reads ``latest`` and ``status``.
    ///
    /// - Returns: The retention. Letting go of it releases, so the result is to be kept.
    public func retain() -> Retention {
        core.retain()
        return Retention(self)
    }

    /// Holds the stream open, and queues every payload from now on.
    ///
    /// An owner alone loses nothing: the stream is held back, down to the socket, from when half of `limit` wait until none
    /// do. Owners that share are not slowed by each other: one that falls half its limit behind the fastest loses its
    /// backlog and is told so by a baseline. The fastest sets the pace by its own limit: beside an owner of 256 one of 4
    /// may lag by a single burst. Give owners that share one limit.
    ///
    /// - Parameter limit: How many payloads may wait, at least 1. The memory is this times the largest payload:
    ///   choose it by their size.
    /// - Returns: The deliveries, an owner until their loop is left.
    public func deliveries(limit: Int = 256) -> Deliveries<Payload> {
        let (owner, gauge) = core.join(limit: max(1, limit))
        return Deliveries(Owner(core, number: owner, gauge: gauge, handle: self))
    }

    /// Opens a waiting or an ended stream at once.
    ///
    /// Nothing where it is connecting or open, parked, retained by nobody, or gone. After a loop over deliveries ended
    /// its owner is released: the last one's retry from there does nothing. Loop around the deliveries.
    public func retry() {
        core.retry()
    }
}

extension SubscriptionHandle: Launching {
    func launch(_ id: StreamID, resuming point: ResumePoint?) -> Task<Void, Never>? {
        guard let transport = environment.transport else { return nil }
        return Task.detached(executorPreference: environment.executor) {
            await drive(self, id, on: transport, resuming: point)
            self.environment.state.driverFinished()
        }
    }
}

extension SubscriptionHandle: Retained {
    func released() { core.release() }
}

extension SubscriptionHandle: Elapsing {
    func elapsed(_ id: StreamID) { core.elapsed(id) }
}

extension SubscriptionHandle: Observable {}

extension SubscriptionHandle: StatusPublishing {
    func status(after revision: Int) async -> (status: SubscriptionStatus, revision: Int, isLast: Bool)? {
        await core.status(after: revision)
    }
}
