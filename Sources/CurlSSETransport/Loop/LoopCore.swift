// What the loop owns, and its turn.
//
// Thread: the loop's, always.

internal import Dispatch
internal import SubscriptionRuntime

/// Learns from libcurl which sockets to watch, and keeps them in the poller.
final class SocketWatcher: CurlMultiReceiver {
    var poller: Poller

    init(poller: consuming Poller) {
        self.poller = poller
    }

    override func socketChanged(_ socket: Int32, interest: Int32) {
        let interest = SocketInterest(interest)
        poller.watch(socket, reading: interest.reads, writing: interest.writes)
    }
}

/// The loop's state.
///
/// Confined to the loop's thread.
final class LoopCore {
    /// How many connections without a stream are kept.
    private static let idleConnections = 8

    /// For how long tasks run within one turn's reads, in nanoseconds, unless the loop is made with another limit.
    ///
    /// Beyond it their stream is held back as any other is, and libcurl comes to the other streams.
    static let mostTimeForJobs: UInt64 = 5_000_000

    /// The loop's time, in nanoseconds of the system's monotonic clock: read once a turn, and again for what other threads
    /// ask and after the tasks that run within a read.
    private(set) var now: UInt64

    private let mostTimeForJobs: UInt64
    /// When tasks no longer run within this turn's reads.
    private var jobsEnd: UInt64 = 0

    private let multi: MultiHandle
    private let watcher: SocketWatcher
    private let mailbox: LoopMailbox
    private let counters: LoopCounters
    private var curlTimerAt: UInt64?
    private var deadlines = DeadlineHeap<LoopDeadline>()
    private var admission = Admission<Origin, UInt64>()
    private var transfers: [UInt64: LoopTransfer] = [:]
    /// How many of them are open.
    private var openCount = 0
    private var easies: [UInt: LoopTransfer] = [:]
    /// Who is on each connection that may be shared.
    private var sharers: [ConnectionName: Set<UInt64>] = [:]
    /// Connections on which libcurl may hold back the reset of a stream that was left.
    private var resets: Set<ConnectionName> = []
    /// Origins whose last stream or opening failed, and whether the connections to them are doubted as well.
    private var doubted: [Origin: Bool] = [:]
    private static let mostDoubted = 1024
    private var files = FileVersions()
    private var lastID: UInt64 = 0
    private var commands: [LoopCommand] = []
    /// Those of the commands that are run within a call of libcurl.
    private var jobs: [LoopJob] = []
    private var events: [(generation: UInt32, event: PollEvent)] = []
    private var waits = WaitSeries()
    private var dirty: [LoopTransfer] = []
    /// Openings that have been given a place and not begun to connect: they do once libcurl has returned.
    private var admitted: [UInt64] = []
    private var expired: [(transfer: LoopTransfer, timeout: TransferStateMachine.Timeout)] = []
    private var isClosed = false

    init(
        mailbox: LoopMailbox,
        signal: LoopSignal,
        counters: LoopCounters,
        mostTimeForJobs: UInt64
    ) throws(TransportError) {
        let initialized = CurlGlobal.initializationError
        guard initialized == nil else {
            throw TransportError(kind: .environment, message: "libcurl cannot be initialised: \(initialized ?? "")")
        }
        do {
            let watcher = SocketWatcher(poller: try Poller(signal: signal))
            self.watcher = watcher
            multi = try MultiHandle.make(receiver: watcher, idleConnections: Self.idleConnections)
        } catch let error as SystemError {
            throw Self.noDescriptor(error)
        } catch {
            throw TransportError(kind: .environment, message: "libcurl made no multi handle")
        }
        self.mailbox = mailbox
        self.counters = counters
        self.mostTimeForJobs = mostTimeForJobs
        now = LoopTime.now
    }

    /// What a loop fails with that cannot wait for anything.
    static func noDescriptor(_ error: SystemError) -> TransportError {
        TransportError(
            kind: .environment,
            message: "the loop has no epoll descriptor: \(error.text)",
            errno: error.number
        )
    }

    // MARK: The turn

    /// Turns until the loop has ended.
    func run() {
        while !isClosed { turn() }
    }

