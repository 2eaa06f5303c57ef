import Testing

@testable import CurlSSETransport

@Suite("What a response means")
struct ResponseClassifierTests {
    private static let facts = ResponseFacts(
        origin: Origin(scheme: "https", host: "api.example", port: 443),
        address: "192.0.2.1",
        bytesReceived: 12,
        now: 1_000
    )

    private func head(_ status: Int, _ fields: [(String, String)] = [], version: String = "1.1") -> ResponseHead {
        ResponseHead(version: version, status: status, fields: fields.map { HTTPField($0.0, $0.1) })
    }

    /// A classifier that reads one error out of a body that says `errors`.
    private func classifier(mayAuthenticate: Bool = false) -> ResponseClassifier {
        ResponseClassifier(mayAuthenticate: mayAuthenticate) { body in
            String(decoding: body, as: UTF8.self).contains("\"errors\"") ? [GraphQLError(message: "hunter2")] : []
        }
    }

    private func feed(_ body: [UInt8], to classifier: inout ResponseClassifier) -> Bool {
        classifier.body(body.span.bytes)
    }

    /// The failure of a response that is collected.
    private func failure(_ head: ResponseHead, body: String = "") -> TransportError {
        var classifier = classifier()
        #expect(classifier.head(head) == .collect)
        _ = feed(Array(body.utf8), to: &classifier)
        return classifier.failure(Self.facts)
    }

    private let stream = ("Content-Type", "text/event-stream")

    // B16
    @Test(
        "200 and text/event-stream is open",
        arguments: ["text/event-stream", "TEXT/event-stream; charset=utf-8"],
        [
            [], [("Content-Encoding", "identity")], [("content-encoding", " none , Identity")],
            [("Content-Encoding", "")],
        ]
    )
    func open(type: String, more: [(String, String)]) {
        var classifier = classifier()
        #expect(classifier.head(head(200, [("content-type", type)] + more)) == .open)
    }

    // B16
    @Test("204 and 205 complete, whatever their type", arguments: [204, 205])
    func completed(status: Int) {
        var classifier = classifier()
        #expect(classifier.head(head(status, [stream])) == .completed)
        #expect(classifier.head(head(status)) == .completed)
    }

    // B16
    @Test(
        "H1: 200 with another content type or none is a request error that names the type",
        arguments: [
            (nil, "without a content type"), ("text/html; charset=hunter2", "text/html"),
            ("text/event-streamx", "streamx"),
            ("application/json; x=text/event-stream", "application/json"), ("", "cannot be read"),
            ("hunter2", "cannot be read"), ("a/" + String(repeating: "b", count: 200), "cannot be read"),
        ] as [(String?, String)]
    )
    func otherType(type: String?, said: String) {
        let error = failure(head(200, type.map { [("Content-Type", $0)] } ?? []))
        #expect(error.kind == .request)
        #expect(error.message.contains(said))
        #expect(error.message.contains("text/event-stream"))
        #expect(!error.message.contains("hunter2"))
    }

    // B16
    @Test("H2: of two content types the last counts")
    func twoTypes() {
        var classifier = classifier()
        #expect(classifier.head(head(200, [("Content-Type", "text/html"), stream])) == .open)
        #expect(classifier.head(head(200, [stream, ("Content-Type", "text/html")])) == .collect)
    }

    // B16
    @Test("a content coding is a request error", arguments: ["gzip", "identity, br", "GZIP", "zstd"])
    func coded(coding: String) {
        let error = failure(head(200, [stream, ("Content-Encoding", coding)]))
        #expect(error.kind == .request)
        #expect(error.message.contains("content coding"))
    }

    // B16
    @Test("a content coding in a second field counts too")
    func codedTwice() {
        let fields = [stream, ("Content-Encoding", "gzip"), ("Content-Encoding", "identity")]
        #expect(failure(head(200, fields)).kind == .request)
    }

    // B16
    @Test("H1: another 2xx is a request error, also as an event stream", arguments: [201, 202, 203, 206, 207, 299])
    func other2xx(status: Int) {
        let error = failure(head(status, [stream]), body: "data: not an event\n\n")
        #expect(error.kind == .request)
        #expect(error.status == status)
    }

    // B16
    @Test("a redirect is handed on with its Location", arguments: [301, 302, 303, 307, 308])
    func redirects(status: Int) {
        var classifier = classifier()
        #expect(classifier.head(head(status, [("location", "/b")])) == .redirect(location: "/b"))
        #expect(classifier.head(head(status, [("Location", "")])) == .redirect(location: nil))
        #expect(classifier.head(head(status)) == .redirect(location: nil))
    }

    // B16
    @Test("H3: a redirect that is not followed is a request error with the reason, and without the Location")
    func refusedRedirect() {
        var classifier = classifier()
        _ = classifier.head(head(302, [("Location", "https://b.example/hunter2")]))
        let error = classifier.failure(Self.facts, refusal: "it leads nowhere")

        #expect(error.kind == .request)
        #expect(error.message == "api.example:443 answered 302 (HTTP/1.1), which was not followed: it leads nowhere")
    }

