// Scripts to raw bytes over a loopback connection, and what came back to a journal.
//
// For tests of an HTTP/1.1 client against a server that misbehaves in exactly one way, at exactly one byte. The server
// knows nothing of HTTP but how to read a request.

import SubscriptionRuntime

/// A server on the loopback that plays raw bytes, pauses and cuts from a script, and keeps a journal.
///
/// ```swift
/// let server = try ReplayServer(scripts: [
///     [.expectRequest, .send(ReplayServer.eventStreamHead), .send("data: 1\n\n"), .reset],
///     [.expectRequest, .send(ReplayServer.eventStreamHead), .send("data: 2\n\n"), .silence],
/// ])
/// defer { server.stop() }
/// // ... a client of server.url ...
/// #expect(await server.waitUntil { $0.connections == 2 })
/// ```
///
/// Connections are numbered from 1 in the order in which they were accepted. A connection is read all the time, so that
/// the journal says at once when the peer ends it; the peer's end, by FIN or RST, also ends the script.
///
/// The journal is never behind what the peer has seen of a connection once it is accepted. The peer's end of one
/// connection is in it before any connection that the peer made after it.
///
/// Any thread may call it. Its own thread ends by ``stop()``, or with the last reference.
public final class ReplayServer: Sendable {
    /// The port, 1 to 65535.
    public let port: UInt16

    /// The address it listens on.
    public let host: String

    private let shared: ReplayServerShared
    private let thread: Lock<ReplayServerThread?>

    /// Starts a server that plays a script for each connection.
    ///
    /// - Parameters:
    ///   - host: An IPv4 address of this machine. Default: 127.0.0.1.
    ///   - port: The port; 0, the default, for one that is free.
    ///   - sendBuffer: The kernel's send buffer of each connection in bytes (`SO_SNDBUF`, socket(7)); nil, the
    ///     default, for the system's.
    ///   - scripts: A script for each connection, in order. At a script's end its connection is closed.
    ///   - otherwise: The script of every connection after those. Default: the connection is closed at once.
    /// - Throws: The system call that failed.
    public convenience init(
        host: String = "127.0.0.1",
        port: UInt16 = 0,
        sendBuffer: Int? = nil,
        scripts: [[Step]] = [],
        otherwise: [Step] = []
    ) throws(ReplayServerError) {
        try self.init(host, port, sendBuffer, scripts, .scripts(otherwise: otherwise))
    }

    /// Starts a server that asks a function what to do with each request.
    ///
    /// - Parameters:
    ///   - host: An IPv4 address of this machine. Default: 127.0.0.1.
    ///   - port: The port; 0, the default, for one that is free.
    ///   - sendBuffer: The kernel's send buffer of each connection in bytes (`SO_SNDBUF`, socket(7)); nil, the
    ///     default, for the system's.
    ///   - respond: Given the connection's number and the request; returns what is played then. After that the
    ///     connection's next request is read, unless the steps ended it. Called on the server's thread, which serves
    ///     nobody meanwhile: it must not block.
    /// - Throws: The system call that failed.
    public convenience init(
        host: String = "127.0.0.1",
        port: UInt16 = 0,
        sendBuffer: Int? = nil,
        respond: @escaping @Sendable (_ connection: Int, _ request: RecordedRequest) -> [Step]
    ) throws(ReplayServerError) {
        try self.init(host, port, sendBuffer, [], .respond(respond))
    }

    private init(
        _ host: String,
        _ port: UInt16,
        _ sendBuffer: Int?,
        _ scripts: [[Step]],
        _ behaviour: ReplayServerLoop.Behaviour
    ) throws(ReplayServerError) {
        let shared = try ReplayServerShared(scripts: scripts)
        let sockets = try Self.sockets(host, port)
        self.shared = shared
        self.host = host
        self.port = sockets.port
        do throws(ReplayServerError) {
            let started = try ReplayServerThread {
                ReplayServerLoop(
                    shared: shared,
                    host: host,
                    reservation: sockets.reservation,
                    listener: sockets.listener,
                    port: sockets.port,
                    sendBuffer: sendBuffer,
                    behaviour: behaviour
                ).run()
            }
            thread = Lock(started)
        } catch {
            sockets.reservation.close()
            sockets.listener.close()
            throw error
        }
    }

