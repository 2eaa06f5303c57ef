// libcurl as a whole: its one initialisation, and what the library found at run time can do.
//
// Thread: any.

internal import CCurl

/// libcurl of this process.
package enum CurlGlobal {
    /// What `curl_global_init` said, called once, on first use.
    ///
    /// Never undone: `curl_global_cleanup` is not safe while another part of the process may use libcurl
    /// (`curl_global_cleanup`(3)).
    private static let initialized: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// What went wrong at the initialisation; nil for nothing.
    static var initializationError: String? {
        initialized == CURLE_OK ? nil : "\(CurlCode(initialized).text) (curl \(initialized.rawValue))"
    }

    /// Whether a cancellation leaves a look-up of a name to itself (CURLOPT_QUICK_EXIT): where the headers this was built
    /// with have it, libcurl 7.87 and later.
    package static var leavesLookUps: Bool { ccurl_option_quick_exit().rawValue != 0 }

    /// What the library found at run time can do.
    package static let info: CurlInfo = CurlInfo.read()
}

/// The facts of `curl_version_info`(3) that the transport decides by.
package struct CurlInfo: Hashable, Sendable {
    /// As in `7.88.1`.
    package var version: String
    /// As in 0x075801.
    var number: UInt32
    /// As in `OpenSSL/3.0.19`; nil without TLS.
    package var tls: String?
    package var hasHTTP2: Bool
    /// Name resolution does not block the loop.
    package var hasAsynchronousResolver: Bool
    /// `curl_global_init` may be called from any thread.
    package var isThreadsafe: Bool

    /// Before 8.1.0 a cancelled transfer that is paused on a shared HTTP/2 connection leaks what it held (curl issue
    /// 10971); it is resumed into nothing first.
    package var leaksPausedStreams: Bool { number < 0x080100 }

    /// Before 8.1.0 the frame that resets a cancelled HTTP/2 stream stays in libcurl's buffer until something else is
    /// sent on the connection (`http2_data_done` in lib/http2.c of 7.88.1 sends into the buffer, and does not flush
    /// it).
    package var keepsResets: Bool { number < 0x080100 }

    /// Before 8.0.0 the second stream of a connection that speaks HTTP/2 by prior knowledge fails (curl issue 10643).
    package var sharesNoPlainHTTP2: Bool { number < 0x080000 }

    /// From 8.10 to 8.13 a paused HTTP/2 stream may not get its window back (curl issue 16960): such a stream is not
    /// paused.
    package var stallsPausedStreams: Bool { number >= 0x080a00 && number < 0x080e00 }

    static func read() -> CurlInfo {
        guard let found = unsafe ccurl_version_info() else {
            return CurlInfo(
                version: "unknown",
                number: 0,
                tls: nil,
                hasHTTP2: false,
                hasAsynchronousResolver: false,
                isThreadsafe: false
            )
        }
        let data = unsafe found.pointee
        let features = unsafe UInt32(bitPattern: data.features)
        return unsafe CurlInfo(
            version: String(cString: data.version),
            number: data.version_num,
            tls: features & UInt32(CURL_VERSION_SSL) != 0 ? data.ssl_version.map { unsafe String(cString: $0) } : nil,
            hasHTTP2: features & UInt32(CURL_VERSION_HTTP2) != 0,
            hasAsynchronousResolver: features & UInt32(CURL_VERSION_ASYNCHDNS) != 0,
            isThreadsafe: features & UInt32(CURL_VERSION_THREADSAFE) != 0
        )
    }
}
