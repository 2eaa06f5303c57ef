import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

@Suite("Requests that cannot be sent")
struct UnsendableRequestTests {
    /// A request, and what is wrong with it.
    struct Unsendable: Sendable, CustomTestStringConvertible {
        var what: String
        var request: EventSourceRequest
        var testDescription: String { what }

        init(_ what: String, _ request: EventSourceRequest) {
            self.what = what
            self.request = request
        }

        init(header what: String, _ name: String, _ value: String) {
            self.init(what, EventSourceRequest(headers: [HTTPField(name, value)]))
        }
    }

    static let requests: [Unsendable] =
        [
            ("CR LF", "a\r\nX-Evil: hunter2"), ("LF", "hunter2\nX: 1"), ("CR", "hunter2\r"), ("NUL", "hunter2\0b"),
            ("ESC", "\u{1B}hunter2"), ("DEL", "hunter2\u{7F}"),
        ].map { Unsendable(header: "\($0.0) in a value", "X-Own", $0.1) }
        + ["X Own", "X-Own:", "", "X\r\nY: hunter2", "X(", "X\0", "Ü", "X\u{7F}"].map {
            Unsendable(header: "a name that is no token, \($0.utf8.count) bytes long", $0, "hunter2")
        }
        + [
            "Host", "content-length", "Transfer-Encoding", "CONNECTION", "Upgrade", "TE", "Expect", "Keep-Alive",
            "Proxy-Connection", "Proxy-Authorization", "Trailer", "HTTP2-Settings", "last-event-id",
        ].map { Unsendable(header: "\($0) is the transport's", $0, "hunter2") }
        + ["", "GET /hunter2 HTTP/1.1\r\n", "G T", "CONNECT", "HEAD", "GE\u{0}"].map {
            Unsendable("a method of \($0.utf8.count) bytes", EventSourceRequest(method: $0))
        }
        + ["hunter2", "/a hunter2", "/a\r\nX: hunter2", "/#hunter2", "/\0hunter2", "//\u{E9}", "http://hunter2/"].map {
            Unsendable("a target of \($0.utf8.count) bytes", EventSourceRequest(target: $0))
        }

    @Test(
        "fail as a request error that does not repeat what may be secret, before any byte is sent",
        arguments: requests
    )
    func refused(unsendable: Unsendable) async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead)
        let read = try await plain(server).read(unsendable.request)
        #expect(read.end == .failed(.request))
        let message = try #require(read.error?.message)
        #expect(!message.contains("hunter2"))
        #expect(message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
        #expect(server.journal.connections == 0)
    }

    @Test(
        "a URL without a scheme, of another scheme or with a line break is refused where it is given",
        arguments: [
            "127.0.0.1/hunter2", "ftp://127.0.0.1/hunter2", "file:///hunter2", "ws://hunter2/", "", "http://",
            "http://127.0.0.1/\r\nX: hunter2", "http://u:hunter2@", "http://127.0.0.1:99999/hunter2", "http://a\0/",
        ]
    )
    func urls(url: String) throws {
        let error = try #require(throws: TransportError.self) { _ = try plain(url) }
        #expect(error.kind == .request)
        #expect(!error.message.contains("hunter2"))
    }

    @Test("an empty value is sent as one, and a caller's field stands for the dialect's, once")
    func sent() async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead)
        _ = try await plain(server).read(
            EventSourceRequest(
                headers: [
                    HTTPField("X-Empty", ""), HTTPField("accept", "*/*"), HTTPField("X-Two", "1"),
                    HTTPField("x-two", "2"), HTTPField("X-Blank", " \t a b \t"), HTTPField("User-Agent", "mine"),
                ]
            )
        )
        let request = try #require(server.journal.requests.first)
        #expect(request.all("X-Empty") == [""])
        #expect(request.all("Accept") == ["*/*"])
        #expect(request.all("X-Two") == ["1", "2"])
        #expect(request.all("X-Blank") == ["a b"])
        #expect(request.all("User-Agent") == ["mine"])
    }

    @Test("H7: a request with a long content waits for no 100, and asks for none")
    func expect() async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead, "data: a\n\n")
        let body = [UInt8](repeating: 0x78, count: 2 << 20)
        let read = try await plain(server).read(EventSourceRequest(method: "POST", body: body))
        #expect(read.payloads.count == 1)
        let request = try #require(server.journal.requests.first)
        #expect(request.body == body)
        #expect(request.field("Expect") == nil)
        #expect(request.field("Content-Type") == nil)
    }

    @Test(
        "a last event ID that no header can hold is kept and not sent",
        arguments: ["a\u{1}b", String(repeating: "x", count: 5000), ""]
    )
    func lastEventID(id: String) async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead, "data: a\n\n")
        let read = try await plain(server).read(EventSourceRequest(lastEventID: id))
        #expect(read.payloads.first?.lastEventID == id)
        #expect(server.journal.requests.first?.field("Last-Event-ID") == nil)
    }
}
