// A plain event stream: a request to an HTTP request with the standard's headers, and each event to itself.
//
// Source: WHATWG HTML, section 9.2. Pure. The reader runs on the loop's thread.

/// A plain event stream, as a browser's `EventSource` reads it.
///
/// Every event is a payload. Nothing in the stream completes it: a 204 does, and the end of a body is a network failure,
/// so a retained subscription comes back. It comes back from its last event ID.
public struct EventSource: Dialect {
    /// The dialect; it has no options.
    public init() {}

    /// True: `Last-Event-ID` is sent, and a `retry` field is a floor under the waits that follow.
    public var resumes: Bool { true }

    /// The request, with the position's last event ID.
    ///
    /// - Parameters:
    ///   - request: What to ask for.
    ///   - position: Where the last stream was left; its ID, the empty one too, stands before the request's own.
    /// - Returns: The request.
    /// - Throws: Nothing here: what cannot be sent is found when it is.
    public func httpRequest(
        for request: EventSourceRequest,
        resuming position: StreamPosition?
    ) throws(TransportError) -> HTTPRequest {
        HTTPRequest(
            method: request.method,
            target: request.target,
            fields: [
                HTTPField("Accept", "text/event-stream"),
                HTTPField("Cache-Control", "no-cache"),
            ],
            callerFields: request.headers,
            body: request.body,
            lastEventID: position?.lastEventID ?? request.lastEventID
        )
    }

    /// A reader of one response.
    public func makeReader() -> Reader { Reader() }

    /// Hands on each event.
    public struct Reader: DialectReader {
        /// A reader of one response.
        public init() {}

        /// The event is the payload.
        public mutating func read(_ event: consuming ServerSentEvent) -> Reading<ServerSentEvent> { .payload(event) }

        /// The event, its data with a buffer of its own.
        public static func detached(_ payload: ServerSentEvent) -> ServerSentEvent {
            payload.detached()
        }
    }
}

/// What to ask a server of a plain event stream for.
///
/// Equal requests of one environment share one stream.
public struct EventSourceRequest: Hashable, Sendable {
    /// A token, such as `GET`.
    public var method: String

    /// A path, a query or both, appended to the transport's URL; empty for the URL as it is.
    public var target: String

    /// The caller's header fields, for this request.
    public var headers: [HTTPField]

    /// The request's content; nil for none.
    ///
    /// Its `Content-Type` is the caller's to give.
    public var body: [UInt8]?

    /// Where to begin, at an opening that has no position of its own to resume from; empty for none.
    public var lastEventID: String

    /// Makes a request; as it is, a GET of the transport's URL.
    public init(
        method: String = "GET",
        target: String = "",
        headers: [HTTPField] = [],
        body: [UInt8]? = nil,
        lastEventID: String = ""
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.lastEventID = lastEventID
    }

    /// Whether a server could not tell them apart: all is compared byte for byte.
    public static func == (left: EventSourceRequest, right: EventSourceRequest) -> Bool {
        left.method.hasSameBytes(as: right.method) && left.target.hasSameBytes(as: right.target)
            && left.headers == right.headers && left.body == right.body
            && left.lastEventID.hasSameBytes(as: right.lastEventID)
    }
}
