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
/// address would be that of whatever follows, and ThreadSanitizer would take the two for one. A copy is the same lock.
@safe package struct Lock<State>: @unchecked Sendable {
    /// The mutex lies behind the state, in the same memory.
    @usableFromInline package let storage: ManagedBuffer<State, pthread_mutex_t>

    /// Guards `state`.
    package init(_ state: sending State) {
        precondition(MemoryLayout<State>.size > 0, "a lock needs something to guard")
        unsafe storage = unsafe LockStorage<State>.create(minimumCapacity: 1) { _ in state }
        unsafe storage.withUnsafeMutablePointerToElements { mutex in
            let result = unsafe pthread_mutex_init(mutex, nil)
            precondition(result == 0, "pthread_mutex_init: \(result)")
        }
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
        try unsafe storage.withUnsafeMutablePointers { state, mutex throws(Failure) in
            unsafe pthread_mutex_lock(mutex)
            defer { unsafe pthread_mutex_unlock(mutex) }
            return try unsafe body(&state.pointee)
        }
    }
}

/// The memory of one lock.
@unsafe private final class LockStorage<State>: ManagedBuffer<State, pthread_mutex_t> {
    deinit {
        _ = unsafe withUnsafeMutablePointerToElements { unsafe pthread_mutex_destroy($0) }
    }
}
