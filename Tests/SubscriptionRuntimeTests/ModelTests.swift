// The machine against bookkeeping of its own, by random scripts and by all short ones.

import Testing

@testable import SubscriptionRuntime

/// One input of the machine, as data: a stream or a wait is named by how many were named since.
enum Input: Sendable, Hashable, CaseIterable {
    case retain, release, retry, flip, tell, end
    case opened(age: Int)
    case payload(age: Int)
    case failed(age: Int, Failing)
    case completed(age: Int)
    case elapsed(age: Int)

    enum Failing: Hashable, CaseIterable {
        case network, request, environment

        var failure: SubscriptionFailure {
            switch self {
            case .network: .dropped
            case .request: .refused
            case .environment: .environment(.transport(Dropped()))
            }
        }
    }

    static let allCases: [Input] =
        [.retain, .release, .retry, .flip, .tell]
        + (0...1).flatMap { age in
            [.opened(age: age), .payload(age: age), .completed(age: age), .elapsed(age: age)]
                + Failing.allCases.map { .failed(age: age, $0) }
        }

    /// An input of a script: mostly of the newest stream, seldom the end.
    static func random(using generator: inout Seeded) -> Input {
        if Int.random(in: 0..<200, using: &generator) == 0 { return .end }
        let age = max(0, Int.random(in: -6...3, using: &generator))
        switch Int.random(in: 0..<12, using: &generator) {
        case 0, 1: return .retain
        case 2: return .release
        case 3: return .retry
        case 4: return .flip
        case 5: return .tell
        case 6, 7: return .opened(age: age)
        case 8: return .payload(age: age)
        case 9: return .failed(age: age, Failing.allCases.randomElement(using: &generator) ?? .network)
        case 10: return Bool.random(using: &generator) ? .completed(age: age) : .failed(age: age, .network)
        default: return .elapsed(age: age)
        }
    }
}

/// A state of the table: a letter of its head.
enum Place: Character, CaseIterable {
    case unretained = "U"
    case parked = "P"
    case connecting = "C"
    case open = "O"
    case waiting = "W"
    /// Ended by the server's completion, by a refusal, by a failure of the transport's environment.
    case completed = "E"
    case refused = "R"
    case failed = "X"
    case gone = "G"

    var isEnded: Bool { [.completed, .refused, .failed].contains(self) }

    /// Where a machine says it is.
    init(_ machine: SubscriptionStateMachine) {
        switch machine.status.stream {
        case .idle: self = machine.holders == 0 ? .unretained : .parked
        case .connecting: self = .connecting
        case .open: self = .open
        case .waiting: self = .waiting
        case .ended(nil): self = .completed
        case .ended(.request): self = .refused
        case .ended(.environment(.gone)): self = .gone
        case .ended: self = .failed
        }
    }
}

/// The table of states and inputs: where each input leads from each state.
///
/// Written by the specification, and read by nothing but the tests. A dot is what cannot be. What a stream or a wait
/// says is current where it is named as the machine's present one is, and stale elsewhere.
enum Table {
    private static let text = """
        input                               U P C O W E R X G
        retain active                       C P C O W C C C G
        retain inactive                     P P C O W P P P G
        release other active                . P C O W E R X G
        release other inactive              . P C O W E R X G
        release last active                 . U U U U U U U G
        release last inactive               . U U U U U U U G
        retry active                        U P C O C C C C G
        retry inactive                      U P C O P P P P G
        tell active                         U C C O W E R X G
        tell inactive                       U P P P P E R X G
        end active                          G G G G G G G G G
        end inactive                        G G G G G G G G G
        opened current active               . . O O W . . . .
        opened current inactive             . . P O W . . . .
        opened stale active                 U P C O W E R X G
        opened stale inactive               U P C O W E R X G
        payload current active              . . C O W . . . .
        payload current inactive            . . C O W . . . .
        payload stale active                U P C O W E R X G
        payload stale inactive              U P C O W E R X G
        failed network current active       . . W W W . . . .
        failed network current inactive     . . P P W . . . .
        failed network stale active         U P C O W E R X G
        failed network stale inactive       U P C O W E R X G
        failed request current active       . . R R W . . . .
        failed request current inactive     . . R R W . . . .
        failed request stale active         U P C O W E R X G
        failed request stale inactive       U P C O W E R X G
        failed environment current active   . . X X W . . . .
        failed environment current inactive . . X X W . . . .
        failed environment stale active     U P C O W E R X G
        failed environment stale inactive   U P C O W E R X G
        completed current active            . . C E W . . . .
        completed current inactive          . . C E W . . . .
        completed stale active              U P C O W E R X G
        completed stale inactive            U P C O W E R X G
        elapsed current active              . . C O C . . . .
        elapsed current inactive            . . C O P . . . .
        elapsed stale active                U P C O W E R X G
        elapsed stale inactive              U P C O W E R X G
        """

