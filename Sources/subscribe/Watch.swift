// A transport that tells a console what it does: each opening, each success, each failure, none conflated.
//
// The runtime's statuses are conflated, as they should be for who wants to know how things stand. A tool that tells what
// happened must miss nothing, so it listens where nothing is missed. Runs wherever the runtime drives the stream.

import SubscriptionRuntime

/// What is told of one subscription's transport.
final class Watch: Sendable {
    /// What a handle counts, read when something is told.
    struct Counts: Sendable {
        var payloads = 0
        var resumptions = 0
    }

    private struct State {
        var counts: @Sendable () -> Counts = { Counts() }
        var failedAt: ContinuousClock.Instant?
    }

    private let console: Console
    /// Whether a network failure is the end of the run.
    private let isOnce: Bool
    private let state = Lock(State())

    /// Tells a console.
    init(_ console: Console, isOnce: Bool) {
        self.console = console
        self.isOnce = isOnce
    }

    /// Reads the counts from here on by this.
    func read(_ counts: @escaping @Sendable () -> Counts) {
        state.withLock { $0.counts = counts }
    }

    /// When the last failure was told; nil before the first.
    var failedAt: ContinuousClock.Instant? { state.withLock { $0.failedAt } }

    fileprivate func opening() {
        console.take(.opening(after: counts().payloads))
    }

    fileprivate func opened() {
        let counts = counts()
        console.take(.opened(resumptions: counts.resumptions, after: counts.payloads))
    }

    fileprivate func failed(_ failure: SubscriptionFailure) {
        // A stream that the runtime has given up fails too, and nobody needs to know.
        guard !Task.isCancelled else { return }
        state.withLock { $0.failedAt = .now }
        console.take(.failed(Problem(failure, isOnce: isOnce), after: counts().payloads))
    }

    private func counts() -> Counts {
        let read = state.withLock { $0.counts }
        return read()
    }
}

/// A transport with a watch on it.
struct WatchedTransport<Base: SubscriptionTransport>: SubscriptionTransport {
    let base: Base
    let watch: Watch

    var driverExecutor: (any TaskExecutor)? { base.driverExecutor }

    func open(
        _ request: Base.Request,
        resuming: ResumePoint?
    ) async throws(SubscriptionFailure) -> WatchedPayloads<Base.Payloads> {
        watch.opening()
        do {
            return WatchedPayloads(base: try await base.open(request, resuming: resuming), watch: watch)
        } catch {
            watch.failed(error)
            throw error
        }
    }
}

/// A stream with a watch on it.
struct WatchedPayloads<Base: PayloadSequence>: PayloadSequence {
    typealias Element = Base.Element
    typealias Failure = SubscriptionFailure

    let base: Base
    let watch: Watch

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), watch: watch)
    }

    func close() { base.close() }

    struct AsyncIterator: PayloadIterator {
        typealias Element = Base.Element
        typealias Failure = SubscriptionFailure

        private var base: Base.AsyncIterator
        private let watch: Watch
        private var isRead = false

        fileprivate init(base: Base.AsyncIterator, watch: Watch) {
            self.base = base
            self.watch = watch
        }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(SubscriptionFailure) -> Element? {
            tellOpened()
            do {
                return try await base.next(isolation: actor)
            } catch {
                watch.failed(error)
                throw error
            }
        }

        mutating func next(atMost count: Int) async throws(SubscriptionFailure) -> [Element]? {
            tellOpened()
            do {
                return try await base.next(atMost: count)
            } catch {
                watch.failed(error)
                throw error
            }
        }

        mutating func nextIfReady(atMost count: Int) -> [Element]? { base.nextIfReady(atMost: count) }

        var resumePoint: ResumePoint? { base.resumePoint }

        func detached(_ payload: Element) -> Element { base.detached(payload) }

        /// The handle counts the resumption before it reads for the first time.
        private mutating func tellOpened() {
            guard !isRead else { return }
            isRead = true
            watch.opened()
        }
    }
}
