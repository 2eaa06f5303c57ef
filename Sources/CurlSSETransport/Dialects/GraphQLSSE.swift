// GraphQL over SSE in its distinct connections mode: an operation to a POST, and events to results.
//
// Source: graphql-sse, PROTOCOL.md; GraphQL, section 7.1. Pure. The reader runs on the loop's thread.

/// GraphQL over SSE, distinct connections mode: one POST a subscription.
///
/// - `next` is a result. An event without a name counts as one: some servers leave it out.
/// - `complete`, with data or without, ends the stream at once. A body that ends without it is a network failure.
/// - Other names are skipped and counted.
/// - A stream's first result is a request error where it has `errors` and either no `data` entry, or `data: null` and
///   no error with a `path`. It fails the stream and is no payload. A first result that is no JSON object is unreadable
///   (a network failure). Later results are not looked at.
public struct GraphQLSSE: Dialect {
    /// The dialect; it has no options.
    public init() {}

    /// A POST of the operation.
    ///
    /// - Parameters:
    ///   - request: The operation.
    ///   - position: Not used: graphql-sse has no positions.
    /// - Returns: The request.
    /// - Throws: Nothing: a ``GraphQLRequest`` can always be written.
    public func httpRequest(
        for request: GraphQLRequest,
        resuming position: StreamPosition?
    ) throws(TransportError) -> HTTPRequest {
        HTTPRequest(
            method: "POST",
            fields: [
                HTTPField("Content-Type", "application/json"),
                // Exactly this: real servers refuse anything else.
                HTTPField("Accept", "text/event-stream"),
            ],
            callerFields: request.headers,
            body: request.body
        )
    }

    /// A reader of one response.
    public func makeReader() -> Reader { Reader() }

    /// Reads the events of one response.
    public struct Reader: DialectReader {
        /// How many events were skipped because their name is neither `next` nor `complete`.
        public private(set) var skippedCount = 0

        private var hasResult = false

        /// A reader of one response.
        public init() {}

        /// Reads one event.
        ///
        /// - Parameter event: The event.
        /// - Returns: A result, the completion, a failure, or nothing.
        public mutating func read(_ event: consuming ServerSentEvent) -> Reading<GraphQLResult> {
            switch event.type {
            case "next", "message":
                if !hasResult {
                    hasResult = true
                    if let failure = Self.failure(ofFirst: event.data) { return .failure(failure) }
                }
                return .payload(GraphQLResult(event.data))
            case "complete":
                return .completed
            default:
                skippedCount += 1
                return .nothing
            }
        }

        /// `complete` may come without data; a `next` without any says nothing.
        public mutating func readBlockWithoutData(type: String) -> Reading<GraphQLResult> {
            switch type {
            case "complete":
                return .completed
            case "next", "message":
                return .nothing
            default:
                skippedCount += 1
                return .nothing
            }
        }

        /// The result with a buffer of its own.
        public static func detached(_ payload: GraphQLResult) -> GraphQLResult {
            GraphQLResult(payload.content.detached())
        }

        /// What a stream's first result ends the stream by; nil where it is a payload.
        private static func failure(ofFirst data: EventData) -> DialectFailure? {
            let entries: GraphQLResponseEntries
            do {
                entries = try GraphQLResponseEntries(Array(data.bytes))
            } catch {
                return DialectFailure(
                    kind: .network,
                    message: "the first result is not a JSON object: \(error.message)"
                )
            }
            guard entries.isRequestError else { return nil }
            // Their number alone: a server quotes the request's variables in its messages.
            let count = entries.errors.count
            return DialectFailure(
                kind: .request,
                message: "the server refused the operation, with \(count) GraphQL error\(count == 1 ? "" : "s")",
                graphQLErrors: entries.errors
            )
        }
    }
}