    /// A state and an input.
    struct Cell: Hashable, CustomStringConvertible {
        var place: Place
        var input: String

        var description: String { "\(place) x \(input)" }
    }

    /// Where each cell leads.
    static let cells: [Cell: Place] = {
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
        let heads = lines[0].dropFirst().compactMap { $0.first.flatMap(Place.init) }
        var cells: [Cell: Place] = [:]
        for line in lines.dropFirst() {
            let input = line.dropLast(heads.count).joined(separator: " ")
            for (place, next) in zip(heads, line.suffix(heads.count)) {
                guard let next = next.first.flatMap(Place.init) else { continue }
                cells[Cell(place: place, input: input)] = next
            }
        }
        return cells
    }()
}

/// The machine, and what it should have done by rules written down apart from it.
struct Model {
    typealias StreamID = SubscriptionStateMachine.StreamID

    private(set) var machine = SubscriptionStateMachine()
    private var names: [StreamID] = []

    /// The flag, which may have flipped without the machine being told.
    private var active = true
    private var holders = 0
    /// Where the table says that it is.
    private var place = Place.unretained
    private var isGone: Bool { place == .gone }

    /// The stream that was opened and not closed, and whether it was accepted.
    private(set) var live: (id: StreamID, isAccepted: Bool)?
    private var wait: (id: StreamID, until: ContinuousClock.Instant)?

    private var waits = 0
    private var gap = false
    private var resumptions = 0
    private var events = 0
    private let now = ContinuousClock.now

    /// The cell of the table of states and inputs that was met last.
    private(set) var met: Table.Cell?

    /// A rule that was broken.
    struct Broken: Error, CustomStringConvertible {
        var description: String
    }

    private func check(_ holds: Bool, _ rule: String) throws(Broken) {
        guard holds else { throw Broken(description: rule) }
    }

    /// What tells one reachable state from another: names by their place alone, attempts up to the cap.
    var fingerprint: String {
        let state: String
        switch machine.status.stream {
        case .idle: state = "idle"
        case .connecting: state = "connecting"
        case .open: state = "open"
        case .waiting: state = "waiting"
        case .ended(nil): state = "completed"
        case .ended(let failure?): state = "\(SubscriptionLogEntry.Kind(failure))"
        }
        let error = machine.status.error.map { "\(SubscriptionLogEntry.Kind($0))" } ?? "none"
        return "\(state) \(error) \(min(machine.attempt, 6)) \(machine.gap) \(machine.holders) \(active) "
            + "\(machine.isGone) \(min(names.count, 2)) \(names.last.map { $0 == live?.id || $0 == wait?.id } ?? false)"
    }

    /// Gives the machine one input, and holds it to the rules.
    mutating func apply(_ input: Input, chance: Double) throws(Broken) {
        let before = machine
        let status = machine.status
        let wasIn = place
        func name(_ age: Int) -> StreamID? { age < names.count ? names[names.count - 1 - age] : nil }
        let name = input.age.flatMap(name)
        let isCurrent = name.map { $0 == live?.id || $0 == wait?.id } ?? false
        let kind =
            switch input {
            case .release: holders == 1 ? "release last" : "release other"
            case .failed(_, let failing): "failed \(failing) \(isCurrent ? "current" : "stale")"
            default: input.age == nil ? input.name : "\(input.name) \(isCurrent ? "current" : "stale")"
            }
        let cell = Table.Cell(place: place, input: "\(kind) \(active ? "active" : "inactive")")
        var action = SubscriptionStateMachine.Action.none
        var stale = false
        var resumes = false
        switch input {
        case .retain:
            holders += 1
            // A parking, or an end that a retention undoes, comes before the opening.
            if !isGone, (holders == 1 && !active) || place.isEnded { gap = true }
            action = machine.retained(active: active)
        case .release:
            guard holders > 0 else { return }
            holders -= 1
            action = machine.released()
            if holders == 0, !isGone { (waits, gap) = (0, false) }
        case .retry:
            action = machine.retried(active: active)
            if place == .waiting || place.isEnded { gap = true }
        case .flip:
            active.toggle()
            return
        case .tell:
            action = machine.activityChanged(active: active)
            if !active, live != nil || wait != nil { gap = true }
        case .end:
            action = machine.environmentEnded()
        case .opened:
            guard let id = name else { return }
            stale = live?.id != id || live?.isAccepted == true
            if !stale {
                resumes = gap && active
                if resumes { resumptions += 1 }
                gap = !active
                if active { live?.isAccepted = true }
            }
            action = machine.opened(id, active: active)
        case .payload:
            guard let id = name else { return }
            stale = live?.id != id || live?.isAccepted == false
            if !stale { (events, waits) = (events + 1, 0) }
            try check(machine.payloads(1, on: id) == !stale, "I5: payloads come from the open stream alone")
        case .failed(_, let failing):
            guard let id = name else { return }
            stale = live?.id != id
            if !stale {
                live = nil
                if failing == .network { gap = true }
            }
            action = machine.failed(failing.failure, on: id, now: now, chance: chance, active: active)
        case .completed:
            guard let id = name else { return }
            stale = live?.id != id || live?.isAccepted == false
            if !stale { live = nil }
            action = machine.completed(id)
        case .elapsed:
            guard let id = name else { return }
            stale = wait?.id != id
            action = machine.elapsed(id, active: active)
        }
        met = cell
        guard let next = Table.cells[cell] else { throw Broken(description: "\(cell) cannot be") }
        place = next
        try check(Place(machine) == next, "\(cell) leads to \(next), not to \(Place(machine))")
        let changes = next != wasIn || events != status.events
        try check(
            machine.revision == before.revision + (changes ? 1 : 0),
            "\(cell) is one snapshot where something changed, and none elsewhere"
        )
        try note(action, chance: chance)
        try hold(before, status, stale: stale, resumes: resumes)
    }

