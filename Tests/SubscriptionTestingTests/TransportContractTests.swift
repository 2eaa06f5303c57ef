import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("The transport's contract", .timeLimit(.minutes(1)))
struct TransportContractTests {
    struct Cut: Error {}

    /// A transport over a scripted one, and the server of both.
    private struct Scene {
        let base: ScriptedTransport<String, Int>
        /// Ends what ignores its cancellation.
        let over: AsyncStream<Void>.Continuation
        let transport: Faulty
        private let server: Task<Void, any Error>
        private let contract: TransportContract<Faulty>

        init(_ fault: Fault?) {
            let base = ScriptedTransport<String, Int>(.init(isDeaf: fault == .opensDeaf))
            let (gate, over) = AsyncStream<Void>.makeStream()
            let sent = Lock(0)
            self.base = base
            self.over = over
            // Whoever floods and whoever reads ahead do not wait for the tests beside them: that would look held back.
            let thread = OneThread(label: "flood")
            transport = Faulty(base: base, fault: fault, gate: gate, thread: thread)
            server = Task { try await Self.play(base, fault, sent, thread) }
            contract = TransportContract(
                transport,
                // What is broken takes this long to be found out, in most of the tests.
                patience: fault == nil ? .seconds(20) : .seconds(2),
                connections: { base.unclosed },
                openings: { base.opened },
                sent: { sent.withLock { $0 } }
            )
        }

        func check() async throws -> [String] {
            let broken = await contract.check(
                endless: "endless",
                completing: "completing",
                cutOff: "cut off",
                silent: "silent",
                refused: "refused",
                unavailable: "unavailable",
                flooding: "flooding",
                empty: "empty"
            )
            over.finish()
            transport.held.withLock { $0 = [] }
            _ = try await base.open("over", resuming: nil)
            try await server.value
            return broken
        }

        /// Plays the server, until the last opening says so.
        private static func play(
            _ transport: ScriptedTransport<String, Int>,
            _ fault: Fault?,
            _ sent: Lock<Int>,
            _ thread: OneThread
        ) async throws {
            try await withThrowingDiscardingTaskGroup { group in
                var silent: [ScriptedOpening<String, Int>] = []
                while true {
                    let opening = try await transport.nextOpening()
                    answer(opening, fault)
                    if opening.request == "silent" { silent.append(opening) }
                    if opening.request == "flooding" {
                        group.addTask(executorPreference: thread) { await flood(opening, sent) }
                    }
                    guard opening.request == "over" else { continue }
                    for opening in silent { opening.fail(.network(Cut())) }
                    return
                }
            }
        }

        private static func answer(_ opening: ScriptedOpening<String, Int>, _ fault: Fault?) {
            switch opening.request {
            case "silent": break
            case "refused": opening.fail(fault == .refusesAsNetwork ? .network(Cut()) : .request(Cut()))
            case "unavailable": opening.fail(fault == .isUnavailableForGood ? .request(Cut()) : .network(Cut()))
            case "endless" where fault == .neverOpens: opening.fail(.network(Cut()))
            default: opening.accept()
            }
            switch opening.request {
            case "endless": if fault != .isSilent { opening.feed(1) }
            case "completing":
                if fault != .isEmpty { opening.feed(1, 2, 3) }
                if fault == .failsCompletions { opening.fail(.network(Cut())) }
                if fault != .doesNotEnd { opening.complete() }
            case "cut off":
                switch fault {
                case .takesCutsForCompletions: opening.complete()
                case .takesCutsForRefusals: opening.fail(.request(Cut()))
                default: opening.fail(.network(Cut()))
                }
            case "empty":
                if fault == .fillsTheEmpty { opening.feed(1) }
                if fault == .failsTheEmpty { opening.fail(.network(Cut())) }
                opening.complete()
            default: break
            }
        }

        /// Sends as much as is taken, and a little ahead, until the stream is let go of.
        private static func flood(_ opening: ScriptedOpening<String, Int>, _ sent: Lock<Int>) async {
            var fed = 0
            while !opening.isClosed, !opening.isCancelled {
                while fed < opening.taken + 8 {
                    opening.feed(fed)
                    fed += 1
                }
                let all = fed
                sent.withLock { $0 = all }
                await Task.yield()
            }
        }
    }

    @Test("is kept by a transport that keeps it")
    func kept() async throws {
        #expect(try await Scene(nil).check() == [])
    }

