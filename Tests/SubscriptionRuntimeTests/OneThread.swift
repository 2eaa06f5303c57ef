import Dispatch

/// Runs tasks on one thread beside the pool.
final class OneThread: TaskExecutor {
    private let queue: DispatchQueue

    /// A thread of its own.
    init(label: String) {
        queue = DispatchQueue(label: label)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