    /// Does what the machine says.
    private mutating func note(_ action: SubscriptionStateMachine.Action, chance: Double) throws(Broken) {
        switch action {
        case .none, .accept:
            break
        case .open(let id):
            try check(live == nil, "I1: never two live streams")
            try check(active && holders > 0 && !isGone, "I2: opens only what is active, retained and not gone")
            try check(names.last.map { $0 != id } ?? true, "a name is given once")
            (live, wait) = ((id, false), nil)
            names.append(id)
        case .wait(let id, let until):
            try check(live == nil && wait == nil, "I1: nothing is live while it waits")
            try check(active && holders > 0 && !isGone, "I2: waits only where it may open")
            let step = min(Duration.seconds(1) * Int(1 << min(waits, 10)), .seconds(30))
            let delay = now.duration(to: until)
            try check(delay >= step / 2 && delay <= step, "I3: a wait is half a step to a whole one")
            if chance == 0 { try check(delay == step / 2, "I3: no chance is half the step") }
            if chance == 1 { try check(delay == step, "I3: all chance is the whole step") }
            waits += 1
            wait = (id, until)
            names.append(id)
        case .stop, .finish, .abandon:
            (live, wait) = (nil, nil)
        }
    }

    /// The rules that hold after every input.
    private func hold(
        _ before: SubscriptionStateMachine,
        _ earlier: SubscriptionStatus,
        stale: Bool,
        resumes: Bool
    ) throws(Broken) {
        let status = machine.status
        try check(status.resumptions == resumptions, "I4: \(status.resumptions) resumptions, not \(resumptions)")
        try check(!resumes || status.isOpen, "I4: a resumption comes with the opening")
        try check(status.events == events, "I5: \(status.events) events, not \(events)")
        try check(machine.attempt == waits, "I5: \(machine.attempt) waits, not \(waits)")
        try check(!stale || machine.revision == before.revision, "I6: what is stale changes nothing")
        try check(!before.isGone || status.isGone, "I7: gone is for good")
        try check(isGone == machine.isGone, "I7: an end is an end")
        try check(machine.gap == gap, "I4: the gap is \(gap)")
        try check(machine.holders == holders, "holders are counted")
        if holders == 0, !isGone {
            try check(status.isIdle && machine.attempt == 0 && !machine.gap, "I8: nobody's is idle, and forgot")
        }
        try check(!status.isOpen || status.error == nil, "I9: an open stream has no error")
        try check(!status.isWaiting || status.error != nil, "I9: a waiting stream has one")
        try check(holders > 0 || (live == nil && wait == nil), "I10: nothing is live once all are released")
        try check(status.isOpen == (live?.isAccepted == true), "the state says what is live")
        try check(status.isConnecting == (live?.isAccepted == false), "the state says what is live")
        try check(status.isWaiting == (wait != nil), "the state says what waits")
        try check(status.events >= earlier.events, "F05: events never fall")
        let rise = status.resumptions - earlier.resumptions
        try check(rise == 0 || rise == 1, "F05: resumptions rise by one at most")
    }
}

