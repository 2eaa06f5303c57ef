// A request's method, target and header fields to what libcurl may be given, or to why not.
//
// Source: RFC 9110, sections 5.1 (names), 5.5 (values), 5.6.2 (tokens), 7.6.1 (fields of the connection), 9.1
// (methods); for the lines, CURLOPT_HTTPHEADER(3). libcurl writes the lines of that option as they are, line breaks
// included, so nothing unchecked may reach it.
//
// Pure. Called once an opening, before any byte is sent. A message names the field and the rule and never the value,
// nor what follows the first byte of a name that no name may have: a value pasted into the name is a secret too.

/// What may be sent as a request's method, target and fields.
enum HeaderRules {
    /// The fields that no caller and no dialect sets, in lower case.
    ///
    /// The framing of the request and the life of the connection are libcurl's: `Host`, `Content-Length`,
    /// `Transfer-Encoding`, `Expect`, and the fields that belong to one connection (RFC 9110, section 7.6.1; RFC 9113,
    /// section 8.2.2 makes an HTTP/2 request with one of them malformed). `Trailer` announces what is never sent.
    /// `Proxy-Authorization` would reach the server behind the proxy: the proxy's credentials go with the proxy.
    /// `Last-Event-ID` is the stream's to move: one set by hand would ask for the same past at every opening again.
    static let reserved: Set<String> = [
        "host", "content-length", "transfer-encoding", "expect",
        "connection", "upgrade", "te", "keep-alive", "proxy-connection", "http2-settings",
        "trailer", "proxy-authorization", "last-event-id",
    ]

    /// The most bytes of a last event ID that are sent.
    static let maximumLastEventIDBytes = 4096

    /// `field-value` (RFC 9110, section 5.5), or empty: visible ASCII, blanks, and bytes from 0x80.
    static func isFieldValue(_ value: String) -> Bool {
        value.utf8.allSatisfy { !ASCII.isControl($0) || $0 == UInt8(ascii: "\t") }
    }

    /// Checks a method.
    ///
    /// - Parameter method: As it would be sent; methods have case.
    /// - Throws: An error of kind `request`: it is no token, or its answer never has content to stream.
    static func check(method: String) throws(TransportError) {
        guard ASCII.isToken(method) else {
            throw refusal("the method \(shown(method)) is not a token (RFC 9110, section 9.1)")
        }
        guard method != "CONNECT", method != "HEAD" else {
            throw refusal("the method \(method) has no response that could be a stream (RFC 9110, section 9.3)")
        }
    }

