// A replay server's thread: accepts connections and plays their scripts.
//
// One thread, one poll(2), all connections: no script waits for another's. What other threads read or ask for lies
// behind one lock in `ReplayServerShared`; sockets and scripts belong to the thread alone.

import SubscriptionRuntime

/// What a replay server's thread shares with the others.
final class ReplayServerShared: Sendable {
    /// What the thread is asked to do.
    enum Command {
        case listen
        case refuse
        case proceed(connection: Int?)
        case end(by: ReplayServer.Cut)
        case stop
    }

    /// A command, and the pipe that its caller waits on.
    struct Order {
        var command: Command
        var done: ReplayServerPipe?
    }

    struct State {
        var journal = ReplayServer.Journal()
        /// Raised by each change of the journal.
        var version: UInt64 = 0
        var orders: [Order] = []
        var hasEnded = false
        /// How the last `listen` went.
        var listenError: ReplayServerError?
        var scripts: [[ReplayServer.Step]]
        fileprivate var waiters: [UInt64: Waiter] = [:]
        fileprivate var cancelled: Set<UInt64> = []
        fileprivate var lastWaiter: UInt64 = 0
    }

    fileprivate struct Waiter {
        var deadline: ContinuousClock.Instant
        var continuation: CheckedContinuation<Void, Never>
    }

    let lock: Lock<State>
    let pipe: ReplayServerPipe

    init(scripts: [[ReplayServer.Step]]) throws(ReplayServerError) {
        pipe = try ReplayServerPipe()
        lock = Lock(State(scripts: scripts))
    }

    deinit {
        pipe.close()
    }

    /// Hands a command to the thread.
    ///
    /// From any thread.
    ///
    /// - Parameters:
    ///   - command: What to do.
    ///   - done: Woken when it has been done, or at once when the thread has ended.
    func order(_ command: Command, done: ReplayServerPipe? = nil) {
        let isTaken = lock.withLock { state in
            guard !state.hasEnded else { return false }
            state.orders.append(Order(command: command, done: done))
            return true
        }
        if isTaken { pipe.wake() } else { done?.wake() }
    }

    /// Changes the journal and tells whoever waits for a change.
    func record<Result>(_ body: (inout ReplayServer.Journal) -> Result) -> Result {
        let (result, waiters) = lock.withLock { state in
            let result = body(&state.journal)
            state.version += 1
            let waiters = state.waiters
            state.waiters.removeAll()
            return (result, waiters)
        }
        for waiter in waiters.values { waiter.continuation.resume() }
        return result
    }

    /// Returns when the journal is no longer the given version, at the deadline, when the thread has ended or the task
    /// is cancelled.
    func change(after version: UInt64, until deadline: ContinuousClock.Instant) async {
        let id = lock.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = lock.withLock { state in
                    guard state.version == version, !state.hasEnded, !state.cancelled.contains(id) else { return false }
                    state.waiters[id] = Waiter(deadline: deadline, continuation: continuation)
                    return true
                }
                // The thread waits no longer than the earliest deadline: it must hear of this one.
                if waits { pipe.wake() } else { continuation.resume() }
            }
        } onCancel: {
            let waiter = lock.withLock { state in
                state.cancelled.insert(id)
                return state.waiters.removeValue(forKey: id)
            }
            waiter?.continuation.resume()
        }
        lock.withLock { state in _ = state.cancelled.remove(id) }
    }

    /// Tells those whose deadline has come, and says when the next comes.
    fileprivate func expire(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let (expired, next) = lock.withLock { state in
            let expired = state.waiters.filter { $0.value.deadline <= now }
            for id in expired.keys { state.waiters.removeValue(forKey: id) }
            return (expired, state.waiters.values.map(\.deadline).min())
        }
        for waiter in expired.values { waiter.continuation.resume() }
        return next
    }

    fileprivate func takeOrders() -> [Order] {
        lock.withLock { state in
            let orders = state.orders
            state.orders = []
            return orders
        }
    }

    fileprivate func takeScript() -> [ReplayServer.Step]? {
        lock.withLock { state in state.scripts.isEmpty ? nil : state.scripts.removeFirst() }
    }

    /// The thread is about to end: nothing changes any more.
    fileprivate func end() {
        let (waiters, orders) = lock.withLock { state in
            state.hasEnded = true
            let result = (state.waiters, state.orders)
            state.waiters = [:]
            state.orders = []
            return result
        }
        for waiter in waiters.values { waiter.continuation.resume() }
        for order in orders { order.done?.wake() }
    }
}

