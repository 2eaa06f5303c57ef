// One easy handle of libcurl: what a request asks for becomes options, what happened becomes facts.
//
// Thread: the loop's.

internal import CCurl

/// Everything one transfer sets on its easy handle.
///
/// Plain values; libcurl copies what it keeps.
struct EasyOptions: Sendable {
    enum HTTPVersion: Sendable {
        /// 1.1 for http, 2 where TLS negotiates it for https.
        case automatic
        case http1
        /// 2, where https negotiates it; on http by prior knowledge.
        case http2
    }

    enum Proxy: Sendable {
        case none
        case url(String)
        /// `http_proxy` and its kin, as libcurl reads them.
        case environment
    }

    var url: String
    var isHTTPS: Bool
    var method: String
    /// Lines for CURLOPT_HTTPHEADER, checked.
    var headerLines: [String]
    var body: [UInt8]?
    var httpVersion: HTTPVersion = .automatic
    /// Milliseconds.
    ///
    /// The loop's limit; libcurl's own is a backstop behind it, and paces the addresses of a name.
    var connectTimeout: Int
    /// Bytes.
    var bufferSize: Int
    /// Seconds.
    var keepaliveIdle: Int
    /// Seconds.
    var keepaliveInterval: Int
    var caFile: String?
    var caPath: String?
    var clientCertificate: String?
    var clientKey: String?
    var minimumTLS13 = false
    /// As CURLOPT_PINNEDPUBLICKEY(3) takes it.
    var pinnedPublicKey: String?
    var verifiesPeer = true
    var proxy: Proxy = .none
    var unixSocket: String?
    var interface: String?
    /// `HOST:PORT:ADDRESS` lines for CURLOPT_RESOLVE.
    var resolve: [String] = []
    /// Whether a name is looked up although libcurl has an answer of the last minute.
    var looksUpAnew = false
    /// Whether a connection of its own is made although libcurl keeps one.
    var connectsAnew = false
}

/// A libcurl call that failed while a handle was being set up.
struct CurlSetupError: Error {
    var code: CurlCode
    /// The option, by libcurl's name.
    var option: String
}

/// Owns an easy handle with all that libcurl borrows for its life.
///
/// Ends with the transfer: an easy handle is never used twice (libcurl has had faults of that class), and the
/// connection it used may live on in the multi handle.
@safe struct EasyHandle: ~Copyable {
    /// libcurl's handle, good until this value ends.
    let pointer: UnsafeMutableRawPointer
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private var resolveList: UnsafeMutablePointer<curl_slist>?

    /// Names the handle among those that live: its address as a number.
    var key: UInt { unsafe UInt(bitPattern: pointer) }

    /// Makes a handle and sets it up.
    ///
    /// - Parameters:
    ///   - options: What to ask for.
    ///   - receiver: Takes the callbacks. Must outlive the handle.
    /// - Returns: The handle.
    /// - Throws: The option that libcurl refused.
    static func make(
        _ options: borrowing EasyOptions,
        receiver: CurlReceiver
    ) throws(CurlSetupError) -> EasyHandle {
        guard let pointer = unsafe curl_easy_init() else {
            // For want of memory: the library as a whole was initialised before.
            throw CurlSetupError(code: CurlCode(CURLE_OUT_OF_MEMORY), option: "curl_easy_init")
        }
        var easy = unsafe EasyHandle(pointer: pointer)
        try easy.apply(options, receiver: receiver)
        return easy
    }

    private init(pointer: UnsafeMutableRawPointer) {
        unsafe self.pointer = unsafe pointer
        unsafe errorBuffer = .allocate(capacity: ccurl_error_size())
        unsafe errorBuffer.initialize(repeating: 0, count: ccurl_error_size())
        unsafe headerList = nil
        unsafe resolveList = nil
    }

