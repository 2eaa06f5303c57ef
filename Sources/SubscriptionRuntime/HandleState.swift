// What a handle guards by its lock, and what it does once it has let go of it.
//
// Nothing here calls out: what has to be cancelled, resumed, told or let go of is put into an `Aftermath`.

/// A handle's state: the machine, what the machine's actions left running, and the owners.
struct HandleState {
    typealias StreamID = SubscriptionStateMachine.StreamID

    /// What runs for the machine's current state.
    enum Current {
        case nothing
        case stream(StreamID, Task<Void, Never>)
        /// An opening held back until the cancellation of the one before has been signalled.
        case held(StreamID)
        case wait(Wait)
    }

    /// The handle.
    weak var launcher: (any Launching)?

    var machine = SubscriptionStateMachine()
    var current = Current.nothing

    /// The drivers whose cancellation is decided and not signalled yet.
    var cancelling: [Task<Void, Never>] = []

    /// The payload accepted last, in a `Box`.
    var latest: (any AnyObject & Sendable)?
    var resumePoint: ResumePoint?

    /// The owners that take deliveries.
    var mailboxes: [Int: Mailbox] = [:]
    var lastOwner = 0

    /// The stream, whose driver is suspended until an owner has nothing left.
    ///
    /// nil also while an owner reads in its place.
    var heldBack: (any HeldBack)?

    /// The loops over `statuses` that wait for the next.
    var watchers: [Int: Waiter] = [:]
    var lastWatcher = 0

    /// What the Observation library knows the handle by, once anybody has read it.
    var observation: StatusObservation?

    // MARK: Pace

    /// The most that is read at once where no owner sets the pace.
    static var unpaced: Int { 256 }

    /// The largest room among the owners that set the pace; nil where none does.
    var room: Int? {
        var largest: Int?
        for mailbox in mailboxes.values where mailbox.sets {
            largest = max(largest ?? .min, mailbox.room)
        }
        return largest
    }

    /// Lets the suspended driver go on if an owner has nothing left, or none sets the pace.
    ///
    /// Not as soon as there is room: so it goes on by whole batches.
    mutating func goOn(_ after: inout Aftermath) {
        guard heldBack != nil else { return }
        var paced = false
        for mailbox in mailboxes.values where mailbox.sets {
            if mailbox.isDrained { return release(&after) }
            paced = true
        }
        if !paced { release(&after) }
    }

    /// Takes the stream out for an owner that has nothing left, to read so much at most in the driver's place.
    ///
    /// Lets the driver go on where no owner may.
    ///
    /// An owner may as long as that makes no other one lag, and all are up to date: beyond that they have to have their
    /// turn first, and the driver's two changes of task leave them that.
    mutating func goOn(for mailbox: Mailbox, _ after: inout Aftermath) -> (stream: any HeldBack, room: Int)? {
        guard let stream = heldBack else { return nil }
        var room = mailbox.sets && mailbox.isDrained ? mailbox.window : 0
        for mailbox in mailboxes.values where mailbox.end == nil {
            room = min(room, mailbox.sets ? mailbox.slack : 0)
        }
        // Less would take a batch apart, and the ones after it.
        guard room >= mailbox.window else {
            goOn(&after)
            return nil
        }
        heldBack = nil
        for mailbox in mailboxes.values { mailbox.callOff() }
        return (stream, room)
    }

    /// Holds the stream back, unless it may go on.
    mutating func holdBack(_ stream: any HeldBack, _ after: inout Aftermath) {
        heldBack = stream
        for mailbox in mailboxes.values where mailbox.sets { mailbox.callWhenDrained() }
        // An iterator that was drained before it could see the call is seen here.
        goOn(&after)
    }

    /// Has the suspended driver look again.
    mutating func release(_ after: inout Aftermath) {
        guard let heldBack else { return }
        after.resumed = heldBack
        self.heldBack = nil
        for mailbox in mailboxes.values where mailbox.sets { mailbox.callOff() }
    }

    // MARK: Owners