    /// Waits, and does all there is to do then.
    private func turn() {
        if obey() {
            guard !isClosed else { return }
            settle()
            flush()
        }
        compact()
        watcher.poller.wait(milliseconds: patience, into: &events)
        counters.waits.add(1)
        mailbox.stopAwaiting()
        now = LoopTime.now
        // What comes while tasks run within a read is not known yet: it is no silence.
        let waited = now
        jobsEnd = now &+ mostTimeForJobs
        for (generation, event) in events {
            guard let event = watcher.poller.current(event, generation: generation) else { continue }
            check(multi.act(on: event.socket, readable: event.isReadable, writable: event.isWritable))
        }
        // First of all: somebody waits for it.
        flush()
        if let since = waits.told(of: events.count, most: Poller.most, watched: watcher.poller.count, at: waited) {
            fireDeadlines(by: since)
        }
        if let at = curlTimerAt, at <= now { check(multi.actOnTimer()) }
        settle()
        curlTimerAt = multi.timeout.map { timer(in: UInt64($0) * 1_000_000) }
        flush()
    }

    /// When libcurl's timer is looked at.
    ///
    /// To the moment while anything is on its way to a stream. Beyond that libcurl only has left the limit of each
    /// transfer's connecting, which it does not forget when it is connected: thousands are looked at together.
    private func timer(in nanoseconds: UInt64) -> UInt64 {
        let at = now &+ nanoseconds
        guard nanoseconds > 0, openCount == transfers.count else { return at }
        let rest = at % Self.timerStep
        return rest == 0 ? at : at + Self.timerStep - rest
    }

    /// For how many milliseconds there is nothing to do but to wait; -1 for no end of it.
    private var patience: Int32 {
        guard mailbox.await() else { return 0 }
        let deadline = min(deadlines.earliest ?? .max, curlTimerAt ?? .max)
        guard deadline < .max else { return -1 }
        guard deadline > now else { return 0 }
        // Rounded up: a wait that ends before its deadline is a turn for nothing.
        return Int32(clamping: (deadline - now + 999_999) / 1_000_000)
    }

    /// Does what other threads asked for.
    ///
    /// False where they asked for nothing.
    private func obey() -> Bool {
        mailbox.takeAll(into: &commands)
        guard !commands.isEmpty else { return false }
        // Those of the turn before.
        events.removeAll(keepingCapacity: true)
        // They may be much younger than the turn's time: what they begin has all of its limit.
        now = LoopTime.now
        jobsEnd = now &+ mostTimeForJobs
        for command in commands {
            switch command {
            case .start(let transfer): start(transfer)
            case .cancel(let transfer): end(transfer, .cancelled, .cancelled)
            case .resume(let transfer): resume(transfer)
            case .job(let job): job.run()
            case .alarm(let alarm, let instant):
                if isClosed { alarm.fire(isEarly: true) } else { deadlines.insert(.alarm(alarm), at: instant) }
            case .shutdown: shutDown()
            case .quiesce(let done):
                done.signal()
                // The process is exiting: the thread stays here, and ends with it.
                DispatchSemaphore(value: 0).wait()
            }
        }
        commands.removeAll(keepingCapacity: true)
        // The jobs among them may have taken their time.
        now = LoopTime.now
        if multi.timeout == 0 { curlTimerAt = now }
        return true
    }

    /// Takes what libcurl has finished, and lets in who waits for a place.
    private func settle() {
        while true {
            while let message = multi.nextMessage() {
                guard let transfer = easies[message.easy] else { continue }
                follow(transfer, transfer.finished(code: message.code, wallClock: WallClock.seconds))
            }
            guard !admitted.isEmpty || !resets.isEmpty else { return }
            let next = admitted
            admitted.removeAll(keepingCapacity: true)
            for id in next {
                // One that ended meanwhile has given its place to another.
                if let transfer = transfers[id] { connect(transfer) }
            }
            sendResets()
        }
    }

