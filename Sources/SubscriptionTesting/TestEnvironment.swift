// An environment whose time and chance a test decides.

public import SubscriptionRuntime

extension SubscriptionEnvironment {
    /// Makes an active environment whose waits are what a test says.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams; a ``ScriptedTransport`` opens them by hand.
    ///   - clock: What waits are measured by; a ``TestClock`` moves by hand.
    ///   - chance: What each wait's one draw gives, in 0...1: 0 waits half the step, 1, the default, the whole of it.
    ///   - log: Takes an entry for each thing that happens.
    public convenience init(
        transport: (any SubscriptionTransport<Request, Payload>)?,
        clock: any SubscriptionClock,
        chance: Double = 1,
        log: SubscriptionLog? = nil
    ) {
        self.init(transport: transport, clock: clock, unit: { chance }, log: log)
    }
}
