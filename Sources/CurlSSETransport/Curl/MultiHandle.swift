// One multi handle of libcurl, driven by sockets and one timer (`curl_multi_socket_action`(3)).
//
// Thread: the loop's. Not from inside a callback.

internal import CCurl

/// A transfer that libcurl says is done.
struct CurlMessage {
    /// The easy handle, as a number to look it up by.
    var easy: UInt
    var code: CurlCode
}

/// Owns a multi handle.
///
/// Every easy handle must have left it before this value ends.
@safe struct MultiHandle: ~Copyable {
    private let pointer: UnsafeMutableRawPointer

    /// Makes a multi handle.
    ///
    /// - Parameters:
    ///   - receiver: Learns which sockets to watch. Must outlive the handle.
    ///   - idleConnections: How many connections without a transfer are kept for later ones. Idle ones are not
    ///     watched: a server's close of one is found when it is used again.
    /// - Returns: The handle.
    /// - Throws: What libcurl refused.
    static func make(receiver: CurlMultiReceiver, idleConnections: Int) throws(CurlSetupError) -> MultiHandle {
        guard let pointer = unsafe curl_multi_init() else {
            throw CurlSetupError(code: CurlCode(CURLE_FAILED_INIT), option: "curl_multi_init")
        }
        let multi = unsafe MultiHandle(pointer: pointer)
        let argument = unsafe CurlCallbacks.pointer(to: receiver)
        let codes = unsafe [
            ccurl_multi_setopt_socket_function(pointer, curlSocket),
            ccurl_multi_setopt_pointer(pointer, CURLMOPT_SOCKETDATA, argument),
            ccurl_multi_setopt_long(pointer, CURLMOPT_MAXCONNECTS, idleConnections),
        ]
        // No timer callback: some versions skip it, so the timer is asked for after each call.
        guard codes.allSatisfy({ $0 == CURLM_OK }) else {
            throw CurlSetupError(code: CurlCode(CURLE_FAILED_INIT), option: "curl_multi_setopt")
        }
        return multi
    }

    private init(pointer: UnsafeMutableRawPointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        // Newer versions call the socket function from the cleanup; nobody is left to hear it.
        unsafe ccurl_multi_setopt_socket_function(pointer, nil)
        unsafe curl_multi_cleanup(pointer)
    }

    /// Starts a transfer at the next action.
    ///
    /// False when libcurl refuses, for want of memory.
    func add(_ easy: borrowing EasyHandle) -> Bool {
        unsafe curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK
    }

    /// Ends a transfer wherever it is: its connection closes, or its HTTP/2 stream is reset.
    ///
    /// No callback follows. False when libcurl refuses, as from inside a callback.
    func remove(_ easy: borrowing EasyHandle) -> Bool {
        unsafe curl_multi_remove_handle(pointer, easy.pointer) == CURLM_OK
    }

    /// Something happened on a socket.
    ///
    /// - Parameters:
    ///   - socket: The socket.
    ///   - readable: Whether there is something to read, an error or a hang-up included: libcurl reads it to learn of
    ///     it, while its own error flag would end a healthy transfer.
    ///   - writable: Whether there is room to write.
    /// - Returns: False when libcurl cannot go on.
    func act(on socket: Int32, readable: Bool, writable: Bool) -> Bool {
        var running: Int32 = 0
        let mask = (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0)
        return unsafe curl_multi_socket_action(pointer, socket, Int32(mask), &running) == CURLM_OK
    }

    /// libcurl's own timer ran out.
    ///
    /// False when libcurl cannot go on.
    func actOnTimer() -> Bool {
        var running: Int32 = 0
        return unsafe curl_multi_socket_action(pointer, ccurl_socket_timeout(), 0, &running) == CURLM_OK
    }

    /// In how many milliseconds libcurl wants its timer; nil for not at all.
    var timeout: Int? {
        var milliseconds = -1
        guard unsafe curl_multi_timeout(pointer, &milliseconds) == CURLM_OK, milliseconds >= 0 else { return nil }
        return milliseconds
    }

    /// The next transfer that is done; nil for no more.
    ///
    /// The result is copied: the message dies with the removal.
    func nextMessage() -> CurlMessage? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(pointer, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle else {
                continue
            }
            return unsafe CurlMessage(easy: UInt(bitPattern: easy), code: CurlCode(ccurl_message_result(message)))
        }
        return nil
    }
}

/// The full new interest in a socket, as CURLMOPT_SOCKETFUNCTION(3) gives it.
struct SocketInterest {
    var reads: Bool
    var writes: Bool

    /// Reads `CURL_POLL_IN`, `OUT`, `INOUT` or `REMOVE`.
    init(_ what: Int32) {
        reads = what == CURL_POLL_IN || what == CURL_POLL_INOUT
        writes = what == CURL_POLL_OUT || what == CURL_POLL_INOUT
    }
}
