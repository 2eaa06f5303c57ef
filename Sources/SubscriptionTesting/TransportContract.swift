// What a transport owes, as checks that its own tests run.

public import SubscriptionRuntime

/// Holds a transport to its contract, over requests whose server a test controls.
///
/// ```swift
/// let contract = TransportContract(transport, connections: { ... }, openings: { ... }, sent: { ... })
/// let broken = await contract.check(endless: ..., completing: ..., cutOff: ..., silent: ..., ...)
/// #expect(broken == [])
/// ```
///
/// It ends, whatever the transport does: what takes too long is a sentence, and left to itself.
public struct TransportContract<Transport: SubscriptionTransport>: Sendable {
    private let transport: Transport
    private let patience: Duration
    private let connections: @Sendable () async -> Int
    private let openings: @Sendable () async -> Int
    private let sent: @Sendable () async -> Int

    /// Takes the transport, and three looks at its server.
    ///
    /// - Parameters:
    ///   - transport: To be held to the contract.
    ///   - patience: How long anything may take that must happen, such as an opening and the reading of its stream.
    ///     Default: 5 s.
    ///   - connections: How many streams the server sees open now, of this transport.
    ///   - openings: How many openings the server has seen so far, those it refused included.
    ///   - sent: How much the server could send so far, in any unit: it stands still where the server is held back.
    public init(
        _ transport: Transport,
        patience: Duration = .seconds(5),
        connections: @escaping @Sendable () async -> Int,
        openings: @escaping @Sendable () async -> Int,
        sent: @escaping @Sendable () async -> Int
    ) {
        self.transport = transport
        self.patience = patience
        self.connections = connections
        self.openings = openings
        self.sent = sent
    }

    /// Runs every check, one after another.
    ///
    /// - Parameters:
    ///   - endless: A request that is accepted, answered by at least one payload, and then by nothing.
    ///   - completing: One that is accepted, answered by at least one payload, and completed.
    ///   - cutOff: One that is accepted and whose body then ends without the completion.
    ///   - silent: One that the server takes and never answers.
    ///   - refused: One that the server does not accept, for what it asks: it would be refused again.
    ///   - unavailable: One that the server does not accept now: it may be accepted another time.
    ///   - flooding: One that is accepted and answered by payloads without end, as fast as they are taken.
    ///   - empty: One that is accepted and completed at once, without a payload. Default: none, where the protocol has no
    ///     word for that.
    /// - Returns: A sentence for each point that is broken.
    public func check(
        endless: Transport.Request,
        completing: Transport.Request,
        cutOff: Transport.Request,
        silent: Transport.Request,
        refused: Transport.Request,
        unavailable: Transport.Request,
        flooding: Transport.Request,
        empty: Transport.Request? = nil
    ) async -> [String] {
        var broken: [String] = []
        broken += await run("a stream that completes") { await completion(completing, $0) }
        broken += await run("a stream that completes", opens: 2) { await readiness(completing, $0) }
        if let empty { broken += await run("an empty stream") { await emptiness(empty, $0) } }
        broken += await run("a stream that is cut off") { await cut(cutOff, $0) }
        broken += await run("a request that is refused") { await refusal(refused, $0) }
        broken += await run("a request that is not accepted now") { await unavailability(unavailable, $0) }
        broken += await droppedUnread(endless)
        broken += await cancelledReading(endless)
        broken += await cancelledOpening(silent)
        broken += await backpressure(flooding)
        return broken
    }

    // MARK: How an opening and a stream end

    private func completion(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        do throws(SubscriptionFailure) {
            let payloads = try await transport.open(request, resuming: nil)
            stage.isReading()
            var iterator = payloads.makeAsyncIterator()
            var count = 0
            while !Task.isCancelled, let batch = try await iterator.next(atMost: 2) {
                guard (1...2).contains(batch.count) else { return ["\(batch.count) payloads were taken by 2"] }
                count += batch.count
            }
            return count > 0 ? [] : ["a completed stream brought no payload"]
        } catch {
            return ["a completed stream failed: \(error)"]
        }
    }

