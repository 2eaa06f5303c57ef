import Dispatch
import SubscriptionTesting

@testable import SubscriptionRuntime

/// Runs tasks on one thread, in rounds: each job that is ready runs once a round, in an order that a seed decides.
///
/// So tasks that do as much between two suspensions are of one speed, whatever the order.
final class FairExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var generator: Seeded
        var isRunning = false
    }

    private let state: Lock<State>
    private let queue = DispatchQueue(label: "fair")

    init(seed: UInt64) {
        state = Lock(State(generator: Seeded(seed: seed)))
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustRun = state.withLock { state in
            state.jobs.append(job)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustRun { queue.async { self.run() } }
    }

    private func run() {
        while true {
            let round = state.withLock { state -> [UnownedJob] in
                let round = state.jobs.shuffled(using: &state.generator)
                state.jobs = []
                if round.isEmpty { state.isRunning = false }
                return round
            }
            guard !round.isEmpty else { return }
            for job in round { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}