    // B16
    @Test("300, 304, 305 and 306 are request errors, also with a Location", arguments: [300, 304, 305, 306, 309, 399])
    func other3xx(status: Int) {
        #expect(failure(head(status, [("Location", "/b")])).kind == .request)
    }

    // B16
    @Test("H9: 408, 421, 425 and 429 may pass, with Retry-After", arguments: [408, 421, 425, 429])
    func passing4xx(status: Int) {
        let error = failure(head(status, [("Retry-After", "7")]))
        #expect(error.kind == .network)
        #expect(error.retryAfter == .seconds(7))
    }

    // B16
    @Test("401 asks the credentials' provider once more, and is a request error where it cannot")
    func unauthorized() {
        var asking = classifier(mayAuthenticate: true)
        #expect(asking.head(head(401)) == .authenticate)
        #expect(failure(head(401, [("Retry-After", "7")])).kind == .request)
    }

    // B16
    @Test("403 is a request error, also with a provider")
    func forbidden() {
        var asking = classifier(mayAuthenticate: true)
        #expect(asking.head(head(403)) == .collect)
        #expect(asking.failure(Self.facts).kind == .request)
    }

    // B16
    @Test(
        "H9: every other 4xx is a request error, without Retry-After",
        arguments: (400...499).filter { ![408, 421, 425, 429].contains($0) }
    )
    func other4xx(status: Int) {
        let error = failure(head(status, [("Retry-After", "7"), stream]), body: "no")
        #expect(error.kind == .request)
        #expect(error.retryAfter == nil)
        #expect(error.bodyPrefix == Array("no".utf8))
    }

    // B16
    @Test(
        "H1, H9: 5xx may pass, with Retry-After, also as an event stream; over 599 counts as one",
        arguments: [500, 501, 502, 503, 504, 505, 599, 600, 999]
    )
    func serverErrors(status: Int) {
        let error = failure(head(status, [stream, ("Retry-After", "7")]), body: "data: not an event\n\n")
        #expect(error.kind == .network)
        #expect(error.retryAfter == .seconds(7))
        #expect(error.status == status)
    }

    // B16
    @Test("a Retry-After date is read against the given time of day, nonsense is none, and of two the last counts")
    func retryAfter() {
        let date = "Thu, 01 Jan 1970 00:17:00 GMT"
        #expect(failure(head(503, [("Retry-After", date)])).retryAfter == .seconds(20))
        #expect(failure(head(503, [("Retry-After", "-1")])).retryAfter == nil)
        #expect(failure(head(503)).retryAfter == nil)
        #expect(failure(head(503, [("Retry-After", "1"), ("Retry-After", "2")])).retryAfter == .seconds(2))
    }

    // B16
    @Test(
        "G3: a JSON body's GraphQL errors are carried, and only counted in the message",
        arguments: [(200, "application/json"), (400, "application/graphql-response+json"), (500, "application/json")]
    )
    func graphQLErrors(status: Int, type: String) {
        let error = failure(head(status, [("Content-Type", type)]), body: #"{"errors":[{"message":"hunter2"}]}"#)
        #expect(error.graphQLErrors == [GraphQLError(message: "hunter2")])
        #expect(error.message.hasSuffix("with 1 GraphQL error"))
        #expect(!error.message.contains("hunter2"))
    }

    // B16
    @Test("G3: errors are looked for in JSON alone")
    func errorsInText() {
        let error = failure(head(401, [("Content-Type", "text/plain")]), body: #"{"errors":[]}"#)
        #expect(error.graphQLErrors == [])
        #expect(error.kind == .request)
    }

    @Test("M2: 16 KiB of the body are kept, and then no more is wanted")
    func bodyIsBounded() {
        var classifier = classifier()
        _ = classifier.head(head(404))

        #expect(feed([UInt8](repeating: 1, count: 16_383), to: &classifier))
        #expect(!feed([2, 3, 4], to: &classifier))
        #expect(!feed([5], to: &classifier))

        let prefix = classifier.failure(Self.facts).bodyPrefix
        #expect(prefix.count == 16_384)
        #expect(prefix.last == 2)
    }

    @Test("S5: the error has the facts, and no header value")
    func facts() {
        let secret = [("Set-Cookie", "hunter2"), ("WWW-Authenticate", "hunter2"), ("Content-Encoding", "hunter2")]
        let error = failure(head(503, secret, version: "2"))

        #expect(error.message == "api.example:443 answered 503 (HTTP/2)")
        #expect(error.description == error.message)
        #expect(error.host == "api.example:443")
        #expect(error.address == "192.0.2.1")
        #expect(error.httpVersion == "2")
        #expect(error.bytesReceived == 12)
        #expect(!failure(head(200, [stream] + secret)).message.contains("hunter2"))
    }
}
