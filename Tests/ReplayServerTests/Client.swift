import Glibc

/// A blocking TCP client on a plain socket, for tests of the server.
///
/// Every call ends within 10 s.
final class Client {
    struct Failure: Error {
        var call: String
        var errno: Int32
    }

    private var descriptor: Int32

    /// Connects to a port of the loopback.
    ///
    /// - Parameters:
    ///   - port: The server's.
    ///   - receiveBuffer: `SO_RCVBUF`, set before the connection; nil for the system's.
    /// - Throws: The call that failed.
    init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", errno: errno) }
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure(call: "connect", errno: errno) }
    }

    deinit {
        close()
    }

    func send(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count >= 0 else { throw Failure(call: "send", errno: errno) }
            bytes = bytes.dropFirst(count)
        }
    }

    /// The next bytes; empty at the server's FIN.
    func receive(atMost limit: Int = 65_536) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = recv(descriptor, &bytes, limit, 0)
        guard count >= 0 else { throw Failure(call: "recv", errno: errno) }
        return Array(bytes[..<count])
    }

    /// The next bytes, exactly so many; fewer only at the server's FIN.
    func receive(exactly count: Int) throws -> String {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try receive(atMost: count - bytes.count)
            guard !more.isEmpty else { break }
            bytes += more
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// All bytes up to the server's FIN, or up to its RST, and whether it was one.
    func receiveAll() throws -> (text: String, isReset: Bool) {
        var bytes: [UInt8] = []
        while true {
            do {
                let more = try receive()
                guard !more.isEmpty else { return (String(decoding: bytes, as: UTF8.self), false) }
                bytes += more
            } catch let failure as Failure where failure.errno == ECONNRESET {
                return (String(decoding: bytes, as: UTF8.self), true)
            }
        }
    }

    /// Closes, by a RST when asked to.
    func close(byReset: Bool = false) {
        guard descriptor >= 0 else { return }
        if byReset {
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        }
        Glibc.close(descriptor)
        descriptor = -1
    }
}
