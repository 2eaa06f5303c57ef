/// How a stream failed, which decides whether it comes back.
///
/// The kinds are closed. What a case carries is the transport's own error, unchanged: its type and its facts are
/// the transport's to document.
public enum SubscriptionFailure: Error, Sendable {
    /// The stream may come back: the connection failed, the server is down, or what it sent could not be read.
    ///
    /// A retained subscription waits and opens again. `retryAfter` is the server's own word on when, at least zero;
    /// it is a floor under the one wait that follows, never a ceiling. nil where the server said nothing.
    case network(any Error, retryAfter: Duration? = nil)

    /// The server refused the operation as it is written: asking again would be refused again. Ends the stream.
    case request(any Error)

    /// This process cannot hold the subscription. Ends the stream.
    case environment(EnvironmentFailure)
}

/// What in this process keeps a subscription from being held.
public enum EnvironmentFailure: Error, Sendable {
    /// The environment was made without a transport, and cannot gain one.
    case noTransport

    /// The environment has ended, by ``SubscriptionEnvironment/end()`` or because it was let go. Final.
    case gone

    /// The transport cannot work as it is configured, such as a CA file that cannot be read. Not final:
    /// ``SubscriptionHandle/retry()`` may try again.
    case transport(any Error)
}

/// What ends an owner's deliveries for good: the failures that are not a wait.
public enum SubscriptionEnd: Error, Sendable {
    /// The server refused the operation.
    case request(any Error)

    /// This process cannot hold the subscription.
    case environment(EnvironmentFailure)
}

extension SubscriptionFailure: CustomStringConvertible {
    /// The kind, and the carried error's own sentence.
    public var description: String {
        switch self {
        case .network(let error, nil): "network: \(error)"
        case .network(let error, let pause?): "network: \(error) (retry after \(pause))"
        case .request(let error): "request: \(error)"
        case .environment(let failure): "environment: \(failure)"
        }
    }
}

extension EnvironmentFailure: CustomStringConvertible {
    /// One sentence.
    public var description: String {
        switch self {
        case .noTransport: "the environment has no subscription transport"
        case .gone: "the environment has ended"
        case .transport(let error): "\(error)"
        }
    }
}
