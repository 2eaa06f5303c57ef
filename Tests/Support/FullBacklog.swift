import Glibc

/// A port of the loopback that neither accepts a connection nor refuses one: its queue is full.
final class FullBacklog {
    struct Failure: Error {
        var call: String
        var errno: Int32
    }

    let port: UInt16
    private let descriptors: [Int32]

    /// Listens, and fills the queue with connections of its own.
    ///
    /// - Throws: The call that failed.
    init() throws {
        var descriptors: [Int32] = []
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        func call(_ name: String, _ body: (Int32, UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Int32) throws {
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(descriptors[0], $0, &size) }
            }
            guard result == 0 else { throw Failure(call: name, errno: errno) }
        }
        descriptors.append(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        try call("bind") { bind($0, $1, $2) }
        try call("getsockname") { getsockname($0, $1, &$2) }
        guard listen(descriptors[0], 0) == 0 else { throw Failure(call: "listen", errno: errno) }
        // A queue of 0 takes one; the others are never answered (listen(2), tcp(7)).
        for _ in 0..<4 {
            let client = socket(
                AF_INET,
                Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue),
                0
            )
            guard client >= 0 else { throw Failure(call: "socket", errno: errno) }
            _ = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            descriptors.append(client)
        }
        port = UInt16(bigEndian: address.sin_port)
        self.descriptors = descriptors
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }
}
