// The one lock of the package, and the one file of this room that may say `unsafe`.
//
// A pthread mutex and not `Synchronization.Mutex`: ThreadSanitizer knows pthread's locks, and reports a contended
// `Mutex` of this toolchain as a race on correct code.

#if canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#elseif canImport(Darwin)
package import Darwin
#endif

/// A value that one thread at a time may touch.
///
/// Not recursive. Nothing is called out of `withLock` that could come back. `State` must not be of size zero: its
/// address would be that of whatever follows, and ThreadSanitizer would take the two for one.
@safe package final class Lock<State>: @unchecked Sendable {
    @usableFromInline package let mutex: UnsafeMutablePointer<pthread_mutex_t>
    @usableFromInline package var state: State

    /// Guards `state`.
    package init(_ state: sending State) {
        precondition(MemoryLayout<State>.size > 0, "a lock needs something to guard")
        let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        let result = unsafe pthread_mutex_init(mutex, nil)
        precondition(result == 0, "pthread_mutex_init: \(result)")
        unsafe self.mutex = unsafe mutex
        self.state = state
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` with the state, alone.
    ///
    /// - Parameter body: Reads and changes the state. Short, never blocks, calls nothing that could take this lock.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws.
    @inlinable
    package func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&state)
    }
}
