import Testing

@testable import CurlSSETransport

@Suite("A content type")
struct ContentTypeTests {
    @Test(
        "H2: text/event-stream in any case and with any parameters is an event stream",
        arguments: [
            "text/event-stream", "text/event-stream;charset=UTF-8", "Text/Event-Stream ; charset=\"utf-8\"",
            "text/event-stream; charset=iso-8859-1", " text/event-stream\t", "TEXT/EVENT-STREAM;",
            "text/event-stream;;x",
        ]
    )
    func eventStream(value: String) {
        #expect(ContentType.isEventStream(value))
        #expect(!ContentType.isJSON(value))
    }

    @Test(
        "H2: nothing else is",
        arguments: [
            "", "text/event-streamx", "application/json; x=text/event-stream", "text/event-stream, text/html",
            "text/html", "text /event-stream", "text/ event-stream", "event-stream", "text/event-stream/x", ";",
        ]
    )
    func noEventStream(value: String) {
        #expect(!ContentType.isEventStream(value))
    }

    @Test(
        "application/json and every +json is JSON",
        arguments: [
            "application/json", "Application/JSON; charset=utf-8", "application/graphql-response+json",
            "application/problem+json;x", "image/x+JSON",
        ]
    )
    func json(value: String) {
        #expect(ContentType.isJSON(value))
    }

    @Test(
        "nothing else is JSON",
        arguments: ["text/json", "application/jsonx", "application/x+jsonp", "json", "", "a/"]
    )
    func noJSON(value: String) {
        #expect(!ContentType.isJSON(value))
    }
}
