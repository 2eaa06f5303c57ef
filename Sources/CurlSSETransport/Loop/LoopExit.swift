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
    /// A loop that may have ended.
    ///
    /// In a class: a struct with a weak field, read through a collection, crashes in debug
    /// builds of this toolchain.
    private final class Entry: Sendable {
        weak let loop: EventLoop?

        init(_ loop: EventLoop) {
            self.loop = loop
        }
    }

    private struct State {
        var entries: [Entry] = []
        var isRegistered = false
        var quiesced: [EventLoop] = []
    }

    private static let state = Lock(State())

    /// Sees to it that the loop is quiet before the process takes its libraries down.
    static func register(_ loop: EventLoop) {
        state.withLock { state in
            state.entries.removeAll { $0.loop == nil }
            state.entries.append(Entry(loop))
            guard !state.isRegistered else { return }
            state.isRegistered = true
            atexit(quiesceLoops)
        }
    }

    fileprivate static func quiesceAll() {
        let loops = state.withLock { state in
            // Kept for good: a queue that is suspended must not be let go of, and other threads still run.
            state.quiesced = state.entries.compactMap(\.loop)
            return state.quiesced
        }
        for loop in loops { loop.quiesce() }
    }
}

private func quiesceLoops() {
    LoopExit.quiesceAll()
}
