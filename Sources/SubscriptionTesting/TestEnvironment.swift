// An environment whose time and chance a test decides.

public import SubscriptionRuntime

extension SubscriptionEnvironment {
    /// Makes an active environment whose waits are what a test says, all by one chance.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams; a ``ScriptedTransport`` opens them by hand.
    ///   - clock: What waits are measured by; a ``TestClock`` moves by hand.
    ///   - chance: What each wait's one draw gives, in 0...1: 0 waits half the step, 1, the default, the whole of it.
    ///   - log: Takes an entry for each thing that happens. Default: none.
    public convenience init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        clock: any SubscriptionClock,
        chance: Double = 1,
        log: SubscriptionLog? = nil
    ) {
        self.init(transport: transport, clock: clock, unit: { chance }, log: log)
    }

    /// Makes an active environment whose waits are what a test says, each by a chance of its own.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams; a ``ScriptedTransport`` opens them by hand.
    ///   - clock: What waits are measured by; a ``TestClock`` moves by hand.
    ///   - drawing: Draws a wait's chance, in 0...1; brought into the range if outside. Called once for each failure of
    ///     a current stream, on the thread that failed, under no lock; by several at once where several streams fail.
    ///   - log: Takes an entry for each thing that happens. Default: none.
    public convenience init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        clock: any SubscriptionClock,
        drawing: @escaping @Sendable () -> Double,
        log: SubscriptionLog? = nil
    ) {
        self.init(transport: transport, clock: clock, unit: drawing, log: log)
    }

    /// How many subscriptions wait for the instant of their next opening.
    ///
    /// None does once all are released or parked. From any thread.
    public var waiting: Int { waits }
}
