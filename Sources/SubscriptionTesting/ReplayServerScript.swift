// What a replay server does with a connection, as values.
//
// Pure. Written by tests; played by the server's thread.

extension ReplayServer {
    /// One thing that a replay server does with a connection.
    public enum Step: Hashable, Sendable {
        /// Reads one request, head and content, and records it. Fails the script when the peer closes before.
        case expectRequest

        /// Sends the bytes, in segments of their own where TCP lets it. Done when the kernel has taken all of them.
        case send([UInt8])

        /// Sends the bytes again and again, the given number of times.
        case sendRepeating([UInt8], count: Int)

        /// Sends the bytes again and again, until the peer closes or the server stops.
        case sendForever([UInt8])

        /// Does nothing for the time.
        case pause(Duration)

        /// Does nothing until ``ReplayServer/proceed(_:)`` or the peer closes.
        case silence

        /// Says that no more bytes come (FIN), and goes on with the script.
        case halfClose

        /// Closes the connection (FIN). The script ends.
        case close

        /// Resets the connection (RST), once the peer has acknowledged what was sent, or 5 s later. The script ends.
        case reset
    }

    /// How a connection is cut.
    public enum Cut: Hashable, Sendable {
        /// By a FIN.
        case close

        /// By a RST.
        case reset
    }

    /// The script with its connection cut after so many bytes.
    ///
    /// - Parameters:
    ///   - script: The whole script.
    ///   - count: How many of its bytes are sent, at least 0. For 0 the cut comes where the first byte would.
    ///   - cut: How the connection ends then.
    /// - Returns: The steps up to the last of these bytes, and the cut; the script unchanged where it sends fewer.
    public static func cut(_ script: [Step], after count: Int, by cut: Cut) -> [Step] {
        let end: Step = cut == .close ? .close : .reset
        var left = count
        var result: [Step] = []
        for step in script {
            guard let (bytes, times) = step.sent, !bytes.isEmpty else {
                result.append(step)
                continue
            }
            // A byte that lies within the step: whole repetitions first, then the part of one.
            let repetitions = left / bytes.count
            guard repetitions < times else {
                result.append(step)
                left -= bytes.count * times
                if left == 0 { return result + [end] }
                continue
            }
            if repetitions > 0 { result.append(.sendRepeating(bytes, count: repetitions)) }
            let part = left % bytes.count
            if part > 0 { result.append(.send(Array(bytes[..<part]))) }
            return result + [end]
        }
        return result
    }
}

extension ReplayServer.Step {
    /// Sends the text's UTF-8.
    ///
    /// - Parameter text: Sent as it is: a head needs its CRLFs.
    /// - Returns: The step.
    public static func send(_ text: String) -> Self {
        .send(Array(text.utf8))
    }

    /// Sends the bytes cut into pieces, a step each.
    ///
    /// - Parameters:
    ///   - bytes: What is sent.
    ///   - size: The bytes of one piece, at least 1; the last one may have fewer.
    /// - Returns: The steps.
    public static func pieces(_ bytes: [UInt8], of size: Int) -> [Self] {
        stride(from: 0, to: bytes.count, by: max(size, 1)).map { start in
            .send(Array(bytes[start..<min(start + max(size, 1), bytes.count)]))
        }
    }

    /// What a step sends and how many times; nil where it sends nothing.
    var sent: (bytes: [UInt8], times: Int)? {
        switch self {
        case .send(let bytes): (bytes, 1)
        case .sendRepeating(let bytes, let count): (bytes, max(count, 0))
        case .sendForever(let bytes): (bytes, .max)
        case .expectRequest, .pause, .silence, .halfClose, .close, .reset: nil
        }
    }
}

extension ReplayServer {
    /// The head of an event stream whose body ends with the connection.
    public static let eventStreamHead = head(200, [("Content-Type", "text/event-stream"), ("Connection", "close")])

    /// The head of an event stream whose body comes in chunks: see `chunk(_:)`.
    public static let chunkedEventStreamHead = head(
        200,
        [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
    )

    /// The head of an HTTP/1.1 response.
    ///
    /// - Parameters:
    ///   - status: The status; its reason is left out.
    ///   - fields: The header fields, sent as they are.
    /// - Returns: The head with its blank line.
    public static func head(_ status: Int, _ fields: [(String, String)] = []) -> String {
        "HTTP/1.1 \(status) \r\n" + fields.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
    }

    /// A whole HTTP/1.1 response, after which the connection may be used again.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The header fields beside `Content-Length`.
    ///   - body: The content.
    /// - Returns: The response.
    public static func response(_ status: Int, _ fields: [(String, String)] = [], body: String = "") -> String {
        // RFC 9110, section 8.6: no Content-Length where there can be no content.
        let length = status == 204 || status == 304 ? [] : [("Content-Length", "\(body.utf8.count)")]
        return head(status, fields + length) + body
    }

    /// A chunk of a chunked body (RFC 9112, section 7.1).
    ///
    /// - Parameter text: The chunk's content; empty for the last chunk, which ends the body.
    /// - Returns: The chunk with its size and line ends.
    public static func chunk(_ text: String) -> String {
        let end = text.isEmpty ? "" : "\r\n"
        return String(text.utf8.count, radix: 16) + "\r\n" + text + end + (text.isEmpty ? "\r\n" : "")
    }

    /// The bytes as one chunk of a chunked body.
    ///
    /// - Parameter bytes: The chunk's content; empty for the last chunk.
    /// - Returns: The chunk with its size and line ends.
    public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
    }
}