    /// Hands an owner's iterator what it waits for, if that is there.
    func serve(_ mailbox: Mailbox, _ after: inout Aftermath) {
        guard mailbox.waiter != nil, let taken = mailbox.take(), let waiter = mailbox.takeWaiter() else { return }
        after.serve(waiter, taken)
    }

    /// Adds an accepted batch to every owner's queue, but for that of the one who read it.
    func hand(_ batch: Batch, except reader: Mailbox? = nil, _ after: inout Aftermath) {
        for mailbox in mailboxes.values where mailbox !== reader {
            var debris: Mailbox.Debris?
            if let dropped = mailbox.append(batch, &debris) { after.log(.lagged(dropped: dropped)) }
            if let debris { after.leave { $0.debris.append(debris) } }
            serve(mailbox, &after)
        }
    }

    /// Adds a baseline to every owner's queue.
    func mark(_ cause: Marker, _ after: inout Aftermath) {
        for mailbox in mailboxes.values {
            mailbox.mark(cause)
            serve(mailbox, &after)
        }
    }

    /// Ends every owner's deliveries after its backlog.
    func finish(_ end: SubscriptionEnd?, _ after: inout Aftermath) {
        for mailbox in mailboxes.values {
            mailbox.finish(end.map { .failed($0) } ?? .completed)
            serve(mailbox, &after)
        }
    }

    /// Ends every owner's deliveries at once.
    func abandon(_ after: inout Aftermath) {
        for mailbox in mailboxes.values {
            let debris = mailbox.abandon()
            after.leave { $0.debris.append(debris) }
            serve(mailbox, &after)
        }
    }

    /// Lets go of what runs, to be cancelled after the lock.
    mutating func retire(_ after: inout Aftermath) {
        switch current {
        case .nothing, .held:
            break
        case .stream(_, let task):
            after.leave { $0.cancelled = task }
            cancelling.append(task)
        case .wait(let wait):
            after.leave { $0.dropped = wait }
        }
        current = .nothing
        release(&after)
    }

    /// Forgets a stream that has said its last, so that it is not cancelled.
    mutating func left(_ id: StreamID) {
        if case .stream(id, _) = current { current = .nothing }
    }
}

/// What a transaction leaves to do once the lock is let go of.
///
/// Most leave one thing or none: what is rare is in one place that is empty then.
struct Aftermath: ~Copyable {
    /// What few transactions leave.
    struct Rest {
        var cancelled: Task<Void, Never>?
        /// To be cancelled though another transaction is about to: this one's caller is promised that they are.
        var doomed: [Task<Void, Never>] = []
        var served: [(waiter: Mailbox.Waiter, taken: Taken)] = []
        var watchers: [Waiter] = []
        var armed: Wait?
        var dropped: Wait?
        var entries: [SubscriptionLogEntry.Event] = []

        // Only kept until after the lock: whose deinit runs is not known.
        var debris: [Mailbox.Debris] = []
        var mailbox: Mailbox?
        var error: SubscriptionFailure?
    }

    /// Whether the log is kept.
    let isLogging: Bool

    /// A stream whose driver goes on.
    var resumed: (any HeldBack)?
    /// The first owner that is handed what it waits for; the others are in the rest.
    var served: (waiter: Mailbox.Waiter, taken: Taken)?
    var observation: StatusObservation?
    /// Only kept until after the lock.
    var payload: (any AnyObject & Sendable)?
    var rest: Rest?

    init(isLogging: Bool) {
        self.isLogging = isLogging
    }

    /// Leaves something that few do.
    mutating func leave(_ body: (inout Rest) -> Void) {
        var rest = rest.take() ?? Rest()
        body(&rest)
        self.rest = rest
    }

    /// Hands an iterator what it waits for.
    mutating func serve(_ waiter: Mailbox.Waiter, _ taken: Taken) {
        if served == nil { served = (waiter, taken) } else { leave { $0.served.append((waiter, taken)) } }
    }

    /// Notes an entry, if the log is kept.
    mutating func log(_ event: @autoclosure () -> SubscriptionLogEntry.Event) {
        guard isLogging else { return }
        let event = event()
        leave { $0.entries.append(event) }
    }
}
