/// What an environment tells the time by: a clock whose instants are the continuous clock's.
///
/// `ContinuousClock` is the one in use: it counts while the machine sleeps (on Linux it is `CLOCK_BOOTTIME`), so a
/// wait that the machine slept through is over at its wake. Another conforms for tests.
public protocol SubscriptionClock: Clock where Instant == ContinuousClock.Instant, Duration == Swift.Duration {}

extension ContinuousClock: SubscriptionClock {}
