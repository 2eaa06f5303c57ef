// Where libcurl calls back into Swift; the only file that says `Unmanaged`.
//
// Ownership: libcurl borrows the receiver. The loop keeps every receiver of a transfer in its table from before
// `curl_multi_add_handle` until after `curl_easy_cleanup`, and lives itself until after `curl_multi_cleanup`, so the
// pointers are good for every call libcurl makes; nothing here retains or releases.
//
// Thread: the loop's, inside a libcurl call. A callback returns a verdict and calls nothing of libcurl: it would be
// refused (CURLM_RECURSIVE_API_CALL), or worse, not refused.
//
// File-level functions and no closures: a closure formed on the main actor traps off it.

internal import CCurl

/// What a receiver makes of a chunk of the body.
enum WriteVerdict {
    /// Read.
    case taken
    /// Not read: libcurl keeps the chunk and delivers it again once the transfer is resumed.
    case pause
    /// Ends the transfer with CURLE_WRITE_ERROR.
    case abort
}

/// How a new socket is set up.
struct SocketOptions: Hashable, Sendable {
    /// Probes that go unanswered before the connection is dead (`TCP_KEEPCNT`).
    var keepaliveProbes: Int32
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`), in milliseconds.
    var userTimeout: Int32
}

/// Takes what libcurl says of one transfer.
///
/// Subclassed by the loop's transfer.
class CurlReceiver {
    /// How sockets of this transfer are set up.
    var socketOptions: SocketOptions

    init(socketOptions: SocketOptions) {
        self.socketOptions = socketOptions
    }

    /// One line of the response's head, line end included.
    ///
    /// False ends the transfer.
    func headerLine(_ line: RawSpan) -> Bool { false }

    /// The body's next bytes.
    func bodyChunk(_ chunk: RawSpan) -> WriteVerdict { .abort }

    /// Connected, the request about to be sent.
    ///
    /// Once a request, on a new connection, a reused one and each stream of
    /// a shared one (`CURLOPT_PREREQFUNCTION`(3)).
    func connected(_ connection: ConnectionName?) {}

    /// A socket was made, or could not be: the system's error number, 0 for none.
    func socketMade(errno: Int32) {}
}

/// Takes what libcurl says of sockets and timers.
///
/// Subclassed by the loop.
class CurlMultiReceiver {
    /// The full new interest in a socket: `CURL_POLL_IN`, `OUT`, `INOUT` or `REMOVE`.
    func socketChanged(_ socket: Int32, interest: Int32) {}
}

enum CurlCallbacks {
    /// The borrowed pointer that libcurl is given as a transfer's argument.
    static func pointer(to receiver: CurlReceiver) -> UnsafeMutableRawPointer {
        unsafe Unmanaged.passUnretained(receiver).toOpaque()
    }

    /// The borrowed pointer that libcurl is given as the multi handle's argument.
    static func pointer(to receiver: CurlMultiReceiver) -> UnsafeMutableRawPointer {
        unsafe Unmanaged.passUnretained(receiver).toOpaque()
    }
}

private func receiver(_ pointer: UnsafeMutableRawPointer) -> CurlReceiver {
    unsafe Unmanaged<CurlReceiver>.fromOpaque(pointer).takeUnretainedValue()
}

/// Feeds CURLOPT_WRITEFUNCTION: 0 to CURL_MAX_WRITE_SIZE bytes of the body.
func curlWrite(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ argument: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let argument = unsafe argument else { return size * count }
    let chunk = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
    return switch unsafe receiver(argument).bodyChunk(chunk.bytes) {
    case .taken: chunk.count
    case .pause: ccurl_writefunc_pause()
    // Any number but the count ends the transfer.
    case .abort: chunk.count == 0 ? 1 : 0
    }
}

/// Feeds CURLOPT_HEADERFUNCTION: one whole line of the head.
func curlHeader(
    _ bytes: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ argument: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes = unsafe bytes, let argument = unsafe argument else { return size * count }
    let line = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
    return unsafe receiver(argument).headerLine(line.bytes) ? line.count : 0
}

/// Feeds CURLOPT_PREREQFUNCTION.
func curlPrerequest(
    _ argument: UnsafeMutableRawPointer?,
    _ primaryAddress: UnsafeMutablePointer<CChar>?,
    _ localAddress: UnsafeMutablePointer<CChar>?,
    _ primaryPort: Int32,
    _ localPort: Int32
) -> Int32 {
    if let argument = unsafe argument {
        var name: ConnectionName?
        if let local = unsafe localAddress, let primary = unsafe primaryAddress, localPort > 0 {
            name = ConnectionName(
                local: unsafe String(cString: local),
                localPort: localPort,
                remote: unsafe String(cString: primary),
                remotePort: primaryPort
            )
        }
        unsafe receiver(argument).connected(name)
    }
    return Int32(CURL_PREREQFUNC_OK)
}

/// Feeds CURLOPT_OPENSOCKETFUNCTION: libcurl before 8.19 opens sockets that a spawned child inherits, and drops the
/// error number.
func curlOpenSocket(
    _ argument: UnsafeMutableRawPointer?,
    _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address = unsafe address, let argument = unsafe argument else { return -1 }
    let receiver = unsafe receiver(argument)
    let family = unsafe address.pointee.family
    let type = unsafe address.pointee.socktype
    let opened = unsafe Sockets.open(family: family, type: type, protocolNumber: address.pointee.protocol)
    switch opened {
    case .success(let socket):
        Sockets.apply(receiver.socketOptions, to: socket, family: family)
        receiver.socketMade(errno: 0)
        return socket
    case .failure(let error):
        receiver.socketMade(errno: error.number)
        return -1
    }
}

/// Feeds CURLMOPT_SOCKETFUNCTION.
///
/// The easy handle may be one of libcurl's own, so it is not looked at.
func curlSocket(
    _ easy: UnsafeMutableRawPointer?,
    _ socket: curl_socket_t,
    _ interest: Int32,
    _ argument: UnsafeMutableRawPointer?,
    _ socketArgument: UnsafeMutableRawPointer?
) -> Int32 {
    if let argument = unsafe argument {
        unsafe Unmanaged<CurlMultiReceiver>.fromOpaque(argument).takeUnretainedValue()
            .socketChanged(socket, interest: interest)
    }
    // Anything else would end every transfer.
    return 0
}
