// Payloads through handle and deliveries, in memory.

internal import SubscriptionRuntime
internal import SubscriptionTesting
internal import Synchronization

/// What an owner saw.
struct Seen: Sendable {
    var payloads = 0
    var lost = 0
    var disorder = 0

    static func + (left: Seen, right: Seen) -> Seen {
        Seen(
            payloads: left.payloads + right.payloads,
            lost: left.lost + right.lost,
            disorder: left.disorder + right.disorder
        )
    }
}

/// Takes deliveries to their end, and holds the payloads to be the numbers from zero.
func take(_ deliveries: Deliveries<Int>, pauses: Bool = false) async -> Seen {
    var seen = Seen()
    var expected = 0
    var untilPause = pauses ? 1 : Int.max
    do throws(SubscriptionEnd) {
        for try await delivery in deliveries {
            switch delivery {
            case .payload(let number):
                seen.payloads += 1
                if number != expected { seen.disorder += 1 }
                expected = number + 1
                untilPause -= 1
                if untilPause == 0 {
                    untilPause = Int.random(in: 1...2000)
                    await Task.yield()
                }
            case .baseline(.lagged(let dropped)):
                seen.lost += dropped
                expected += dropped
            case .baseline:
                break
            }
        }
    } catch {
        seen.disorder += 1
    }
    return seen
}

/// One row: what all owners of one subscription saw, and what it cost.
private func row(
    _ name: String,
    owners: Int,
    limit: Int,
    count: Int,
    pauses: Bool = false,
    open: (Int) -> SubscriptionEnvironment<Int, Int>
) async {
    let environment = open(count)
    let cpu = processSeconds()
    var seen = Seen()
    let time = await ContinuousClock().measure {
        // Both own it before it is open, so that both see all.
        let sequences = (0..<owners).map { _ in environment.handle(for: 0).deliveries(limit: limit) }
        seen = await withTaskGroup(of: Seen.self) { group in
            for deliveries in sequences { group.addTask { await take(deliveries, pauses: pauses) } }
            return await group.reduce(Seen(), +)
        }
    }
    let spent = processSeconds() - cpu
    await environment.end()
    print(
        "| \(name) | \(owners) | \(limit) | \((time.seconds / Double(count) * 1e9).rounded(to: 0)) "
            + "| \((spent / Double(count) * 1e9).rounded(to: 0)) | \(seen.payloads) | \(seen.lost) | \(seen.disorder) |"
    )
}

/// A scripted transport whose one stream has been fed and completed before anybody reads it.
private func scripted(_ count: Int) -> SubscriptionEnvironment<Int, Int> {
    let transport = ScriptedTransport<Int, Int>(.init(acceptsAtOnce: true))
    Task {
        let opening = try await transport.nextOpening()
        opening.feed(contentsOf: Array(0..<count))
        opening.complete()
    }
    return SubscriptionEnvironment(transport: transport)
}

func measurePayloads(_ count: Int) async {
    print("| transport | owners | limit | wall ns a payload | CPU ns a payload | payloads | lost | out of order |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    await measureIterator(count)
    for owners in [1, 2] {
        await row("numbers", owners: owners, limit: 256, count: count) {
            SubscriptionEnvironment(transport: Numbers(count: $0))
        }
    }
    for owners in [1, 2] { await row("scripted", owners: owners, limit: 256, count: count, open: scripted) }
    for limit in [1, 2, 16, 256] {
        await row("numbers, the owner pauses", owners: 1, limit: limit, count: count, pauses: true) {
            SubscriptionEnvironment(transport: Numbers(count: $0))
        }
    }
    let seen = onOneThread(owners: 2, count: count)
    print("| numbers, all on one thread | 2 | 256 | - | - | \(seen.payloads) | \(seen.lost) | \(seen.disorder) |")
}

/// The transport alone, batch by batch: what is none of the runtime's.
private func measureIterator(_ count: Int) async {
    let cpu = processSeconds()
    let began = ContinuousClock.now
    var seen = Seen()
    var iterator = NumberSequence(count: count).makeAsyncIterator()
    while let batch = try? await iterator.next(atMost: Numbers.batch) {
        for number in batch {
            if number != seen.payloads { seen.disorder += 1 }
            seen.payloads += 1
        }
    }
    let time = ContinuousClock.now - began
    let spent = processSeconds() - cpu
    print(
        "| numbers, no subscription | - | - | \((time.seconds / Double(count) * 1e9).rounded(to: 0)) "
            + "| \((spent / Double(count) * 1e9).rounded(to: 0)) | \(seen.payloads) | \(seen.lost) | \(seen.disorder) |"
    )
}

/// What the owners that are done have seen.
private final class Ended: Sendable {
    private let state = Mutex<(owners: Int, seen: Seen)>((0, Seen()))

    var all: (owners: Int, seen: Seen) { state.withLock { $0 } }

    func add(_ seen: Seen) {
        state.withLock { $0 = ($0.owners + 1, $0.seen + seen) }
    }
}

/// Transport, runtime and owners on the calling thread, in turn.
private func onOneThread(owners: Int, count: Int) -> Seen {
    let thread = OneThread()
    let environment = SubscriptionEnvironment(transport: Numbers(count: count, executor: thread))
    let ended = Ended()
    for deliveries in (0..<owners).map({ _ in environment.handle(for: 0).deliveries() }) {
        Task.detached(executorPreference: thread) {
            ended.add(await take(deliveries))
        }
    }
    thread.run { ended.all.owners == owners }
    return ended.all.seen
}

/// For scripts/count-costs: nothing is timed, and nothing depends on a scheduler.
func countPayloads(owners: Int, count: Int) {
    let seen = onOneThread(owners: owners, count: count)
    precondition(seen.payloads == owners * count && seen.disorder == 0, "\(seen)")
}
