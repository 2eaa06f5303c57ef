// Tasks in turn on the thread that asks for it: the same steps in every run.

internal import Synchronization

/// Runs what is enqueued, first come first served, on the thread that calls ``run(until:)``.
final class OneThread: TaskExecutor {
    private let queue = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.withLock { $0.append(job) }
    }

    /// Returns once the condition holds, or nothing is left to run.
    func run(until isDone: () -> Bool) {
        while !isDone() {
            let jobs = queue.withLock { queue in
                let jobs = queue
                queue.removeAll(keepingCapacity: true)
                return jobs
            }
            guard !jobs.isEmpty else { return }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}
