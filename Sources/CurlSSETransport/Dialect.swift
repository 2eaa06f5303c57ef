public import SubscriptionRuntime

/// How one family of servers speaks in an event stream: what is sent, and what an event means.
///
/// ``GraphQLSSE`` and ``EventSource`` are the two that come with the library. Others are written outside.
public protocol Dialect: Sendable {
    /// What a caller asks for. Equal requests of one environment share one stream.
    associatedtype Request: Hashable & Sendable

    /// What the stream is made of.
    associatedtype Payload: Sendable

    /// Reads one response.
    associatedtype Reader: DialectReader where Reader.Payload == Payload

    /// The HTTP request that opens a stream.
    ///
    /// - Parameters:
    ///   - request: What to ask for.
    ///   - position: Where the subscription's last stream was left; nil at a first opening, and always nil when
    ///     ``resumes`` is false.
    /// - Returns: The request to send.
    /// - Throws: An error of kind `request` when the request cannot be written.
    func httpRequest(for request: Request, resuming position: StreamPosition?) throws(TransportError) -> HTTPRequest

    /// A reader for one response. Called once an opening.
    func makeReader() -> Reader

    /// Whether a stream is opened again from its last event ID, and a server's `retry` field is a floor under the
    /// waits. Default: false.
    var resumes: Bool { get }
}

extension Dialect {
    /// False.
    public var resumes: Bool { false }
}

/// Reads the events of one response, in order, on the loop's thread.
public protocol DialectReader: Sendable {
    /// What the reader makes of events.
    associatedtype Payload: Sendable

    /// Reads one dispatched event.
    ///
    /// - Parameter event: The event. Its data may share a buffer with its neighbours.
    /// - Returns: What it means. After `completed` or a failure nothing more is read.
    mutating func read(_ event: consuming ServerSentEvent) -> Reading<Payload>

    /// Reads a block that had an `event` field and no data.
    ///
    /// WHATWG HTML 9.2.6 dispatches nothing for it, but some protocols say something with one. Default: nothing.
    mutating func readBlockWithoutData(type: String) -> Reading<Payload>

    /// A copy of the payload that does not hold a shared buffer alive. Default: the payload itself.
    static func detached(_ payload: Payload) -> Payload
}

extension DialectReader {
    /// Means nothing.
    public mutating func readBlockWithoutData(type: String) -> Reading<Payload> { .nothing }

    /// The payload itself.
    public static func detached(_ payload: Payload) -> Payload { payload }
}

/// What one event means.
public enum Reading<Payload: Sendable>: Sendable {
    /// The subscription's next payload.
    case payload(Payload)

    /// The server says that there will be no more.
    case completed

    /// The event ends the stream.
    case failure(DialectFailure)

    /// Not for the caller.
    case nothing
}

/// Why an event ends the stream.
public struct DialectFailure: Error, Hashable, Sendable {
    /// What kind of failure it is.
    public enum Kind: Hashable, Sendable {
        /// The server refuses the operation: ended for good.
        case request

        /// What the server sent cannot be read: the stream comes back.
        case network
    }

    /// What kind of failure it is.
    public var kind: Kind

    /// One sentence.
    public var message: String

    /// The errors of a GraphQL result, where there are any.
    public var graphQLErrors: [GraphQLError]

    /// Makes a failure.
    public init(kind: Kind, message: String, graphQLErrors: [GraphQLError] = []) {
        self.kind = kind
        self.message = message
        self.graphQLErrors = graphQLErrors
    }
}

/// One error of a GraphQL response (GraphQL, section 7.1.2, "Errors").
public struct GraphQLError: Hashable, Sendable {
    /// The server's description, for a developer.
    public var message: String

    /// The `path` entry as JSON text, as in `["user",0,"name"]`; nil where there is none.
    public var path: String?

    /// The `extensions` entry as JSON text; nil where there is none.
    public var extensions: String?

    /// Makes an error.
    public init(message: String, path: String? = nil, extensions: String? = nil) {
        self.message = message
        self.path = path
        self.extensions = extensions
    }
}

/// Where a stream was left: what the standard keeps of it between two connections.
public struct StreamPosition: Hashable, Sendable {
    /// The last event ID string (WHATWG HTML 9.2.6); empty for none.
    public var lastEventID: String

    /// The last `retry` field the server sent; nil for none.
    public var retry: Duration?

    /// Makes a position.
    public init(lastEventID: String, retry: Duration? = nil) {
        self.lastEventID = lastEventID
        self.retry = retry
    }

    /// Whether the IDs are the same bytes, and the retries equal.
    public static func == (left: StreamPosition, right: StreamPosition) -> Bool {
        left.lastEventID.hasSameBytes(as: right.lastEventID) && left.retry == right.retry
    }

    /// Reads a position back; nil when the bytes are not this transport's.
    ///
    /// - Parameter point: What ``resumePoint`` made.
    public init?(_ point: ResumePoint) {
        // One version byte, the retry in milliseconds as eight bytes with the low one first (all ones for none),
        // then the ID's UTF-8.
        guard point.bytes.count >= 9, point.bytes[0] == 1 else { return nil }
        let milliseconds = point.bytes[1..<9].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        retry = milliseconds == .max ? nil : .milliseconds(Int64(clamping: milliseconds))
        lastEventID = String(decoding: point.bytes[9...], as: UTF8.self)
    }

    /// The position as the runtime carries it.
    public var resumePoint: ResumePoint {
        let milliseconds = retry.map(Self.milliseconds) ?? .max
        var bytes: [UInt8] = [1]
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: milliseconds >> shift))
        }
        bytes.append(contentsOf: lastEventID.utf8)
        return ResumePoint(bytes)
    }

    /// Whole milliseconds, 0 to `Int64.max`: what is outside is the nearer of the two.
    private static func milliseconds(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (thousands, overflows) = seconds.multipliedReportingOverflow(by: 1000)
        let (sum, overflowsToo) = thousands.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return UInt64(overflows || overflowsToo ? .max : sum)
    }
}
