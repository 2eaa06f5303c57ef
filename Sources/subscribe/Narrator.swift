// What three observers see of one subscription, each at its own pace, into one sequence that a reader can follow.
//
// The transport's side says what was opened and how it failed, the handle's statuses say what is waited for, and the
// deliveries bring the payloads, later than they were accepted. Each says how many payloads had been accepted by then,
// and the narrator lets it through when as many have been shown. So the states come in order, a resumption stands
// before the first payload after it, and an error after the last payload before it.
//
// Pure: no lock, clock or output. Called under the console's lock, from any thread.

/// One thing that happened, as it is shown.
enum Happening: Equatable {
    case state(State)
    case problem(Problem)
    case resumed(Int)
    case event(type: String, data: [UInt8], id: String)
    case payload([UInt8])
    case comment(String)
    case complete

    /// A stream's state.
    enum State: Equatable {
        case idle, connecting, open, ended
        /// `until` in seconds since 1970, `seconds` as the wait's whole length.
        case waiting(until: Double, seconds: Double)
    }
}

/// A failure, as it is shown.
struct Problem: Equatable {
    enum Kind: String {
        case network, request, environment
    }

    var kind: Kind
    var message: String
    var status: Int?
    /// The server's word on when to ask again, in seconds; nil where it said nothing.
    var retryAfter: Double?
    /// Whether it ends the run.
    var isFatal: Bool
}

/// Puts what the observers say in order.
struct Narrator {
    /// What an observer says.
    ///
    /// `after` is how many payloads the handle had accepted before it.
    enum Input: Equatable {
        /// An opening is under way.
        case opening(after: Int)
        /// It succeeded, and the handle counts so many resumptions.
        case opened(resumptions: Int, after: Int)
        /// It failed, or its stream did.
        case failed(Problem, after: Int)
        /// The handle waits.
        case waiting(until: Double, seconds: Double, after: Int)
        /// The handle is held and closed.
        case parked(after: Int)
        /// The next payload of the deliveries.
        case payload(Happening)
        /// A comment, which is told at once.
        case comment(String)
        /// The server's completion, told by the deliveries after their last payload.
        case completed
        /// The run ends before the stream does, or by a failure that the deliveries carried.
        case left(Happening.State)

        /// How many payloads are to be shown before it; none for what is told at once.
        fileprivate var after: Int {
            switch self {
            case .opening(let after), .opened(_, let after), .failed(_, let after), .waiting(_, _, let after),
                .parked(let after):
                after
            case .payload, .comment, .completed, .left:
                0
            }
        }
    }

    /// How many payloads have been shown.
    private(set) var shown = 0
    /// The state shown last; nil at first.
    private(set) var state: Happening.State?

    private var resumptions = 0
    /// Said, and not yet shown.
    private var held: [Input] = []
    /// Whether the last that the transport's side said was a failure: a wait told after a new opening is an old one.
    private var isWaitTold = false
    /// Nothing is told after the end.
    private var isOver = false

    /// Takes one.
    ///
    /// - Parameter input: What an observer says. What one observer says comes in the order in which it happened.
    /// - Returns: What is shown now, in order.
    mutating func take(_ input: Input) -> [Happening] {
        guard !isOver else { return [] }
        switch input {
        case .opening, .opened:
            isWaitTold = false
            held.append(input)
            return letThrough()
        case .failed(let problem, _):
            // The wait after a failure that ends the run is not waited for.
            isWaitTold = !problem.isFatal
            held.append(input)
            return letThrough()
        case .waiting:
            guard isWaitTold else { return [] }
            held.append(input)
            return letThrough()
        case .parked:
            held.append(input)
            return letThrough()
        case .payload(let happening):
            shown += 1
            return [happening] + letThrough()
        case .comment(let text):
            return [.comment(text)]
        case .completed:
            return finish() + [.complete] + change(to: .ended)
        case .left(let state):
            return finish() + change(to: state)
        }
    }

    private mutating func letThrough() -> [Happening] {
        var happenings: [Happening] = []
        while let first = held.first, first.after <= shown {
            held.removeFirst()
            happenings += told(first)
        }
        return happenings
    }

    /// Nothing more will be shown that could let the rest through.
    private mutating func finish() -> [Happening] {
        isOver = true
        defer { held = [] }
        return held.flatMap { told($0) }
    }

    private mutating func told(_ input: Input) -> [Happening] {
        switch input {
        case .opening:
            // Each is an attempt of its own, also where the wait before it was cut short.
            state = .connecting
            return [.state(.connecting)]
        case .opened(let resumptions, _):
            let resumed: [Happening] = resumptions > self.resumptions ? [.resumed(resumptions)] : []
            self.resumptions = resumptions
            return change(to: .open) + resumed
        case .failed(let problem, _):
            return [.problem(problem)]
        case .waiting(let until, let seconds, _):
            return change(to: .waiting(until: until, seconds: seconds))
        case .parked:
            return change(to: .idle)
        case .payload, .comment, .completed, .left:
            return []
        }
    }

    private mutating func change(to next: Happening.State) -> [Happening] {
        guard next != state else { return [] }
        state = next
        return [.state(next)]
    }
}
