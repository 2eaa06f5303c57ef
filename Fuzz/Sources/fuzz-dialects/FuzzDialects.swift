// Any stream can be read by both dialects; a payload is its event's bytes; variables are canonical once and for all.

import CurlSSETransport

/// A dialect's reader behind a parser, as the transport has it.
struct Reading<Reader: DialectReader>: EventStreamVisitor {
    var reader: Reader
    var payloads = 0
    var hasEnded = false

    mutating func event(_ event: consuming ServerSentEvent) -> Bool { take(reader.read(event)) }

    mutating func blockWithoutData(type: String) -> Bool { take(reader.readBlockWithoutData(type: type)) }

    private mutating func take(_ reading: CurlSSETransport.Reading<Reader.Payload>) -> Bool {
        precondition(!hasEnded, "read after the end")
        switch reading {
        case .payload(let payload):
            _ = Reader.detached(payload)
            payloads += 1
        case .completed, .failure:
            hasEnded = true
        case .nothing:
            break
        }
        return !hasEnded
    }

    /// Reads a stream whole.
    init(_ reader: Reader, of stream: UnsafeRawBufferPointer) {
        self.reader = reader
        var parser = EventStreamParser(maxEventBytes: 1 << 16)
        // Over the limit is an end like any other.
        try? parser.parse(stream.bytes, to: &self)
    }
}

/// libFuzzer's entry: 0 for "keep what this input found".
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: bytes, count: count)
    _ = Reading(GraphQLSSE().makeReader(), of: input)
    _ = Reading(EventSource().makeReader(), of: input)

    var reader = GraphQLSSE().makeReader()
    let event = ServerSentEvent(type: "next", data: EventData(Array(input)))
    let first = reader.read(event)
    if case .payload(let result) = first {
        precondition(result.content == event.data, "a payload is not its event's bytes")
    }
    guard case .payload = reader.read(event) else {
        preconditionFailure("a later result was looked at")
    }
    _ = try? GraphQLResult(event.data).decode([String: Int].self)

    let text = String(decoding: input, as: UTF8.self)
    if let request = try? GraphQLRequest(query: text, variablesJSON: text), let canonical = request.variablesJSON {
        guard let again = try? GraphQLRequest(query: text, variablesJSON: canonical) else {
            preconditionFailure("canonical text is refused")
        }
        precondition(again == request, "canonical text has another canonical text")
        precondition((try? GraphQLSSE().httpRequest(for: request, resuming: nil)) != nil)
    }
    return 0
}
