// How tasks wait for the loop, and run on it.
//
// Thread: jobs are enqueued from any, and run on the loop's: between two calls of libcurl, or inside one that has just
// written a part of a body, so that what was read is taken before more is. They ask things of the loop by its mailbox.

/// Runs the jobs of tasks that prefer it on the loop's own thread.
final class LoopExecutor: TaskExecutor {
    private let mailbox: LoopMailbox

    init(mailbox: LoopMailbox) {
        self.mailbox = mailbox
    }

    func enqueue(_ job: consuming ExecutorJob) {
        mailbox.post(.job(LoopJob(job: UnownedJob(job), executor: self)))
    }
}

extension LoopExecutor {
    /// Whether the calling task, where it is on no actor, runs on the pool: it prefers no executor, not this one either.
    static var callerIsOnPool: Bool {
        unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor == nil }
    }
}

/// One job to be run by the loop.
@safe struct LoopJob: Sendable {
    private let job: UnownedJob
    private let executor: LoopExecutor

    init(job: UnownedJob, executor: LoopExecutor) {
        self.job = job
        self.executor = executor
    }

    /// Runs the job until its next suspension.
    ///
    /// Once, on the loop's thread.
    func run() {
        unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
    }
}