    /// What is taken without waiting is of the same stream, and leaves the end to who waits.
    private func readiness(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        let waited = await count(request, ifReady: false, stage)
        let mixed = await count(request, ifReady: true, stage)
        if mixed.most > 1 { return ["\(mixed.most) payloads were taken by 1 where nextIfReady takes them"] }
        return waited.sum == mixed.sum
            ? [] : ["a stream of \(waited.sum) payloads is one of \(mixed.sum) where nextIfReady takes them"]
    }

    /// How many payloads a stream brings until its end, whatever that is, and at once.
    private func count(
        _ request: Transport.Request,
        ifReady: Bool,
        _ stage: Stage
    ) async -> (sum: Int, most: Int) {
        var (sum, most) = (0, 0)
        do throws(SubscriptionFailure) {
            stage.isOpening()
            let payloads = try await transport.open(request, resuming: nil)
            stage.isReading()
            var iterator = payloads.makeAsyncIterator()
            while !Task.isCancelled {
                while ifReady, !Task.isCancelled, let batch = iterator.nextIfReady(atMost: 1) {
                    sum += batch.count
                    most = max(most, batch.count)
                }
                guard let batch = try await iterator.next(atMost: 1) else { break }
                sum += batch.count
            }
        } catch {
            // Which end it is, is another check's.
        }
        return (sum, most)
    }

    private func emptiness(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        do throws(SubscriptionFailure) {
            let payloads = try await transport.open(request, resuming: nil)
            stage.isReading()
            var iterator = payloads.makeAsyncIterator()
            return try await iterator.next(atMost: 1) == nil ? [] : ["an empty stream brought a payload"]
        } catch {
            return ["an empty stream failed: \(error)"]
        }
    }

    private func cut(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        do throws(SubscriptionFailure) {
            let payloads = try await transport.open(request, resuming: nil)
            stage.isReading()
            var iterator = payloads.makeAsyncIterator()
            while !Task.isCancelled, try await iterator.next(atMost: 16) != nil {}
            return ["a body that ended without the completion completed the stream"]
        } catch {
            guard case .network = error else { return ["a body that ended without the completion is \(error)"] }
            return []
        }
    }

    /// A transport that returns before the server has answered is found out here for sure.
    private func refusal(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        do throws(SubscriptionFailure) {
            _ = try await transport.open(request, resuming: nil)
            return ["a request that is refused was opened"]
        } catch {
            guard case .request = error else { return ["a refusal is \(error)"] }
            return []
        }
    }

    private func unavailability(_ request: Transport.Request, _ stage: Stage) async -> [String] {
        do throws(SubscriptionFailure) {
            _ = try await transport.open(request, resuming: nil)
            return ["a request that is not accepted now was opened"]
        } catch {
            guard case .network = error else { return ["a server that does not accept now is \(error)"] }
            return []
        }
    }

    // MARK: What is let go of, and what waits

    private func droppedUnread(_ request: Transport.Request) async -> [String] {
        let open = await connections()
        let broken = await run("a stream to be dropped unread") { _ in
            do throws(SubscriptionFailure) {
                _ = try await transport.open(request, resuming: nil)
                return []
            } catch {
                return ["a stream to be dropped unread did not open: \(error)"]
            }
        }
        guard broken.isEmpty else { return broken }
        return await isClosed(open) ? [] : ["a stream that was dropped unread is still open"]
    }

    private func cancelledReading(_ request: Transport.Request) async -> [String] {
        let transport = transport
        let open = await connections()
        let (taken, take) = AsyncStream<Void>.makeStream()
        let reading = Task {
            defer { take.finish() }
            guard let payloads = try? await transport.open(request, resuming: nil) else { return }
            var iterator = payloads.makeAsyncIterator()
            while let batch = try? await iterator.next(atMost: 16), !batch.isEmpty { take.yield() }
        }
        let hasBegun = await timely {
            for await _ in taken { return true }
            return false
        }
        reading.cancel()
        guard hasBegun == true else { return ["a stream to be cancelled while it is read brought no payload"] }
        guard await timely({ await reading.value }) != nil else { return ["a cancelled reading did not return"] }
        return await isClosed(open) ? [] : ["a cancelled reading is still open at the server"]
    }

