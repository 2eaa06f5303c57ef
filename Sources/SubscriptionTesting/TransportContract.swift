// What a transport owes, as checks that its own tests run.

public import SubscriptionRuntime

/// Holds a transport to its contract, over requests whose server a test controls.
///
/// ```swift
/// let contract = TransportContract(transport, connections: { await server.connections })
/// let broken = await contract.check(endless: ..., completing: ..., cutOff: ..., silent: ...)
/// #expect(broken == [])
/// ```
public struct TransportContract<Transport: SubscriptionTransport>: Sendable {
    private let transport: Transport
    private let patience: Duration
    private let connections: @Sendable () async -> Int

    /// Takes the transport, and a look at its server.
    ///
    /// - Parameters:
    ///   - transport: To be held to the contract.
    ///   - patience: How long anything may take that must happen. Default: 5 s.
    ///   - connections: How many streams the server sees open now, of this transport.
    public init(
        _ transport: Transport,
        patience: Duration = .seconds(5),
        connections: @escaping @Sendable () async -> Int
    ) {
        self.transport = transport
        self.patience = patience
        self.connections = connections
    }

    /// Runs every check, one after another.
    ///
    /// - Parameters:
    ///   - endless: A request that is accepted, answered by at least one payload, and then by nothing.
    ///   - completing: One that is accepted, answered by at least one payload, and completed.
    ///   - cutOff: One that is accepted and whose body then ends without the completion.
    ///   - silent: One that the server takes and never answers.
    /// - Returns: A sentence for each point that is broken.
    public func check(
        endless: Transport.Request,
        completing: Transport.Request,
        cutOff: Transport.Request,
        silent: Transport.Request
    ) async -> [String] {
        var broken: [String] = []
        broken += await completion(completing)
        broken += await readiness(completing)
        broken += await cut(cutOff)
        broken += await droppedUnread(endless)
        broken += await cancelled("reading", endless) { transport in
            guard let payloads = try? await transport.open(endless, resuming: nil) else { return }
            var iterator = payloads.makeAsyncIterator()
            while let batch = try? await iterator.next(atMost: 16), !batch.isEmpty {}
        }
        broken += await cancelled("opening", silent) { transport in
            _ = try? await transport.open(silent, resuming: nil)
        }
        return broken
    }

    private func completion(_ request: Transport.Request) async -> [String] {
        do throws(SubscriptionFailure) {
            let payloads = try await transport.open(request, resuming: nil)
            var iterator = payloads.makeAsyncIterator()
            var count = 0
            while let batch = try await iterator.next(atMost: 2) {
                guard (1...2).contains(batch.count) else { return ["\(batch.count) payloads were taken by 2"] }
                count += batch.count
            }
            return count > 0 ? [] : ["a completed stream brought no payload"]
        } catch {
            return ["a completed stream failed: \(error)"]
        }
    }

    /// What is taken without waiting is of the same stream, and leaves the end to who waits.
    private func readiness(_ request: Transport.Request) async -> [String] {
        let waited = await count(request, ifReady: false)
        let mixed = await count(request, ifReady: true)
        return waited == mixed ? [] : ["a stream of \(waited) payloads is one of \(mixed) where nextIfReady takes them"]
    }

    /// How many payloads a stream brings until its end, whatever that is.
    private func count(_ request: Transport.Request, ifReady: Bool) async -> Int {
        var count = 0
        do throws(SubscriptionFailure) {
            var iterator = try await transport.open(request, resuming: nil).makeAsyncIterator()
            while true {
                while ifReady, let batch = iterator.nextIfReady(atMost: 1) { count += batch.count }
                guard let batch = try await iterator.next(atMost: 1) else { return count }
                count += batch.count
            }
        } catch {
            // Which end it is, is another check's.
            return count
        }
    }

    private func cut(_ request: Transport.Request) async -> [String] {
        do throws(SubscriptionFailure) {
            let payloads = try await transport.open(request, resuming: nil)
            var iterator = payloads.makeAsyncIterator()
            while try await iterator.next(atMost: 16) != nil {}
            return ["a body that ended without the completion completed the stream"]
        } catch {
            guard case .network = error else { return ["a body that ended without the completion is \(error)"] }
            return []
        }
    }

    private func droppedUnread(_ request: Transport.Request) async -> [String] {
        do throws(SubscriptionFailure) {
            _ = try await transport.open(request, resuming: nil)
        } catch {
            return ["a stream to be dropped did not open: \(error)"]
        }
        return await reaches(0) ? [] : ["a stream that was dropped unread is still open"]
    }

    private func cancelled(
        _ what: String,
        _ request: Transport.Request,
        _ call: @escaping @Sendable (Transport) async -> Void
    ) async -> [String] {
        let transport = transport
        let task = Task { await call(transport) }
        guard await reaches(1) else {
            task.cancel()
            return ["the server saw no connection while \(what)"]
        }
        task.cancel()
        let start = ContinuousClock.now
        await task.value
        guard start.duration(to: .now) < patience else { return ["a cancelled \(what) took too long to return"] }
        return await reaches(0) ? [] : ["a cancelled \(what) is still open at the server"]
    }

    /// Whether the server sees so many streams, within the patience.
    private func reaches(_ count: Int) async -> Bool {
        let deadline = ContinuousClock.now + patience
        while await connections() != count {
            guard ContinuousClock.now < deadline else { return false }
            // A look every few milliseconds: the server's side has no signal that every server could offer.
            try? await Task.sleep(for: .milliseconds(5))
        }
        return true
    }
}