    @Test("is said to be broken by a transport that breaks it, and how", arguments: Fault.allCases)
    func broken(fault: Fault) async throws {
        let broken = try await Scene(fault).check()

        #expect(broken.contains { $0.hasPrefix(fault.sentence) }, "\(broken)")
    }

    @Test("is checked to its end, whatever one point takes", arguments: [Fault.opensDeaf, .readsDeaf, .doesNotEnd])
    func ends(fault: Fault) async throws {
        let broken = try await Scene(fault).check()

        #expect((1...3).contains(broken.count), "\(broken)")
    }
}

/// What a transport may do wrong.
enum Fault: CaseIterable {
    case opensDeaf, readsDeaf, doesNotEnd, neverOpens, opensAtOnce, opensUnasked, isSilent, isEmpty
    case failsCompletions, takesTooMany, takesTooManyReady, takesNone, losesWhatIsReady
    case takesCutsForCompletions, takesCutsForRefusals, refusesAsNetwork, isUnavailableForGood
    case opensTheRefused, opensTheUnavailable, triesAgain, triesAgainWhenRefused, triesAgainWhenCut
    case fillsTheEmpty, failsTheEmpty
    case holdsTheUnread, holdsTheCancelled, holdsTheCancelledOpening, asksNobody
    case readsAhead, neverGoesOn, holdsTheFlood, readsTheFloodDeaf, neverOpensTheFlood, hangsAtTheOpening

    /// How the contract says it, from the beginning on.
    var sentence: String {
        switch self {
        case .opensDeaf: "a cancelled opening did not return"
        case .readsDeaf: "a cancelled reading did not return"
        case .doesNotEnd: "the reading of a stream that completes did not end"
        case .hangsAtTheOpening: "the opening of a stream that completes did not end"
        case .neverOpens: "a stream to be dropped unread did not open: network"
        case .opensAtOnce: "a request that is refused was opened"
        case .opensUnasked: "an opening returned before the server had answered"
        case .isSilent: "a stream to be cancelled while it is read brought no payload"
        case .isEmpty: "a completed stream brought no payload"
        case .failsCompletions: "a completed stream failed: network"
        case .takesTooMany: "3 payloads were taken by 2"
        case .takesNone: "0 payloads were taken by 2"
        case .takesTooManyReady: "2 payloads were taken by 1 where nextIfReady takes them"
        case .losesWhatIsReady: "a stream of 3 payloads is one of 2 where nextIfReady takes them"
        case .takesCutsForCompletions: "a body that ended without the completion completed the stream"
        case .takesCutsForRefusals: "a body that ended without the completion is request"
        case .refusesAsNetwork: "a refusal is network"
        case .isUnavailableForGood: "a server that does not accept now is request"
        case .opensTheRefused: "a request that is refused was opened"
        case .opensTheUnavailable: "a request that is not accepted now was opened"
        case .triesAgain: "a request that is not accepted now was opened 2 times for 1"
        case .triesAgainWhenRefused: "a request that is refused was opened 2 times for 1"
        case .triesAgainWhenCut: "a stream that is cut off was opened 2 times for 1"
        case .fillsTheEmpty: "an empty stream brought a payload"
        case .failsTheEmpty: "an empty stream failed: network"
        case .holdsTheUnread: "a stream that was dropped unread is still open"
        case .holdsTheCancelled: "a cancelled reading is still open at the server"
        case .holdsTheCancelledOpening: "a cancelled opening is still open at the server"
        case .asksNobody: "the server saw nothing of an opening"
        case .readsAhead: "a stream that is not read does not hold the server back"
        case .neverGoesOn: "a stream that was held back does not go on once it is read"
        case .holdsTheFlood: "a cancelled reading of a stream without end is still open at the server"
        case .readsTheFloodDeaf: "a cancelled reading of a stream without end did not return"
        case .neverOpensTheFlood: "a stream without end did not open"
        }
    }
}

/// Does one thing wrong.
private struct Faulty: SubscriptionTransport {
    typealias Base = ScriptedTransport<String, Int>

    let base: Base
    let fault: Fault?
    /// Open until the test is over.
    let gate: AsyncStream<Void>
    let thread: OneThread
    /// Streams that are not let go of.
    let held = Lock<[Base.Payloads]>([])

    /// Waits until the test is over, deaf to any cancellation.
    fileprivate func hang() async {
        await Task { [gate] in for await _ in gate {} }.value
    }