    private func cancelledOpening(_ request: Transport.Request) async -> [String] {
        let transport = transport
        let (open, seen) = (await connections(), await openings())
        let opening = Task { (try? await transport.open(request, resuming: nil)) != nil }
        let hasBegun = await comes { await openings() > seen }
        opening.cancel()
        guard hasBegun else { return ["the server saw nothing of an opening"] }
        guard let hasOpened = await timely({ await opening.value }) else {
            return ["a cancelled opening did not return"]
        }
        if hasOpened { return ["an opening returned before the server had answered"] }
        return await isClosed(open) ? [] : ["a cancelled opening is still open at the server"]
    }

    private func backpressure(_ request: Transport.Request) async -> [String] {
        let transport = transport
        let (open, before) = (await connections(), await sent())
        let (opened, isOpen) = AsyncStream<Void>.makeStream()
        let (read, goOn) = AsyncStream<Void>.makeStream()
        let reading = Task {
            defer { isOpen.finish() }
            guard let payloads = try? await transport.open(request, resuming: nil) else { return }
            isOpen.yield()
            for await _ in read {}
            var iterator = payloads.makeAsyncIterator()
            while !Task.isCancelled, (try? await iterator.next(atMost: 16)) != nil {}
        }
        defer { reading.cancel() }
        let hasOpened = await timely {
            for await _ in opened { return true }
            return false
        }
        guard hasOpened == true else { return ["a stream without end did not open"] }
        guard let held = await standstill(after: before) else {
            return ["a stream that is not read does not hold the server back"]
        }
        goOn.finish()
        guard await comes({ await sent() > held }) else {
            return ["a stream that was held back does not go on once it is read"]
        }
        reading.cancel()
        guard await timely({ await reading.value }) != nil else {
            return ["a cancelled reading of a stream without end did not return"]
        }
        return await isClosed(open) ? [] : ["a cancelled reading of a stream without end is still open at the server"]
    }

    // MARK: What must happen, within the patience

    /// Where a call is.
    private final class Stage: Sendable {
        private let stage = Lock("the opening")

        var name: String { stage.withLock { $0 } }

        func isOpening() { stage.withLock { $0 = "the opening" } }

        func isReading() { stage.withLock { $0 = "the reading" } }
    }

    /// Runs a call that is to open so often at the server, and not once more.
    private func run(
        _ what: String,
        opens: Int = 1,
        _ call: @escaping @Sendable (Stage) async -> [String]
    ) async -> [String] {
        let stage = Stage()
        let before = await openings()
        guard var broken = await timely({ await call(stage) }) else {
            return ["\(stage.name) of \(what) did not end"]
        }
        let count = await openings() - before
        if count != opens { broken.append("\(what) was opened \(count) times for \(opens)") }
        return broken
    }

    /// What the call returns; nil where it takes too long: it is cancelled then, and left to itself.
    private func timely<Value: Sendable>(_ call: @escaping @Sendable () async -> Value) async -> Value? {
        let (values, value) = AsyncStream<Value?>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let calling = Task { value.yield(await call()) }
        let limit = Task {
            try? await Task.sleep(for: patience)
            value.yield(nil)
        }
        defer {
            calling.cancel()
            limit.cancel()
        }
        for await value in values { return value }
        return nil
    }

    /// Whether the server sees no more streams open than that.
    private func isClosed(_ open: Int) async -> Bool {
        await comes { await connections() <= open }
    }

    /// Whether it comes to be so.
    private func comes(_ condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + patience
        while !(await condition()) {
            guard ContinuousClock.now < deadline, await look() else { return false }
        }
        return true
    }

    /// How much the server had sent when it stood still, having sent some; nil where it does not.
    private func standstill(after before: Int) async -> Int? {
        let deadline = ContinuousClock.now + patience
        var (last, looks) = (before, 0)
        while looks < 40 {
            let sent = await sent()
            looks = sent == last && sent > before ? looks + 1 : 0
            last = sent
            guard ContinuousClock.now < deadline, await look() else { return nil }
        }
        return last
    }

    /// Until the next look, a few milliseconds: the server's side has no signal that every server could offer.
    ///
    /// - Returns: Whether there is one; false once the task is cancelled.
    private func look() async -> Bool {
        (try? await Task.sleep(for: .milliseconds(5))) != nil
    }
}
