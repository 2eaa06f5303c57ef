// Bytes of an HTTP/1.1 connection to the requests in it.
//
// Source: RFC 9112, sections 2 to 7, as far as clients make use of it. Strict where a client must be right, and bounded.
//
// Pure. Called on the server's thread.

/// Reads requests, one after the other.
struct ReplayServerRequestReader {
    static let maximumHeadBytes = 1 << 20
    static let maximumBodyBytes = 32 << 20

    /// What is wrong with a request, for the journal.
    struct Problem: Error, Hashable {
        var description: String
    }

    private struct Head {
        var bytes: [UInt8]
        var method: String
        var target: String
        var fields: [ReplayServer.Field]
    }

    private var bytes: [UInt8] = []

    /// The head that was read, while its content is still on the way.
    private var head: Head?

    /// Where the search for the head's end goes on.
    private var searched = 0

    /// Whether more may be kept for a request that nobody has asked for yet.
    var hasRoom: Bool { bytes.count < Self.maximumHeadBytes }

    /// Whether a part of a request is there.
    var hasBegun: Bool { head != nil || !bytes.isEmpty }

    mutating func append(_ more: ArraySlice<UInt8>) {
        bytes.append(contentsOf: more)
    }

    /// Takes the next request; nil while it is not all there.
    mutating func next(
        connection: Int,
        now: ContinuousClock.Instant
    ) throws(Problem) -> ReplayServer.RecordedRequest? {
        if head == nil { head = try readHead() }
        guard let head, let body = try readBody(of: head) else { return nil }
        self.head = nil
        return ReplayServer.RecordedRequest(
            connection: connection,
            instant: now,
            head: head.bytes,
            method: head.method,
            target: head.target,
            fields: head.fields,
            body: body
        )
    }

    private mutating func readHead() throws(Problem) -> Head? {
        guard let end = Self.end(of: Array("\r\n\r\n".utf8), in: bytes, from: max(searched - 3, 0)) else {
            searched = bytes.count
            guard bytes.count <= Self.maximumHeadBytes else {
                throw Problem(description: "a request's head is too long")
            }
            return nil
        }
        searched = 0
        let raw = Array(bytes[..<end])
        bytes.removeFirst(end)

        var lines = String(decoding: raw.dropLast(4), as: UTF8.self)
            .split(separator: "\r\n", omittingEmptySubsequences: false)
        let parts = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1.") else {
            throw Problem(description: "a request line cannot be read")
        }
        var fields: [ReplayServer.Field] = []
        for line in lines {
            let field = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard field.count == 2, !field[0].isEmpty, !field[0].contains(where: \.isWhitespace) else {
                throw Problem(description: "a request's header field cannot be read")
            }
            fields.append(ReplayServer.Field(name: String(field[0]), value: Self.trimmed(field[1])))
        }
        return Head(bytes: raw, method: String(parts[0]), target: String(parts[1]), fields: fields)
    }

    private mutating func readBody(of head: Head) throws(Problem) -> [UInt8]? {
        func value(_ name: String) -> String? {
            head.fields.last { $0.name.lowercased() == name }?.value
        }
        if value("transfer-encoding")?.lowercased() == "chunked" {
            guard bytes.count <= 2 * Self.maximumBodyBytes else { throw Problem(description: "a request is too long") }
            return try readChunks()
        }
        guard let length = value("content-length") else { return [] }
        guard let count = Int(length), count >= 0, count <= Self.maximumBodyBytes else {
            throw Problem(description: "a request's Content-Length cannot be read, or is too long")
        }
        guard bytes.count >= count else { return nil }
        let body = Array(bytes[..<count])
        bytes.removeFirst(count)
        return body
    }

    /// Takes all chunks, once the last is there; trailers are left out.
    private mutating func readChunks() throws(Problem) -> [UInt8]? {
        var body: [UInt8] = []
        var position = 0
        while true {
            guard let end = Self.end(of: Array("\r\n".utf8), in: bytes, from: position) else { return nil }
            let line = bytes[position..<end - 2].prefix { $0 != UInt8(ascii: ";") }
            guard let size = Int(String(decoding: line, as: UTF8.self), radix: 16), size >= 0,
                size <= Self.maximumBodyBytes - body.count
            else { throw Problem(description: "a request's chunk cannot be read, or is too long") }
            if size == 0 {
                // From the line end of the last chunk's size: no trailer is one empty line.
                guard let end = Self.end(of: Array("\r\n\r\n".utf8), in: bytes, from: end - 2) else { return nil }
                bytes.removeFirst(end)
                return body
            }
            guard bytes.count >= end + size + 2 else { return nil }
            body.append(contentsOf: bytes[end..<end + size])
            position = end + size + 2
        }
    }

    /// Where the first occurrence of a pattern ends.
    private static func end(of pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= start + pattern.count else { return nil }
        return (start...bytes.count - pattern.count).first { bytes[$0...].starts(with: pattern) }
            .map { $0 + pattern.count }
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let tail = text.drop(while: isBlank)
        guard let last = tail.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(tail[...last])
    }
}
