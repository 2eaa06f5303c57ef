import CurlSSETransport
import Testing

/// A provider whose stream of deltas ends with the data `[DONE]`: written with nothing but what the library exports.
struct Completions: Dialect {
    struct Prompt: Hashable, Sendable {
        var text: String
    }

    func httpRequest(
        for request: Prompt,
        resuming position: StreamPosition?
    ) throws(TransportError) -> HTTPRequest {
        guard !request.text.isEmpty else {
            throw TransportError(kind: .request, message: "the prompt is empty")
        }
        return HTTPRequest(
            method: "POST",
            target: "/v1/completions",
            fields: [HTTPField("Content-Type", "application/json"), HTTPField("Accept", "text/event-stream")],
            body: Array("{\"prompt\":\"\(request.text)\",\"stream\":true}".utf8)
        )
    }

    func makeReader() -> Reader { Reader() }

    struct Reader: DialectReader {
        func read(_ event: ServerSentEvent) -> Reading<String> {
            if event.data.bytes.elementsEqual("[DONE]".utf8) { return .completed }
            if event.type == "error" {
                return .failure(DialectFailure(kind: .request, message: event.data.text))
            }
            return .payload(event.data.text)
        }
    }
}

@Suite("A dialect written outside the library")
struct DoneDialectTests {
    @Test("ends its stream by an event of its own")
    func done() throws {
        let stream = "data: He\n\ndata: llo\n\ndata: [DONE]\n\ndata: late\n\n"

        let replay = try DialectReplay(Completions().makeReader(), reading: stream, describing: \.self)

        #expect(replay.readings == ["He", "llo", "completed"])
    }

    @Test("fails its stream by an event of its own")
    func failed() throws {
        let stream = "event: ping\n\nevent: error\ndata: too much\n\ndata: late\n\n"

        let replay = try DialectReplay(Completions().makeReader(), reading: stream, describing: \.self)

        #expect(replay.readings == ["failed"])
        #expect(replay.failure == DialectFailure(kind: .request, message: "too much"))
    }

    @Test("refuses a request it cannot write")
    func refused() {
        #expect(throws: TransportError(kind: .request, message: "the prompt is empty")) {
            try Completions().httpRequest(for: .init(text: ""), resuming: nil)
        }
    }

    @Test("does not resume unless it says so")
    func resumes() {
        #expect(!Completions().resumes)
    }
}
