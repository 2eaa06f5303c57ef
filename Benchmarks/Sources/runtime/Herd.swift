// Very many handles of one environment over a server that obeys the clock: the real runtime, on time made up.
//
// Time moves by ticks of five milliseconds, and only when everything that the tick before began has come to rest, so
// what happens and when does not depend on how fast this machine is. The main thread runs all drivers, so that it knows
// when they rest; the environment's sleeper runs where it always does.

internal import Glibc
internal import SubscriptionRuntime
internal import SubscriptionTesting
internal import Synchronization

/// What the network would say of a server that is gone.
struct Gone: Error {}

/// A server for streams without payloads, which accepts, refuses and drops by rule.
final class HerdServer: SubscriptionTransport {
    /// What becomes of an opening.
    enum Rule: Sendable {
        case accept
        case refuse
        /// Accepts this many more, then refuses.
        case acceptSome(Int)
        /// Accepts, and drops the stream at once.
        case drop
    }

    private struct State {
        var rule = Rule.accept
        var attempts = 0
        var streams: [HerdStream] = []
    }

    private let state = Mutex(State())
    private let thread: OneThread

    init(readOn thread: OneThread) {
        self.thread = thread
    }

    var driverExecutor: (any TaskExecutor)? { thread }

    /// How often it was asked to open a stream.
    var attempts: Int { state.withLock { $0.attempts } }

    /// How many streams are open.
    var open: Int { state.withLock { $0.streams.count } }

    func follow(_ rule: Rule) {
        state.withLock { $0.rule = rule }
    }

    /// Loses every stream.
    func loseAll() {
        let streams = state.withLock { state in
            let streams = state.streams
            state.streams = []
            return streams
        }
        for stream in streams { stream.lose() }
    }

    func open(_ request: Int, resuming: ResumePoint?) async throws(SubscriptionFailure) -> HerdStream {
        let stream = HerdStream()
        let (isAccepted, isKept) = state.withLock { state in
            state.attempts += 1
            switch state.rule {
            case .refuse, .acceptSome(0): return (false, false)
            case .drop: return (true, false)
            case .acceptSome(let more): state.rule = .acceptSome(more - 1)
            case .accept: break
            }
            state.streams.append(stream)
            return (true, true)
        }
        guard isAccepted else { throw .network(Gone()) }
        if !isKept { stream.lose() }
        return stream
    }
}

/// A stream that brings nothing until it is lost.
final class HerdStream: PayloadSequence {
    typealias Element = Int
    typealias Failure = SubscriptionFailure

    private struct State {
        var isOver = false
        var reader: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func lose() {
        let reader = state.withLock { state in
            state.isOver = true
            return state.reader.take()
        }
        reader?.resume()
    }

    fileprivate func loss() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let isOver = state.withLock { state in
                    if !state.isOver { state.reader = reader }
                    return state.isOver
                }
                if isOver { reader.resume() }
            }
        } onCancel: {
            lose()
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    struct Iterator: PayloadIterator {
        typealias Element = Int

        let stream: HerdStream

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Int? {
            await stream.loss()
            throw .network(Gone())
        }
    }
}

/// Handles that are all retained, and what happened to them by the tick.
final class Herd {
    /// Milliseconds of a tick; a second is a whole number of them.
    static let tick = 5

    let thread = OneThread()
    let server: HerdServer
    let clock = TestClock()
    let environment: SubscriptionEnvironment<Int, Int>
    let handles: [SubscriptionHandle<Int, Int>]
    private var retentions: [Retention] = []
    private let start: ContinuousClock.Instant

    /// Milliseconds of the clock since it was made.
    private(set) var milliseconds = 0

    /// Openings asked for, and streams open, at the end of each tick; the first is before time moved.
    private(set) var attempts: [Int] = []
    private(set) var open: [Int] = []

    init(
        _ count: Int,
        rule: HerdServer.Rule = .accept,
        drawing: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        server = HerdServer(readOn: thread)
        server.follow(rule)
        start = clock.now
        let environment = SubscriptionEnvironment(transport: server, clock: clock, drawing: drawing)
        self.environment = environment
        handles = (0..<count).map { environment.handle(for: $0) }
        retentions = handles.map { $0.retain() }
        rest()
        note()
    }

