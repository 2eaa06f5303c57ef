// The transactions of one subscription, whatever its payloads are.
//
// Every input is one transaction: take the lock, ask the machine, note what is left to do, let go of the lock, do it.
// Any thread. Not generic, see `Batch`.

/// What starts a subscription's drivers, and outlives its waits: the handle.
protocol Launching: Elapsing {
    /// Starts the driver of one opening; nil where there is no transport.
    ///
    /// Called under the handle's lock.
    func launch(_ id: SubscriptionStateMachine.StreamID, resuming point: ResumePoint?) -> Task<Void, Never>?
}

/// The part of a handle that is not generic.
///
/// Whoever calls it holds the handle.
final class HandleCore: Sendable {
    typealias StreamID = SubscriptionStateMachine.StreamID

    let number: Int
    let environment: EnvironmentState
    private let state = Lock(HandleState())

    init(number: Int, environment: EnvironmentState) {
        self.number = number
        self.environment = environment
    }

    /// Names the handle, before anything else.
    func setLauncher(_ launcher: any Launching) {
        state.withLock { $0.launcher = launcher }
    }

    // MARK: What it says

    /// The stream, the error and the counts, read together.
    var status: SubscriptionStatus {
        read { $0.machine.status }
    }

    /// The payload accepted last, in a `Box`.
    var latest: (any AnyObject & Sendable)? {
        read { $0.latest }
    }

    // MARK: Inputs of the environment

    /// The environment's flag may have flipped.
    ///
    /// If it reads false, every driver has been cancelled when this returns, also one that another thread has decided
    /// to cancel and has not yet.
    func activityChanged() {
        transact { state, after in
            let active = environment.isActive
            if !active, !state.cancelling.isEmpty {
                let doomed = state.cancelling
                after.leave { $0.doomed = doomed }
            }
            perform(state.machine.activityChanged(active: active), &state, &after)
        }
    }

    /// The environment has ended.
    func environmentEnded() {
        transact { state, after in
            perform(state.machine.environmentEnded(), &state, &after)
        }
    }

    // MARK: Inputs of a stream

    /// The server accepted it.
    ///
    /// - Returns: Whether it is to be read; if not, it is to be let go of unread.
    func opened(_ id: StreamID, after elapsed: Duration?) -> Bool {
        transact { state, after in
            let action = state.machine.opened(id, active: environment.isActive)
            if case .accept = action, let elapsed { after.log(.opened(after: elapsed)) }
            perform(action, &state, &after)
            return state.machine.isOpen(id)
        }
    }

    /// It failed.
    @inline(never)
    func failed(_ failure: SubscriptionFailure, on id: StreamID, at point: ResumePoint?) {
        // Neither is asked for under the lock, nor for a stream that was cancelled.
        guard state.withLock({ $0.machine.isCurrent(id) }) else { return }
        let now = environment.clock.now
        let chance = environment.unit()
        transact { state, after in
            note(point, id, &state)
            state.left(id)
            let revision = state.machine.revision
            let action = state.machine.failed(
                failure,
                on: id,
                now: now,
                chance: chance,
                active: environment.isActive
            )
            if state.machine.revision != revision { after.log(.failed(.init(failure))) }
            if case .wait(_, let until) = action { after.log(.waiting(now.duration(to: until))) }
            perform(action, &state, &after)
        }
    }

    /// The server completed it.
    @inline(never)
    func completed(_ id: StreamID, at point: ResumePoint?) {
        transact { state, after in
            note(point, id, &state)
            state.left(id)
            perform(state.machine.completed(id), &state, &after)
        }
    }

    /// What became of a batch.
    enum Acceptance {
        case accepted
        /// It is no longer this stream's to bring any.
        case superseded
        /// It is more than any owner has room for.
        case excess
    }

    /// It brought payloads, by its driver.
    ///
    /// They are read again where the owners' room has shrunk since it was asked for, and dropped where the stream is
    /// superseded: who asks for room then is told so. Not inlined, see the driver.
    @inline(never)
    func accept<Payloads: PayloadSequence>(
        _ payloads: consuming [Payloads.Element],
        of stream: StreamReading<Payloads>
    ) {
        let brought = stream.brought(payloads)
        if accept(brought, on: stream.id) == .excess { stream.keep(brought) }
    }

    func accept(_ brought: Brought, on id: StreamID) -> Acceptance {
        var brought = brought
        return transact { state, after in accept(&brought, on: id, &state, &after) }
    }

