import Foundation
import Glibc
import SubscriptionRuntime

/// A proxy that does as CONNECT says (RFC 9110, section 9.3.6), for hosts of the loopback.
final class TunnelProxy: Sendable {
    let port: UInt16
    private let listener: Int32
    private let state = Lock<(heads: [String], sockets: [Int32], isStopped: Bool)>(([], [], false))

    /// The heads of the requests so far.
    var heads: [String] { state.withLock { $0.heads } }

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
        _ state: Lock<(heads: [String], sockets: [Int32], isStopped: Bool)>
    ) {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else {
                close(listener)
                return
            }
            Thread.detachNewThread {
                let head = readHead(client)
                let line = head.split(separator: " ")
                let port = line.count > 1 ? line[1].split(separator: ":").last.flatMap { UInt16($0) } : nil
                let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                var address = address(port: port ?? 0)
                let isStopped = state.withLock { state in
                    state.heads.append(head)
                    state.sockets += [client, server]
                    return state.isStopped
                }
                let isConnected = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                    }
                }
                guard !isStopped, line.first == "CONNECT", isConnected else {
                    shutdown(client, Int32(SHUT_RDWR))
                    return
                }
                write(client, Array("HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n".utf8)[...])
                Thread.detachNewThread { pump(from: server, to: client) }
                pump(from: client, to: server)
            }
        }
    }

    /// Byte by byte: what comes after the head is the tunnel's.
    private static func readHead(_ socket: Int32) -> String {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]), head.count < 65_536, recv(socket, &byte, 1, 0) == 1 {
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
