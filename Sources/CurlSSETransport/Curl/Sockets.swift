// The few socket calls that libcurl leaves to its user.

internal import CCurl

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// An error number of the system.
struct SystemError: Error, Hashable, Sendable {
    var number: Int32

    /// As strerror_r(3) says it.
    var text: String { Sockets.text(of: number) }
}

/// What tells one connection from every other: both ends.
///
/// A local port alone does not: the system gives one port to connections that lead to different ends.
struct ConnectionName: Hashable, Sendable {
    /// A numeric address, as inet_ntop(3) writes it.
    var local: String
    var localPort: Int32
    /// The peer, which is the proxy where there is one.
    var remote: String
    var remotePort: Int32
}

enum Sockets {
    /// Closes a descriptor of the loop's own, which nothing waits on any more.
    static func close(_ descriptor: Int32) {
        #if canImport(Glibc)
        _ = Glibc.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #elseif canImport(Darwin)
        _ = Darwin.close(descriptor)
        #endif
    }

    /// A socket that does not block and is not inherited by a spawned process.
    static func open(family: Int32, type: Int32, protocolNumber: Int32) -> Result<Int32, SystemError> {
        #if canImport(Darwin)
        let socket = Darwin.socket(family, type, protocolNumber)
        guard socket >= 0 else { return .failure(SystemError(number: errno)) }
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        #else
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let socket = socket(family, type | flags, protocolNumber)
        guard socket >= 0 else { return .failure(SystemError(number: errno)) }
        #endif
        return .success(socket)
    }

    /// Sets what finds a dead network: libcurl 7.88 has no options for these.
    ///
    /// A socket that refuses them works on.
    static func apply(_ options: SocketOptions, to socket: Int32, family: Int32) {
        guard family == AF_INET || family == AF_INET6 else { return }
        set(socket, TCP_KEEPCNT, options.keepaliveProbes)
        #if os(Linux)
        set(socket, TCP_USER_TIMEOUT, options.userTimeout)
        #endif
    }

    private static func set(_ socket: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(socket, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The name of a socket's connection; nil where it has none, or is of another kind than the internet's.
    static func name(of socket: Int32) -> ConnectionName? {
        guard let local = unsafe endpoint({ unsafe getsockname(socket, $0, $1) }),
            let remote = unsafe endpoint({ unsafe getpeername(socket, $0, $1) })
        else { return nil }
        return ConnectionName(
            local: local.address,
            localPort: local.port,
            remote: remote.address,
            remotePort: remote.port
        )
    }

    private static func endpoint(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> (address: String, port: Int32)? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe ask($0, &length) }
        }
        guard result == 0 else { return nil }
        let family = Int32(address.ss_family)
        guard family == AF_INET || family == AF_INET6 else { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        return unsafe withUnsafeBytes(of: &address) { bytes -> (address: String, port: Int32)? in
            guard let base = bytes.baseAddress else { return nil }
            // sin_addr lies at 4, sin6_addr at 8; both ports at 2, in network order.
            let source = unsafe base + (family == AF_INET ? 4 : 8)
            guard unsafe inet_ntop(family, source, &text, socklen_t(text.count)) != nil else { return nil }
            let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return unsafe (name, Int32(bytes[2]) << 8 | Int32(bytes[3]))
        }
    }

    /// Ends both directions.
    ///
    /// Whoever watches the socket learns of it as of a peer's close.
    static func shutDown(_ socket: Int32) {
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Whether the text is one numeric address, as libcurl takes it for a name: IPv6 in brackets or without.
    static func isAddress(_ text: String) -> Bool {
        var text = text
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        if isBracketed { text = String(text.dropFirst().dropLast()) }
        // A NUL would end it for the system, and not for libcurl.
        guard !text.utf8.contains(0) else { return false }
        var version4 = in_addr()
        var version6 = in6_addr()
        if unsafe inet_pton(AF_INET6, text, &version6) == 1 { return true }
        return unsafe !isBracketed && inet_pton(AF_INET, text, &version4) == 1
    }

    /// What the system calls an error.
    static func text(of number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        // The POSIX version, which fills the buffer.
        guard unsafe strerror_r(number, &buffer, buffer.count) == 0 else { return "error \(number)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension SystemError {
    static let permissionDenied = EACCES
}