    private func accept(
        _ brought: inout Brought,
        on id: StreamID,
        by reader: Mailbox? = nil,
        _ state: inout HandleState,
        _ after: inout Aftermath
    ) -> Acceptance {
        guard state.machine.isOpen(id) else { return .superseded }
        if let room = state.room, brought.batch.count > room { return .excess }
        guard state.machine.payloads(brought.batch.count, on: id) else { return .superseded }
        after.payload = state.latest
        state.latest = brought.latest
        note(brought.point, id, &state)
        brought.batch.isSole = state.mailboxes.count == 1
        state.hand(brought.batch, except: reader, &after)
        return .accepted
    }

    /// How many payloads may be read at once, at least 1; nil once the stream is superseded.
    ///
    /// Suspends while no owner has room. Not inlined, see the driver: most batches find room.
    @inline(never)
    nonisolated(nonsending) func room<Payloads: PayloadSequence>(
        for stream: StreamReading<Payloads>,
        of payloads: Payloads
    ) async -> Int? {
        while true {
            let room = state.withLock { state in
                state.machine.isOpen(stream.id) ? state.room ?? HandleState.unpaced : nil
            }
            guard let room else { return nil }
            if room > 0 { return room }
            // The transport is told of the end by whoever decides it, as it is of a stream that is being read.
            await withTaskCancellationHandler {
                await Waiter.wait { driver in
                    stream.suspend(driver)
                    holdBack(stream)
                }
            } onCancel: {
                payloads.close()
            }
        }
    }

    /// Holds the stream back, unless its driver may go on.
    @inline(never)
    private func holdBack(_ stream: any HeldBack) {
        transact { state, after in holdBack(stream, &state, &after) }
    }

    private func holdBack(_ stream: any HeldBack, _ state: inout HandleState, _ after: inout Aftermath) {
        guard state.machine.isOpen(stream.id) else {
            after.resumed = stream
            return
        }
        state.holdBack(stream, &after)
    }

    /// Reads in the driver's place what is there, and holds the stream back again.
    ///
    /// - Returns: What that brought the owner, if he has nothing left to take before it.
    private func readOn(_ stream: any HeldBack, room: Int, for owner: Int) -> Batch? {
        guard var brought = stream.nextIfReady(atMost: room) else {
            // By the lock, as whatever is handed from one reader to the other.
            transact { _, after in after.resumed = stream }
            return nil
        }
        return transact { state, after in
            var reader = state.mailboxes[owner]
            if let mailbox = reader, !mailbox.isEmpty { reader = nil }
            switch accept(&brought, on: stream.id, by: reader, &state, &after) {
            case .accepted:
                reader?.passedBy(brought.batch)
            case .superseded:
                after.payload = brought.latest
                reader = nil
            case .excess:
                // The owner has left meanwhile, and another one come.
                stream.keep(brought)
                after.resumed = stream
                return nil
            }
            holdBack(stream, &state, &after)
            return reader == nil ? nil : brought.batch
        }
    }

    // MARK: Transactions

    /// Reads, and tells the Observation library so.
    private func read<Value>(_ value: (HandleState) -> Value) -> Value {
        let (value, observation) = state.withLock { state in
            // Made by the first who reads: most handles of a service are never read.
            let observation = state.observation ?? StatusObservation()
            state.observation = observation
            return (value(state), observation)
        }
        observation.accessed()
        return value
    }

    private func transact<Result>(
        _ body: (inout HandleState, inout Aftermath) -> Result
    ) -> Result {
        var after = Aftermath(isLogging: environment.log != nil)
        let result = state.withLock { state in
            let revision = state.machine.revision
            if let error = state.machine.error { after.leave { $0.error = error } }
            let result = body(&state, &after)
            if state.machine.revision != revision {
                after.observation = state.observation
                if !state.watchers.isEmpty {
                    let watchers = Array(state.watchers.values)
                    after.leave { $0.watchers = watchers }
                    state.watchers = [:]
                }
            }
            return result
        }
        finish(after)
        return result
    }

