// The loop: libcurl's multi handle on a thread of its own, which waits in epoll_wait(2).
//
// libcurl is entered from one place in a turn each, and what its
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
    let thread = LoopThread()
    let mailbox: LoopMailbox
    let executor: LoopExecutor
    let counters = LoopCounters()
    private let lifecycle: Lock<Lifecycle>

    private struct Lifecycle {
        var isShutDown = false
        var waiters: [Waiter] = []
    }

    /// Makes the loop and starts it.
    ///
    /// - Parameters:
    ///   - label: The name of its thread.
    ///   - mostTimeForJobs: For how long tasks run within one turn's reads, in nanoseconds.
    /// - Throws: An error of kind `environment` when libcurl cannot be initialised, or the system has no descriptor.
    init(label: String, mostTimeForJobs: UInt64 = LoopCore.mostTimeForJobs) throws(TransportError) {
        let signal: LoopSignal
        do {
            signal = try LoopSignal()
        } catch {
            throw LoopCore.noDescriptor(error)
        }
        let box = CoreBox()
        // For what comes after the loop's end.
        let queue = DispatchQueue(label: label)
        mailbox = LoopMailbox(wake: { if !signal.fire() { queue.async { box.answer() } } })
        executor = LoopExecutor(mailbox: mailbox)
        lifecycle = Lock(Lifecycle())
        box.core = try LoopCore(
            mailbox: mailbox,
            signal: signal,
            counters: counters,
            mostTimeForJobs: mostTimeForJobs
        )
        box.mailbox = mailbox
        do {
            try thread.run(name: label) { [lifecycle, mailbox, thread] in
                box.run(mailbox)
                signal.end()
                queue.async {
                    // OpenSSL's part of a thread ends with the thread: the loop has not ended before it has.
                    thread.join()
                    LoopExit.forget(thread)
                    box.answer()
                    let waiters = lifecycle.withLock { state in
                        state.isShutDown = true
                        defer { state.waiters = [] }
                        return state.waiters
                    }
                    for waiter in waiters { waiter.resume() }
                }
            }
        } catch {
            throw TransportError(
                kind: .environment,
                message: "the loop has no thread: \(error.text)",
                errno: error.number
            )
        }
        LoopExit.register(thread, mailbox)
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
}

/// Keeps the core for the loop's thread, which alone touches it; after it, for the queue.
final class CoreBox: @unchecked Sendable {
    /// nil after the shutdown.
    var core: LoopCore?
    /// Set once, before the first turn.
    ///
    /// Weak: the mailbox wakes this box. Whoever waits for an answer holds the loop, and with it the mailbox.
    weak var mailbox: LoopMailbox?

    /// Turns until the loop ends.
    func run(_ mailbox: LoopMailbox) {
        core?.run()
        // With it go the multi handle and every connection that is kept.
        core = nil
    }

    /// Answers who has not heard of the loop's end.
    func answer() {
        guard let mailbox else { return }
        var commands: [LoopCommand] = []
        repeat {
            commands = []
            mailbox.takeAll(into: &commands)
            for command in commands {
                switch command {
                case .start(let transfer): LoopCore.refuse(transfer)
                case .cancel(let transfer): _ = transfer.end(.cancelled, .cancelled)
                case .job(let job): job.run()
                case .alarm(let alarm, _): alarm.fire(isEarly: true)
                case .quiesce(let done): done.signal()
                case .resume, .shutdown: break
                }
            }
        } while !mailbox.await()
    }
}