    /// Has the resets of streams sent, by way of another stream of the connection.
    ///
    /// Where there is no other the connection was closed.
    private func sendResets() {
        guard !resets.isEmpty else { return }
        let connections = resets
        resets.removeAll(keepingCapacity: true)
        for connection in connections {
            guard let ids = sharers[connection] else { continue }
            let others = ids.lazy.compactMap { self.transfers[$0] }
            if let other = others.first(where: { $0.machine?.isHeld != true }) {
                other.flushConnection()
            } else if let other = others.first(where: { _ in true }) {
                // Held back: it goes on for a moment, and sends on the way.
                resume(other)
            }
        }
    }

    /// Ends what was to end by a time.
    private func fireDeadlines(by now: UInt64) {
        while let due = deadlines.popDue(now: now) {
            switch due {
            case .alarm(let alarm):
                alarm.fire()
            case .transfer(let id):
                guard let transfer = transfers[id] else { continue }
                transfer.armedAt = nil
                if let timeout = transfer.machine?.expired(now: now) {
                    expired.append((transfer, timeout))
                } else {
                    arm(transfer)
                }
            }
        }
        guard !expired.isEmpty else { return }
        let batch = expired
        expired.removeAll()
        judgeConnections(of: batch)
        for (transfer, timeout) in batch where transfers[transfer.id] != nil {
            follow(transfer, transfer.expired(timeout, wallClock: WallClock.seconds))
        }
    }

    /// Closes shared connections that have gone silent: they would attract the next streams as well.
    ///
    /// Before their streams leave them: libcurl does not have a connection watched that has none. One on which another
    /// stream was heard since is not silent, only the stream is.
    private func judgeConnections(of expired: [(transfer: LoopTransfer, timeout: TransferStateMachine.Timeout)]) {
        var silentSince: [ConnectionName: UInt64] = [:]
        for (transfer, timeout) in expired where timeout == .idle || timeout == .firstByte {
            guard transfer.mayBeShared, let connection = transfer.connection else { continue }
            silentSince[connection] = min(silentSince[connection] ?? .max, transfer.machine?.waitsSince ?? .max)
        }
        guard !silentSince.isEmpty else { return }
        let ended = Set(expired.lazy.map(\.transfer.id))
        let heard = silentSince.filter { connection, since in
            sharers[connection, default: []].contains { id in
                !ended.contains(id) && transfers[id]?.machine?.isHeard(after: since) == true
            }
        }
        for (transfer, _) in expired {
            if let connection = transfer.connection, heard[connection] != nil { transfer.isOnLiveConnection = true }
        }
        let silent = Set(silentSince.keys).subtracting(heard.keys)
        for socket in watcher.poller.sockets {
            if let name = Sockets.name(of: socket), silent.contains(name) { Sockets.shutDown(socket) }
        }
    }

    private func flush() {
        guard !dirty.isEmpty else { return }
        // Moved out of the loop's state, and one by one out of the array: nothing is looked at or counted twice.
        var batch: [LoopTransfer] = []
        swap(&batch, &dirty)
        batch.reverse()
        var first: Waiter?
        var others: [Waiter] = []
        while let transfer = batch.popLast() {
            transfer.isDirty = false
            guard let reader = transfer.flush() else { continue }
            if first == nil { first = reader } else { others.append(reader) }
        }
        swap(&batch, &dirty)
        if let first { wake(first, others) }
    }

    /// Has those go on that wait on the pool for what was handed over.
    ///
    /// One from here. More by a job of the pool: for each that is woken from here the system may take this thread's
    /// processor away, and bring it back.
    private func wake(_ first: Waiter, _ others: [Waiter]) {
        guard !others.isEmpty else { return first.resume() }
        DispatchQueue.global().async {
            first.resume()
            for reader in others { reader.resume() }
        }
    }

    /// Counts what libcurl refused.
    func check(_ isWell: Bool) {
        // Any code but CURLM_OK is a fault of this loop's: nothing it could do would mend it, and each transfer still
        // has its deadline.
        if !isWell { counters.faults.add(1) }
    }

    // MARK: Deadlines

    /// What libcurl's timer is rounded up to where it is not pressing, in nanoseconds.
    private static let timerStep: UInt64 = 500_000_000