    deinit {
        unsafe curl_easy_cleanup(pointer)
        unsafe curl_slist_free_all(headerList)
        unsafe curl_slist_free_all(resolveList)
        unsafe errorBuffer.deallocate()
    }

    private mutating func apply(
        _ options: borrowing EasyOptions,
        receiver: CurlReceiver
    ) throws(CurlSetupError) {
        let argument = unsafe CurlCallbacks.pointer(to: receiver)
        try set("CURLOPT_ERRORBUFFER", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_ERRORBUFFER, errorBuffer))
        try set(CURLOPT_NOSIGNAL, 1, "CURLOPT_NOSIGNAL")
        // Without it a cancel or a time-out during name resolution joins the resolver's thread, and every stream of
        // the loop waits for it. Nothing to do where libcurl is older.
        if ccurl_option_quick_exit().rawValue != 0 {
            _ = unsafe ccurl_easy_setopt_long(pointer, ccurl_option_quick_exit(), 1)
        }
        try set(CURLOPT_PROTOCOLS_STR, "http,https", "CURLOPT_PROTOCOLS_STR")
        try set(CURLOPT_URL, options.url, "CURLOPT_URL")
        // Redirects are followed by the transport's own rules.
        try set(CURLOPT_FOLLOWLOCATION, 0, "CURLOPT_FOLLOWLOCATION")
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, "CURLOPT_SUPPRESS_CONNECT_HEADERS")
        try set(CURLOPT_BUFFERSIZE, options.bufferSize, "CURLOPT_BUFFERSIZE")
        // Behind the loop's own, which says what ran out in the same words wherever it does.
        try set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout + 1000, "CURLOPT_CONNECTTIMEOUT_MS")
        try set(CURLOPT_TCP_KEEPALIVE, 1, "CURLOPT_TCP_KEEPALIVE")
        try set(CURLOPT_TCP_KEEPIDLE, options.keepaliveIdle, "CURLOPT_TCP_KEEPIDLE")
        try set(CURLOPT_TCP_KEEPINTVL, options.keepaliveInterval, "CURLOPT_TCP_KEEPINTVL")

        switch (options.httpVersion, options.isHTTPS) {
        case (.automatic, true), (.http2, true):
            try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS), "CURLOPT_HTTP_VERSION")
            // For https alone: on http a stream would wait behind a response that may never end.
            try set(CURLOPT_PIPEWAIT, 1, "CURLOPT_PIPEWAIT")
        case (.http2, false):
            try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE), "CURLOPT_HTTP_VERSION")
            if CurlGlobal.info.sharesNoPlainHTTP2 { try set(CURLOPT_FRESH_CONNECT, 1, "CURLOPT_FRESH_CONNECT") }
        case (.automatic, false), (.http1, _):
            try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1), "CURLOPT_HTTP_VERSION")
        }

        try setSecurity(options)
        try setRoute(options)
        try setRequest(options)

        try set(
            "CURLOPT_WRITEFUNCTION",
            unsafe ccurl_easy_setopt_data_function(pointer, CURLOPT_WRITEFUNCTION, curlWrite)
        )
        try set("CURLOPT_WRITEDATA", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_WRITEDATA, argument))
        try set(
            "CURLOPT_HEADERFUNCTION",
            unsafe ccurl_easy_setopt_data_function(pointer, CURLOPT_HEADERFUNCTION, curlHeader)
        )
        try set("CURLOPT_HEADERDATA", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_HEADERDATA, argument))
        try set("CURLOPT_PREREQFUNCTION", unsafe ccurl_easy_setopt_prereq_function(pointer, curlPrerequest))
        try set("CURLOPT_PREREQDATA", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_PREREQDATA, argument))
        try set("CURLOPT_OPENSOCKETFUNCTION", unsafe ccurl_easy_setopt_opensocket_function(pointer, curlOpenSocket))
        try set("CURLOPT_OPENSOCKETDATA", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_OPENSOCKETDATA, argument))
    }

    private func setSecurity(_ options: borrowing EasyOptions) throws(CurlSetupError) {
        let minimum = options.minimumTLS13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        try set(CURLOPT_SSLVERSION, minimum, "CURLOPT_SSLVERSION")
        try set(CURLOPT_SSL_VERIFYPEER, options.verifiesPeer ? 1 : 0, "CURLOPT_SSL_VERIFYPEER")
        try set(CURLOPT_SSL_VERIFYHOST, options.verifiesPeer ? 2 : 0, "CURLOPT_SSL_VERIFYHOST")
        if options.caFile != nil || options.caPath != nil {
            // Both, as the one that is not given is the system's otherwise, which stays trusted beside the other.
            try set(CURLOPT_CAINFO, options.caFile, "CURLOPT_CAINFO")
            try set(CURLOPT_CAPATH, options.caPath, "CURLOPT_CAPATH")
        }
        if let certificate = options.clientCertificate { try set(CURLOPT_SSLCERT, certificate, "CURLOPT_SSLCERT") }
        if let key = options.clientKey { try set(CURLOPT_SSLKEY, key, "CURLOPT_SSLKEY") }
        if let pin = options.pinnedPublicKey { try set(CURLOPT_PINNEDPUBLICKEY, pin, "CURLOPT_PINNEDPUBLICKEY") }
    }

    private mutating func setRoute(_ options: borrowing EasyOptions) throws(CurlSetupError) {
        switch options.proxy {
        case .none: try set(CURLOPT_PROXY, "", "CURLOPT_PROXY")
        case .url(let proxy): try set(CURLOPT_PROXY, proxy, "CURLOPT_PROXY")
        case .environment: break
        }
        if let path = options.unixSocket { try set(CURLOPT_UNIX_SOCKET_PATH, path, "CURLOPT_UNIX_SOCKET_PATH") }
        if let interface = options.interface { try set(CURLOPT_INTERFACE, interface, "CURLOPT_INTERFACE") }
        if options.connectsAnew { try set(CURLOPT_FRESH_CONNECT, 1, "CURLOPT_FRESH_CONNECT") }
        if options.looksUpAnew { try set(CURLOPT_DNS_CACHE_TIMEOUT, 0, "CURLOPT_DNS_CACHE_TIMEOUT") }
        guard !options.resolve.isEmpty else { return }
        unsafe resolveList = try list(options.resolve, option: "CURLOPT_RESOLVE")
        try set("CURLOPT_RESOLVE", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_RESOLVE, resolveList))
    }

    private mutating func setRequest(_ options: borrowing EasyOptions) throws(CurlSetupError) {
        switch (options.method, options.body) {
        case ("GET", nil):
            try set(CURLOPT_HTTPGET, 1, "CURLOPT_HTTPGET")
        case ("HEAD", nil):
            try set(CURLOPT_NOBODY, 1, "CURLOPT_NOBODY")
        case (let method, nil):
            if method == "POST" {
                try set(CURLOPT_POST, 1, "CURLOPT_POST")
                try setContent([])
            } else {
                try set(CURLOPT_CUSTOMREQUEST, method, "CURLOPT_CUSTOMREQUEST")
            }
        case (let method, let body?):
            try set(CURLOPT_POST, 1, "CURLOPT_POST")
            try setContent(body)
            if method != "POST" { try set(CURLOPT_CUSTOMREQUEST, method, "CURLOPT_CUSTOMREQUEST") }
        }
        unsafe headerList = try list(options.headerLines, option: "CURLOPT_HTTPHEADER")
        try set("CURLOPT_HTTPHEADER", unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_HTTPHEADER, headerList))
    }

    private func setContent(_ body: [UInt8]) throws(CurlSetupError) {
        let size = unsafe ccurl_easy_setopt_off_t(pointer, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
        try set("CURLOPT_POSTFIELDSIZE_LARGE", size)
        // Copied by libcurl, by the size set before.
        let code = unsafe body.withUnsafeBytes { bytes -> CURLcode in
            let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress)
            if let start = unsafe start {
                return unsafe ccurl_easy_setopt_pointer(pointer, CURLOPT_COPYPOSTFIELDS, start)
            }
            return unsafe ccurl_easy_setopt_string(pointer, CURLOPT_COPYPOSTFIELDS, "")
        }
        try set("CURLOPT_COPYPOSTFIELDS", code)
    }

    private func list(
        _ lines: [String],
        option: String
    ) throws(CurlSetupError) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = unsafe curl_slist_append(list, line) else {
                unsafe curl_slist_free_all(list)
                throw CurlSetupError(code: CurlCode(CURLE_OUT_OF_MEMORY), option: option)
            }
            unsafe list = unsafe longer
        }
        return unsafe list
    }

    private func set(_ option: CURLoption, _ value: Int, _ name: String) throws(CurlSetupError) {
        try set(name, unsafe ccurl_easy_setopt_long(pointer, option, value))
    }

    private func set(_ option: CURLoption, _ value: String, _ name: String) throws(CurlSetupError) {
        guard !value.utf8.contains(0) else {
            throw CurlSetupError(code: CurlCode(CURLE_BAD_FUNCTION_ARGUMENT), option: name)
        }
        try set(name, unsafe ccurl_easy_setopt_string(pointer, option, value))
    }

    private func set(_ option: CURLoption, _ value: String?, _ name: String) throws(CurlSetupError) {
        if let value { return try set(option, value, name) }
        try set(name, unsafe ccurl_easy_setopt_string(pointer, option, nil))
    }

    private func set(_ name: String, _ code: CURLcode) throws(CurlSetupError) {
        guard code == CURLE_OK else { throw CurlSetupError(code: CurlCode(code), option: name) }
    }

    /// Lets a paused transfer go on.
    ///
    /// What libcurl held is delivered before this returns, through the receiver, which may pause again. Not from
    /// inside a callback.
    func resume() -> CurlCode {
        CurlCode(unsafe curl_easy_pause(pointer, Int32(CURLPAUSE_CONT)))
    }

    /// Sends what HTTP/2 has ready on the transfer's connection.
    ///
    /// By the one call that makes libcurl write without anything to write: a pause of the sending direction, undone at
    /// once. Not for a transfer that is paused, and not from inside a callback.
    func flush() {
        _ = unsafe curl_easy_pause(pointer, Int32(CURLPAUSE_SEND))
        _ = unsafe curl_easy_pause(pointer, Int32(CURLPAUSE_CONT))
    }

    /// Has the connection closed, and not kept, when the transfer leaves it and no other is on it.
    func forbidReuse() {
        _ = unsafe ccurl_easy_setopt_long(pointer, CURLOPT_FORBID_REUSE, 1)
    }

    /// What is known of the transfer.
    ///
    /// Read before the handle leaves its multi handle.
    func facts(code: CurlCode) -> CurlFacts {
        CurlFacts(
            code: code,
            message: unsafe String(cString: errorBuffer),
            systemError: Int32(clamping: long(CURLINFO_OS_ERRNO)),
            connections: long(CURLINFO_NUM_CONNECTS),
            address: string(CURLINFO_PRIMARY_IP),
            proxyStatus: long(CURLINFO_HTTP_CONNECTCODE),
            verifyResult: long(CURLINFO_SSL_VERIFYRESULT)
        )
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        return unsafe ccurl_easy_getinfo_long(pointer, info, &value) == CURLE_OK ? value : 0
    }

    private func string(_ info: CURLINFO) -> String? {
        var value: UnsafePointer<CChar>?
        guard unsafe ccurl_easy_getinfo_string(pointer, info, &value) == CURLE_OK, let value = unsafe value else {
            return nil
        }
        let text = unsafe String(cString: value)
        return text.isEmpty ? nil : text
    }
}
