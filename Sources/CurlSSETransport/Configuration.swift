// The numbers and names a transport works by, and their ranges.
//
// Plain values without a C name. Read by the transport and its loop; checked once, where a transport is made.

/// How a transport connects, waits and reads.
///
/// Every number has a range, which ``validate()`` holds it to; making a transport validates. The defaults are meant to
/// be left alone.
public struct Configuration: Sendable {
    // MARK: Deadlines

    /// How long a connection may take: name, TCP, TLS and proxy, from the opening's admission to the sending of its
    /// request.
    ///
    /// 10 ms to 1 hour. Default: 15 s.
    public var connectTimeout: Duration = .seconds(15)

    /// How long the server may take from the sending of the request to the last line of its response's head.
    ///
    /// 10 ms to 1 hour. Default: 60 s, as some servers send their head only with the first ping, after 15 s.
    public var firstByteTimeout: Duration = .seconds(60)

    /// How long the server may send nothing before the stream counts as failed.
    ///
    /// A comment counts as sending something; time in which the stream is held back by its reader does not count.
    /// 10 ms to 7 days. Default: 300 s.
    public var idleTimeout: Duration = .seconds(300)

    /// How long an opening may wait for its turn, see ``maxConcurrentOpenings``.
    ///
    /// 10 ms to 1 hour. Default: 60 s.
    public var admissionTimeout: Duration = .seconds(60)

    // MARK: Bounds

    /// How many openings of one origin may be under way at once; the others wait for their turn.
    ///
    /// An opening is under way until its request is sent. 1 to 1024. Default: 32.
    public var maxConcurrentOpenings = 32

    /// How many bytes of a stream are kept unread before the server is held back.
    ///
    /// 1 KiB to 1 GiB. Default: 256 KiB.
    public var highWater = 256 << 10

    /// The longest event, in bytes of its data or of any other single field that is kept.
    ///
    /// A longer one fails the stream. 1 byte to 1 GiB. Default: 16 MiB.
    public var maxEventBytes = 16 << 20

    // MARK: The connection's health

    /// How long a connection may be quiet before TCP asks whether the peer is there (`TCP_KEEPIDLE`, tcp(7)).
    ///
    /// About: each connection has from a half to one and a half of it, by chance, so that thousands that were made
    /// together do not ask together. Whole seconds, a fraction is rounded up. 1 s to 32767 s. Default: 30 s.
    public var keepaliveIdle: Duration = .seconds(30)

    /// How long TCP waits between two such questions (`TCP_KEEPINTVL`, tcp(7)).
    ///
    /// Whole seconds, a fraction is rounded up. 1 s to 32767 s. Default: 10 s.
    public var keepaliveInterval: Duration = .seconds(10)

    /// How many such questions may stay unanswered (`TCP_KEEPCNT`, tcp(7)).
    ///
    /// 1 to 127. Default: 3.
    public var keepaliveProbes = 3

    /// How long sent bytes may stay unacknowledged (`TCP_USER_TIMEOUT`, tcp(7)).
    ///
    /// Never less than the keepalive takes, from the first silence to the last question that stays unanswered: past it
    /// Linux takes a peer for dead that does not answer one. 1 ms to 1 hour. Default: 30 s, so in effect 45 s to 75 s.
    public var tcpUserTimeout: Duration = .seconds(30)

    // MARK: The way to the server

    /// Which version of HTTP is spoken.
    ///
    /// Default: ``HTTPVersion/automatic``.
    public var httpVersion = HTTPVersion.automatic

    /// Whom to trust over TLS, and who to be.
    public var tls = TLS()

    /// The proxy.
    ///
    /// Default: ``Proxy/none``, whatever the environment variables say.
    public var proxy = Proxy.none

    /// The path of a Unix socket to connect to, in place of the URL's host and port.
    ///
    /// 1 to 107 bytes (unix(7)). Default: nil.
    public var unixSocket: String?

    /// The name of the network interface, or the address, to connect from.
    ///
    /// Default: nil, the system's choice.
    public var interface: String?

    /// Addresses to use for a host and port, in place of what its name resolves to.
    ///
    /// A loop keeps them, and the connections made by them, so transports that share a loop share them too. Default:
    /// none.
    public var resolve: [ResolveOverride] = []

    /// Origins that a redirect may take the caller's header fields, the credentials and a request's content to.
    ///
    /// Each as a URL without a path, such as `https://eu.example.com:8443`. Default: none.
    public var trustedOrigins: [String] = []

    // MARK: Threads

