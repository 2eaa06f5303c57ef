// The loop: libcurl's multi handle on one serial queue, woken by one epoll descriptor, one timer and one mailbox.
//
// Everything here runs on the queue, one turn at a time. libcurl is entered from one place in a turn each, and what its
// callbacks want done waits for the turn to do it: libcurl refuses most calls from inside a callback.

internal import Dispatch
internal import SubscriptionRuntime

/// What the loop's heap of deadlines waits for.
enum LoopDeadline {
    /// A transfer, by its number; it is asked what it waits for.
    case transfer(UInt64)
    case alarm(LoopAlarm)
}

/// The loop as other threads see it.
///
/// Lives until its shutdown.
final class EventLoop: Sendable {
    /// The loop's thread.
    let queue: DispatchQueue
    let mailbox: LoopMailbox
    let executor: LoopExecutor
    let counters = LoopCounters()
    /// Touched on the queue alone.
    private let box: CoreBox
    private let lifecycle: Lock<Lifecycle>

    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    private struct Lifecycle {
        var isShutDown = false
        var waiters: [Waiter] = []
    }

    /// Makes the loop and starts it.
    ///
    /// - Throws: An error of kind `environment` when libcurl cannot be initialised, or the system has no descriptor.
    init(label: String) throws(TransportError) {
        let queue = DispatchQueue(label: label)
        let box = CoreBox()
        queue.setSpecific(key: Self.key, value: ObjectIdentifier(box))
        self.queue = queue
        self.box = box
        mailbox = LoopMailbox(wake: { queue.async { box.turn() } })
        executor = LoopExecutor(mailbox: mailbox)
        lifecycle = Lock(Lifecycle())
        let core = try LoopCore(mailbox: mailbox, queue: queue, counters: counters)
        core.onShutdown = { [lifecycle] in
            let waiters = lifecycle.withLock { state in
                state.isShutDown = true
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.resume() }
        }
        let mailbox = mailbox
        queue.sync {
            box.core = core
            box.mailbox = mailbox
        }
        core.activate { box.turn() }
        LoopExit.register(self)
    }

    /// Ends every transfer, and then the loop.
    ///
    /// Returns when its descriptors are closed.
    func shutdown() async {
        await Waiter.wait { waiter in
            let isDone = lifecycle.withLock { state in
                guard !state.isShutDown else { return true }
                state.waiters.append(waiter)
                return false
            }
            guard !isDone else { return waiter.resume() }
            mailbox.post(.shutdown)
        }
    }

    /// Stops the loop for the process's exit: after it no turn runs.
    ///
    /// Bounded to two seconds.
    func quiesce() {
        guard DispatchQueue.getSpecific(key: Self.key) != ObjectIdentifier(box) else { return }
        let done = DispatchSemaphore(value: 0)
        queue.async { [queue] in
            queue.suspend()
            done.signal()
        }
        _ = done.wait(timeout: .now() + .seconds(2))
    }
}

/// Keeps the core for the queue, which alone touches it.
final class CoreBox: @unchecked Sendable {
    /// nil before the start and after the shutdown.
    var core: LoopCore?
    /// Set once, before the first turn.
    ///
    /// Weak: the mailbox wakes this box. Whoever waits for an answer holds the loop, and with it the mailbox.
    weak var mailbox: LoopMailbox?

    /// One turn of the loop; of one that has ended, its answer to who has not heard of it.
    func turn() {
        if let core {
            core.turn()
            // With it go the multi handle and every connection that is kept.
            if core.isClosed { self.core = nil }
        }
        guard core == nil, let mailbox else { return }
        var commands: [LoopCommand] = []
        mailbox.takeAll(into: &commands)
        for command in commands {
            switch command {
            case .start(let transfer): LoopCore.refuse(transfer)
            case .cancel(let transfer): _ = transfer.end(.cancelled, .cancelled)
            case .job(let job): job.run()
            case .alarm(let alarm, _): alarm.fire(isEarly: true)
            case .resume, .shutdown: break
            }
        }
    }
}
