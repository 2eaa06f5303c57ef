// The value of a Content-Type field to the questions the classifier has about it.
//
// Source: RFC 9110, section 8.3 (type and subtype without case, parameters after a semicolon).
//
// Pure. Called once a response.

/// Reads the media type of a response.
enum ContentType {
    /// `type/subtype` in lower case; nil when the value does not start with two tokens around a slash.
    static func essence(_ value: String) -> String? {
        let bytes = ASCII.trimmed(value.utf8.prefix { $0 != UInt8(ascii: ";") })
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(ASCII.isToken) }) else { return nil }
        return String(decoding: bytes.lazy.map(ASCII.lowercased), as: UTF8.self)
    }

    /// Whether it is `text/event-stream`, in any case and with any parameters.
    ///
    /// A `charset` changes nothing: an event stream is UTF-8 (WHATWG HTML 9.2.5).
    static func isEventStream(_ value: String) -> Bool {
        essence(value) == "text/event-stream"
    }

    /// Whether it is JSON: `application/json`, or a subtype that ends with `+json`, such as
    /// `application/graphql-response+json` (RFC 6839, section 3.1).
    static func isJSON(_ value: String) -> Bool {
        guard let essence = essence(value) else { return false }
        return essence == "application/json" || essence.hasSuffix("+json")
    }
}
