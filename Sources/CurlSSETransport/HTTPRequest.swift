/// One header field of a request.
///
/// Names compare without case. Checked before libcurl sees it: see ``TransportError``.
public struct HTTPField: Hashable, Sendable {
    /// A token (RFC 9110, section 5.6.2).
    public var name: String

    /// Visible ASCII, spaces, tabs and bytes from 0x80 (RFC 9110, section 5.5), or empty.
    public var value: String

    /// Makes a field, unchecked.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether both parts are the same bytes.
    public static func == (left: HTTPField, right: HTTPField) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
    }
}

/// What a dialect asks the transport to send.
public struct HTTPRequest: Hashable, Sendable {
    /// A token, such as `POST`.
    public var method: String

    /// Appended to the transport's URL; empty for the URL as it is.
    ///
    /// A path starts with `/`, a query with `?`. Where the URL already has a query, one given here is joined to it
    /// by `&`.
    public var target: String

    /// The dialect's own fields, each replaced by the caller's of the same name.
    public var fields: [HTTPField]

    /// The caller's fields.
    public var callerFields: [HTTPField]

    /// The request's content; nil for none.
    public var body: [UInt8]?

    /// What the stream's last event ID buffer starts with (WHATWG HTML 9.2.6).
    ///
    /// Sent as `Last-Event-ID` unless it is empty, has control bytes other than tab, or is over 4 KiB.
    public var lastEventID: String

    /// Makes a request.
    public init(
        method: String,
        target: String = "",
        fields: [HTTPField] = [],
        callerFields: [HTTPField] = [],
        body: [UInt8]? = nil,
        lastEventID: String = ""
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.callerFields = callerFields
        self.body = body
        self.lastEventID = lastEventID
    }
}
