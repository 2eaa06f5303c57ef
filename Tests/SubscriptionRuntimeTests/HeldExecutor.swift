@testable import SubscriptionRuntime

/// Keeps what is to run until it is let.
final class HeldExecutor: TaskExecutor {
    private let jobs = Lock<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs all there is, and what that leads to, on the calling thread.
    func run() {
        while true {
            let ready = jobs.withLock { jobs in
                defer { jobs = [] }
                return jobs
            }
            guard !ready.isEmpty else { return }
            for job in ready { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}
