// What threads did to one handle and read from it, against the machine: is there an order that explains all of it?

import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

/// One thing a thread did, and what it was told.
struct Step {
    typealias StreamID = SubscriptionStateMachine.StreamID

    enum Act {
        case retain, release, retry
        case opened(StreamID, isRead: Bool)
        case payload(StreamID, isAccepted: Bool)
        case failed(StreamID)
        case completed(StreamID)
        case elapsed(StreamID)
        /// The environment's flag is set.
        case flip(Bool)
        /// The handle is told of it; by whoever changed it, and maybe by another.
        case tell(Bool)
        case read(Snapshot)
    }

    var act: Act
    /// Before and after it, by a count that all threads share.
    var start: Int
    var end: Int
}

/// What a reader of a status can tell apart.
struct Snapshot: Hashable {
    var state: String
    var until: ContinuousClock.Instant?
    var hasError: Bool
    var resumptions: Int
    var events: Int

    init(_ status: SubscriptionStatus) {
        state = status.stream.name
        until = status.until
        hasError = status.error != nil
        resumptions = status.resumptions
        events = status.events
    }
}

/// Looks for an order of all steps, each somewhere between its start and its end, that the machine explains.
struct Linearization {
    private typealias StreamID = SubscriptionStateMachine.StreamID

    private struct Node {
        var places: [Int]
        var machine = SubscriptionStateMachine()
        var isActive = true
        /// The name given last: the next one follows it.
        var lastName: StreamID?
        /// Whether a thread has changed the flag and not told the handle.
        var owesTelling: [Bool]
    }

    private struct Seen: Hashable {
        var places: [Int]
        var state: String
    }

    private let threads: [[Step]]
    private let now: ContinuousClock.Instant
    private var refuted: Set<Seen> = []

    init(_ threads: [[Step]], now: ContinuousClock.Instant) {
        self.threads = threads
        self.now = now
    }

    /// Whether there is such an order.
    mutating func exists() -> Bool {
        // Depth first, by hand: a history is longer than a thread's stack is deep.
        var stack = [Node(places: threads.map { _ in 0 }, owesTelling: threads.map { _ in false })]
        while let node = stack.popLast() {
            guard node.places != threads.map(\.count) else { return true }
            let machine = node.machine
            let seen = Seen(
                places: node.places,
                state: "\(Snapshot(machine.status)) \(machine.attempt) \(machine.gap) \(machine.holders) "
                    + "\(machine.current != nil) \(String(describing: node.lastName)) \(node.isActive) \(node.owesTelling)"
            )
            guard refuted.insert(seen).inserted else { continue }
            // Nobody's next step may come after another's end.
            let bound = threads.indices.compactMap { next($0, node)?.end }.min() ?? .max
            for thread in threads.indices {
                guard let step = next(thread, node), step.start <= bound else { continue }
                stack += after(step, of: thread, node).map { node in
                    var node = node
                    node.lastName = node.machine.current ?? node.lastName
                    return node
                }
            }
        }
        return false
    }

    private func next(_ thread: Int, _ node: Node) -> Step? {
        let place = node.places[thread]
        return place < threads[thread].count ? threads[thread][place] : nil
    }

    /// What may be once the step is done; nothing where it could not have been.
    private func after(_ step: Step, of thread: Int, _ node: Node) -> [Node] {
        var node = node
        node.places[thread] += 1
        let active = node.isActive
        switch step.act {
        case .retain:
            _ = node.machine.retained(active: active)
        case .release:
            _ = node.machine.released()
        case .retry:
            _ = node.machine.retried(active: active)
        case .opened(let id, let isRead):
            _ = node.machine.opened(id, active: active)
            guard node.machine.isOpen(id) == isRead else { return [] }
        case .payload(let id, let isAccepted):
            guard node.machine.payloads(1, on: id) == isAccepted else { return [] }
        case .failed(let id):
            _ = node.machine.failed(.dropped, on: id, now: now, chance: 1, active: active)
        case .completed(let id):
            _ = node.machine.completed(id)
        case .elapsed(let id):
            _ = node.machine.elapsed(id, active: active)
        case .flip(let value):
            node.owesTelling[thread] = value != active
            node.isActive = value
        case .tell:
            var told = node
            _ = told.machine.activityChanged(active: active)
            guard !node.owesTelling[thread] else {
                told.owesTelling[thread] = false
                return [told]
            }
            return [node, told]
        case .read(let snapshot):
            guard Snapshot(node.machine.status) == snapshot else { return [] }
        }
        return [node]
    }
}

