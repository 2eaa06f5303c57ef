/// Where a subscription's stream is.
public enum StreamState: Sendable {
    /// Nobody retains it, or somebody does while the environment is inactive: parked.
    case idle

    /// The transport has been asked to open it.
    case connecting

    /// The server has accepted it.
    case open

    /// It failed, and opens again at the instant: never before it, and once however late the wake.
    case waiting(until: ContinuousClock.Instant)

    /// It is over until ``SubscriptionHandle/retry()`` or a new retention: completed by the server (nil), refused by
    /// it, or kept from being held by this process.
    case ended(SubscriptionFailure?)

    /// Whether a transport's stream stands behind it: connecting or open.
    public var isActive: Bool {
        switch self {
        case .connecting, .open: true
        case .idle, .waiting, .ended: false
        }
    }
}

/// What a handle says of its subscription at one moment: facts that were true together.
///
/// An open stream has no error, a waiting one has one.
public struct SubscriptionStatus: Sendable {
    /// Where the stream is.
    public internal(set) var stream: StreamState

    /// The failure that last made the stream wait, park or end.
    ///
    /// Kept while the stream waits and connects; cleared by an opening, a completion and the last release.
    public internal(set) var error: SubscriptionFailure?

    /// How often the stream was opened again after a wait, a parking or an end; never falls.
    ///
    /// A rise says that payloads may have been missed. It comes with the opening, before any payload of it.
    public internal(set) var resumptions: Int

    /// How many payloads were accepted; never falls.
    public internal(set) var events: Int
}

extension StreamState: CustomStringConvertible {
    /// The state's name, with what it carries.
    public var description: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .open: "open"
        case .waiting(let until): "waiting until \(until)"
        case .ended(nil): "completed"
        case .ended(let failure?): "ended by \(failure)"
        }
    }
}
