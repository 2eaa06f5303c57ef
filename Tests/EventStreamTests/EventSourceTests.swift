import CurlSSETransport
import Testing

@Suite("A plain event stream")
struct EventSourceTests {
    @Test("is a GET that accepts an event stream and no cached one")
    func request() throws {
        let http = try EventSource().httpRequest(for: EventSourceRequest(), resuming: nil)

        #expect(http.method == "GET")
        #expect(http.target.isEmpty)
        #expect(http.fields == [HTTPField("Accept", "text/event-stream"), HTTPField("Cache-Control", "no-cache")])
        #expect(http.callerFields.isEmpty)
        #expect(http.body == nil)
        #expect(http.lastEventID.isEmpty)
    }

    @Test("is any method, target, header and body the caller wants")
    func anyRequest() throws {
        let request = EventSourceRequest(
            method: "POST",
            target: "/a?b=c",
            headers: [HTTPField("Content-Type", "text/plain")],
            body: [1, 2],
            lastEventID: "3"
        )

        let http = try EventSource().httpRequest(for: request, resuming: nil)

        #expect(http.method == "POST")
        #expect(http.target == "/a?b=c")
        #expect(http.callerFields == [HTTPField("Content-Type", "text/plain")])
        #expect(http.body == [1, 2])
        #expect(http.lastEventID == "3")
    }

    @Test("resumes from its position, which stands before the request's own ID even where it is empty")
    func resumes() throws {
        let request = EventSourceRequest(lastEventID: "3")

        let resumed = try EventSource().httpRequest(for: request, resuming: StreamPosition(lastEventID: "7"))
        let reset = try EventSource().httpRequest(for: request, resuming: StreamPosition(lastEventID: ""))

        #expect(EventSource().resumes)
        #expect(resumed.lastEventID == "7")
        #expect(reset.lastEventID.isEmpty)
    }

    @Test("every event is a payload, and none completes it")
    func payloads() throws {
        let stream = "id: 1\nevent: complete\ndata:\n\nevent: complete\n\ndata: x\n\n"

        let replay = try DialectReplay(EventSource().makeReader(), reading: stream) { event in
            "\(event.type) \(event.data.text) \(event.lastEventID)"
        }

        #expect(replay.readings == ["complete  1", "message x 1"])
    }

    @Test("a position survives being carried by the runtime")
    func positionRoundTrip() {
        let positions = [
            StreamPosition(lastEventID: ""), StreamPosition(lastEventID: "\u{2603}", retry: .zero),
            StreamPosition(lastEventID: "a", retry: .milliseconds(1500)),
            StreamPosition(lastEventID: "a", retry: .milliseconds(Int64.max)),
        ]

        #expect(positions.map { StreamPosition($0.resumePoint) } == positions)
    }

    @Test("a retry that no count of milliseconds holds is carried as the nearest one that does")
    func positionClampsRetry() {
        func carried(_ retry: Duration) -> Duration? {
            StreamPosition(StreamPosition(lastEventID: "", retry: retry).resumePoint)?.retry
        }

        #expect(carried(.seconds(-1)) == .zero)
        #expect(carried(.microseconds(1999)) == .milliseconds(1))
        #expect(carried(.seconds(Int64.max)) == .milliseconds(Int64.max))
        // A thousand times this is 8 less than a multiple of 2^64: the milliseconds would carry over.
        #expect(carried(.seconds(Int64(239_807_672_958_224_171)) + .milliseconds(9)) == .milliseconds(Int64.max))
    }

    @Test("requests whose texts are other bytes are two, though String takes them for equal")
    func differentBytes() {
        let composed = "\u{E9}"
        let decomposed = "e\u{301}"

        #expect(composed == decomposed)
        #expect(EventSourceRequest(target: composed) != EventSourceRequest(target: decomposed))
        #expect(EventSourceRequest(lastEventID: composed) != EventSourceRequest(lastEventID: decomposed))
        #expect(
            EventSourceRequest(headers: [HTTPField("X-User", composed)])
                != EventSourceRequest(headers: [HTTPField("X-User", decomposed)])
        )
        #expect(StreamPosition(lastEventID: composed) != StreamPosition(lastEventID: decomposed))
        #expect(Set([composed, decomposed].map { EventSourceRequest(lastEventID: $0) }).count == 2)
    }

    @Test("a detached event holds no neighbour's bytes")
    func detached() throws {
        var parser = EventStreamParser()
        let large = String(repeating: "x", count: 1000)
        let events = try parser.parse(Array("data: \(large)\n\nevent: e\ndata: yes, this one\n\n".utf8))
        let small = try #require(events.last)

        let detached = EventSource.Reader.detached(small)

        #expect(small.data.bytes.startIndex > 1000)
        #expect(detached.data.bytes.startIndex == 0)
        #expect(detached == small)
    }
}
