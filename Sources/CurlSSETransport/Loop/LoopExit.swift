// The process's exit: OpenSSL takes itself down in an exit handler of its own, and a loop in the middle of a TLS record
// would crash in it. A handler that is registered after libcurl's initialisation runs before that one.
//
// Thread: any registers; the exiting one stops the loops.

internal import Dispatch
internal import SubscriptionRuntime

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

enum LoopExit {
    private struct State {
        var loops: [(thread: LoopThread, mailbox: LoopMailbox)] = []
        var isRegistered = false
    }

    private static let state = Lock(State())

    /// Sees to it that the loop is quiet before the process takes its libraries down.
    static func register(_ thread: LoopThread, _ mailbox: LoopMailbox) {
        state.withLock { state in
            state.loops.append((thread, mailbox))
            guard !state.isRegistered else { return }
            state.isRegistered = true
            atexit(quiesceLoops)
        }
    }

    /// The loop has ended, and its thread has.
    static func forget(_ thread: LoopThread) {
        state.withLock { $0.loops.removeAll { $0.thread === thread } }
    }

    /// Stops every loop where it is: after this nothing runs on their threads.
    ///
    /// Bounded to two seconds a loop. One that is ending answers once its thread has ended; the loop whose thread it is
    /// that exits is left alone.
    fileprivate static func quiesceAll() {
        let loops = state.withLock { $0.loops }
        for (thread, mailbox) in loops where !thread.isCurrent {
            let done = DispatchSemaphore(value: 0)
            mailbox.post(.quiesce(done))
            _ = done.wait(timeout: .now() + .seconds(2))
        }
    }
}

private func quiesceLoops() {
    LoopExit.quiesceAll()
}
