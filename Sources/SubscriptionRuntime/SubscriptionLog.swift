/// One thing that happened to one subscription, in counts and names: never a payload, a request or an error's text.
public struct SubscriptionLogEntry: Sendable, Hashable {
    /// How a stream failed.
    public enum Kind: Sendable, Hashable {
        /// ``SubscriptionFailure/network(_:retryAfter:)``.
        case network

        /// ``SubscriptionFailure/request(_:)``.
        case request

        /// ``SubscriptionFailure/environment(_:)``.
        case environment
    }

    /// What happened.
    public enum Event: Sendable, Hashable {
        /// The server accepted the stream, this long after it was asked.
        case opened(after: Duration)

        /// It was accepted again; carries the count of resumptions. Follows `opened`.
        case resumed(Int)

        /// The opening or the stream failed.
        case failed(Kind)

        /// The failed stream opens again in this time.
        case waiting(Duration)

        /// The stream is closed, or stays so, until the environment is active.
        case parked

        /// The stream is over: nil where the server completed it.
        case ended(Kind?)

        /// An owner fell behind and lost this many payloads so far.
        case lagged(dropped: Int)
    }

    /// Tells the environment's handles apart: counted from 1 in the order they were made.
    public let subscription: Int

    /// What happened.
    public let event: Event
}

/// Takes an environment's log, one entry at a time.
///
/// Called on whichever thread caused the entry, under no lock; entries of different threads may come in either order.
/// It must not block.
public typealias SubscriptionLog = @Sendable (SubscriptionLogEntry) -> Void

extension SubscriptionLogEntry.Kind {
    /// The failure's kind.
    init(_ failure: SubscriptionFailure) {
        switch failure {
        case .network: self = .network
        case .request: self = .request
        case .environment: self = .environment
        }
    }
}

extension SubscriptionEnd {
    /// The failure's kind.
    var kind: SubscriptionLogEntry.Kind {
        switch self {
        case .request: .request
        case .environment: .environment
        }
    }
}