@Suite("What threads at once read", .timeLimit(.minutes(10)))
struct LinearizabilityTests {
    /// Has four threads do fifty things each to a handle.
    private static func history(seed: UInt64) async throws -> (threads: [[Step]], now: ContinuousClock.Instant) {
        let rig = Rig()
        let handle = rig.handle
        let environment = rig.environment
        let time = Lock(0)
        @Sendable func tick() -> Int {
            time.withLock { time in
                time += 1
                return time
            }
        }
        // Every stream and wait is answered by the threads, not by the transport: its calls stay until the end.
        let threads = (0..<4).map { OneThread(label: "history \($0)") }
        let ready = Lock(0)
        let steps = await withTaskGroup(of: (Int, [Step]).self) { group in
            for (number, thread) in threads.enumerated() {
                group.addTask(executorPreference: thread) {
                    var generator = Seeded(seed: seed &+ UInt64(number))
                    var steps: [Step] = []
                    var held: [Retention] = []
                    func note(_ act: () -> [Step.Act]) {
                        let start = tick()
                        let acts = act()
                        let end = tick()
                        steps += acts.map { Step(act: $0, start: start, end: end) }
                    }
                    ready.withLock { $0 += 1 }
                    while ready.withLock({ $0 }) < threads.count { await Task.yield() }
                    for _ in 0..<50 {
                        let current = handle.current
                        let kind = Int.random(in: 0..<14, using: &generator)
                        let value = Int.random(in: 0..<3, using: &generator) > 0
                        note {
                            switch (kind, current) {
                            case (0...2, _):
                                held.append(handle.retain())
                                return [.retain]
                            case (3...4, _):
                                guard let retention = held.popLast() else { return [] }
                                retention.release()
                                return [.release]
                            case (5, _):
                                handle.retry()
                                return [.retry]
                            case (6, _):
                                environment.isActive = value
                                return [.flip(value), .tell(value)]
                            case (7...8, let id?):
                                return [.opened(id, isRead: handle.core.opened(id, after: nil))]
                            case (9...10, let id?):
                                let brought = Brought(batch: Batch([1]), latest: Box(1), point: nil)
                                if handle.core.accept(brought, on: id) == .accepted {
                                    return [.payload(id, isAccepted: true)]
                                }
                                return [.payload(id, isAccepted: false)]
                            case (11, let id?):
                                handle.core.failed(.dropped, on: id, at: nil)
                                return [.failed(id)]
                            case (12, let id?):
                                handle.core.completed(id, at: nil)
                                return [.completed(id)]
                            case (13, let id?):
                                handle.elapsed(id)
                                return [.elapsed(id)]
                            default:
                                return []
                            }
                        }
                        note { [.read(Snapshot(handle.status))] }
                    }
                    for retention in held {
                        note {
                            retention.release()
                            return [.release]
                        }
                    }
                    note { [.read(Snapshot(handle.status))] }
                    return (number, steps)
                }
            }
            var all = threads.map { _ in [Step]() }
            for await (number, steps) in group { all[number] = steps }
            return all
        }
        let answers = Task {
            while true {
                let opening = try await rig.transport.nextOpening()
                opening.fail(.dropped)
                if opening.request == "last" { return }
            }
        }
        await environment.end()
        _ = try? await rig.transport.open("last", resuming: nil)
        try await answers.value
        return (steps, rig.clock.now)
    }

    // K06
    @Test("is explained by some order of what they did")
    func someOrder() async throws {
        let seed = Seeded().seed
        for round in 0..<Seeded.count(30, full: 2000) {
            let history = try await Self.history(seed: seed &+ UInt64(round) &* 4)
            var linearization = Linearization(history.threads, now: history.now)
            let exists = linearization.exists()
            #expect(exists, "seed \(seed &+ UInt64(round) &* 4)")
        }
    }

    // K06
    @Test("is explained by no order where one snapshot was never true")
    func noOrder() async throws {
        var history = try await Self.history(seed: 1)
        let place = try #require(history.threads[2].lastIndex { if case .read = $0.act { true } else { false } })
        guard case .read(var snapshot) = history.threads[2][place].act else { return }
        snapshot.events += 1
        history.threads[2][place].act = .read(snapshot)

        var linearization = Linearization(history.threads, now: history.now)

        let exists = linearization.exists()
        #expect(!exists)
    }
}
