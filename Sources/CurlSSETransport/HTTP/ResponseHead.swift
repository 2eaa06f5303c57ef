// Header lines, as libcurl's header callback gives them, to the head of the final response.
//
// Source: RFC 9112, sections 2.2, 4 and 5; RFC 9110, sections 5.5 and 15. CURLOPT_HEADERFUNCTION(3): one complete
// line a call, its line end included, the heads of interim responses and the trailers among them.
//
// Pure. Called on the loop's queue, inside a libcurl call, once a line.

/// The status and the fields of a response.
struct ResponseHead: Hashable, Sendable {
    /// `1.0`, `1.1`, `2`.
    var version: String

    /// 100 to 999.
    var status: Int

    /// In the order of the response.
    ///
    /// What is not UTF-8 in a value became U+FFFD.
    var fields: [HTTPField]

    /// The value of the last field of the name, without case; nil where there is none.
    func last(_ name: String) -> String? {
        fields.last { ASCII.equal($0.name, name) }?.value
    }

    /// The values of all fields of the name, without case, in order.
    func all(_ name: String) -> [String] {
        fields.filter { ASCII.equal($0.name, name) }.map(\.value)
    }
}

/// Reads the head of one response, line by line.
///
///                 status line              blank line, 200 to 999
///     beginning ---------------> fields ---------------------------> ended (trailers are skipped)
///         ^                        |
///         +---- blank line, 1xx ---+
///
///     any ---- a line that cannot be read, or too much of them ----> failed
struct ResponseHeadParser: Sendable {
    /// The most bytes of one head, line ends included: 64 KiB.
    static let maximumBytes = 64 << 10

    /// The most fields of one head.
    static let maximumFields = 256

    private enum State {
        case beginning
        case fields
        case ended
        case failed
    }

    private var state = State.beginning
    private var head = ResponseHead(version: "", status: 0, fields: [])
    private var bytes = 0

    /// Makes a parser for one response.
    init() {}

    /// Reads one line.
    ///
    /// - Parameter line: The line, with its CRLF or LF or without.
    /// - Returns: The final head, at its blank line; nil at every other line.
    /// - Throws: An error of kind `network` when the line is none of a head's, or the head is over 64 KiB or 256
    ///   fields. The parser is spent after that.
    mutating func push(line: [UInt8]) throws(TransportError) -> ResponseHead? {
        var content = line[...]
        if content.last == UInt8(ascii: "\n") { content.removeLast() }
        if content.last == UInt8(ascii: "\r") { content.removeLast() }

        switch state {
        case .failed:
            return nil
        case .ended:
            // A trailer is a field, whose name has no slash. libcurl may ask again inside one transfer (HTTP/2's
            // HTTP_1_1_REQUIRED), and the bodies of two responses must not become one stream.
            guard !content.starts(with: "HTTP/".utf8) else { throw failed("began anew after its head") }
            return nil
        case .beginning:
            bytes = line.count
            guard bytes <= Self.maximumBytes else { throw failed("has a head of over \(Self.maximumBytes) bytes") }
            try begin(content)
            return nil
        case .fields:
            bytes += line.count
            guard bytes <= Self.maximumBytes else { throw failed("has a head of over \(Self.maximumBytes) bytes") }
            guard content.isEmpty else {
                try add(content)
                return nil
            }
            // RFC 9110, section 15.2: an interim response comes before the final one, and is skipped.
            let isFinal = head.status >= 200
            state = isFinal ? .ended : .beginning
            guard isFinal else { return nil }
            // What is said of trailers needs no fields, and an open stream is long.
            defer { head.fields = [] }
            return head
        }
    }

    /// `HTTP-version SP status-code [SP reason]` (RFC 9112, section 4).
    private mutating func begin(_ line: ArraySlice<UInt8>) throws(TransportError) {
        let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].starts(with: "HTTP/".utf8), let version = Self.version(parts[0].dropFirst(5)),
            parts[1].count == 3, parts[1].allSatisfy(ASCII.isDigit)
        else { throw failed("has a status line that cannot be read") }

        let status = parts[1].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard status >= 100 else { throw failed("has a status below 100") }
        head = ResponseHead(version: version, status: status, fields: [])
        state = .fields
    }

    /// `1.1` and `2` as they are, `2.0` as `2`.
    private static func version(_ bytes: ArraySlice<UInt8>) -> String? {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy({ $0.count == 1 && $0.allSatisfy(ASCII.isDigit) }) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return parts.count == 2 && text != "1.0" && text.hasSuffix(".0") ? String(text.prefix(1)) : text
    }

    private mutating func add(_ line: ArraySlice<UInt8>) throws(TransportError) {
        // RFC 9110, section 5.5: CR, LF and NUL in a value are dangerous. The other control bytes are kept.
        guard !line.contains(where: { $0 == 0 || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }) else {
            throw failed("has a line break or NUL inside a header field")
        }

        if let first = line.first, ASCII.isBlank(first) {
            // RFC 9112, section 5.2: obsolete folding goes on with the value of the line before, after a space.
            // Section 2.2: a blank before the first field is no folding.
            guard !head.fields.isEmpty else { throw failed("has a blank before its first header field") }
            let more = String(decoding: ASCII.trimmed(line), as: UTF8.self)
            let last = head.fields.count - 1
            guard !more.isEmpty else { return }
            head.fields[last].value += head.fields[last].value.isEmpty ? more : " " + more
            return
        }

        // RFC 9112, section 5.1: no blank between the name and its colon.
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(ASCII.isToken)
        else { throw failed("has a line in its head that is no header field") }
        guard head.fields.count < Self.maximumFields else {
            throw failed("has over \(Self.maximumFields) header fields")
        }
        head.fields.append(
            HTTPField(
                String(decoding: line[..<colon], as: UTF8.self),
                String(decoding: ASCII.trimmed(line[(colon + 1)...]), as: UTF8.self)
            )
        )
    }

    private mutating func failed(_ what: String) -> TransportError {
        state = .failed
        return TransportError(
            kind: .network,
            message: "the response \(what)",
            status: head.status == 0 ? nil : head.status,
            httpVersion: head.version.isEmpty ? nil : head.version
        )
    }
}