    /// Whether the runtime reads streams on the loop's own thread, in place of the global pool.
    ///
    /// A subscription's state then changes on that thread, without one of the pool's between. It is no faster where it
    /// was measured: a fifth to two fifths more CPU for a full stream of small events, the same for many quiet ones. What
    /// runs on the loop's thread then holds up all of its streams, and must not block nor compute for long: the dialect's
    /// making of a request, the credentials' provider, the environment's log, and the deinit of a payload that nobody
    /// took. Owners' loops run where they always do. Default: false.
    public var readsOnLoop = false

    // MARK: Watching

    /// Called with each comment line of each stream: all after its colon, at its line's end.
    ///
    /// On the loop's thread, which it holds up: it must not block. Default: nil; comments are then skipped unread.
    public var onComment: (@Sendable (String) -> Void)?

    /// Makes the default configuration.
    public init() {}
}

extension Configuration {
    /// Which version of HTTP is spoken.
    public enum HTTPVersion: String, Hashable, Sendable {
        /// HTTP/2 where TLS agrees on it (ALPN), else HTTP/1.1.
        case automatic

        /// HTTP/1.1 alone.
        case http1_1

        /// HTTP/2, agreed on by TLS; without TLS by prior knowledge (RFC 9113, section 3.3).
        case http2
    }

    /// Whom to trust over TLS, and who to be.
    ///
    /// Files are looked at for each opening: one that was replaced under its name is heeded by the next, on a connection
    /// of its own, while streams that are open go on. Replace a certificate and its key in one step, by renaming a
    /// folder or a link: an opening that finds one without the other fails.
    public struct TLS: Hashable, Sendable {
        /// The lowest version of TLS that is spoken.
        public enum Version: String, Hashable, Sendable {
            /// TLS 1.2.
            case tls1_2

            /// TLS 1.3.
            case tls1_3
        }

        /// The path of a PEM file of the authorities to trust, in place of the system's.
        ///
        /// Default: nil, the system's unless ``caPath`` is set.
        public var caFile: String?

        /// The path of a directory of authorities to trust, hashed by `openssl rehash`, in place of the system's.
        ///
        /// Default: nil, the system's unless ``caFile`` is set.
        public var caPath: String?

        /// The path of a PEM file with the client's certificate, and the chain behind it.
        ///
        /// Default: nil.
        public var clientCertificate: String?

        /// The path of a PEM file with the certificate's private key.
        ///
        /// Default: nil, the key is in the certificate's file.
        public var clientKey: String?

        /// The lowest version of TLS that is spoken.
        ///
        /// Default: TLS 1.2.
        public var minimumVersion = Version.tls1_2

        /// The server's public key: `sha256//` and the hash of the key in base64, several with `;` between them, or
        /// the path of a PEM or DER file.
        ///
        /// A server with another key is refused before a byte of the request is sent. Default: nil.
        public var pinnedPublicKey: String?

        /// Whether any server is believed to be who it says it is.
        ///
        /// For tests alone: true leaves the connection open to whoever sits on the way, credentials and all. Default:
        /// false.
        public var insecureSkipsVerification = false

        /// Trusts the system's authorities, over TLS 1.2 or newer.
        public init() {}
    }

    /// How a server is reached through a proxy.
    public enum Proxy: Hashable, Sendable {
        /// Directly, whatever the environment variables say.
        case none

        /// Through the proxy at this URL: `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, userinfo
        /// allowed.
        ///
        /// An `https` proxy is believed to be who it is where the system's authorities vouch for it: ``TLS`` is for
        /// servers alone. That it is refused where they do not is tested; no test has one that they vouch for.
        case url(String)

        /// As `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say when a stream is opened.
        case fromEnvironment
    }

    /// The addresses of one host and port.
    public struct ResolveOverride: Hashable, Sendable {
        /// The URL's host; `*` for every host.
        public var host: String

        /// The URL's port, 1 to 65535.
        public var port: Int

        /// A numeric address, or several with commas between them; IPv6 in brackets or without, and
        /// without a zone, which libcurl does not take here.
        public var address: String

        /// Makes an override.
        public init(host: String, port: Int, address: String) {
            self.host = host
            self.port = port
            self.address = address
        }

        /// As CURLOPT_RESOLVE(3) takes it.
        var entry: String { "\(host):\(port):\(address)" }
    }
}