    /// Does what the machine says, as far as that is done under the lock.
    private func perform(
        _ action: SubscriptionStateMachine.Action,
        _ state: inout HandleState,
        _ after: inout Aftermath
    ) {
        switch action {
        case .none:
            break
        case .open(let id):
            state.retire(&after)
            open(id, &state, &after)
        case .wait(let id, let until):
            state.retire(&after)
            guard let waiter = state.launcher else { return }
            let wait = Wait(waiter, id: id, until: until)
            state.current = .wait(wait)
            after.leave { $0.armed = wait }
        case .stop:
            state.retire(&after)
            if state.machine.holders > 0 { after.log(.parked) }
        case .accept(let resumption):
            if let resumption { after.log(.resumed(resumption)) }
            state.mark(resumption.map { .resumed($0) } ?? .opened, &after)
        case .finish(let end):
            state.retire(&after)
            after.log(.ended(end.map(\.kind)))
            state.finish(end, &after)
        case .abandon:
            state.retire(&after)
            after.log(.ended(.environment))
            state.abandon(&after)
        }
    }

    private func open(_ id: StreamID, _ state: inout HandleState, _ after: inout Aftermath) {
        guard environment.hasTransport else {
            let failure = SubscriptionFailure.environment(.noTransport)
            // Neither time nor chance matters to a failure that is not a wait.
            let action = state.machine.failed(failure, on: id, now: .now, chance: 1, active: environment.isActive)
            return perform(action, &state, &after)
        }
        guard state.cancelling.isEmpty else {
            state.current = .held(id)
            return
        }
        launch(id, &state)
    }

    /// Starts the driver of one opening.
    ///
    /// Under the lock, so that the opening precedes its own cancellation. The task is nobody's child: the owner that
    /// happens to cause an opening lends it neither its priority nor its task-local values.
    private func launch(_ id: StreamID, _ state: inout HandleState) {
        // A handle that is going is retained by nobody, and its stream is nobody's.
        guard let launcher = state.launcher else { return }
        environment.driverStarted()
        if let task = launcher.launch(id, resuming: state.resumePoint) {
            state.current = .stream(id, task)
        } else {
            environment.driverFinished()
        }
    }

    private func note(_ point: ResumePoint?, _ id: StreamID, _ state: inout HandleState) {
        guard let point, state.machine.isOpen(id) else { return }
        state.resumePoint = point
    }

    /// Does what a transaction left to do, under no lock.
    private func finish(_ after: consuming Aftermath) {
        if let rest = after.rest { finish(rest) }
        after.resumed?.resume()
        if let (waiter, taken) = after.served { waiter.resume(returning: taken) }
        if let rest = after.rest {
            for (waiter, taken) in rest.served { waiter.resume(returning: taken) }
            for watcher in rest.watchers { watcher.resume() }
        }
        after.observation?.changed()
    }

    private func finish(_ rest: Aftermath.Rest) {
        if let task = rest.cancelled {
            task.cancel()
            cancellationSignalled(task)
        }
        for task in rest.doomed { task.cancel() }
        if let log = environment.log {
            for event in rest.entries { log(SubscriptionLogEntry(subscription: number, event: event)) }
        }
        if let wait = rest.dropped { environment.sleeper.drop(wait) }
        if let wait = rest.armed { environment.sleeper.add(wait) }
    }

    /// Starts an opening that was held back until the one before knew of its end.
    private func cancellationSignalled(_ task: Task<Void, Never>) {
        state.withLock { state in
            state.cancelling.removeAll { $0 == task }
            guard state.cancelling.isEmpty, case .held(let id) = state.current else { return }
            launch(id, &state)
        }
    }
}

// MARK: - Owners

extension HandleCore {
    /// Somebody retains the subscription.
    func retain() {
        transact { state, after in
            perform(state.machine.retained(active: environment.isActive), &state, &after)
        }
    }

    /// Somebody lets go of it.
    func release() {
        transact { state, after in release(&state, &after) }
    }

    /// Somebody asks for a waiting or an ended stream at once.
    func retry() {
        transact { state, after in
            perform(state.machine.retried(active: environment.isActive), &state, &after)
        }
    }

    /// Somebody retains the subscription, and takes its deliveries.
    ///
    /// - Returns: The owner's number, and what its iterator is seen by.
    func join(limit: Int) -> (owner: Int, gauge: Gauge) {
        let gauge = Gauge()
        let mailbox = Mailbox(limit: limit, gauge: gauge)
        let owner = transact { state, after in
            state.lastOwner += 1
            state.mailboxes[state.lastOwner] = mailbox
            if state.machine.isGone { _ = mailbox.abandon() }
            if state.machine.isOpen { mailbox.mark(.opened) }
            perform(state.machine.retained(active: environment.isActive), &state, &after)
            state.goOn(&after)
            return state.lastOwner
        }
        return (owner, gauge)
    }

