// Signals into a stream of what they ask for.
//
// They are blocked in every thread, and the main thread waits for them: so nothing runs inside a signal handler, and a
// run whose other threads are all held up, by a standard output that nobody reads say, still ends.

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What a signal asks for.
enum SignalRequest: Sendable, Equatable {
    /// INT and TERM: end, with this exit code.
    case end(Int32)
    /// USR1.
    case park
    /// USR2.
    case unpark
    /// HUP: close, and open again at once.
    case reopen
}

/// The process's signals.
enum Signals {
    /// How long a clean end may take before the process is left all the same.
    static let endLimit: Duration = .seconds(2)

    /// Blocks the signals, in this thread and in all it starts.
    ///
    /// Called at the start of `main`, before any other thread is there to take them.
    static func block() {
        var set = waited()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // A closed standard output shows as an error of the write.
        signal(SIGPIPE, SIG_IGN)
    }

    /// Waits for them, in this thread, for the rest of the process's life.
    ///
    /// The first INT or TERM asks for the end. The process is left at once at the second, or when the end took longer
    /// than ``endLimit``.
    ///
    /// - Parameter requests: Gets what the signals ask for, in order.
    static func wait(_ requests: AsyncStream<SignalRequest>.Continuation) -> Never {
        var set = waited()
        while true {
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0, let request = request(for: number) else { continue }
            requests.yield(request)
            if case .end(let code) = request { leaveAtTheNext(code) }
        }
    }

    /// What a signal asks for; nil for one that is none of ours.
    static func request(for signal: Int32) -> SignalRequest? {
        switch signal {
        case SIGINT, SIGTERM: .end(128 + signal)
        case SIGUSR1: .park
        case SIGUSR2: .unpark
        case SIGHUP: .reopen
        default: nil
        }
    }

    private static func leaveAtTheNext(_ code: Int32) -> Never {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        var limit = timespec(tv_sec: Int(endLimit.components.seconds), tv_nsec: 0)
        let second = sigtimedwait(&set, nil, &limit)
        _exit(second > 0 ? 128 + second : code)
    }

    private static func waited() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP] { sigaddset(&set, number) }
        return set
    }
}
