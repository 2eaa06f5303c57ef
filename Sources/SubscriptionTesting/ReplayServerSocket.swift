// The system calls of a replay server, as Swift: descriptors, addresses and errno stay in this file.
//
// Source: socket(7), ip(7), tcp(7), poll(2), pipe(2). Every descriptor is non-blocking and is not inherited by a child.
//
// Called on the server's thread, except where a function says otherwise.

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A system call that failed.
public struct ReplayServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, such as `bind`.
    public let call: String

    /// The system's error number.
    public let errno: Int32

    /// The call and the number.
    public var description: String { "\(call) failed with errno \(errno)" }
}

/// A descriptor and what a replay server does with it.
///
/// Copies name the same descriptor; its owner closes it once.
struct ReplayServerSocket {
    /// What came of a call that may find nothing to do.
    enum Outcome {
        case done(Int)
        case notNow
        case closed
        case failed(errno: Int32)
    }

    let descriptor: Int32

    /// Takes a descriptor over.
    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// A TCP socket that is bound and does not listen.
    init(boundTo host: String, port: UInt16) throws(ReplayServerError) {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw Self.error("socket") }
        do throws(ReplayServerError) {
            try prepare()
            try set(SOL_SOCKET, SO_REUSEADDR, 1)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            guard unsafe inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
                throw ReplayServerError(call: "inet_pton", errno: EINVAL)
            }
            let result = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard result == 0 else { throw Self.error("bind") }
        } catch {
            close()
            throw error
        }
    }

    /// The port it is bound to.
    func port() throws(ReplayServerError) -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &size)
            }
        }
        guard result == 0 else { throw Self.error("getsockname") }
        return UInt16(bigEndian: address.sin_port)
    }

    func startListening() throws(ReplayServerError) {
        guard listen(descriptor, 1024) == 0 else { throw Self.error("listen") }
    }

    /// The next connection; nil where there is none now.
    ///
    /// - Throws: There may be one, and it cannot be had, such as for want of descriptors.
    func accepted(sendBuffer: Int?) throws(ReplayServerError) -> ReplayServerSocket? {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else {
            // EINTR and ECONNABORTED: the next poll says whether there is another.
            guard [EAGAIN, EWOULDBLOCK, EINTR, ECONNABORTED].contains(errno) else { throw Self.error("accept") }
            return nil
        }
        let socket = ReplayServerSocket(descriptor: connection)
        do throws(ReplayServerError) {
            try socket.prepare()
            try socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            if let sendBuffer { try socket.set(SOL_SOCKET, SO_SNDBUF, Int32(clamping: sendBuffer)) }
        } catch {
            socket.close()
            throw error
        }
        return socket
    }

    func send(_ bytes: ArraySlice<UInt8>) -> Outcome {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        while true {
            let count = unsafe bytes.withUnsafeBytes { unsafe Self.send(descriptor, $0, flags) }
            if count >= 0 { return .done(count) }
            switch errno {
            case EINTR: continue
            case EAGAIN, EWOULDBLOCK: return .notNow
            default: return .failed(errno: errno)
            }
        }
    }

    private static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
        #if canImport(Glibc)
        unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags)
        #elseif canImport(Musl)
        unsafe Musl.send(descriptor, bytes.baseAddress, bytes.count, flags)
        #else
        unsafe Darwin.send(descriptor, bytes.baseAddress, bytes.count, flags)
        #endif
    }

    func receive(into buffer: inout [UInt8]) -> Outcome {
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count > 0 { return .done(count) }
            if count == 0 { return .closed }
            switch errno {
            case EINTR: continue
            case EAGAIN, EWOULDBLOCK: return .notNow
            default: return .failed(errno: errno)
            }
        }
    }

    /// Sends a FIN.
    func finish() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes; with unread bytes in the socket the peer would see a RST, so the caller reads them first.
    func close() {
        #if canImport(Glibc)
        _ = Glibc.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #else
        _ = Darwin.close(descriptor)
        #endif
    }

    /// Closes with a RST, which throws away what the peer has not acknowledged.
    func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// How many sent bytes the peer has not acknowledged (SIOCOUTQ, tcp(7)).
    var unacknowledged: Int {
        var count: Int32 = 0
        #if canImport(Darwin)
        var size = socklen_t(MemoryLayout<Int32>.size)
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_NWRITE, &count, &size)
        #else
        let result = unsafe ioctl(descriptor, UInt(TIOCOUTQ), &count)
        #endif
        return result == 0 ? Int(count) : 0
    }

    private func prepare() throws(ReplayServerError) {
        guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
            throw Self.error("fcntl")
        }
        #if canImport(Darwin)
        try set(SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) throws(ReplayServerError) {
        var value = value
        guard unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw Self.error("setsockopt")
        }
    }

    static func error(_ call: String) -> ReplayServerError {
        ReplayServerError(call: call, errno: errno)
    }
}

