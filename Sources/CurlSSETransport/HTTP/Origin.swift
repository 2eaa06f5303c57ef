// The server behind a URL, as far as trust goes.
//
// Pure. Made by the URL API's side from parts that libcurl has parsed; compared by the redirect rules and used as the
// key of the admission queues.

/// Scheme, host and port of a URL (RFC 6454, section 4): what two URLs must share to be one server's.
struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// `http` or `https`, in lower case.
    let scheme: String

    /// A name or an address in lower case; an IPv6 address without its brackets.
    let host: String

    /// 0 to 65535.
    let port: Int

    /// Makes an origin from parsed parts.
    ///
    /// - Parameters:
    ///   - scheme: In any case.
    ///   - host: In any case; an IPv6 address with its brackets or without.
    ///   - port: The port in use, the scheme's own where the URL named none.
    init(scheme: String, host: String, port: Int) {
        self.scheme = ASCII.lowercased(scheme)
        var host = ASCII.lowercased(host)
        if host.hasPrefix("["), host.hasSuffix("]"), host.utf8.count >= 2 {
            host = String(host.dropFirst().dropLast())
        }
        self.host = host
        self.port = port
    }

    /// `host:port`, an IPv6 address in brackets.
    var hostAndPort: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// `https://host:port`.
    var description: String { "\(scheme)://\(hostAndPort)" }
}