    /// A second in nanoseconds.
    private static let second: UInt64 = 1_000_000_000

    /// Sees to it that the transfer's deadline is looked at in time.
    private func arm(_ transfer: LoopTransfer) {
        guard var deadline = transfer.machine?.deadline else { return }
        // Far ones are looked at on the whole second before, together: thousands of idle streams cost one look a second,
        // and one that has stayed silent until then is given up to the moment.
        if deadline > now &+ 2 * Self.second { deadline -= deadline % Self.second }
        if let armedAt = transfer.armedAt, armedAt <= deadline { return }
        transfer.armedAt = deadline
        deadlines.insert(.transfer(transfer.id), at: deadline)
    }

    /// Entries of ended transfers are dropped once they are the most of the heap.
    private func compact() {
        guard deadlines.count > 1024, deadlines.count > 4 * (transfers.count + 1) else { return }
        deadlines.compact { deadline in
            switch deadline {
            case .transfer(let id): transfers[id] != nil
            case .alarm(let alarm): alarm.isArmed
            }
        }
    }

    // MARK: Transfers

    private func start(_ transfer: LoopTransfer) {
        guard !isClosed else { return Self.refuse(transfer) }
        guard transfer.machine == nil else { return }
        lastID += 1
        transfer.start(id: lastID, core: self, now: now)
        transfers[transfer.id] = transfer
        counters.openings.add(1)
        request(transfer)
    }

    /// What everything fails with once the loop has ended.
    static var gone: TransportError {
        TransportError(kind: .environment, message: "the transport's loop has been shut down")
    }

    /// Answers an opening of a loop that has ended.
    static func refuse(_ transfer: LoopTransfer) {
        _ = transfer.end(.failed(SubscriptionFailure(gone)), .failed(gone))
    }

    /// Asks for a place at the transfer's origin.
    private func request(_ transfer: LoopTransfer) {
        if admission.requested(transfer.id, at: transfer.target.origin, limit: transfer.openingLimit) {
            connect(transfer)
        }
        arm(transfer)
    }

    private func connect(_ transfer: LoopTransfer) {
        guard !isClosed else { return }
        do {
            let doubt = doubted.removeValue(forKey: transfer.target.origin)
            try transfer.connect(
                to: multi,
                files: &files,
                looksUpAnew: doubt != nil,
                connectsAnew: doubt == true,
                now: now
            )
            if let key = transfer.easyKey { easies[key] = transfer }
            curlTimerAt = now
            arm(transfer)
        } catch {
            follow(transfer, transfer.failed(error))
        }
    }

    /// The transfer gives its place back, or leaves the line.
    ///
    /// Whoever is next begins to connect at the turn's end, and not here: one that fails at once lets in the next.
    private func release(_ transfer: LoopTransfer) {
        if let next = admission.released(transfer.id, at: transfer.target.origin) { admitted.append(next) }
    }

    private func follow(_ transfer: LoopTransfer, _ next: LoopTransfer.Next) {
        switch next {
        case .end(let ending, let outcome):
            end(transfer, ending, outcome)
        case .hop(let target):
            disconnect(transfer)
            release(transfer)
            transfer.hop(to: target, now: now)
            request(transfer)
        }
    }

    private func disconnect(_ transfer: LoopTransfer) {
        if let key = transfer.easyKey { easies[key] = nil }
        let connection = transfer.connection
        transfer.disconnect(from: multi)
        guard let connection else { return }
        left(connection, by: transfer)
        if CurlGlobal.info.keepsResets, sharers[connection] != nil { resets.insert(connection) }
    }

    private func end(_ transfer: LoopTransfer, _ ending: StreamEnding, _ outcome: OpenOutcome) {
        guard transfers.removeValue(forKey: transfer.id) != nil else {
            // Never started: its start is behind this in the mailbox's order, or there was none.
            _ = transfer.end(ending, outcome)
            return
        }
        // Before the connection closes: whoever has seen that finds it counted.
        if transfer.isOpen {
            openCount -= 1
            counters.openStreams.add(-1)
        }
        disconnect(transfer)
        release(transfer)
        if case .failed(let failure) = ending {
            counters.failures.add(1)
            if case .network = failure {
                doubt(transfer.target.origin, connections: transfer.doubtsConnections)
            }
        }
        counters.payloads.add(transfer.payloadCount)
        _ = transfer.end(ending, outcome)
    }