/// What the thread runs.
///
/// Used by that thread alone.
final class ReplayServerLoop {
    /// What a connection does.
    enum Behaviour: Sendable {
        /// The next script, then this one for every other connection.
        case scripts(otherwise: [ReplayServer.Step])

        /// What the function makes of each request.
        case respond(@Sendable (Int, ReplayServer.RecordedRequest) -> [ReplayServer.Step])
    }

    private let shared: ReplayServerShared
    private let host: String
    private let port: UInt16
    private let sendBuffer: Int?
    private let behaviour: Behaviour
    private var listener: ReplayServerSocket?
    /// Bound to the port and never listening: keeps the port ours while connections are refused.
    private let reservation: ReplayServerSocket
    private var connections: [ReplayServerConnection] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    /// When to accept again, after that failed.
    private var acceptsFrom: ContinuousClock.Instant?

    init(
        shared: ReplayServerShared,
        host: String,
        reservation: ReplayServerSocket,
        listener: ReplayServerSocket,
        port: UInt16,
        sendBuffer: Int?,
        behaviour: Behaviour
    ) {
        self.shared = shared
        self.host = host
        self.reservation = reservation
        self.listener = listener
        self.port = port
        self.sendBuffer = sendBuffer
        self.behaviour = behaviour
    }

    /// Runs until it is told to stop.
    func run() {
        while carryOut(shared.takeOrders()) {
            let now = ContinuousClock.now
            var next = shared.expire(at: now)
            for connection in connections {
                play(connection, now: now)
                if let wakeUp = connection.wakeUp { next = min(next ?? wakeUp, wakeUp) }
            }
            connections.removeAll(where: \.isOver)
            if let instant = acceptsFrom {
                if instant <= now { acceptsFrom = nil } else { next = min(next ?? instant, instant) }
            }
            // A connection that has more to do right now, or that ended, may have changed the deadlines.
            wait(until: connections.contains(where: \.isBusy) ? now : next)
        }
        listener?.close()
        reservation.close()
        for connection in connections { end(connection, by: .close) }
        shared.end()
    }

    /// Returns false at the order to stop.
    private func carryOut(_ orders: [ReplayServerShared.Order]) -> Bool {
        var goesOn = true
        for order in orders {
            switch order.command {
            case .listen:
                listen()
            case .refuse:
                listener?.close()
                listener = nil
            case .proceed(let number):
                for connection in connections where number == nil || connection.number == number {
                    connection.permits += 1
                }
            case .end(let cut):
                for connection in connections { end(connection, by: cut) }
                connections = []
            case .stop:
                goesOn = false
            }
            order.done?.wake()
        }
        return goesOn
    }

    private func listen() {
        guard listener == nil else { return }
        do throws(ReplayServerError) {
            let socket = try ReplayServerSocket(boundTo: host, port: port)
            do throws(ReplayServerError) {
                try socket.startListening()
            } catch {
                socket.close()
                throw error
            }
            listener = socket
            shared.lock.withLock { $0.listenError = nil }
        } catch {
            shared.lock.withLock { $0.listenError = error }
        }
    }

    /// Waits, and then takes what came: ends and requests first, then connections.
    ///
    /// One connection is accepted after each look at the others, so that the peer's end of one is seen before a
    /// connection that the peer made later: poll(2) looks at the listener first. Of a burst as many as this at once, so
    /// that it does not hold up the others.
    private func wait(until deadline: ContinuousClock.Instant?) {
        guard look(until: deadline) else { return }
        for _ in 0..<64 {
            guard look(until: .now) else { return }
        }
    }

