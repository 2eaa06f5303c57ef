// The public face of an environment; `EnvironmentCore` is what it holds.

/// Where subscriptions live: one transport, one clock, and one switch for all of them.
///
/// Equal requests of one environment share one stream. Credentials are the transport's and no part of a request, so
/// make one environment for each identity, or put the identity into the request: two users' equal requests in one
/// environment share what the first of them may see.
///
/// Every member may be called from any thread. The environment's deinit is its end; holding a handle, a retention or
/// deliveries does not keep it alive.
public final class SubscriptionEnvironment<Request: Hashable & Sendable, Payload: Sendable>: Sendable {
    let core: EnvironmentCore<Request, Payload>

    /// Makes an active environment.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams. nil where there is none: every subscription ends by
    ///     ``EnvironmentFailure/noTransport``, and the environment cannot gain one.
    ///   - log: Takes an entry for each thing that happens, without values. nil, the default, costs nothing.
    public convenience init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        log: SubscriptionLog? = nil
    ) {
        self.init(transport: transport, clock: ContinuousClock(), unit: { Double.random(in: 0...1) }, log: log)
    }

    /// Makes an active environment with a time and a chance of its own.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams.
    ///   - clock: What waits are measured by.
    ///   - unit: Draws a number in 0...1, once for each failure.
    ///   - log: Takes the log's entries.
    package init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        clock: any SubscriptionClock,
        unit: @escaping @Sendable () -> Double,
        log: SubscriptionLog? = nil
    ) {
        core = EnvironmentCore(transport: transport, clock: clock, unit: unit, log: log)
    }

    deinit {
        core.end()
    }

    /// The subscription of a request: the same object for equal requests, as long as anybody holds it.
    ///
    /// The environment holds it weakly: asking and letting go leaks nothing, and opens nothing.
    ///
    /// - Parameter request: What to ask the server for. Its `==` and `hash` run under a lock.
    /// - Returns: The handle; after the environment's end, one that is gone.
    public func handle(for request: Request) -> SubscriptionHandle<Request, Payload> {
        core.handle(for: request)
    }

    /// Whether subscriptions may hold streams; true at first.
    ///
    /// False closes every retained subscription's stream, before it returns, and keeps the retention: they are parked.
    /// True opens them again at once, all of them. Setting the value it has changes nothing, and no stream is live after
    /// setting false all the same, also where another thread is still about it. Setting it after the end does nothing; it
    /// reads false then. Takes time with the count of handles, some microseconds each.
    public var isActive: Bool {
        get { core.state.isActive }
        set { core.setActive(newValue) }
    }

    /// Ends all subscriptions for good, by ``EnvironmentFailure/gone``.
    ///
    /// They are ended before the first suspension. Then this waits, whether or not its task is cancelled, until every
    /// call into the transport has returned. Not to be awaited inside such a call.
    public func end() async {
        core.end()
        await core.state.drain()
    }

    /// How many calls into the transport are under way.
    package var running: Int { core.state.running }

    /// How many subscriptions wait.
    package var waits: Int { core.state.sleeper.count }

    /// How many handles somebody holds.
    package var registered: Int { core.registered }
}