    /// The origin's name may have moved: the next opening looks it up, where libcurl would keep an address for a minute
    /// whether anybody answers there or not.
    ///
    /// - Parameters:
    ///   - origin: Whose stream or opening failed.
    ///   - connections: Whether the next opening is to have a connection of its own, too: those that are kept may lead to
    ///     the same silence.
    private func doubt(_ origin: Origin, connections: Bool) {
        // Redirects may lead to any number of origins, and to each of them once.
        if doubted.count == Self.mostDoubted, doubted[origin] == nil { doubted.remove(at: doubted.startIndex) }
        doubted[origin] = doubted[origin] == true || connections
    }

    private func resume(_ transfer: LoopTransfer) {
        guard transfers[transfer.id] != nil, transfer.machine?.isHeld == true else { return }
        let code = transfer.resume(now: now)
        guard code.rawValue == 0 else {
            // libcurl does not finish a transfer whose resumption failed. What the stream said of its end counts.
            follow(transfer, transfer.finished(code: code, wallClock: WallClock.seconds))
            return
        }
        arm(transfer)
    }

    private func shutDown() {
        guard !isClosed else { return }
        // Whoever waits in line is not let in by those who leave.
        isClosed = true
        for transfer in Array(transfers.values) {
            end(transfer, .failed(SubscriptionFailure(Self.gone)), .failed(Self.gone))
        }
        flush()
        while let due = deadlines.popDue(now: .max) {
            if case .alarm(let alarm) = due { alarm.fire(isEarly: true) }
        }
    }

    // MARK: What a transfer says from inside a libcurl call

    /// The opening is connected: its place is another's, and its answer has a deadline.
    ///
    /// At once, as a redirect that is here already would move the opening to the line of another origin.
    func gavePlaceBack(_ transfer: LoopTransfer) {
        release(transfer)
        arm(transfer)
    }

    /// The transfer's request is on a connection that others may be on, too.
    func joined(_ connection: ConnectionName, by transfer: LoopTransfer) {
        sharers[connection, default: []].insert(transfer.id)
    }

    /// A part of a body has been read: runs the tasks that were waiting for it on the loop's thread.
    ///
    /// They reach the loop by its mailbox alone, and so enter libcurl no more here than elsewhere.
    func runJobs() {
        guard now < jobsEnd else { return }
        mailbox.takeJobs(into: &jobs)
        guard !jobs.isEmpty else { return }
        for job in jobs { job.run() }
        jobs.removeAll(keepingCapacity: true)
        now = LoopTime.now
    }

    /// The transfer is on the connection no more.
    func left(_ connection: ConnectionName, by transfer: LoopTransfer) {
        guard var ids = sharers.removeValue(forKey: connection) else { return }
        ids.remove(transfer.id)
        if !ids.isEmpty { sharers[connection] = ids }
    }

    /// The stream is open, and its silence has a deadline.
    func opened(_ transfer: LoopTransfer) {
        openCount += 1
        counters.openStreams.add(1)
        arm(transfer)
    }

    /// Bytes were read; what they made is handed over at the end of the turn, at the latest.
    ///
    /// - Returns: Whether they are to be handed over at once, before libcurl looks for more: they are few, this is the first
    ///   stream of the turn, the one socket that had something, and its turn before brought no more than one chunk.
    func received(_ count: Int, by transfer: LoopTransfer) -> Bool {
        counters.bytes.add(count)
        guard !transfer.isDirty else {
            transfer.chunksOfTurn += 1
            return false
        }
        let comesAlone = transfer.chunksOfTurn <= 1
        transfer.chunksOfTurn = 1
        transfer.isDirty = true
        dirty.append(transfer)
        return comesAlone && count <= Self.fewBytes && events.count == 1 && dirty.count == 1
    }

    /// What a read brings that a server sent as one event, likely, in bytes.
    private static let fewBytes = 4096
}
