// Time that passes when a test says so.

public import SubscriptionRuntime

/// A clock that a test moves by hand: await what the code under test sleeps for, then advance to it.
///
/// ```swift
/// let deadline = try await clock.nextDeadline()
/// clock.advance(to: deadline)
/// ```
///
/// Its instants are the continuous clock's, from the moment it was made. It never moves by itself. From any thread.
public final class TestClock: SubscriptionClock {
    /// The continuous clock's.
    public typealias Instant = ContinuousClock.Instant

    private struct Sleeper {
        var until: Instant
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now: Instant
        var sleepers: [Int: Sleeper] = [:]
        var lastSleeper = 0
        var deadlines: [Instant] = []
        var watchers = Watchers<Instant>()
    }

    private let state: Lock<State>

    /// Makes a clock that stands still.
    ///
    /// - Parameter now: The instant it stands at. Default: the continuous clock's now.
    public init(now: Instant = .now) {
        state = Lock(State(now: now))
    }

    /// The instant it stands at.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: it wakes no one late.
    public var minimumResolution: Duration { .zero }

    /// How many sleep.
    public var sleepers: Int { state.withLock { $0.sleepers.count } }

    /// Sleeps until the clock is moved to the deadline or past it.
    ///
    /// - Parameters:
    ///   - deadline: When to wake.
    ///   - tolerance: Not used.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (sleeps, watcher) = state.withLock { state in
                    let sleeps = deadline > state.now && !Task.isCancelled
                    if sleeps { state.sleepers[number] = Sleeper(until: deadline, continuation: continuation) }
                    let watcher = state.watchers.takeFirst()
                    if watcher == nil { state.deadlines.append(deadline) }
                    return (sleeps, watcher)
                }
                watcher?.resume(returning: .success(deadline))
                if !sleeps { continuation.resume() }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.continuation.resume()
        }
        try Task.checkCancellation()
    }

    /// The deadline of the next sleep that began, each told once, in the order they began.
    ///
    /// - Returns: The deadline; waits while every one has been told.
    /// - Throws: `CancellationError` when the task is cancelled, before or while it waits. The next deadline is then told
    ///   to who asks next.
    public func nextDeadline() async throws(CancellationError) -> Instant {
        try await state.wait(in: \.watchers) { $0.deadlines.isEmpty ? nil : $0.deadlines.removeFirst() }
    }

    /// Moves the clock, and wakes whom it passes, the earliest deadline first.
    ///
    /// - Parameter instant: Where to; an instant that is past moves nothing.
    public func advance(to instant: Instant) {
        move { _ in instant }
    }

    /// Moves the clock, and wakes whom it passes, the earliest deadline first.
    ///
    /// - Parameter duration: How far; a negative one moves nothing. What several threads say at once adds up.
    public func advance(by duration: Duration) {
        move { $0.advanced(by: duration) }
    }

    private func move(_ target: (Instant) -> Instant) {
        let woken = state.withLock { state -> [Sleeper] in
            state.now = max(state.now, target(state.now))
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.until < $1.until }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }
}