    /// Returns whether a connection was accepted.
    private func look(until deadline: ContinuousClock.Instant?) -> Bool {
        var entries = [ReplayServerPoll.entry(shared.pipe.reading, reads: true, writes: false)]
        if let listener, acceptsFrom == nil {
            entries.append(ReplayServerPoll.entry(listener.descriptor, reads: true, writes: false))
        }
        let first = entries.count
        for connection in connections {
            entries.append(
                ReplayServerPoll.entry(
                    connection.socket.descriptor,
                    reads: true,
                    writes: connection.wantsToWrite
                )
            )
        }
        var milliseconds: Int32 = -1
        if let deadline {
            let left = max(ContinuousClock.now.duration(to: deadline), .zero).components
            // Rounded up: a wait must not end before its time. At most a minute, then it is reckoned anew.
            let whole = min(left.seconds, 60) * 1000 + (left.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
            milliseconds = Int32(clamping: whole)
        }
        ReplayServerPoll.wait(&entries, milliseconds: milliseconds)

        if ReplayServerPoll.isReady(entries[0]) { shared.pipe.drain() }
        for (connection, entry) in zip(connections, entries[first...]) where ReplayServerPoll.isReady(entry) {
            receive(connection)
        }
        connections.removeAll(where: \.isOver)
        return first == 2 && ReplayServerPoll.isReady(entries[1]) && accept()
    }

    private func accept() -> Bool {
        guard let socket = nextConnection() else { return false }
        let number = shared.record { $0.accepted(at: .now) }
        let script: [ReplayServer.Step]
        switch behaviour {
        case .scripts(let otherwise): script = shared.takeScript() ?? otherwise
        case .respond: script = [.expectRequest]
        }
        connections.append(ReplayServerConnection(number: number, socket: socket, script: script))
        return true
    }

    private func nextConnection() -> ReplayServerSocket? {
        do throws(ReplayServerError) {
            return try listener?.accepted(sendBuffer: sendBuffer)
        } catch {
            // Such as EMFILE: the listener stays readable, and must not keep the thread from everything else.
            acceptsFrom = .now.advanced(by: .milliseconds(10))
            return nil
        }
    }

    /// Reads what is there, 1 MiB at most: requests, and above all the peer's end.
    private func receive(_ connection: ReplayServerConnection) {
        for _ in 0..<16 {
            switch connection.socket.receive(into: &buffer) {
            case .done(let count):
                connection.requests.append(buffer[..<count])
                guard connection.requests.hasRoom || connection.step == .expectRequest else {
                    end(connection, by: .close, problem: "the peer sent what no step expects, without end")
                    return
                }
            case .notNow:
                return
            case .closed:
                peerEnded(connection, by: .closed)
                return
            case .failed:
                peerEnded(connection, by: .reset)
                return
            }
        }
    }

    private func peerEnded(_ connection: ReplayServerConnection, by peerEnd: ReplayServer.ConnectionRecord.PeerEnd) {
        // A request that came with the FIN behind it has been asked for, and counts.
        if connection.step == .expectRequest { expectRequest(connection, now: .now) }
        guard !connection.isOver else { return }
        shared.record { $0.peerEnded(connection.number, by: peerEnd, at: .now) }
        let isMissed = connection.step == .expectRequest && (!isResponding || connection.requests.hasBegun)
        end(connection, by: .close, problem: isMissed ? "the peer ended before a whole request" : nil)
    }

    /// Whether requests come as the peer likes: its end between two is none too early.
    private var isResponding: Bool {
        if case .respond = behaviour { true } else { false }
    }

    /// Takes the connection's script as far as it goes now.
    private func play(_ connection: ReplayServerConnection, now: ContinuousClock.Instant) {
        connection.isBusy = false
        while !connection.isOver {
            guard let step = connection.step else {
                switch behaviour {
                case .respond:
                    // As a server that keeps its connections alive.
                    connection.goOn(with: [.expectRequest])
                    continue
                case .scripts:
                    end(connection, by: .close)
                    return
                }
            }
            let goesOn: Bool
            switch step {
            case .expectRequest:
                goesOn = expectRequest(connection, now: now)
            case .send, .sendRepeating, .sendForever:
                goesOn = send(connection)
            case .pause(let time):
                let wakeUp = connection.wakeUp ?? now.advanced(by: time)
                goesOn = wakeUp <= now
                if goesOn { connection.nextStep() } else { connection.wakeUp = wakeUp }
            case .silence:
                goesOn = connection.permits > 0
                if goesOn {
                    connection.permits -= 1
                    connection.nextStep()
                }
            case .halfClose:
                connection.socket.finish()
                connection.nextStep()
                goesOn = true
            case .close:
                end(connection, by: .close)
                return
            case .reset:
                goesOn = false
                awaitAcknowledgement(connection, now: now)
            }
            guard goesOn else { return }
        }
    }

    @discardableResult
    private func expectRequest(_ connection: ReplayServerConnection, now: ContinuousClock.Instant) -> Bool {
        do throws(ReplayServerRequestReader.Problem) {
            guard let request = try connection.requests.next(connection: connection.number, now: now) else {
                return false
            }
            shared.record { $0.received(request) }
            connection.nextStep()
            if case .respond(let respond) = behaviour, connection.step == nil {
                connection.goOn(with: respond(connection.number, request))
            }
            return true
        } catch {
            end(connection, by: .close, problem: error.description)
            return false
        }
    }

    /// Sends up to 256 KiB, so that one connection does not hold up the others.
    private func send(_ connection: ReplayServerConnection) -> Bool {
        var budget = 256 << 10
        while let bytes = connection.nextBytes() {
            guard budget > 0 else {
                connection.isBusy = true
                return false
            }
            let outcome = shared.record { journal in
                // Under the lock, so that the journal is never behind what the peer has seen. It does not block.
                let outcome = connection.socket.send(bytes)
                if case .done(let count) = outcome { journal.sent(count, on: connection.number) }
                return outcome
            }
            switch outcome {
            case .done(let count):
                connection.sent(count)
                budget -= count
            case .notNow:
                if !connection.wantsToWrite { shared.record { $0.heldBack(connection.number) } }
                connection.wantsToWrite = true
                return false
            case .closed, .failed:
                shared.record { $0.peerEnded(connection.number, by: .reset, at: .now) }
                end(connection, by: .close)
                return false
            }
        }
        connection.nextStep()
        return true
    }

    /// A RST throws away what the peer has not acknowledged: the script promised those bytes.
    private func awaitAcknowledgement(_ connection: ReplayServerConnection, now: ContinuousClock.Instant) {
        let deadline = connection.acknowledgementDeadline ?? now.advanced(by: .seconds(5))
        connection.acknowledgementDeadline = deadline
        guard connection.socket.unacknowledged > 0, now < deadline else {
            end(connection, by: .reset)
            return
        }
        connection.wakeUp = now.advanced(by: .milliseconds(1))
    }

    private func end(_ connection: ReplayServerConnection, by cut: ReplayServer.Cut, problem: String? = nil) {
        guard !connection.isOver else { return }
        connection.isOver = true
        if cut == .close {
            // Unread bytes would turn the FIN into a RST. Bounded: who sends without end gets the RST.
            for _ in 0..<64 {
                guard case .done = connection.socket.receive(into: &buffer) else { break }
            }
        }
        shared.record { journal in
            switch cut {
            case .close:
                connection.socket.finish()
                connection.socket.close()
            case .reset:
                connection.socket.reset()
            }
            journal.ended(connection.number, problem: problem, at: .now)
        }
    }
}

/// One connection and where its script is.
///
/// Used by the server's thread alone.
final class ReplayServerConnection {
    let number: Int
    let socket: ReplayServerSocket
    var requests = ReplayServerRequestReader()

