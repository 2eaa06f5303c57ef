import CurlSSETransport
import Foundation
import Testing

@Suite("GraphQL over SSE")
struct GraphQLSSETests {
    /// What a reader makes of a stream, as far as it reads.
    private func readings(_ stream: String) throws -> [String] {
        try DialectReplay(GraphQLSSE().makeReader(), reading: stream, describing: \.text).readings
    }

    private func failure(_ data: String) throws -> DialectFailure? {
        try DialectReplay(GraphQLSSE().makeReader(), reading: "event: next\ndata: \(data)\n\n", describing: \.text)
            .failure
    }

    // MARK: The request

    @Test("is a POST of JSON that accepts an event stream and nothing else")
    func request() throws {
        let request = GraphQLRequest(query: "subscription { a }", headers: [HTTPField("X-A", "1")])

        let http = try GraphQLSSE().httpRequest(for: request, resuming: nil)

        #expect(http.method == "POST")
        #expect(http.target.isEmpty)
        #expect(
            http.fields == [HTTPField("Content-Type", "application/json"), HTTPField("Accept", "text/event-stream")]
        )
        #expect(http.callerFields == [HTTPField("X-A", "1")])
        #expect(text(http.body) == #"{"query":"subscription { a }"}"#)
        #expect(http.lastEventID.isEmpty)
    }

    @Test("has the operation's name, variables and extensions in its body where they are given")
    func wholeBody() throws {
        let request = try GraphQLRequest(
            query: "subscription S($b: Int) { a }",
            operationName: "S",
            variables: ["b": 1, "a": 2],
            extensions: ["trace": true]
        )

        let http = try GraphQLSSE().httpRequest(for: request, resuming: nil)

        #expect(
            text(http.body)
                == #"{"query":"subscription S($b: Int) { a }","operationName":"S","#
                + #""variables":{"a":2,"b":1},"extensions":{"trace":true}}"#
        )
    }

    @Test("names a document the server knows by documentId")
    func documentID() throws {
        let request = try GraphQLRequest(documentID: "abc", variables: ["n": 1])

        let http = try GraphQLSSE().httpRequest(for: request, resuming: nil)

        #expect(text(http.body) == #"{"documentId":"abc","variables":{"n":1}}"#)
    }

    @Test("escapes the query so that it is JSON again")
    func escapedQuery() throws {
        let query = "subscription {\n\ta(b: \"c\\d\") \u{1} \u{1F600} \u{2028} }\r\u{8}\u{c}/"

        let http = try GraphQLSSE().httpRequest(for: GraphQLRequest(query: query), resuming: nil)

        let body = try #require(http.body)
        #expect(try JSONDecoder().decode([String: String].self, from: Data(body)) == ["query": query])
    }

    @Test("does not resume")
    func doesNotResume() throws {
        #expect(!GraphQLSSE().resumes)
        let http = try GraphQLSSE().httpRequest(
            for: GraphQLRequest(query: "q"),
            resuming: StreamPosition(lastEventID: "7")
        )
        #expect(http.lastEventID.isEmpty)
    }

    // MARK: Equal requests

    @Test("requests are equal whatever the order of the variables' keys, white space and escapes")
    func equalVariables() throws {
        let requests = try [
            #"{"a":1,"b":{"c":[1,2],"d":"/x"}}"#, #" { "b" : { "d" : "\/\u0078" , "c" : [ 1 , 2 ] } , "a" : 1 } "#,
        ].map { try GraphQLRequest(query: "q", variablesJSON: $0) }

        #expect(requests[0] == requests[1])
        #expect(Set(requests).count == 1)
        #expect(requests[0].variablesJSON == #"{"a":1,"b":{"c":[1,2],"d":"/x"}}"#)
    }

    @Test("encoded variables and JSON text of the same value make one request")
    func encodedAndText() throws {
        struct Variables: Encodable {
            var url = "http://a/b"
            var count = 3
            var Zed = [true]
            var none: String?
        }

        let encoded = try GraphQLRequest(query: "q", variables: Variables())
        let text = try GraphQLRequest(query: "q", variablesJSON: #"{"count":3,"url":"http://a/b","Zed":[true]}"#)

        #expect(encoded == text)
    }

    @Test("requests differ by number spelling, operation name, document, headers and extensions")
    func differentRequests() throws {
        let requests = try [
            GraphQLRequest(query: "q"),
            GraphQLRequest(documentID: "q"),
            GraphQLRequest(query: "q", operationName: "o"),
            GraphQLRequest(query: "q", headers: [HTTPField("A", "b")]),
            GraphQLRequest(query: "q", variablesJSON: #"{"n":1}"#),
            GraphQLRequest(query: "q", variablesJSON: #"{"n":1.0}"#),
            GraphQLRequest(query: "q", variablesJSON: #"{"n":1}"#, extensionsJSON: "{}"),
        ]

        #expect(Set(requests).count == requests.count)
    }

    @Test("requests differ by the bytes of a text, though String takes two spellings of a character for equal")
    func differentBytes() throws {
        func requests(_ text: String) throws -> [GraphQLRequest] {
            try [
                GraphQLRequest(query: text),
                GraphQLRequest(documentID: text),
                GraphQLRequest(query: "q", operationName: text),
                GraphQLRequest(query: "q", headers: [HTTPField("A", text)]),
                GraphQLRequest(query: "q", variables: ["name": text]),
                GraphQLRequest(query: "q", variables: ["n": 1], extensions: ["name": text]),
            ]
        }

        let all = try requests("\u{E9}") + requests("e\u{301}")

        #expect(Set(all).count == all.count)
        #expect(try requests("\u{E9}") == requests("\u{E9}"))
    }

    @Test(
        "no digit of a number is lost",
        arguments: [
            "12345678901234567890123456789012345678901234567890", "0.1000000000000000055511151231257827021181583404541",
            "-0", "1e400", "1E+2", "-9223372036854775809", "3.14159265358979323846264338327950288",
        ]
    )
    func numbersKeepTheirDigits(_ number: String) throws {
        let request = try GraphQLRequest(query: "q", variablesJSON: "{\"n\": \(number) }")

        #expect(request.variablesJSON == "{\"n\":\(number)}")
    }

    @Test("canonical text means what the text meant, to another reader too")
    func canonicalMeansTheSame() throws {
        let seed = Seeded.ofTheRun
        var generator = Seeded(seed: seed)
        for round in 0..<300 {
            let text = #"{"v":"# + randomJSON(depth: 4, using: &generator) + "}"
            let canonical = try #require(try GraphQLRequest(query: "q", variablesJSON: text).variablesJSON)
            let meant = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary
            let means = try JSONSerialization.jsonObject(with: Data(canonical.utf8)) as? NSDictionary
            #expect(meant != nil && meant == means, "SEED=\(seed) round \(round): \(text)")
        }
    }

    /// Some JSON text, with white space and escapes.
    private func randomJSON(depth: Int, using generator: inout Seeded) -> String {
        let space = ["", " ", "\n", "\t ", "\r\n"].randomElement(using: &generator) ?? ""
        let strings = [#""""#, #""a\u0041\ud83d\ude00""#, #""\"\\\/\b\f\n\r\t""#, "\"\u{e9}\u{2028}\"", #""\u0000""#]
        let numbers = ["0", "-1", "2.50", "1e3", "-0.5E-2", "123456789"]
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &generator) {
        case 0: return space + (strings.randomElement(using: &generator) ?? "")
        case 1: return space + (numbers.randomElement(using: &generator) ?? "")
        case 2: return space + "true"
        case 3: return space + "null"
        case 4:
            let count = Int.random(in: 0...3, using: &generator)
            let elements = (0..<count).map { _ in randomJSON(depth: depth - 1, using: &generator) }
            return space + "[" + elements.joined(separator: ",") + space + "]"
        default:
            let names = ["b", "a", "", "Z", "\u{e9}", "aa"].shuffled(using: &generator)
            let count = Int.random(in: 0...6, using: &generator)
            let entries = names.prefix(count).map { name in
                "\"\(name)\"" + space + ":" + randomJSON(depth: depth - 1, using: &generator)
            }
            return space + "{" + entries.joined(separator: space + ",") + "}"
        }
    }

    @Test("null variables are none")
    func nullVariables() throws {
        #expect(try GraphQLRequest(query: "q", variablesJSON: "null") == GraphQLRequest(query: "q"))
        #expect(try GraphQLRequest(query: "q", variables: [String: Int]?.none) == GraphQLRequest(query: "q"))
    }

    @Test(
        "variables that are no JSON object are refused, with what is wrong",
        arguments: [
            ("", "variables are not JSON: a value was expected at byte 0"),
            ("[1]", "variables are not a JSON object"),
            ("1", "variables are not a JSON object"),
            (#"{"a":1,}"#, "variables are not JSON: a string was expected at byte 7"),
            (#"{"a":1} x"#, "variables are not JSON: more after the value at byte 8"),
            (#"{"a":01}"#, "variables are not JSON: a comma or a closing brace was expected at byte 6"),
            (#"{"a":1,"a":2}"#, #"variables are not JSON: the entry "a" comes twice"#),
            (#"{"a":"\ud800"}"#, "variables are not JSON: half a surrogate pair at byte 12"),
            (#"{"a":tru}"#, "variables are not JSON: true was expected at byte 8"),
            (#"{"a":+1}"#, "variables are not JSON: a value was expected at byte 5"),
            (#"{"a":1.}"#, "variables are not JSON: a digit was expected at byte 7"),
            ("{\"a\":\"\n\"}", "variables are not JSON: a control character in a string at byte 6"),
            (#"{"a""#, "variables are not JSON: a colon was expected at byte 4"),
        ]
    )
    func badVariables(_ json: String, _ message: String) {
        #expect(throws: TransportError(kind: .request, message: message)) {
            try GraphQLRequest(query: "q", variablesJSON: json)
        }
    }

    @Test("variables nest to 512 levels and no further")
    func depth() throws {
        func nested(_ count: Int) -> String {
            #"{"a":"# + String(repeating: "[", count: count - 1) + String(repeating: "]", count: count - 1) + "}"
        }

        _ = try GraphQLRequest(query: "q", variablesJSON: nested(512))
        #expect(throws: TransportError.self) { try GraphQLRequest(query: "q", variablesJSON: nested(514)) }
    }

    // MARK: Events

    @Test("next is a result, complete the end")
    func nextAndComplete() throws {
        let stream = "event: next\ndata: {\"data\":1}\n\nevent: next\ndata: {\"data\":2}\n\nevent: complete\ndata:\n\n"

        #expect(try readings(stream) == [#"{"data":1}"#, #"{"data":2}"#, "completed"])
    }

    @Test(
        "complete ends the stream without data, with empty data, with null and with an object",
        arguments: [
            "event: complete\n\n", "event: complete\ndata:\n\n", "event: complete\ndata: null\n\n",
            "event: complete\ndata: {}\n\n", "event:complete\r\r",
        ]
    )
    func everyComplete(_ complete: String) throws {
        #expect(try readings(complete + "event: next\ndata: {\"data\":1}\n\n") == ["completed"])
    }

    @Test("an event without a name is a result")
    func unnamed() throws {
        #expect(try readings("data: {\"data\":1}\n\n") == [#"{"data":1}"#])
    }

    @Test("other names are skipped and counted, with data and without")
    func unknownNames() throws {
        let stream =
            "event: ping\ndata: x\n\nevent: ping\n\nevent: NEXT\ndata: {}\n\nevent: next\n\ndata: {\"data\":1}\n\n"

        let replay = try DialectReplay(GraphQLSSE().makeReader(), reading: stream, describing: \.text)

        #expect(replay.readings == [#"{"data":1}"#])
        #expect(replay.reader.skippedCount == 3)
    }

    @Test("keep-alives are nothing")
    func keepAlives() throws {
        #expect(try readings(":\n\n: ping\n\n\n\nevent: next\ndata: {\"data\":1}\n\n:\n\n") == [#"{"data":1}"#])
    }

    @Test("a result over several lines is one result")
    func multipleLines() throws {
        #expect(try readings("event: next\ndata: {\ndata:   \"data\": 1\ndata: }\n\n") == ["{\n  \"data\": 1\n}"])
    }

    @Test("a body that ends without complete has no completion in it")
    func noCompletion() throws {
        #expect(try readings("event: next\ndata: {\"data\":1}\n\nevent: complete\n") == [#"{"data":1}"#])
    }

    // MARK: The first result

    @Test(
        "is a request error with errors and no data, or null data and no error with a path",
        arguments: [
            #"{"errors":[{"message":"bad"}]}"#,
            #"{"errors":[{"message":"bad"}],"data":null}"#,
            #"{"data":null,"errors":[{"message":"bad","path":null}]}"#,
            #"{"errors":[{"message":"bad","path":["a"]}]}"#,
            #"{"errors":[{"message":"bad"}],"extensions":{"a":1}}"#,
            #"{"\u0065rrors":[{"message":"\u0062ad"}]}"#,
        ]
    )
    func requestError(_ data: String) throws {
        let failure = try #require(try failure(data))

        #expect(failure.kind == .request)
        #expect(failure.graphQLErrors.map(\.message) == ["bad"])
        #expect(failure.message == "the server refused the operation, with 1 GraphQL error")
    }

    @Test(
        "is a payload with data, with errors beside data, and with null data by an error with a path",
        arguments: [
            #"{"data":{"a":1}}"#,
            #"{"data":{"a":1},"errors":[{"message":"bad"}],"extensions":{}}"#,
            #"{"data":null,"errors":[{"message":"bad","path":["a"]}]}"#,
            #"{"data":null,"errors":[{"message":"a"},{"message":"b","path":["a",0]}]}"#,
            #"{"data":null}"#,
            #"{"data":{"a":1},"errors":null}"#,
            #"{"data":null,"errors":[]}"#,
            "{}",
        ]
    )
    func firstPayload(_ data: String) throws {
        #expect(try readings("event: next\ndata: \(data)\n\n") == [data])
    }

    @Test("keeps the message, path and extensions of its errors, numbers to the digit")
    func errorParts() throws {
        let failure = try #require(
            try failure(
                #"{"errors":[{"message":"no \"x\"","path":[ "a", 0 ],"extensions":{ "code": 1.50 }},"#
                    + #"{"locations":[]},"plain"]}"#
            )
        )

        #expect(
            failure.graphQLErrors == [
                GraphQLError(message: #"no "x""#, path: #"["a",0]"#, extensions: #"{ "code": 1.50 }"#),
                GraphQLError(message: ""),
                GraphQLError(message: "plain"),
            ]
        )
    }

    @Test(
        "is unreadable where it is no JSON object",
        arguments: ["", "x", "[1]", "null", "\"a\"", "{", #"{"data":1"#, "{}x", #"{"data":1}{}"#, "<html>"]
    )
    func unreadable(_ data: String) throws {
        let failure = try #require(try failure(data))

        #expect(failure.kind == .network)
        #expect(failure.message.hasPrefix("the first result is not a JSON object: "))
    }

    @Test("is unreadable where it is not UTF-8")
    func notUTF8() {
        var reader = GraphQLSSE().makeReader()
        let data = EventData(Array(#"{"data":""#.utf8) + [0xFF] + Array(#""}"#.utf8))

        let reading = reader.read(ServerSentEvent(type: "next", data: data))

        guard case .failure(let failure) = reading else {
            Issue.record("\(reading)")
            return
        }
        #expect(failure.kind == .network)
    }

    @Test("is the first next, whatever was skipped before it")
    func firstAfterSkipped() throws {
        let stream = "event: ping\ndata: x\n\n:\n\nevent: next\ndata: {\"errors\":[{\"message\":\"bad\"}]}\n\n"

        let replay = try DialectReplay(GraphQLSSE().makeReader(), reading: stream, describing: \.text)

        #expect(replay.failure?.kind == .request)
    }

    @Test("nothing after a request error is read")
    func nothingAfterFailure() throws {
        let stream = "data: {\"errors\":[{}]}\n\ndata: {\"data\":1}\n\nevent: complete\n\n"

        #expect(try readings(stream).count == 1)
    }

    @Test("its sentence holds at most 200 characters of the server's words")
    func longMessage() throws {
        let failure = try #require(try failure(#"{"errors":[{"message":"\#(String(repeating: "m", count: 5000))"}]}"#))

        #expect(failure.message == "the server refused the operation, with 1 GraphQL error")
        #expect(failure.graphQLErrors.first?.message.count == 5000)
    }

    @Test("nesting of a thousand levels is refused, not followed")
    func deepResult() throws {
        let deep = #"{"data":"# + String(repeating: "[", count: 100_000)

        #expect(try failure(deep)?.kind == .network)
    }

    // MARK: Later results

    @Test("are handed on as they came, errors and what is no JSON too")
    func laterResults() throws {
        let stream =
            "event: next\ndata: {\"data\":1}\n\nevent: next\ndata: {\"errors\":[{\"message\":\"bad\"}]}\n\n"
            + "event: next\ndata: not json\n\nevent: next\ndata:\n\nevent: complete\n\n"

        #expect(
            try readings(stream) == [#"{"data":1}"#, #"{"errors":[{"message":"bad"}]}"#, "not json", "", "completed"]
        )
    }

    // MARK: Decoding

    private struct Counter: Codable, Equatable {
        var count: Int
    }

    @Test("a result decodes into data, errors and extensions")
    func decode() throws {
        let result = GraphQLResult(
            EventData(
                #"{"data":{"count":3},"errors":[{"message":"late","path":["count"]}],"extensions":{"cost":1.0}}"#
            )
        )

        let response = try result.decode(Counter.self)

        #expect(
            response
                == GraphQLResponse(
                    data: Counter(count: 3),
                    errors: [GraphQLError(message: "late", path: #"["count"]"#)],
                    extensions: #"{"cost":1.0}"#
                )
        )
    }

    @Test("a result without data, or with null, decodes into errors alone")
    func decodeWithoutData() throws {
        for text in [#"{"errors":[{"message":"bad"}]}"#, #"{"data":null,"errors":[{"message":"bad"}]}"#] {
            let response = try GraphQLResult(EventData(text)).decode(Counter.self)
            #expect(response == GraphQLResponse(data: nil, errors: [GraphQLError(message: "bad")]))
        }
    }

    @Test("the caller's decoder decodes the data")
    func decodeWithStrategy() throws {
        struct Reply: Decodable {
            var userName: String
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase

        let response = try GraphQLResult(EventData(#"{"data":{"user_name":"a"}}"#)).decode(Reply.self, using: decoder)

        #expect(response.data?.userName == "a")
    }

    @Test(
        "data of another shape, and what is no result, throws a decoding error",
        arguments: [#"{"data":{}}"#, "x", "[]"]
    )
    func decodeFails(_ text: String) {
        #expect(throws: DecodingError.self) { try GraphQLResult(EventData(text)).decode(Counter.self) }
    }

    @Test("a detached result holds no neighbour's bytes")
    func detached() throws {
        var parser = EventStreamParser()
        let large = String(repeating: "x", count: 1000)
        let events = try parser.parse(Array("data: \(large)\n\nevent: next\ndata: {\"data\":1}\n\n".utf8))
        let small = GraphQLResult(try #require(events.last).data)

        let detached = GraphQLSSE.Reader.detached(small)

        #expect(small.content.bytes.startIndex > 1000)
        #expect(detached.content.bytes.startIndex == 0)
        #expect(detached == small)
    }
}

private func text(_ bytes: [UInt8]?) -> String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
}
