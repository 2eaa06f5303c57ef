// What other threads want of a loop.
//
// Thread: any posts; the loop takes.

internal import Dispatch
internal import SubscriptionRuntime
internal import Synchronization

/// One thing asked of the loop.
enum LoopCommand: Sendable {
    /// Start a transfer.
    case start(LoopTransfer)
    /// End a transfer wherever it is, and tell nobody.
    case cancel(LoopTransfer)
    /// The reader has taken enough of a stream that was held back.
    case resume(LoopTransfer)
    /// Run a job of a task.
    case job(LoopJob)
    /// Call back at an instant of the loop's clock, in nanoseconds.
    case alarm(LoopAlarm, at: UInt64)
    /// End every transfer, and the loop with them.
    case shutdown
    /// Do nothing from now on: the process exits.
    case quiesce(DispatchSemaphore)

    /// Whether it is a job.
    var isJob: Bool {
        if case .job = self { true } else { false }
    }
}

/// A queue into the loop.
///
/// Bounded by what its users have under way: each transfer, alarm and task is in it a few times
/// at most.
final class LoopMailbox: Sendable {
    /// Whether there is anything, and whether somebody waits for it.
    private enum Phase {
        static let empty: UInt8 = 0
        /// The loop waits, or is about to.
        static let awaited: UInt8 = 1
        /// There may be a command.
        static let posted: UInt8 = 2
    }

    private let commands = Lock<[LoopCommand]>([])
    /// Written after what it tells of was put in, and before that is taken out.
    private let phase = Atomic<UInt8>(Phase.empty)
    private let wake: @Sendable () -> Void

    /// A mailbox that calls `wake`, from the posting thread, when a loop that waits has a first command.
    init(wake: @escaping @Sendable () -> Void) {
        self.wake = wake
    }

    /// Adds a command, in the order of the calls.
    func post(_ command: LoopCommand) {
        commands.withLock { $0.append(command) }
        if phase.exchange(Phase.posted, ordering: .acquiringAndReleasing) == Phase.awaited { wake() }
    }

    /// Says that the loop is about to wait: the next post wakes it.
    ///
    /// False where it need not, since there is a command.
    func await() -> Bool {
        phase.compareExchange(expected: Phase.empty, desired: Phase.awaited, ordering: .acquiringAndReleasing).exchanged
    }

    /// Says that the loop waits no more, so that what it posts itself wakes nobody.
    func stopAwaiting() {
        _ = phase.compareExchange(expected: Phase.awaited, desired: Phase.empty, ordering: .acquiringAndReleasing)
    }

    /// Takes the jobs that come before any other command that is still here.
    func takeJobs(into jobs: inout [LoopJob]) {
        guard phase.load(ordering: .acquiring) == Phase.posted else { return }
        commands.withLock { commands in
            for case .job(let job) in commands.prefix(while: \.isJob) { jobs.append(job) }
            commands.removeFirst(jobs.count)
        }
    }

    /// Takes everything, in order; until the next `await` no post wakes.
    ///
    /// - Parameter taken: Filled; must be empty.
    func takeAll(into taken: inout [LoopCommand]) {
        stopAwaiting()
        guard phase.load(ordering: .acquiring) == Phase.posted else { return }
        commands.withLock { commands in
            // Who posts from here on says so again.
            phase.store(Phase.empty, ordering: .releasing)
            swap(&taken, &commands)
        }
    }
}

/// A call back at an instant, once, on the loop's thread; also, early, when the loop ends.
final class LoopAlarm: Sendable {
    private let action: Lock<(@Sendable (_ isEarly: Bool) -> Void)?>

    /// An alarm that will run `action`, with `isEarly` true when the loop ended before the instant.
    init(_ action: @escaping @Sendable (_ isEarly: Bool) -> Void) {
        self.action = Lock(action)
    }

    /// Runs the action, unless it has run or was cancelled.
    func fire(isEarly: Bool = false) {
        let action = action.withLock { action in
            defer { action = nil }
            return action
        }
        action?(isEarly)
    }

    /// Whether the action is still to run.
    var isArmed: Bool { action.withLock { $0 != nil } }

    /// Drops the action.
    func cancel() {
        action.withLock { $0 = nil }
    }
}
