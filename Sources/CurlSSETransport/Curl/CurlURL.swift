// URLs by libcurl's own parser, so that what is checked and what is sent to are the same.
//
// Thread: any; a value of this type belongs to one caller.

internal import CCurl

/// A URL, parsed by the parser that will connect to it (`libcurl-url`(3)).
@safe struct CurlURL: ~Copyable {
    private let handle: OpaquePointer

    /// Parses an absolute URL of a web server.
    ///
    /// - Parameter text: The URL, with its scheme; userinfo is allowed.
    /// - Returns: The URL.
    /// - Throws: What is wrong with it, without the URL's own words.
    static func parse(_ text: String) throws(CurlURLError) -> CurlURL {
        // A NUL would end the C string early: what is checked would not be what was given.
        guard !text.utf8.contains(0) else { throw CurlURLError(code: CURLUE_MALFORMED_INPUT) }
        guard let handle = unsafe curl_url() else { throw CurlURLError(code: CURLUE_OUT_OF_MEMORY) }
        let url = unsafe CurlURL(handle: handle)
        try url.set(CURLUPART_URL, text)
        let scheme = url.part(CURLUPART_SCHEME) ?? ""
        guard scheme == "http" || scheme == "https" else { throw CurlURLError(code: CURLUE_UNSUPPORTED_SCHEME) }
        return url
    }

    private init(handle: OpaquePointer) {
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe curl_url_cleanup(handle)
    }

    /// Where the URL points.
    var origin: Origin {
        let scheme = part(CURLUPART_SCHEME) ?? ""
        let port = part(CURLUPART_PORT, flags: UInt32(CURLU_DEFAULT_PORT)).flatMap { Int($0) } ?? 0
        var host = part(CURLUPART_HOST) ?? ""
        // An IPv6 address comes in its brackets.
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return Origin(scheme: scheme, host: host, port: port)
    }

    /// The whole URL.
    ///
    /// Holds what the URL holds, secrets included.
    var text: String { part(CURLUPART_URL) ?? "" }

    /// The URL with a path or a query appended.
    ///
    /// - Parameter target: As `HTTPRequest.target` says.
    /// - Returns: The longer URL.
    /// - Throws: What is wrong with it.
    consuming func appending(_ target: String) throws(CurlURLError) -> CurlURL {
        guard !target.isEmpty else { return self }
        guard !target.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f || $0 == 0x23 }) else {
            throw CurlURLError(code: CURLUE_MALFORMED_INPUT)
        }
        let pieces = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(pieces[0])
        if !path.isEmpty {
            guard path.hasPrefix("/") else { throw CurlURLError(code: CURLUE_BAD_PATH) }
            var base = part(CURLUPART_PATH) ?? "/"
            while base.hasSuffix("/") { base.removeLast() }
            try set(CURLUPART_PATH, base + path)
        }
        if pieces.count > 1, !pieces[1].isEmpty {
            let query = part(CURLUPART_QUERY).map { $0.isEmpty ? "" : $0 + "&" } ?? ""
            try set(CURLUPART_QUERY, query + pieces[1])
        }
        return self
    }

    /// The URL that a `Location` of this URL's response names (RFC 9110, section 10.2.2).
    ///
    /// - Parameter location: The field's value, absolute or relative.
    /// - Returns: The URL it leads to.
    /// - Throws: What is wrong with it.
    func resolving(_ location: String) throws(CurlURLError) -> CurlURL {
        guard !location.isEmpty, !location.utf8.contains(0) else { throw CurlURLError(code: CURLUE_MALFORMED_INPUT) }
        let target = try CurlURL.parse(text)
        // Without this URL's userinfo, so that libcurl can refuse what a Location brings of its own.
        target.clear(CURLUPART_USER)
        target.clear(CURLUPART_PASSWORD)
        let code = unsafe curl_url_set(target.handle, CURLUPART_URL, location, UInt32(CURLU_DISALLOW_USER))
        guard code == CURLUE_OK else { throw CurlURLError(code: code) }
        // The fragment is not sent, and two URLs that differ in it alone are one.
        target.clear(CURLUPART_FRAGMENT)
        // This URL's userinfo goes on to the same origin as before, and to no other.
        if target.origin == origin {
            if let user = part(CURLUPART_USER) { try target.set(CURLUPART_USER, user) }
            if let password = part(CURLUPART_PASSWORD) { try target.set(CURLUPART_PASSWORD, password) }
        }
        return target
    }

    private func clear(_ part: CURLUPart) {
        _ = unsafe curl_url_set(handle, part, nil, 0)
    }

    private func set(_ part: CURLUPart, _ value: String) throws(CurlURLError) {
        let code = unsafe curl_url_set(handle, part, value, 0)
        guard code == CURLUE_OK else { throw CurlURLError(code: code) }
    }

    private func part(_ part: CURLUPart, flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text = unsafe text else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }
}

/// Why a URL cannot be used.
struct CurlURLError: Error {
    var code: CURLUcode

    /// libcurl's sentence; it holds nothing of the URL.
    var text: String { unsafe String(cString: curl_url_strerror(code)) }

    /// Whether the scheme is none of `http` and `https`.
    var isScheme: Bool { code == CURLUE_UNSUPPORTED_SCHEME || code == CURLUE_BAD_SCHEME }
}