    /// Checks a target that is appended to the transport's URL.
    ///
    /// - Parameter target: Empty, or a path from its `/`, or a query from its `?`.
    /// - Throws: An error of kind `request` that does not repeat the target.
    static func check(target: String) throws(TransportError) {
        guard let first = target.utf8.first else { return }
        guard first == UInt8(ascii: "/") || first == UInt8(ascii: "?") else {
            throw refusal("the request's target starts with neither / nor ?")
        }
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw refusal("the request's target has a byte that must be percent-encoded (RFC 3986, section 2.1)")
        }
        guard !target.utf8.contains(UInt8(ascii: "#")) else {
            throw refusal("the request's target has a fragment, which is never sent (RFC 9110, section 4.2.5)")
        }
    }

    /// The fields to send.
    ///
    /// A caller's field replaces the dialect's of the same name, and a field of the credentials replaces both. A name
    /// that one side gives twice is sent twice, in order.
    ///
    /// - Parameters:
    ///   - dialect: The dialect's own.
    ///   - caller: The caller's.
    ///   - credentials: The credentials provider's for this opening.
    /// - Returns: The fields, checked, their values without the blanks around them: the dialect's order, each with
    ///   what replaced it, then the others as they were given.
    /// - Throws: An error of kind `request` for the first field that cannot be sent.
    static func merged(
        dialect: [HTTPField],
        caller: [HTTPField],
        credentials: [HTTPField] = []
    ) throws(TransportError) -> [HTTPField] {
        var fields = try checked(dialect)
        for layer in [try checked(caller), try checked(credentials)] {
            fields = replaced(fields, by: layer)
        }
        return fields
    }

    /// The field that says where to resume.
    ///
    /// - Parameter id: The last event ID string (WHATWG HTML 9.2.6).
    /// - Returns: `Last-Event-ID`; nil for an ID that is empty or all blanks, has a control byte other than tab, or
    ///   has over 4096 bytes.
    static func lastEventIDField(_ id: String) -> HTTPField? {
        let value = ASCII.trimmed(id)
        guard !value.isEmpty, id.utf8.count <= maximumLastEventIDBytes, isFieldValue(id) else { return nil }
        return HTTPField("Last-Event-ID", value)
    }

    /// The line that CURLOPT_HTTPHEADER(3) takes for a field.
    ///
    /// An empty value is written `Name;`: `Name:` would have libcurl leave out the field of that name.
    ///
    /// - Parameter field: A field of ``merged(dialect:caller:credentials:)``.
    /// - Returns: The line, without a line end.
    static func line(_ field: HTTPField) -> String {
        field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
    }

    /// The lines that CURLOPT_HTTPHEADER(3) takes for a whole request.
    ///
    /// What libcurl would add by itself and nobody asked for is taken out: `Expect`, which costs a second where a
    /// server does not know it, `Accept: */*`, and the form's `Content-Type` of a request with content.
    ///
    /// - Parameter fields: All of the request's fields, `Last-Event-ID` included.
    /// - Returns: The lines, without line ends.
    static func lines(_ fields: [HTTPField]) -> [String] {
        var lines = fields.map(line)
        for name in ["Accept", "Content-Type"] where !fields.contains(where: { ASCII.equal($0.name, name) }) {
            lines.append("\(name):")
        }
        lines.append("Expect:")
        return lines
    }

    private static func checked(_ fields: [HTTPField]) throws(TransportError) -> [HTTPField] {
        var checked: [HTTPField] = []
        checked.reserveCapacity(fields.count)
        for field in fields {
            guard ASCII.isToken(field.name) else {
                throw refusal("the header field name \(shown(field.name)) is not a token (RFC 9110, section 5.1)")
            }
            let name = ASCII.lowercased(field.name)
            guard name != "last-event-id" else {
                throw refusal(
                    "the header field \(shown(field.name)) is reserved: the request's last event ID is set beside its headers"
                )
            }
            guard !reserved.contains(name) else {
                throw refusal(
                    "the header field \(shown(field.name)) is reserved: the transport sets it where it is needed"
                )
            }
            guard isFieldValue(field.value) else {
                throw refusal(
                    "the header field \(shown(field.name)) has a control byte in its value (RFC 9110, section 5.5)"
                )
            }
            checked.append(HTTPField(field.name, ASCII.trimmed(field.value)))
        }
        return checked
    }

    private static func replaced(_ fields: [HTTPField], by layer: [HTTPField]) -> [HTTPField] {
        guard !layer.isEmpty else { return fields }
        var result: [HTTPField] = []
        var placed: Set<String> = []
        for field in fields {
            let name = ASCII.lowercased(field.name)
            let replacements = layer.filter { ASCII.lowercased($0.name) == name }
            if replacements.isEmpty {
                result.append(field)
            } else if placed.insert(name).inserted {
                result.append(contentsOf: replacements)
            }
        }
        return result + layer.filter { !placed.contains(ASCII.lowercased($0.name)) }
    }

    /// The part of a name or method that is fit for a log: its first bytes that are a token, 64 at most.
    private static func shown(_ name: String) -> String {
        let prefix = name.utf8.prefix(64).prefix(while: ASCII.isToken)
        let rest = prefix.count < name.utf8.count ? "..." : ""
        return "'\(String(decoding: prefix, as: UTF8.self))\(rest)'"
    }

    private static func refusal(_ message: String) -> TransportError {
        TransportError(kind: .request, message: message)
    }
}
