// What gets the loop out of its wait.
//
// Thread: any fires; the loop's thread ends it.

internal import CCurl
internal import SubscriptionRuntime

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An event counter of the system (eventfd(2)) that the loop's poller watches for its rising edge: it is written, and
/// never read.
final class LoopSignal: Sendable {
    /// nil once it has ended; guarded, so that no other descriptor of the same number is ever written to.
    private let descriptor: Lock<Int32?>

    /// Makes a counter, not inherited by a spawned process.
    init() throws(SystemError) {
        let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        self.descriptor = Lock(descriptor)
    }

    deinit {
        end()
    }

    /// Lends the descriptor.
    func withDescriptor(_ body: (Int32) -> Int32) -> Int32 {
        descriptor.withLock { $0.map(body) ?? EBADF }
    }

    /// Ends the wait under way, or the next one at once.
    ///
    /// False after the end.
    func fire() -> Bool {
        descriptor.withLock { descriptor in
            guard let descriptor else { return false }
            // Refused only where the counter is full, which it is not in a process's life.
            _ = eventfd_write(descriptor, 1)
            return true
        }
    }

    /// Closes the counter.
    ///
    /// May be called again.
    func end() {
        descriptor.withLock { descriptor in
            if let descriptor { Sockets.close(descriptor) }
            descriptor = nil
        }
    }
}
