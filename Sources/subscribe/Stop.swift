// Why a run ends, and the exit code that says so.

/// Why a run ends.
enum Stop: Equatable, Sendable {
    /// By the server.
    case completed
    /// `--count` payloads have come.
    case counted
    /// `--max-time` is over; whether anything had come by then.
    case timedOut(hasPayloads: Bool)
    /// By a failure that is not waited for.
    case failed(Problem.Kind)
    /// INT or TERM, with the code they stand for.
    case signal(Int32)
    /// Standard output was closed.
    case closedOutput

    /// What the process exits with.
    var exitCode: Int32 {
        switch self {
        case .completed, .counted, .timedOut(hasPayloads: true): 0
        case .failed(.request): 2
        case .failed(.environment): 3
        case .failed(.network), .timedOut(hasPayloads: false): 4
        case .signal(let code): code
        // As a process that SIGPIPE ends.
        case .closedOutput: 141
        }
    }

    /// The state that the stream is left in.
    var state: Happening.State {
        switch self {
        case .completed, .failed: .ended
        case .counted, .timedOut, .signal, .closedOutput: .idle
        }
    }
}

/// What a usage error exits with.
let usageExitCode: Int32 = 1