extension Input {
    /// How many names ago what it says was named; nil for what names nothing.
    var age: Int? {
        switch self {
        case .retain, .release, .retry, .flip, .tell, .end: nil
        case .opened(let age), .payload(let age), .failed(let age, _), .completed(let age), .elapsed(let age): age
        }
    }

    /// The input without what it carries.
    var name: String { "\("\(self)".prefix { $0 != "(" })" }
}

extension StreamState {
    /// The state without what it carries.
    var name: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .open: "open"
        case .waiting: "waiting"
        case .ended(nil): "completed"
        case .ended(.environment(.gone)): "gone"
        case .ended: "failed"
        }
    }
}

/// A script, to be run from its start.
struct Script: CustomStringConvertible {
    var inputs: [(input: Input, chance: Double)]

    var description: String { inputs.map { "\($0.input)" }.joined(separator: ", ") }

    static func random(_ count: Int, using generator: inout Seeded) -> Script {
        Script(
            inputs: (0..<count).map { _ in
                let chance = Int.random(in: 0..<4, using: &generator)
                return (
                    .random(using: &generator),
                    chance == 0 ? 0 : chance == 1 ? 1 : .random(in: 0...1, using: &generator)
                )
            }
        )
    }

    /// The rule it breaks.
    var broken: Model.Broken? {
        var model = Model()
        for (input, chance) in inputs {
            do throws(Model.Broken) {
                try model.apply(input, chance: chance)
            } catch {
                return error
            }
        }
        return nil
    }

    /// A script as short as deletions make it for which this still holds.
    func shrunk(while breaks: (Script) -> Bool) -> Script {
        var shortest = self
        var index = 0
        while index < shortest.inputs.count {
            var shorter = shortest
            shorter.inputs.remove(at: index)
            if breaks(shorter) {
                shortest = shorter
                index = 0
            } else {
                index += 1
            }
        }
        return shortest
    }
}

@Suite("The machine, by any script", .longComputation, .timeLimit(.minutes(5)))
struct ModelTests {
    // K01, F05
    @Test("keeps its rules")
    func randomScripts() {
        var generator = Seeded()
        for _ in 0..<Seeded.scripts() {
            let script = Script.random(80, using: &generator)
            guard let broken = script.broken else { continue }
            let shortest = script.shrunk { $0.broken != nil }
            Issue.record("\(broken) by \(shortest), seed \(generator.seed)")
            return
        }
    }

    // K02
    @Test("keeps its rules in every state that can be reached, and goes from every cell of the table where that says")
    func everyReachableState() throws {
        var frontier = [Model()]
        var seen: Set<String> = [Model().fingerprint]
        var met: Set<Table.Cell> = []
        for _ in 0..<12 {
            var next: [Model] = []
            for model in frontier {
                for input in Input.allCases + [.end] {
                    if input == .retain, model.machine.holders == 2 { continue }
                    var after = model
                    try after.apply(input, chance: 1)
                    if let cell = after.met { met.insert(cell) }
                    if seen.insert(after.fingerprint).inserted { next.append(after) }
                }
            }
            frontier = next
        }

        for cell in Table.cells.keys { #expect(met.contains(cell), "\(cell)") }
        // 9 states; 10 inputs of owners and of the environment, 14 of streams, each active and inactive.
        #expect(Table.cells.count == 9 * 2 * 4 + 8 * 2 + 8 * 2 + 2 * (7 * 9 + 7 * 3))
        #expect(seen.count > 100)
    }

    // K07
    @Test("that breaks a rule is played again by its seed, and shrunk to what breaks it")
    func shrinking() throws {
        /// Breaks a rule that does not hold: that nobody ever waits three times in a row.
        func breaks(_ script: Script) -> Bool {
            var model = Model()
            for (input, chance) in script.inputs {
                guard (try? model.apply(input, chance: chance)) != nil else { return false }
                if model.machine.attempt >= 3 { return true }
            }
            return false
        }
        /// The first script of a seed that breaks it.
        func failing(_ seed: UInt64) -> Script? {
            var generator = Seeded(seed: seed)
            return (0..<10_000).lazy.map { _ in Script.random(80, using: &generator) }.first(where: breaks)
        }
        let script = try #require(failing(7))

        let shortest = script.shrunk(while: breaks)

        // Owned, then three failures with two ends of waits between them: six at least, and few more by deletions of one
        // at a time.
        #expect((6...12).contains(shortest.inputs.count), "\(shortest)")
        #expect(breaks(shortest))
        for index in shortest.inputs.indices {
            var shorter = shortest
            shorter.inputs.remove(at: index)
            #expect(!breaks(shorter))
        }
        #expect(failing(7)?.description == script.description)
    }
}
