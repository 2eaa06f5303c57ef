// The loop's own thread.
//
// A plain one, and not one of Dispatch's: there are 255 of these for all serial queues of a process, and a loop keeps its
// thread for life.

internal import CCurl
internal import SubscriptionRuntime

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A thread that runs one function.
@safe final class LoopThread: Sendable {
    private struct Start {
        /// nil before it runs and once it was joined.
        var thread: pthread_t?
        var body: (@Sendable () -> Void)?
    }

    /// Jobs of tasks run on it, so it has what a thread of the system's pools has.
    private static let stackSize = 8 << 20

    private let start = Lock(Start())

    /// Whether the calling thread is this one.
    var isCurrent: Bool {
        start.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Starts the thread, which ends with the function and is then to be joined; once.
    ///
    /// It takes none of the process's signals.
    ///
    /// - Parameters:
    ///   - name: For debuggers and `top -H`; the system keeps its first 15 bytes.
    ///   - body: What it runs.
    /// - Throws: The system's refusal.
    func run(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        start.withLock { $0.body = body }
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setstacksize(&attributes, Self.stackSize)

        // A thread is made with its maker's mask.
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }

        let argument = unsafe Unmanaged.passRetained(self)
        var thread = pthread_t()
        let number = unsafe pthread_create(&thread, &attributes, runLoopThread, argument.toOpaque())
        guard number == 0 else {
            unsafe argument.release()
            start.withLock { $0.body = nil }
            throw SystemError(number: number)
        }
        _ = unsafe pthread_setname_np(thread, String(decoding: name.utf8.prefix(15), as: UTF8.self))
    }

    fileprivate func main() {
        let body = start.withLock { start in
            start.thread = pthread_self()
            defer { start.body = nil }
            return start.body
        }
        body?()
    }

    /// Waits for the end of a thread whose function is over: for what libraries have tied to the end of a thread, too.
    func join() {
        let thread = start.withLock { start in
            defer { start.thread = nil }
            return start.thread
        }
        if let thread { pthread_join(thread, nil) }
    }
}

/// A file-level function: a closure formed on the main actor traps off it.
private func runLoopThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument = unsafe argument {
        unsafe Unmanaged<LoopThread>.fromOpaque(argument).takeRetainedValue().main()
    }
    return nil
}