    func open(_ request: String, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Payloads {
        switch (fault, request) {
        case (.asksNobody, "silent"):
            await hang()
        case (.hangsAtTheOpening, "completing"):
            await hang()
        case (.neverOpensTheFlood, "flooding"):
            throw .network(CancellationError())
        case (.opensAtOnce, _), (.opensTheRefused, "refused"), (.opensTheUnavailable, "unavailable"),
            (.opensUnasked, "silent"):
            // Not before the server has seen it, so that nothing else is broken.
            let opening = Task { try? await base.open(request, resuming: resuming) }
            return Payloads(transport: self, request: request, payloads: nil, opening: opening)
        case (.holdsTheCancelledOpening, "silent"):
            // The opening goes on without whoever asked for it.
            let base = base
            let opening = Task { _ = try? await base.open(request, resuming: resuming) }
            let waiting = Task { [gate] in for await _ in gate {} }
            await withTaskCancellationHandler {
                await waiting.value
            } onCancel: {
                waiting.cancel()
            }
            _ = opening
            throw .network(CancellationError())
        default:
            break
        }
        do throws(SubscriptionFailure) {
            return try await once(request, resuming)
        } catch {
            switch (fault, request) {
            case (.triesAgain, "unavailable"), (.triesAgainWhenRefused, "refused"):
                return try await once(request, resuming)
            default:
                throw error
            }
        }
    }

    private func once(_ request: String, _ resuming: ResumePoint?) async throws(SubscriptionFailure) -> Payloads {
        let payloads = try await base.open(request, resuming: resuming)
        switch (fault, request) {
        case (.holdsTheUnread, "endless"), (.holdsTheCancelled, "endless"), (.holdsTheFlood, "flooding"):
            held.withLock { $0.append(payloads) }
        default:
            break
        }
        return Payloads(transport: self, request: request, payloads: payloads, opening: nil)
    }

    struct Payloads: PayloadSequence {
        typealias Element = Int
        typealias Failure = SubscriptionFailure

        let transport: Faulty
        let request: String
        let payloads: Base.Payloads?
        let opening: Task<Base.Payloads?, Never>?

        init(transport: Faulty, request: String, payloads: Base.Payloads?, opening: Task<Base.Payloads?, Never>?) {
            self.transport = transport
            self.request = request
            self.payloads = payloads
            self.opening = opening
            guard transport.fault == .readsAhead, request == "flooding", let payloads else { return }
            let reading = Task(executorPreference: transport.thread) {
                var iterator = payloads.makeAsyncIterator()
                while !Task.isCancelled, try await iterator.next(atMost: 16) != nil { await Task.yield() }
            }
            Task { [gate = transport.gate] in
                for await _ in gate {}
                reading.cancel()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(stream: self, iterator: payloads?.makeAsyncIterator()) }
    }

    struct Iterator: PayloadIterator {
        let stream: Payloads
        var iterator: Base.Payloads.AsyncIterator?
        var reads = 0

        private var fault: Fault? { stream.transport.fault }

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Int? {
            try await iterator?.next(isolation: actor)
        }

        mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Int]? {
            reads += 1
            if let opening = stream.opening, iterator == nil, let opened = await opening.value {
                iterator = opened.makeAsyncIterator()
            }
            switch (fault, stream.request) {
            case (.takesTooMany, "completing"):
                return try await iterator?.next(atMost: count + 1)
            case (.takesNone, "completing"):
                return []
            case (.readsDeaf, "endless") where reads > 1, (.neverGoesOn, "flooding"):
                await stream.transport.hang()
                return nil
            case (.readsTheFloodDeaf, "flooding") where reads > 1:
                await stream.transport.hang()
                return nil
            case (.holdsTheCancelled, "endless"), (.holdsTheFlood, "flooding"):
                // The stream itself learns nothing of the cancellation.
                while !Task.isCancelled {
                    if let batch = iterator?.nextIfReady(atMost: count) { return batch }
                    await Task.yield()
                }
                return nil
            case (.triesAgainWhenCut, "cut off"):
                do throws(SubscriptionFailure) {
                    return try await iterator?.next(atMost: count)
                } catch {
                    _ = try? await stream.transport.base.open(stream.request, resuming: nil)
                    throw error
                }
            default:
                return try await iterator?.next(atMost: count)
            }
        }

        mutating func nextIfReady(atMost count: Int) -> [Int]? {
            reads += 1
            if fault == .losesWhatIsReady, reads == 1 { _ = iterator?.nextIfReady(atMost: 1) }
            let most = fault == .takesTooManyReady ? count + 1 : count
            return iterator?.nextIfReady(atMost: most)
        }
    }
}
