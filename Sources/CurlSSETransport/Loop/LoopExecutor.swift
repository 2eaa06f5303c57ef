// How tasks wait for the loop, and run on it.
//
// Thread: jobs are enqueued from any, and run on the loop's, outside of every libcurl call.

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

/// A task that waits, to be resumed exactly once, by any thread.
///
/// It carries no value: what it waits for is read under a lock afterwards. ThreadSanitizer takes a value that a
/// continuation carries from a Dispatch queue, and the inlined resumption of an `UnsafeContinuation`, for races.
struct Waiter: Sendable {
    private let continuation: CheckedContinuation<Void, Never>

    /// Suspends the calling task.
    ///
    /// - Parameter body: Stores the waiter, or resumes it at once. Called before the task suspends.
    static func wait(_ body: (Waiter) -> Void) async {
        await withCheckedContinuation { body(Waiter(continuation: $0)) }
    }

    /// Lets the task go on, on its own executor.
    func resume() {
        continuation.resume()
    }
}
