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

/// A task that waits for one value, to be resumed exactly once, by any thread.
///
/// Not `CheckedContinuation`: ThreadSanitizer reports that one, resumed from a Dispatch queue, as a race on correct
/// code. That it is resumed once is the lock's doing that hands it out.
@safe struct Waiter<Value: Sendable>: Sendable {
    private let continuation: UnsafeContinuation<Value, Never>

    /// Suspends the calling task.
    ///
    /// - Parameter body: Stores the waiter, or resumes it at once. Called before the task suspends.
    /// - Returns: What the waiter was resumed with.
    static func wait(_ body: (Waiter) -> Void) async -> Value {
        await unsafe withUnsafeContinuation { continuation in
            unsafe body(Waiter(continuation: continuation))
        }
    }

    private init(continuation: UnsafeContinuation<Value, Never>) {
        unsafe self.continuation = unsafe continuation
    }

    /// Lets the task go on, on its own executor.
    func resume(_ value: sending Value) {
        unsafe continuation.resume(returning: value)
    }
}