/// A pipe that wakes the thread which polls its reading end.
struct ReplayServerPipe {
    let reading: Int32
    private let writing: Int32

    init() throws(ReplayServerError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw ReplayServerSocket.error("pipe") }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        reading = ends[0]
        writing = ends[1]
    }

    /// From any thread.
    ///
    /// A full pipe is awake already.
    func wake() {
        var byte: UInt8 = 1
        _ = unsafe write(writing, &byte, 1)
    }

    /// Takes all that was written.
    func drain() {
        var bytes = [UInt8](repeating: 0, count: 256)
        while unsafe read(reading, &bytes, bytes.count) > 0 {}
    }

    /// Blocks until it was woken, from any thread.
    func wait() {
        var entries = [ReplayServerPoll.entry(reading, reads: true, writes: false)]
        ReplayServerPoll.wait(&entries, milliseconds: -1)
    }

    func close() {
        ReplayServerSocket(descriptor: reading).close()
        ReplayServerSocket(descriptor: writing).close()
    }
}

/// poll(2).
enum ReplayServerPoll {
    static func entry(_ descriptor: Int32, reads: Bool, writes: Bool) -> pollfd {
        let events = (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
        return pollfd(fd: descriptor, events: events, revents: 0)
    }

    /// Waits for an event, a signal or the time; -1 for no time.
    static func wait(_ entries: inout [pollfd], milliseconds: Int32) {
        _ = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
    }

    static func isReady(_ entry: pollfd) -> Bool { entry.revents != 0 }
}

/// A thread of one's own.
struct ReplayServerThread: @unchecked Sendable {
    private let thread: pthread_t

    /// Runs the body.
    init(_ body: @escaping @Sendable () -> Void) throws(ReplayServerError) {
        let box = unsafe Unmanaged.passRetained(Body(body))
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        let result = unsafe pthread_create(&thread, nil, runReplayServerThread, box.toOpaque())
        #if canImport(Darwin)
        guard result == 0, let thread else {
            unsafe box.release()
            throw ReplayServerError(call: "pthread_create", errno: result)
        }
        #else
        guard result == 0 else {
            unsafe box.release()
            throw ReplayServerError(call: "pthread_create", errno: result)
        }
        #endif
        self.thread = thread
    }

    /// Whether it is the thread that asks.
    var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// Blocks until the thread has ended.
    ///
    /// Once, and not from the thread itself: that one is let go instead.
    func join() {
        if isCurrent {
            pthread_detach(thread)
        } else {
            _ = pthread_join(thread, nil)
        }
    }

    fileprivate final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }
}

/// Feeds the `start_routine` of pthread_create(3). A function of the file: a closure could be isolated to an actor.
#if canImport(Darwin)
private func runReplayServerThread(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    unsafe Unmanaged<ReplayServerThread.Body>.fromOpaque(pointer).takeRetainedValue().run()
    return nil
}
#else
private func runReplayServerThread(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let pointer = unsafe pointer else { return nil }
    unsafe Unmanaged<ReplayServerThread.Body>.fromOpaque(pointer).takeRetainedValue().run()
    return nil
}
#endif