    /// Returns once every handle waits or is open, and no wait is due.
    func rest() {
        while true {
            thread.run { false }
            // A sleeper that sleeps after the clock moved sleeps for what is not due: it has told all that was.
            let waits = environment.waiting
            if waits + server.open == handles.count, waits == 0 || clock.sleepers > 0 { return }
            sched_yield()
        }
    }

    private func note() {
        attempts.append(server.attempts)
        open.append(server.open)
    }

    /// Loses every stream, now.
    func loseAll() {
        server.loseAll()
        rest()
        attempts = [server.attempts]
        open = [0]
        milliseconds = 0
    }

    /// Moves time a tick on.
    func step() {
        milliseconds += Herd.tick
        clock.advance(by: .milliseconds(Herd.tick))
        rest()
        note()
    }

    /// A count at a millisecond, or at the end.
    static func value(_ counts: [Int], at millisecond: Int) -> Int {
        counts[min(counts.count - 1, millisecond / tick)]
    }

    /// The largest growth of a count within some milliseconds, each window after the one before, as a rate a second.
    static func peak(_ counts: [Int], window: Int, from first: Int = 0) -> Double {
        stride(from: first, to: (counts.count - 1) * tick, by: window).lazy
            .map { Double(value(counts, at: $0 + window) - value(counts, at: $0)) }
            .max().map { $0 * 1000 / Double(window) } ?? 0
    }

    /// The first millisecond at which so large a part of all is open; nil where that never was.
    func time(of part: Double) -> Int? {
        open.firstIndex { Double($0) >= part * Double(handles.count) }.map { $0 * Herd.tick }
    }
}

/// Writes a row of a table, and how long all of it took.
private func report(_ facts: [(String, String)], since start: ContinuousClock.Instant) {
    var line = "RESULT " + facts.map { "\($0)=\($1)" }.joined(separator: " ")
    line += " took_s=\((ContinuousClock.now - start).seconds.rounded(to: 1)) rss_mb=\(residentBytes() >> 20)"
    print(line)
}

private func seconds(_ milliseconds: Int?, after first: Int = 0) -> String {
    milliseconds.map { (Double($0 - first) / 1000).rounded(to: 2) } ?? "never"
}

/// L01, L07: every stream is lost at once, and for a while nothing opens.
func measureOutage(handles count: Int, seconds outage: Int) {
    let began = ContinuousClock.now
    let herd = Herd(count)
    if outage > 0 { herd.server.follow(.refuse) }
    herd.loseAll()
    let recovery = outage * 1000
    while herd.milliseconds < recovery { herd.step() }
    herd.server.follow(.accept)
    while herd.server.open < count, herd.milliseconds < recovery + 120_000 { herd.step() }

    let open = herd.open
    print("second,reopened")
    for second in 0...((herd.milliseconds - recovery) / 1000) {
        let from = recovery + second * 1000
        print("\(second),\(Herd.value(open, at: from + 1000) - Herd.value(open, at: from))")
    }
    let resumed = herd.handles.lazy.filter { $0.status.resumptions == 1 }.count
    report(
        [
            ("herd", "outage"), ("handles", "\(count)"), ("outage_s", "\(outage)"),
            ("opens_per_handle", (Double(herd.attempts.last ?? 0) / Double(count)).rounded(to: 2)),
            ("peak_attempts_s", Herd.peak(herd.attempts, window: 100).rounded(to: 0)),
            ("peak_reopens_s", Herd.peak(open, window: 1000, from: recovery).rounded(to: 0)),
            ("t50_s", seconds(herd.time(of: 0.5), after: recovery)),
            ("t99_s", seconds(herd.time(of: 0.99), after: recovery)),
            ("last_s", seconds(herd.time(of: 1), after: recovery)), ("resumed_once", "\(resumed)"),
        ],
        since: began
    )
}

