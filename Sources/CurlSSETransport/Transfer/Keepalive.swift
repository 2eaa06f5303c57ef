// When one connection's TCP asks a silent peer whether it is there, and when it gives up. Pure: chance is an argument.

/// One connection's part of the keepalive that a configuration asks for.
struct Keepalive: Hashable, Sendable {
    /// The most that Linux takes for `TCP_KEEPIDLE`, in seconds (`MAX_TCP_KEEPIDLE`).
    private static let mostIdle = 32_767

    /// Seconds of silence before the first question.
    var idle: Int
    /// Milliseconds for `TCP_USER_TIMEOUT`.
    var userTimeout: Int

    /// The keepalive of one connection.
    ///
    /// - Parameters:
    ///   - idle: Seconds of silence before the first question, about: a half to one and a half of it. Questions of
    ///     thousands of connections that were made together would else be asked at one moment, and lost in a queue of
    ///     the system's.
    ///   - interval: Seconds from one question to the next.
    ///   - probes: Questions that go unanswered before the peer is dead.
    ///   - userTimeout: Milliseconds that sent bytes may stay unacknowledged. It is raised to the end of the questions:
    ///     past it Linux gives up at the first that is not answered (`tcp_keepalive_timer`), so one lost packet would end
    ///     a quiet stream.
    ///   - chance: At least 0, below 1.
    init(idle: Int, interval: Int, probes: Int, userTimeout: Int, chance: Double) {
        let own = min(max(1, Int((Double(idle) * (0.5 + chance)).rounded())), Self.mostIdle)
        self.idle = own
        self.userTimeout = max(userTimeout, (own + interval * probes) * 1000)
    }
}
