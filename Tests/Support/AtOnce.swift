import Foundation
import Synchronization

/// Threads of their own, that do one thing each from the same moment on.
struct AtOnce {
    /// Lets go once all have come.
    private final class Barrier: Sendable {
        private let missing: Atomic<Int>

        init(_ count: Int) {
            missing = Atomic(count)
        }

        func pass() {
            missing.subtract(1, ordering: .sequentiallyConsistent)
            while missing.load(ordering: .sequentiallyConsistent) > 0 { sched_yield() }
        }
    }

    private let threads: [OneThread]

    /// As many threads.
    init(_ count: Int) {
        threads = (0..<count).map { OneThread(label: "at once \($0)") }
    }

    /// Returns once all is done; at most as many things as there are threads.
    func run(_ acts: @Sendable () async -> Void...) async {
        let barrier = Barrier(acts.count)
        await withTaskGroup { group in
            for (thread, act) in zip(threads, acts) {
                group.addTask(executorPreference: thread) {
                    barrier.pass()
                    await act()
                }
            }
        }
    }
}
