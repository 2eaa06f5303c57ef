// libcurl's result codes to kinds of failure and sentences.
//
// A code alone does not decide: whether a connection had been made, what the system said of a socket, and what a proxy
// answered do too. The text of libcurl decides one case, a proxy's URL, which has no code of its own.

internal import CCurl

/// A `CURLcode`.
struct CurlCode: Hashable, Sendable {
    var rawValue: Int

    init(_ code: CURLcode) {
        rawValue = Int(code.rawValue)
    }

    init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Whether the process had no memory left.
    var isOutOfMemory: Bool { rawValue == Int(CURLE_OUT_OF_MEMORY.rawValue) }

    /// libcurl's sentence for the code.
    var text: String { unsafe String(cString: curl_easy_strerror(CURLcode(UInt32(clamping: rawValue)))) }
}

/// What libcurl and the system said of one transfer.
struct CurlFacts: Hashable, Sendable {
    var code: CurlCode
    /// libcurl's error buffer; may be empty.
    var message: String
    /// CURLINFO_OS_ERRNO; 0 for none.
    var systemError: Int32
    /// The error number of the last socket, when it could not be made; 0 for none.
    var socketError: Int32 = 0
    /// How many connections the transfer made: 0 before the first, and on a reused one.
    var connections: Int
    /// The peer's numeric address.
    var address: String?
    /// What a proxy answered to CONNECT; 0 for nothing.
    var proxyStatus: Int
    /// OpenSSL's verify result; 0 for good.
    var verifyResult: Int
    /// Whether the request was about to be sent, or had been.
    var wasConnected = false
}

extension CurlFacts {
    /// What kind of failure the facts are.
    var kind: TransportError.Kind {
        // What this process ran out of comes back; libcurl says 7, or 6 for a resolver's thread.
        if let socketFailure { return Self.isTransient(socketFailure) ? .network : .environment }
        if isProxyUnusable { return .environment }
        if proxyStatus == 407 { return .request }
        if proxyStatus >= 300 { return .network }
        let code = CURLcode(UInt32(clamping: code.rawValue))
        switch code {
        case CURLE_UNSUPPORTED_PROTOCOL:
            // Before a connection it is a libcurl without TLS, as the URL's scheme has been checked; after one a server
            // that speaks something else, such as HTTP/0.9.
            return wasConnected || connections > 0 ? .network : .environment
        case CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT:
            return wasConnected || connections > 0 ? .network : .request
        case CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_FUNCTION_NOT_FOUND, CURLE_INTERFACE_FAILED,
            CURLE_UNKNOWN_OPTION, CURLE_SETOPT_OPTION_SYNTAX, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CRL_BADFILE:
            return .environment
        default:
            return .network
        }
    }

    /// Errors of making a socket that pass by themselves.
    private static func isTransient(_ number: Int32) -> Bool {
        // A process without the right to make sockets will not gain it by waiting.
        number != SystemError.permissionDenied
    }

    /// Why there was no socket to connect with; nil when that is not what failed.
    ///
    /// One address of a host may have had none, and another have been connected to.
    private var socketFailure: Int32? {
        socketError != 0 && code.rawValue == Int(CURLE_COULDNT_CONNECT.rawValue) ? socketError : nil
    }

    /// Whether the proxy's own URL was the fault: it has no code of its own, and its text quotes the URL, userinfo and
    /// all.
    private var isProxyUnusable: Bool { message.hasPrefix("Unsupported proxy") }

    /// The system's error number, from wherever it was seen; nil for none.
    ///
    /// libcurl keeps that of an address that could not be connected to while it talks to another.
    var errno: Int32? {
        if let socketFailure { return socketFailure }
        let isItsOwn = [CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains { code == CurlCode($0) }
        return systemError == 0 || wasConnected && !isItsOwn ? nil : systemError
    }

    /// What happened, in words, without the code.
    var what: String {
        if let socketFailure {
            return "no socket could be made: \(Self.lowerFirst(Sockets.text(of: socketFailure)))"
        }
        if isProxyUnusable { return "the proxy's URL cannot be used" }
        if proxyStatus == 407 { return "the proxy wants other credentials (407)" }
        if proxyStatus >= 300 { return "the proxy refused CONNECT with \(proxyStatus)" }
        if let errno, code.rawValue == Int(CURLE_COULDNT_CONNECT.rawValue) {
            return Self.lowerFirst(Sockets.text(of: errno))
        }
        var text = message.isEmpty ? code.text : message
        while text.hasSuffix(".") || text.hasSuffix("\n") { text.removeLast() }
        if let errno, !message.contains(Sockets.text(of: errno)) {
            text += " (\(Self.lowerFirst(Sockets.text(of: errno))))"
        }
        return Self.lowerFirst(text)
    }

    /// The first letter small, unless the first word is written in capitals, as SSL is.
    private static func lowerFirst(_ text: String) -> String {
        guard let first = text.first, let second = text.dropFirst().first, !second.isUppercase else { return text }
        return first.lowercased() + text.dropFirst()
    }

    /// The facts of libcurl and the system, for the end of a sentence.
    var suffix: String {
        var facts = ["curl \(code.rawValue)"]
        if let errno { facts.append("errno \(errno)") }
        // OpenSSL has a result other than 0 from the start.
        if verifyResult != 0, code == CurlCode(CURLE_PEER_FAILED_VERIFICATION) {
            facts.append("verify result \(verifyResult)")
        }
        return facts.joined(separator: ", ")
    }
}