/// L03: every stream is lost at once, and the server accepts a hundredth of them a second.
func measureCapacity(handles count: Int) {
    let began = ContinuousClock.now
    let herd = Herd(count)
    herd.server.follow(.refuse)
    herd.loseAll()
    while herd.server.open < count, herd.milliseconds < 400_000 {
        // By the tenth of a second, as a server that sheds load would count.
        if herd.milliseconds % 100 == 0 { herd.server.follow(.acceptSome(max(1, count / 1000))) }
        herd.step()
    }
    report(
        [
            ("herd", "capacity"), ("handles", "\(count)"), ("accepts_s", "\(count / 100)"),
            ("opens_per_handle", (Double(herd.attempts.last ?? 0) / Double(count)).rounded(to: 2)),
            ("t50_s", seconds(herd.time(of: 0.5))), ("t99_s", seconds(herd.time(of: 0.99))),
            ("last_s", seconds(herd.time(of: 1))),
        ],
        since: began
    )
}

/// L04: a server that accepts every stream and drops it before its first event.
func measureFlapping(handles count: Int, seconds: Int) {
    let began = ContinuousClock.now
    let herd = Herd(count, rule: .drop)
    while herd.milliseconds < seconds * 1000 { herd.step() }
    let million = 1e6 / Double(count)
    let all = Double((herd.attempts.last ?? 0) - herd.attempts[0]) / Double(seconds)
    let middle = Herd.value(herd.attempts, at: seconds * 500)
    let late = Double((herd.attempts.last ?? 0) - middle) / Double(seconds) * 2
    report(
        [
            ("herd", "flapping"), ("handles", "\(count)"), ("seconds", "\(seconds)"),
            ("attempts_s_per_million", (all * million).rounded(to: 0)),
            ("second_half_s_per_million", (late * million).rounded(to: 0)),
        ],
        since: began
    )
}

/// L06: everybody waits, is parked, goes on and waits again.
func measureParking(handles count: Int, rounds: Int) {
    let began = ContinuousClock.now
    let herd = Herd(count, rule: .refuse)
    print("round,rss_bytes")
    var resident: [Int] = [residentBytes()]
    print("0,\(resident[0])")
    for round in 1...rounds {
        herd.environment.isActive = false
        precondition(herd.environment.waiting == 0)
        herd.environment.isActive = true
        herd.rest()
        resident.append(residentBytes())
        print("\(round),\(resident[round])")
    }
    let second = resident[min(2, rounds)]
    report(
        [
            ("herd", "parking"), ("handles", "\(count)"), ("rounds", "\(rounds)"),
            ("rss_second_mb", "\(second >> 20)"), ("rss_last_mb", "\(resident[rounds] >> 20)"),
            ("growth", (Double(resident[rounds]) / Double(second) - 1).rounded(to: 3)),
        ],
        since: began
    )
}

/// L08: two environments whose handles lose their streams at once: what part of all comes back in the fullest tick, and
/// what part of one's handles in the same tick as the other's of the same place, by what draws the chance.
func measureChance(handles count: Int) {
    let drawings: [(String, () -> @Sendable () -> Double)] = [
        ("constant", { { 0.5 } }),
        (
            "seed",
            {
                let generator = Mutex(Seeded(seed: 1))
                return { generator.withLock { .random(in: 0...1, using: &$0) } }
            }
        ),
        ("default", { { .random(in: 0...1) } }),
    ]
    for (name, drawing) in drawings {
        let began = ContinuousClock.now
        let herds = (0..<2).map { _ in Herd(count, drawing: drawing()) }
        for herd in herds { herd.loseAll() }
        var ticks = herds.map { _ in [Int?](repeating: nil, count: count) }
        var inTick: [Int: Int] = [:]
        while herds.contains(where: { $0.server.open < count }) {
            for (place, herd) in herds.enumerated() {
                herd.step()
                for (number, handle) in herd.handles.enumerated() where ticks[place][number] == nil {
                    guard case .open = handle.stream else { continue }
                    ticks[place][number] = herd.milliseconds
                    inTick[herd.milliseconds, default: 0] += 1
                }
            }
        }
        let twins = zip(ticks[0], ticks[1]).count { $0 == $1 }
        report(
            [
                ("herd", "chance"), ("unit", name), ("handles", "\(count)"),
                ("in_one_tick", (Double(inTick.values.max() ?? 0) / Double(2 * count)).rounded(to: 3)),
                ("with_their_twins", (Double(twins) / Double(count)).rounded(to: 3)),
            ],
            since: began
        )
    }
}
