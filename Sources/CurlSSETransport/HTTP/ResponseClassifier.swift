// The head of a response, and the first bytes of one that is no event stream, to what the response means.
//
// Source: RFC 9110, section 15 (statuses); WHATWG HTML 9.2.3 ("fail the connection" for a wrong type or status, 204);
// GraphQL over HTTP (errors in a JSON body). Which failure may pass and which may not is the package's own table, in
// the article "What ends and what comes back".
//
// Pure. Called on the loop's queue: once at the final head, once a chunk while it asks for more, once for the failure.

/// What the head of a response means.
enum HeadVerdict: Hashable, Sendable {
    /// The body is an event stream.
    case open

    /// The server says that there is no stream and will be none.
    case completed

    /// Ask the redirect rules. The location is as the response has it; nil when there is none or it is empty.
    case redirect(location: String?)

    /// The credentials were refused: ask their provider once more, and the server again.
    case authenticate

    /// A failing response: its first bytes go to ``ResponseClassifier/body(_:)``, then it is asked for the failure.
    case collect
}

/// What the transport knows about a failing response beside its head and body.
struct ResponseFacts: Hashable, Sendable {
    /// The server.
    var origin: Origin

    /// The peer's numeric address, where it is known.
    var address: String?

    /// How many bytes of the body have come.
    var bytesReceived: Int

    /// The time of day in seconds since 1970-01-01 00:00 UTC.
    var now: Int64

    /// Gathers the facts.
    init(origin: Origin, address: String? = nil, bytesReceived: Int = 0, now: Int64) {
        self.origin = origin
        self.address = address
        self.bytesReceived = bytesReceived
        self.now = now
    }
}

/// Judges one response.
struct ResponseClassifier: Sendable {
    /// The most bytes of a failing response that are kept: 16 KiB.
    static let maximumBodyBytes = 16 << 10

    private let mayAuthenticate: Bool
    private let readErrors: @Sendable ([UInt8]) -> [GraphQLError]
    private var response = ResponseHead(version: "", status: 0, fields: [])
    private var prefix: [UInt8] = []

    /// Makes a classifier for one response.
    ///
    /// - Parameters:
    ///   - mayAuthenticate: Whether a 401 may be answered by other credentials: there is a provider, it was not yet
    ///     asked again in this opening, and its fields went with the request.
    ///   - readErrors: Reads the errors of a GraphQL response from a whole JSON body; empty where it finds none.
    init(mayAuthenticate: Bool, readErrors: @escaping @Sendable ([UInt8]) -> [GraphQLError]) {
        self.mayAuthenticate = mayAuthenticate
        self.readErrors = readErrors
    }

    /// Judges the final head.
    mutating func head(_ head: ResponseHead) -> HeadVerdict {
        response = head
        prefix = []
        switch head.status {
        case 200:
            return isEventStream && !isCoded ? .open : .collect
        case 204, 205:
            return .completed
        case 301, 302, 303, 307, 308:
            let location = head.last("Location") ?? ""
            return .redirect(location: location.isEmpty ? nil : location)
        case 401:
            return mayAuthenticate ? .authenticate : .collect
        default:
            return .collect
        }
    }

    /// Keeps the next bytes of a failing response.
    ///
    /// - Parameter bytes: The body's next bytes, cut anywhere. Copied.
    /// - Returns: Whether more is wanted; false from 16 KiB on.
    mutating func body(_ bytes: RawSpan) -> Bool {
        let bytes = Span<UInt8>(_bytes: bytes)
        let count = min(bytes.count, Self.maximumBodyBytes - prefix.count)
        prefix.reserveCapacity(prefix.count + count)
        for index in 0..<count { prefix.append(bytes[index]) }
        return prefix.count < Self.maximumBodyBytes
    }

    /// Why the response fails the opening, from what has been kept of it.
    ///
    /// Meant after `collect`, and after `redirect` when that is not followed.
    ///
    /// - Parameters:
    ///   - facts: What else is known.
    ///   - refusal: Why a redirect was not followed, as the redirect rules said it.
    /// - Returns: The error, with its kind and facts.
    func failure(_ facts: ResponseFacts, refusal: String? = nil) -> TransportError {
        let errors = response.last("Content-Type").map(ContentType.isJSON) ?? false ? readErrors(prefix) : []
        var message = "\(facts.origin.hostAndPort) answered \(response.status) (HTTP/\(response.version))"
        if let refusal {
            message += ", which was not followed: \(refusal)"
        } else if response.status == 200 {
            message += problem
        }
        if !errors.isEmpty {
            // Their number alone: a GraphQL server quotes the request's variables in its messages.
            message += errors.count == 1 ? ", with 1 GraphQL error" : ", with \(errors.count) GraphQL errors"
        }
        return TransportError(
            kind: kind,
            message: message,
            status: response.status,
            host: facts.origin.hostAndPort,
            address: facts.address,
            httpVersion: response.version,
            bytesReceived: facts.bytesReceived,
            graphQLErrors: errors,
            bodyPrefix: prefix,
            retryAfter: retryAfter(now: facts.now)
        )
    }

    private var kind: TransportError.Kind {
        switch response.status {
        // RFC 9110, section 15: a status over 599 counts as a 5xx.
        case 408, 421, 425, 429, 500...: .network
        default: .request
        }
    }

    private func retryAfter(now: Int64) -> Duration? {
        guard kind == .network else { return nil }
        return response.last("Retry-After").flatMap { RetryAfter.duration($0, now: now) }
    }

    /// Where there are several, the last counts, as it does for libcurl.
    private var isEventStream: Bool {
        response.last("Content-Type").map(ContentType.isEventStream) ?? false
    }

    /// Whether the body is coded (RFC 9110, section 8.4): none was asked for, and none is undone.
    private var isCoded: Bool {
        response.all("Content-Encoding").joined(separator: ",").split(separator: ",").contains { coding in
            let coding = ASCII.lowercased(ASCII.trimmed(String(coding)))
            return coding != "" && coding != "identity" && coding != "none"
        }
    }

    /// What keeps a 200 from being an event stream.
    private var problem: String {
        guard let value = response.last("Content-Type") else { return " without a content type, not text/event-stream" }
        guard let type = ContentType.essence(value), type.utf8.count <= 128 else {
            return " with a content type that cannot be read, not text/event-stream"
        }
        guard type == "text/event-stream" else { return " with the content type \(type), not text/event-stream" }
        return " with a content coding, which was not asked for"
    }
}