    private func release(_ state: inout HandleState, _ after: inout Aftermath) {
        let action = state.machine.released()
        if state.machine.holders == 0 {
            after.payload = state.latest
            state.latest = nil
            state.resumePoint = nil
        }
        perform(action, &state, &after)
    }

    /// The next piece of the owner's queue; suspends while there is none.
    nonisolated(nonsending) func take(_ owner: Int) async -> Taken {
        await withTaskCancellationHandler {
            await HandOver.wait { waiter in wait(waiter, for: owner) }
        } onCancel: {
            detach(owner)
        }
    }

    /// Suspends the owner's iterator, unless there is something for it.
    @inline(never)
    private func wait(_ waiter: Mailbox.Waiter, for owner: Int) {
        let taken = transact { state, after -> Taken? in
            guard let mailbox = state.mailboxes[owner] else { return .detached }
            if let taken = mailbox.take() {
                state.goOn(&after)
                return taken
            }
            mailbox.wait(waiter)
            return nil
        }
        if let taken { waiter.resume(returning: taken) }
    }

    /// What is there; nil where there is nothing yet.
    func takeNow(_ owner: Int) -> Taken? {
        transact { state, after in
            guard let mailbox = state.mailboxes[owner] else { return .detached }
            let taken = mailbox.take()
            if taken != nil { state.goOn(&after) }
            return taken
        }
    }

    /// The owner's count has reached its gauge's call.
    func attend(_ owner: Int) -> Attention {
        let (goesOn, stream) = transact { state, after -> (Bool, (any HeldBack, Int)?) in
            guard let mailbox = state.mailboxes[owner], !mailbox.isAbandoned else { return (false, nil) }
            return (true, state.goOn(for: mailbox, &after))
        }
        guard goesOn else { return .over }
        guard let (stream, room) = stream, let batch = readOn(stream, room: room, for: owner) else { return .goesOn }
        return .payloads(batch)
    }

    /// The owner is no more.
    ///
    /// May be called again.
    func detach(_ owner: Int) {
        transact { state, after in
            guard let mailbox = state.mailboxes.removeValue(forKey: owner) else { return }
            after.leave { $0.mailbox = mailbox }
            if let waiter = mailbox.takeWaiter() { after.serve(waiter, .detached) }
            release(&state, &after)
            state.goOn(&after)
        }
    }
}

// MARK: - Observers

extension HandleCore {
    /// The status, once it is another than that of the revision; nil when the task is cancelled.
    nonisolated(nonsending) func status(
        after revision: Int
    ) async -> (status: SubscriptionStatus, revision: Int, isLast: Bool)? {
        while !Task.isCancelled {
            let next = state.withLock { state -> (SubscriptionStatus, Int, Bool)? in
                guard state.machine.revision > revision else { return nil }
                return (state.machine.status, state.machine.revision, state.machine.isGone)
            }
            if let next { return next }
            await change(after: revision)
        }
        return nil
    }

    /// Returns once the revision is another, or the task is cancelled.
    private nonisolated(nonsending) func change(after revision: Int) async {
        let number = state.withLock { state in
            state.lastWatcher += 1
            return state.lastWatcher
        }
        await withTaskCancellationHandler {
            await Waiter.wait { watcher in
                let mayWait = state.withLock { state in
                    // The task's own flag is read under the lock: a cancellation before this is seen here, and one
                    // after it finds the watcher.
                    guard state.machine.revision == revision, !Task.isCancelled else { return false }
                    state.watchers[number] = watcher
                    return true
                }
                if !mayWait { watcher.resume() }
            }
        } onCancel: {
            let watcher = state.withLock { $0.watchers.removeValue(forKey: number) }
            watcher?.resume()
        }
    }

    /// How many loops wait for the next status.
    var watchers: Int { state.withLock { $0.watchers.count } }

    /// The name of the stream or of the wait.
    var current: StreamID? { state.withLock { $0.machine.current } }

    /// How many changes observers were told of.
    var revision: Int { state.withLock { $0.machine.revision } }

    /// The stream whose driver is suspended for want of room, where nobody reads in its place.
    var heldBack: (any HeldBack)? { state.withLock { $0.heldBack } }

    /// Whether a driver runs for the current state; false while an opening is held back.
    var isStarted: Bool {
        state.withLock { state in
            if case .stream = state.current { true } else { false }
        }
    }
}

// MARK: - Waits

extension HandleCore {
    /// The wait of this name is over.
    func elapsed(_ id: StreamID) {
        transact { state, after in
            perform(state.machine.elapsed(id, active: environment.isActive), &state, &after)
        }
    }
}