    deinit {
        stop()
    }

    /// `http://127.0.0.1:port`, without a slash at its end.
    public var url: String { "http://\(host):\(port)" }

    /// What happened so far.
    public var journal: Journal { shared.lock.withLock { $0.journal } }

    /// Waits until the journal fulfils a condition.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait at most. Default: 10 s.
    ///   - isolation: The caller's, where `condition` is called.
    ///   - condition: Called with the journal now and after its changes.
    /// - Returns: Whether the condition was fulfilled; false at the timeout, when the server has stopped, and when the
    ///   task is cancelled.
    public func waitUntil(
        timeout: Duration = .seconds(10),
        isolation: isolated (any Actor)? = #isolation,
        _ condition: (Journal) -> Bool
    ) async -> Bool {
        let deadline = ContinuousClock.now.advanced(by: timeout)
        while true {
            let (journal, version, hasEnded) = shared.lock.withLock { ($0.journal, $0.version, $0.hasEnded) }
            if condition(journal) { return true }
            guard !hasEnded, !Task.isCancelled, ContinuousClock.now < deadline else { return false }
            await shared.change(after: version, until: deadline)
        }
    }

    /// Adds the script of one more connection, after those that are there.
    ///
    /// - Parameter script: Played by the next connection that has no script before it. No effect on a server that
    ///   responds by a function.
    public func enqueue(_ script: [Step]) {
        shared.lock.withLock { $0.scripts.append(script) }
    }

    /// Lets connections go on from ``Step/silence``: from the one they are in, or else from the next they come to.
    ///
    /// - Parameter connection: Which connection; nil, the default, for all that are open.
    public func proceed(_ connection: Int? = nil) {
        shared.order(.proceed(connection: connection))
    }

    /// Ends all connections, as a server's restart does.
    ///
    /// Returns when that has been done.
    ///
    /// - Parameter cut: How. Default: by a FIN.
    public func endConnections(by cut: Cut = .close) {
        orderAndWait(.end(by: cut))
    }

    /// Refuses connections from now on.
    ///
    /// Those that are open stay. Returns when that has been done.
    public func refuseConnections() {
        orderAndWait(.refuse)
    }

    /// Accepts connections again, on the same port.
    ///
    /// Returns when that has been done.
    ///
    /// - Throws: The system call that failed, such as a bind to a port that somebody has taken.
    public func acceptConnections() throws(ReplayServerError) {
        orderAndWait(.listen)
        if let error = shared.lock.withLock({ $0.listenError }) { throw error }
    }

    /// Closes everything and ends the server's thread.
    ///
    /// Returns when both has been done; the journal stays.
    public func stop() {
        let running = thread.withLock { thread in
            let running = thread
            thread = nil
            return running
        }
        guard let running else { return }
        shared.order(.stop)
        running.join()
    }

    private func orderAndWait(_ command: ReplayServerShared.Command) {
        // From the function that responds, the thread would wait for itself: there the order comes next.
        guard thread.withLock({ $0?.isCurrent }) == false, let done = try? ReplayServerPipe() else {
            shared.order(command)
            return
        }
        shared.order(command, done: done)
        done.wait()
        done.close()
    }

    /// A socket that keeps the port, and one that listens on it.
    private static func sockets(
        _ host: String,
        _ port: UInt16
    ) throws(ReplayServerError) -> (reservation: ReplayServerSocket, listener: ReplayServerSocket, port: UInt16) {
        let reservation = try ReplayServerSocket(boundTo: host, port: port)
        do throws(ReplayServerError) {
            let port = try reservation.port()
            let listener = try ReplayServerSocket(boundTo: host, port: port)
            do throws(ReplayServerError) {
                try listener.startListening()
            } catch {
                listener.close()
                throw error
            }
            return (reservation, listener, port)
        } catch {
            reservation.close()
            throw error
        }
    }
}
