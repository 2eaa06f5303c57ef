import Foundation
import Glibc
import SubscriptionRuntime

/// A proxy that does as CONNECT says (RFC 9110, section 9.3.6), or as SOCKS 4, 4a or 5 says (RFC 1928), for hosts of the
/// loopback.
final class TunnelProxy: Sendable {
    /// What a client of SOCKS asked for.
    struct SocksRequest: Equatable, Sendable {
        var version: UInt8
        /// The host as it was asked for: a name, or a numeric address.
        var host: String
        var port: UInt16
        /// As in a URL: what the client said of itself; empty for nothing.
        var userinfo = ""
    }

    private struct State {
        var heads: [String] = []
        var socks: [SocksRequest] = []
        var sockets: [Int32] = []
        var isStopped = false
    }

    let port: UInt16
    private let listener: Int32
    private let state = Lock(State())

    /// The heads of the requests so far.
    var heads: [String] { state.withLock { $0.heads } }

    /// What was asked for by SOCKS so far.
    var socks: [SocksRequest] { state.withLock { $0.socks } }

    /// Starts to listen.
    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.address(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard result else { throw ToolFailure(description: "no proxy: errno \(errno)") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        let state = state
        Thread.detachNewThread { Self.serve(listener, state) }
    }

    deinit {
        let sockets = state.withLock { state in
            state.isStopped = true
            return state.sockets
        }
        for socket in sockets + [listener] { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func serve(
        _ listener: Int32,
        _ state: Lock<State>
    ) {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else {
                close(listener)
                return
            }
            Thread.detachNewThread {
                let asked = ask(client)
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                var address = address(port: asked.port ?? 0)
                let isStopped = state.withLock { state in
                    if let head = asked.head { state.heads.append(head) }
                    if let socks = asked.socks { state.socks.append(socks) }
                    state.sockets += [client, server]
                    return state.isStopped
                }
                let isConnected = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                    }
                }
                guard !isStopped, asked.port != nil, isConnected else {
                    shutdown(client, Int32(SHUT_RDWR))
                    return
                }
                write(client, asked.answer[...])
                Thread.detachNewThread { pump(from: server, to: client) }
                pump(from: client, to: server)
            }
        }
    }

    /// What a client asks for, and what it is to be told once that is there.
    private struct Asked {
        var head: String?
        var socks: SocksRequest?
        /// nil where there is nowhere to go.
        var port: UInt16?
        var answer: [UInt8] = []
    }

    private static func ask(_ socket: Int32) -> Asked {
        switch read(socket, 1).first {
        case 4: return askSocks4(socket)
        case 5: return askSocks5(socket)
        case let first?:
            let head = readHead(socket, first: first)
            let line = head.split(separator: " ")
            let isTunnel = line.first == "CONNECT" && line.count > 1
            return Asked(
                head: head,
                port: isTunnel ? line[1].split(separator: ":").last.flatMap { UInt16($0) } : nil,
                answer: Array("HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n".utf8)
            )
        case nil: return Asked()
        }
    }

    /// After its first byte: a command, a port, an address, who asks, and in 4a a name where the address is 0.0.0.x.
    private static func askSocks4(_ socket: Int32) -> Asked {
        let bytes = read(socket, 7)
        guard bytes.count == 7, bytes[0] == 1 else { return Asked() }
        let user = readText(socket)
        let isNamed = bytes[3...5].elementsEqual([0, 0, 0]) && bytes[6] != 0
        let host = isNamed ? readText(socket) : numeric(bytes[3...])
        let port = number(bytes[1...2])
        let request = SocksRequest(version: 4, host: host, port: port, userinfo: user)
        return Asked(socks: request, port: port, answer: [0, 0x5A, 0, 0, 0, 0, 0, 0])
    }

    /// After its first byte: a greeting with methods, a user and a password where they are offered, and a request.
    private static func askSocks5(_ socket: Int32) -> Asked {
        let methods = read(socket, Int(read(socket, 1).first ?? 0))
        var userinfo = ""
        if methods.contains(2) {
            write(socket, [5, 2])
            guard read(socket, 1) == [1] else { return Asked() }
            let parts = (0..<2).map { _ in
                String(decoding: read(socket, Int(read(socket, 1).first ?? 0)), as: UTF8.self)
            }
            userinfo = parts.joined(separator: ":")
            write(socket, [1, 0])
        } else {
            guard methods.contains(0) else { return Asked() }
            write(socket, [5, 0])
        }
        let start = read(socket, 4)
        guard start.count == 4, start.starts(with: [5, 1, 0]), start[3] == 1 || start[3] == 3 else { return Asked() }
        let host =
            start[3] == 1
            ? numeric(read(socket, 4)[...])
            : String(decoding: read(socket, Int(read(socket, 1).first ?? 0)), as: UTF8.self)
        let port = number(read(socket, 2)[...])
        let request = SocksRequest(version: 5, host: host, port: port, userinfo: userinfo)
        return Asked(socks: request, port: port, answer: [5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt16 { bytes.reduce(0) { $0 << 8 | UInt16($1) } }

    private static func numeric(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { "\($0)" }.joined(separator: ".")
    }

    /// So many bytes; fewer where the client ends before.
    private static func read(_ socket: Int32, _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while bytes.count < count, recv(socket, &byte, 1, 0) == 1 { bytes.append(byte) }
        return bytes
    }

    /// Up to a NUL.
    private static func readText(_ socket: Int32) -> String {
        var text: [UInt8] = []
        while let byte = read(socket, 1).first, byte != 0 { text.append(byte) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Byte by byte: what comes after the head is the tunnel's.
    private static func readHead(_ socket: Int32, first: UInt8) -> String {
        var head = [first]
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]), head.count < 65_536, let byte = read(socket, 1).first {
            head.append(byte)
        }
        return String(decoding: head, as: UTF8.self)
    }

    private static func pump(from source: Int32, to sink: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, write(sink, buffer[..<count]) else { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(sink, Int32(SHUT_RDWR))
    }

    @discardableResult
    private static func write(_ socket: Int32, _ bytes: ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
