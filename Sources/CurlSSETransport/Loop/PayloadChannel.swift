// The one place where a stream crosses threads: the loop puts segments in, one reader takes them out.
//
// Thread: the loop writes, any one task reads, any thread cancels. Nothing is called out under the lock.

internal import SubscriptionRuntime
internal import Synchronization

/// How a stream ended.
enum StreamEnding: Sendable {
    case completed
    case failed(SubscriptionFailure)
    /// By its reader.
    case cancelled
}

/// A bounded queue between the loop and one reader.
final class PayloadChannel<Payload: Sendable>: Sendable {
    /// What a reader finds.
    enum Found: Sendable {
        case segment(PayloadSegment<Payload>)
        case ended(StreamEnding)
    }

    private struct State {
        var buffer: PayloadBuffer<Payload>
        var ending: StreamEnding?
        var waiter: Waiter?
        /// Whether the reader goes on where every task does that names no other place.
        var isOnPool = false
        /// The loop holds the stream back and waits for room.
        var isHeld = false
    }

    private enum Step {
        case found(Found, mustResume: Bool)
        case wait
    }

    /// How many bytes fill it.
    let highWater: Int

    private let state: Lock<State>

    /// Whether the reader is gone; set once.
    ///
    /// Looked at for each chunk, so not under the lock.
    private let abandoned = Atomic<Bool>(false)

    init(highWater: Int) {
        self.highWater = highWater
        state = Lock(State(buffer: PayloadBuffer(highWater: highWater)))
    }

    // MARK: The loop's side

    /// Whether the reader is gone: what still comes is for nobody.
    var isAbandoned: Bool { abandoned.load(ordering: .relaxed) }

    /// Hands segments over, so that there are none left, and wakes the reader unless that is the pool's to do.
    ///
    /// - Parameter segments: The segments.
    /// - Returns: How many bytes more the buffer takes before it is full, and who waits on the pool, to be resumed.
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    func append(_ segments: inout [PayloadSegment<Payload>]) -> (room: Int, waiter: Waiter?) {
        let (waiter, isOnPool, room) = state.withLock { state -> (Waiter?, Bool, Int) in
            guard state.ending == nil else { return (nil, false, highWater) }
            var hasPayload = false
            for segment in segments {
                state.buffer.append(segment)
                hasPayload = hasPayload || !segment.payloads.isEmpty
            }
            // Before the reader goes on: it takes payloads out of their array, and copies one that is held elsewhere.
            segments = []
            // A move of the position alone is for whoever looks next.
            guard hasPayload else { return (nil, false, state.buffer.room) }
            defer { state.waiter = nil }
            return (state.waiter, state.isOnPool, state.buffer.room)
        }
        if isOnPool { return (room, waiter) }
        waiter?.resume()
        return (room, nil)
    }

    /// How many bytes more the buffer takes before it is full; its reader makes more of it at any time.
    var room: Int { state.withLock { $0.buffer.room } }

    /// The loop is about to hold the stream back.
    ///
    /// False when there is room after all.
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    func hold() -> Bool {
        state.withLock { state in
            guard state.ending == nil, state.buffer.isFull else { return false }
            state.isHeld = true
            return true
        }
    }

    /// The stream ended.
    ///
    /// The first ending holds; a cancelled one drops what was not taken.
    func end(_ ending: StreamEnding) {
        if case .cancelled = ending { abandoned.store(true, ordering: .relaxed) }
        let (waiter, dropped) = state.withLock { state -> (Waiter?, PayloadBuffer<Payload>?) in
            if case .cancelled = ending {
                // A reader that is gone hears of nothing more.
                let buffer = state.buffer
                state.buffer.removeAll()
                state.ending = .cancelled
                defer { state.waiter = nil }
                return (state.waiter, buffer)
            }
            guard state.ending == nil else { return (nil, nil) }
            state.ending = ending
            defer { state.waiter = nil }
            return (state.waiter, nil)
        }
        waiter?.resume()
        // Payloads of the caller's own type end outside of the lock.
        withExtendedLifetime(dropped) {}
    }

    // MARK: The reader's side

    /// Says that the reader's task goes on where every task does that names no other place.
    @inline(never)
    func readerIsOnPool() {
        state.withLock { $0.isOnPool = true }
    }

    /// Takes what is there; waits while there is nothing.
    ///
    /// - Parameters:
    ///   - turn: The reader's.
    ///   - resume: Called when a stream that was held back may go on.
    ///   - cancel: Called, on the cancelling thread, when the reader's task is cancelled while it waits.
    /// - Returns: A segment, or the end.
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    nonisolated(nonsending) func take(
        turn: inout Turn,
        resume: () -> Void,
        cancel: @escaping @Sendable () -> Void
    ) async -> Found {
        // A server that never pauses must not keep a cancelled reader.
        if Task.isCancelled { giveUp(cancel) }
        var hasWaited = false
        while true {
            switch step() {
            case .found(let found, let mustResume):
                if !hasWaited { turn.wentOn() }
                if mustResume { resume() }
                return found
            case .wait:
                hasWaited = true
                turn.suspended()
                await withTaskCancellationHandler {
                    await withCheckedContinuation { keep($0) }
                } onCancel: {
                    giveUp(cancel)
                }
            }
        }
    }

    /// Takes what is there, or the end; nil while there is nothing.
    ///
    /// - Parameter resume: As for ``take(resume:cancel:)``.
    /// - Returns: A segment, or the end, which stays.
    @specialized(where Payload == ServerSentEvent)
    @specialized(where Payload == GraphQLResult)
    func takeIfReady(resume: () -> Void) -> Found? {
        guard case .found(let found, let mustResume) = step() else { return nil }
        if mustResume { resume() }
        return found
    }

    // Not inlined: what they need is in no frame of a task that waits.

    /// Keeps whoever waits, or has it go on where there is something already.
    @inline(never)
    private func keep(_ continuation: CheckedContinuation<Void, Never>) {
        let waiter = Waiter(continuation)
        let mayWait = state.withLock { state in
            precondition(state.waiter == nil, "a stream has one reader")
            guard state.buffer.isEmpty, state.ending == nil else { return false }
            state.waiter = waiter
            return true
        }
        if !mayWait { waiter.resume() }
    }

    @inline(never)
    private func giveUp(_ cancel: @Sendable () -> Void) {
        end(.cancelled)
        cancel()
    }

    @inline(never)
    private func step() -> Step { state.withLock { Self.step(&$0) } }

    private static func step(_ state: inout State) -> Step {
        if let segment = state.buffer.take() {
            let mustResume = state.isHeld && state.buffer.isLow
            if mustResume { state.isHeld = false }
            return .found(.segment(segment), mustResume: mustResume)
        }
        if let ending = state.ending { return .found(.ended(ending), mustResume: false) }
        return .wait
    }
}
