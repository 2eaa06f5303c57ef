// Inputs of one subscription to what its handle must do next.
//
// Pure: nothing here waits, locks, sends, reads a clock or rolls dice. The handle calls it under its lock, on any
// thread, and does what it says.

/// Decides what one subscription's stream does next.
///
///                 retained, unparked          opened            payloads
///         idle ----------------------> connecting ------> open ----+
///          ^                            ^   | failed      | | ^    |
///          | released last, parked      |   v             | | +----+
///          +---- from any but gone      | waiting <-------+ |
///                (parked: not ended)    |   | elapsed,  failed |
///                                       +---+ retried          | completed, refused
///                                       |                      v
///                                       +------------------- ended
///                                        retained, retried
///
///         gone     environment ended; from any, for good
///
/// Idle is two things that look alike: unretained, and parked (retained while the environment is inactive).
struct SubscriptionStateMachine: Sendable {
    /// Names one opening or one wait.
    ///
    /// An input that carries another's than the current is stale, said by a stream or a wait that was replaced, and
    /// changes nothing.
    struct StreamID: Hashable, Sendable {
        fileprivate(set) var number: UInt64
    }

    /// What the handle must do.
    enum Action: Sendable {
        /// Nothing.
        case none

        /// Let go of what is current, and open a stream under the name.
        case open(StreamID)

        /// Report `elapsed` with this name, not before the instant.
        case wait(StreamID, until: ContinuousClock.Instant)

        /// Close the current stream or drop the current wait.
        case stop

        /// The stream is open: tell the owners so.
        case accept(resumption: Int?)

        /// Let go of what is current; the owners end so, each after its backlog.
        case finish(SubscriptionEnd?)

        /// Let go of what is current; the owners end at once, their backlogs dropped.
        case abandon
    }

    private enum State: Sendable {
        case idle
        case connecting(StreamID)
        case open(StreamID)
        /// The instant is boxed: its size is known to its library alone, and would make the machine's unknown.
        case waiting(StreamID, until: Box<ContinuousClock.Instant>)
        case ended(SubscriptionFailure?)
        case gone
    }

    private var state: State = .idle
    private var lastNumber: UInt64 = 0

    /// How many retain the subscription.
    private(set) var holders = 0

    /// The waits entered since the last payload, or since the retention began.
    private(set) var attempt = 0

    /// Whether the next opening is a resumption: a wait, a parking or an end came since the last one.
    private(set) var gap = false

    /// Rises with each change that observers are told of.
    private(set) var revision = 0

    /// The failure that last made the stream wait, park or end.
    private(set) var error: SubscriptionFailure?
    private var resumptions = 0
    private var events = 0

    /// What observers see.
    var status: SubscriptionStatus {
        SubscriptionStatus(stream: stream, error: error, resumptions: resumptions, events: events)
    }

    /// Whether the environment has ended.
    var isGone: Bool {
        if case .gone = state { true } else { false }
    }

    /// The name of the stream or of the wait.
    var current: StreamID? {
        switch state {
        case .connecting(let id), .open(let id), .waiting(let id, _): id
        case .idle, .ended, .gone: nil
        }
    }

    /// Whether the stream of this name is the one that connects or is open.
    func isCurrent(_ id: StreamID) -> Bool {
        switch state {
        case .connecting(id), .open(id): true
        case .idle, .connecting, .open, .waiting, .ended, .gone: false
        }
    }

    /// Whether the stream of this name is the one that is open.
    func isOpen(_ id: StreamID) -> Bool {
        if case .open(id) = state { true } else { false }
    }

    /// Whether a stream is open.
    var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    private var stream: StreamState {
        switch state {
        case .idle: .idle
        case .connecting: .connecting
        case .open: .open
        case .waiting(_, let until): .waiting(until: until.value)
        case .ended(let failure): .ended(failure)
        case .gone: .ended(.environment(.gone))
        }
    }

    // MARK: Owners

    /// Somebody retained the subscription.
    mutating func retained(active: Bool) -> Action {
        holders += 1
        switch state {
        case .idle where holders == 1:
            return start(active: active, counts: !active)
        case .ended:
            // Alone, this owner's retention would open: sharing must not show.
            return start(active: active, counts: true)
        case .idle, .connecting, .open, .waiting, .gone:
            // A waiting stream is not hastened: many arrivals a second are not to be as many attempts.
            return .none
        }
    }

