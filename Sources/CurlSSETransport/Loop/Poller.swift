// The descriptors of one loop, watched by one epoll descriptor, in which the loop's thread waits.
//
// libcurl's sockets are registered here, level-triggered. Never a DispatchSource per socket: libdispatch keeps one record
// a descriptor number for the whole process, and a socket that libcurl closes and opens anew under its number would break
// it for everybody.
//
// Thread: the loop's.

internal import CCurl

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What happened on a socket.
struct PollEvent {
    var socket: Int32
    var isReadable: Bool
    var isWritable: Bool
}

/// Owns an epoll descriptor and knows which sockets are in it.
@safe struct Poller: ~Copyable {
    /// How many sockets one wait tells of.
    static let most = 64

    private let descriptor: Int32
    private var watched: [Int32: Watch] = [:]
    private var generation: UInt32 = 0
    private var buffer: [epoll_event]

    private struct Watch {
        var generation: UInt32
        var events: UInt32
    }

    /// Makes an epoll descriptor, not inherited by a spawned process.
    ///
    /// - Parameter signal: Ends a wait.
    /// - Throws: The system's refusal.
    init(signal: LoopSignal) throws(SystemError) {
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        // The rising edge alone, so that it need not be read. No watch has the generation 0.
        let number = signal.withDescriptor { signal in
            var event = unsafe ccurl_epoll_event(UInt32(EPOLLIN.rawValue) | UInt32(EPOLLET.rawValue), 0)
            return unsafe epoll_ctl(descriptor, EPOLL_CTL_ADD, signal, &event) == 0 ? 0 : errno
        }
        guard number == 0 else {
            Sockets.close(descriptor)
            throw SystemError(number: number)
        }
        self.descriptor = descriptor
        unsafe buffer = Array(repeating: ccurl_epoll_event(0, 0), count: Self.most)
    }

    deinit {
        Sockets.close(descriptor)
    }

    /// How many sockets are watched.
    var count: Int { watched.count }

    /// Every watched socket.
    var sockets: some Collection<Int32> { watched.keys }

    /// Takes the full new interest in a socket; none of both ends the watch.
    ///
    /// Copes with what libcurl 7.88 does: a removal after the socket was closed, and a number that is another socket
    /// by now.
    mutating func watch(_ socket: Int32, reading: Bool, writing: Bool) {
        guard reading || writing else {
            guard watched.removeValue(forKey: socket) != nil else { return }
            // ENOENT and EBADF: closed already, and gone from the set with it.
            _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
            return
        }
        let events = (reading ? UInt32(EPOLLIN.rawValue) : 0) | (writing ? UInt32(EPOLLOUT.rawValue) : 0)
        if let watch = watched[socket] {
            // Told to the kernel also where nothing seems to change: libcurl speaks up only at a change, so the number
            // may be another socket's by now.
            watched[socket]?.events = events
            if control(EPOLL_CTL_MOD, socket, events, watch.generation) == ENOENT {
                _ = control(EPOLL_CTL_ADD, socket, events, watch.generation)
            }
        } else {
            generation &+= 1
            watched[socket] = Watch(generation: generation, events: events)
            if control(EPOLL_CTL_ADD, socket, events, generation) == EEXIST {
                _ = control(EPOLL_CTL_MOD, socket, events, generation)
            }
        }
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32, _ generation: UInt32) -> Int32 {
        var event = unsafe ccurl_epoll_event(events, UInt64(generation) << 32 | UInt64(UInt32(bitPattern: socket)))
        return unsafe epoll_ctl(descriptor, operation, socket, &event) == 0 ? 0 : errno
    }

    /// Waits until something happens, and says what.
    ///
    /// - Parameters:
    ///   - milliseconds: How long at most; -1 for no end.
    ///   - events: Filled with what happened and the generation of each watch; nothing after a wait that a signal
    ///     ended. What is done about one may end the watch of the next, so each is looked up again by
    ///     `current(_:generation:)`.
    mutating func wait(milliseconds: Int32, into events: inout [(generation: UInt32, event: PollEvent)]) {
        events.removeAll(keepingCapacity: true)
        let count = unsafe epoll_wait(descriptor, &buffer, Int32(buffer.count), milliseconds)
        guard count > 0 else { return }
        for index in 0..<Int(count) {
            let found = unsafe buffer[index]
            let bits = unsafe found.events
            let data = unsafe withUnsafePointer(to: found) { unsafe ccurl_epoll_data($0) }
            let failed = bits & (UInt32(EPOLLHUP.rawValue) | UInt32(EPOLLERR.rawValue)) != 0
            events.append(
                (
                    generation: UInt32(truncatingIfNeeded: data >> 32),
                    event: PollEvent(
                        socket: Int32(truncatingIfNeeded: data),
                        isReadable: failed || bits & UInt32(EPOLLIN.rawValue) != 0,
                        isWritable: bits & UInt32(EPOLLOUT.rawValue) != 0
                    )
                )
            )
        }
    }

    /// The event as it is to be told now: nil when its socket is another one by now, or is not watched any more.
    func current(_ event: PollEvent, generation: UInt32) -> PollEvent? {
        guard let watch = watched[event.socket], watch.generation == generation else { return nil }
        return PollEvent(
            socket: event.socket,
            isReadable: event.isReadable,
            isWritable: event.isWritable || (event.isReadable && watch.events & UInt32(EPOLLOUT.rawValue) != 0)
        )
    }
}
