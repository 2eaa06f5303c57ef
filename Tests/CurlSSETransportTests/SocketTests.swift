import CurlSSETransport
import Glibc
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

@Suite("The sockets of streams", .timeLimit(.minutes(5)))
struct SocketTests {
    /// This process's socket that leads to a port of the loopback.
    private func descriptor(to port: UInt16) -> Int32? {
        (0..<Int32(65_536)).first { descriptor in
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
            }
            return result == 0 && Int32(address.sin_family) == AF_INET && address.sin_port == port.bigEndian
        }
    }

    private func option(_ socket: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(socket, level, name, &value, &size)
        return value
    }

    @Test("L4: ask a silent peer whether it is there, as the configuration says, and no spawned process inherits them")
    func options() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        let transport = try plain(server) {
            $0.keepaliveIdle = .seconds(31)
            $0.keepaliveInterval = .milliseconds(10_500)
            $0.keepaliveProbes = 4
            $0.tcpUserTimeout = .milliseconds(12_345)
        }
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        let socket = try #require(descriptor(to: server.port))
        let tcp = Int32(IPPROTO_TCP)
        #expect(option(socket, SOL_SOCKET, SO_KEEPALIVE) == 1)
        let idle = option(socket, tcp, TCP_KEEPIDLE)
        #expect((16...47).contains(idle))
        #expect(option(socket, tcp, TCP_KEEPINTVL) == 11)
        #expect(option(socket, tcp, TCP_KEEPCNT) == 4)
        #expect(option(socket, tcp, TCP_USER_TIMEOUT) == (idle + 4 * 11) * 1000)
        #expect(fcntl(socket, F_GETFD) & FD_CLOEXEC != 0)
        withExtendedLifetime(stream) {}
    }

    @Test("that cannot be had for want of descriptors are a network failure that says so, and are had once there are")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            let server = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .close])
            let transport = try plain(server)
            // Everything that is opened once is open.
            #expect(await transport.read(EventSourceRequest()).payloads.count == 1)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let before = limit
            // The lowest free number, and with it all that come after, is one too many.
            let free = dup(STDERR_FILENO)
            close(free)
            limit.rlim_cur = rlim_t(free)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let read = await transport.read(EventSourceRequest())
            limit = before
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(read.end == .failed(.network))
            #expect(read.error?.errno == EMFILE)
            #expect(read.error?.message.contains("no socket could be made: too many open files") == true)
            #expect(await transport.read(EventSourceRequest()).payloads.count == 1)
            #expect(transport.counters.faults == 0)
        }
    }
}