    /// Somebody released the subscription; the last one's release forgets all but the counts.
    mutating func released() -> Action {
        holders -= 1
        guard holders == 0, !isGone else { return .none }

        attempt = 0
        gap = false
        error = nil
        state = .idle
        revision += 1
        return .stop
    }

    /// An owner asked for a waiting or ended stream at once.
    mutating func retried(active: Bool) -> Action {
        switch state {
        case .waiting, .ended:
            return start(active: active, counts: true)
        case .idle, .connecting, .open, .gone:
            return .none
        }
    }

    // MARK: The stream

    /// The server accepted the stream.
    mutating func opened(_ id: StreamID, active: Bool) -> Action {
        guard case .connecting(id) = state else { return .none }
        guard active else { return park() }

        let counts = gap
        if counts { resumptions += 1 }
        gap = false
        error = nil
        state = .open(id)
        revision += 1
        return .accept(resumption: counts ? resumptions : nil)
    }

    /// The stream brought payloads, and they were accepted.
    ///
    /// - Returns: Whether the stream is the current one; if not, nothing changed.
    mutating func payloads(_ count: Int, on id: StreamID) -> Bool {
        guard case .open(id) = state else { return false }
        events += count
        attempt = 0
        revision += 1
        return true
    }

    /// The opening or the stream failed.
    ///
    /// `chance` is uniform in 0...1, and used for the wait if one is entered.
    mutating func failed(
        _ failure: SubscriptionFailure,
        on id: StreamID,
        now: ContinuousClock.Instant,
        chance: Double,
        active: Bool
    ) -> Action {
        guard isCurrent(id) else { return .none }

        let end: SubscriptionEnd
        switch failure {
        case .network(_, let retryAfter):
            error = failure
            guard active else { return park() }
            return wait(from: now, chance: chance, retryAfter: retryAfter)
        case .request(let refusal):
            end = .request(refusal)
        case .environment(let environment):
            end = .environment(environment)
        }
        error = failure
        state = .ended(failure)
        revision += 1
        return .finish(end)
    }

    /// The server completed the stream.
    mutating func completed(_ id: StreamID) -> Action {
        guard case .open(id) = state else { return .none }
        error = nil
        state = .ended(nil)
        revision += 1
        return .finish(nil)
    }

    /// The wait is over.
    mutating func elapsed(_ id: StreamID, active: Bool) -> Action {
        guard case .waiting(id, _) = state else { return .none }
        return start(active: active, counts: true)
    }

    // MARK: The environment

    /// The environment's activity may have changed.
    mutating func activityChanged(active: Bool) -> Action {
        switch state {
        case .idle where active && holders > 0:
            return start(active: true, counts: true)
        case .connecting where !active, .open where !active, .waiting where !active:
            return park()
        case .idle, .connecting, .open, .waiting, .ended, .gone:
            return .none
        }
    }

    /// The environment ended.
    mutating func environmentEnded() -> Action {
        guard !isGone else { return .none }
        error = .environment(.gone)
        state = .gone
        revision += 1
        return .abandon
    }

    // MARK: Branches that several inputs share, each with the one write of the state

    /// Opens, or parks where the environment is inactive.
    private mutating func start(active: Bool, counts: Bool) -> Action {
        guard active else { return park() }
        gap = gap || counts
        let id = nextID()
        state = .connecting(id)
        revision += 1
        return .open(id)
    }

    private mutating func park() -> Action {
        gap = true
        state = .idle
        revision += 1
        return .stop
    }

    private mutating func wait(from now: ContinuousClock.Instant, chance: Double, retryAfter: Duration?) -> Action {
        let until = now.advanced(by: Backoff.delay(after: attempt, chance: chance, retryAfter: retryAfter))
        let id = nextID()
        attempt += 1
        gap = true
        state = .waiting(id, until: Box(until))
        revision += 1
        return .wait(id, until: until)
    }

    private mutating func nextID() -> StreamID {
        lastNumber += 1
        return StreamID(number: lastNumber)
    }
}