    /// How often `silence` may still be left.
    var permits = 0

    /// When the step goes on by itself.
    var wakeUp: ContinuousClock.Instant?
    var acknowledgementDeadline: ContinuousClock.Instant?
    var wantsToWrite = false

    /// Whether there is more to send than one turn allows.
    var isBusy = false

    /// Whether the socket is closed.
    var isOver = false

    private var script: [ReplayServer.Step]
    private var index = 0

    /// What the step sends: its bytes, as often as fill a system call.
    private var block: [UInt8] = []
    private var position = 0
    private var left = 0
    private var hasBlock = false

    init(number: Int, socket: ReplayServerSocket, script: [ReplayServer.Step]) {
        self.number = number
        self.socket = socket
        self.script = script
    }

    /// The step that is played; nil at the script's end.
    var step: ReplayServer.Step? { index < script.count ? script[index] : nil }

    func goOn(with script: [ReplayServer.Step]) {
        self.script = script
        index = 0
    }

    func nextStep() {
        index += 1
        wakeUp = nil
        wantsToWrite = false
        hasBlock = false
        block = []
    }

    /// The bytes to send next; nil when the step has sent all.
    func nextBytes() -> ArraySlice<UInt8>? {
        if !hasBlock {
            guard let (bytes, times) = step?.sent, !bytes.isEmpty, times > 0 else { return nil }
            let (total, overflow) = bytes.count.multipliedReportingOverflow(by: times)
            left = overflow ? .max : total
            // A whole number of repetitions, so that the block starts where it ended.
            let repetitions = min(times, max(1, (64 << 10) / bytes.count))
            // Not joined: byte by byte takes a debug build under a sanitizer longer than a test's patience.
            block = bytes
            block.reserveCapacity(repetitions * bytes.count)
            for _ in 1..<repetitions { block += bytes }
            position = 0
            hasBlock = true
        }
        guard left > 0 else { return nil }
        return block[position..<min(block.count, position + min(left, 64 << 10))]
    }

    func sent(_ count: Int) {
        wantsToWrite = false
        // Forever stays forever.
        if left != .max { left -= count }
        position += count
        if position == block.count { position = 0 }
    }
}