extension Configuration {
    /// Checks every value against its range.
    ///
    /// Files are not opened here: one that cannot be read fails the opening, as an environment failure too.
    ///
    /// - Throws: An error of kind `environment` that names the first property out of its range, its value and the
    ///   range. What may hold a secret is not repeated.
    public func validate() throws(TransportError) {
        let hour = Duration.seconds(3600)
        try check("connectTimeout", connectTimeout, in: .milliseconds(10)...hour)
        try check("firstByteTimeout", firstByteTimeout, in: .milliseconds(10)...hour)
        try check("idleTimeout", idleTimeout, in: .milliseconds(10)...(hour * (24 * 7)))
        try check("admissionTimeout", admissionTimeout, in: .milliseconds(10)...hour)
        try check("maxConcurrentOpenings", maxConcurrentOpenings, in: 1...1024)
        try check("highWater", highWater, in: 1024...(1 << 30))
        try check("maxEventBytes", maxEventBytes, in: 1...(1 << 30))
        try check("keepaliveIdle", keepaliveIdle, in: .seconds(1)...(.seconds(32_767)))
        try check("keepaliveInterval", keepaliveInterval, in: .seconds(1)...(.seconds(32_767)))
        try check("keepaliveProbes", keepaliveProbes, in: 1...127)
        try check("tcpUserTimeout", tcpUserTimeout, in: .milliseconds(1)...hour)

        try check("tls.caFile", path: tls.caFile)
        try check("tls.caPath", path: tls.caPath)
        try check("tls.clientCertificate", path: tls.clientCertificate)
        try check("tls.clientKey", path: tls.clientKey)
        if tls.clientKey != nil, tls.clientCertificate == nil {
            throw Self.refusal("tls.clientKey is set, and tls.clientCertificate is not: a key needs its certificate")
        }
        try check("tls.pinnedPublicKey", path: tls.pinnedPublicKey)
        if let pins = tls.pinnedPublicKey, pins.hasPrefix("sha256//"), !Self.arePins(pins) {
            throw Self.refusal(
                "tls.pinnedPublicKey is '\(pins)', not sha256// and 44 characters of base64, or several with ; between them"
            )
        }

        try check("unixSocket", path: unixSocket)
        if let unixSocket, unixSocket.utf8.count > 107 {
            throw Self.refusal("unixSocket has \(unixSocket.utf8.count) bytes, not 1 to 107")
        }
        try check("interface", path: interface)
        if case .url(let proxy) = proxy {
            guard !proxy.isEmpty, proxy.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw Self.refusal(
                    "proxy is a URL that is empty or has a blank or control byte, not the URL of a proxy"
                )
            }
        }
        for override in resolve { try override.validate() }
        for origin in trustedOrigins {
            guard !origin.isEmpty, origin.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw Self.refusal(
                    "trustedOrigins has an origin that is empty or has a blank or control byte, not scheme://host:port"
                )
            }
        }
    }

    private func check<Value: Comparable>(
        _ name: String,
        _ value: Value,
        in range: ClosedRange<Value>
    ) throws(TransportError) {
        guard !range.contains(value) else { return }
        throw Self.refusal("\(name) is \(value), not \(range.lowerBound) to \(range.upperBound)")
    }

    /// A NUL would end the text for libcurl in its middle: another file than the one that was named.
    private func check(_ name: String, path: String?) throws(TransportError) {
        guard let path else { return }
        guard !path.isEmpty else { throw Self.refusal("\(name) is empty, not nil or at least 1 byte") }
        guard !path.utf8.contains(where: ASCII.isControl) else {
            throw Self.refusal("\(name) has a control byte, which no such name has")
        }
    }

    /// A SHA-256 in base64 is 43 characters and a `=` (RFC 4648, section 4).
    private static func arePins(_ text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).allSatisfy { pin in
            guard pin.starts(with: "sha256//".utf8) else { return false }
            let hash = pin.dropFirst(8)
            return hash.count == 44 && hash.last == UInt8(ascii: "=")
                && hash.dropLast().allSatisfy { byte in
                    let letter = ASCII.lowercased(byte)
                    return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z") || ASCII.isDigit(byte)
                        || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
                }
        }
    }

    fileprivate static func refusal(_ message: String) -> TransportError {
        TransportError(kind: .environment, message: "the configuration's \(message)")
    }
}

extension Configuration.ResolveOverride {
    /// Checks that the three parts make one entry: a `:` or a `,` in the wrong place would make another.
    fileprivate func validate() throws(TransportError) {
        let isHost =
            !host.isEmpty && host.first != "-" && host.first != "+"
            && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ",") }
        guard isHost else {
            throw Configuration.refusal(
                "resolve has a host that is no name: not 1 or more bytes of ASCII without : and ,"
            )
        }
        guard (1...65_535).contains(port) else {
            throw Configuration.refusal("resolve has the port \(port) for \(host), not 1 to 65535")
        }
        let addresses = address.split(separator: ",", omittingEmptySubsequences: false)
        guard addresses.allSatisfy({ Sockets.isAddress(String($0)) }) else {
            throw Configuration.refusal("resolve has an address for \(host) that is not numeric")
        }
    }
}
