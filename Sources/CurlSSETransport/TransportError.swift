/// Why an opening or a stream failed, with the facts.
///
/// Carried by the cases of `SubscriptionFailure`. Nothing here holds a header value, a query string, userinfo or the
/// request's body, so a description may be logged.
public struct TransportError: Error, Hashable, Sendable {
    /// What the failure means for the subscription.
    public enum Kind: String, Hashable, Sendable {
        /// It may pass: the stream comes back.
        case network

        /// The server refuses the request, or it cannot be sent as written: ended.
        case request

        /// This process cannot open streams as it is configured: ended.
        case environment
    }

    /// What the failure means for the subscription.
    public var kind: Kind

    /// What happened, in one sentence with its facts.
    public var message: String

    /// The response's status; nil when none was read.
    public var status: Int?

    /// libcurl's `CURLcode`; nil when libcurl reported none.
    public var curlCode: Int?

    /// The system's error number; nil when none is known.
    public var errno: Int32?

    /// The server as `host:port`; nil when it is not known.
    public var host: String?

    /// The peer's numeric address; nil before a connection.
    public var address: String?

    /// `1.0`, `1.1` or `2`; nil before a response.
    public var httpVersion: String?

    /// How many bytes of the response's body had come.
    public var bytesReceived: Int

    /// The errors of a GraphQL response; empty where there are none.
    public var graphQLErrors: [GraphQLError]

    /// The first bytes, 16 KiB at most, of a response that is no event stream.
    public var bodyPrefix: [UInt8]

    /// The server's word on when to ask again, 0 to 10 minutes; nil where it said nothing.
    public var retryAfter: Duration?

    /// Makes an error.
    public init(
        kind: Kind,
        message: String,
        status: Int? = nil,
        curlCode: Int? = nil,
        errno: Int32? = nil,
        host: String? = nil,
        address: String? = nil,
        httpVersion: String? = nil,
        bytesReceived: Int = 0,
        graphQLErrors: [GraphQLError] = [],
        bodyPrefix: [UInt8] = [],
        retryAfter: Duration? = nil
    ) {
        self.kind = kind
        self.message = message
        self.status = status
        self.curlCode = curlCode
        self.errno = errno
        self.host = host
        self.address = address
        self.httpVersion = httpVersion
        self.bytesReceived = bytesReceived
        self.graphQLErrors = graphQLErrors
        self.bodyPrefix = bodyPrefix
        self.retryAfter = retryAfter
    }
}

extension TransportError: CustomStringConvertible {
    /// The sentence.
    public var description: String { message }
}
