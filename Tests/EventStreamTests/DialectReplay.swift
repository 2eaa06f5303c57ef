import CurlSSETransport

/// Runs a stream through a parser and a dialect's reader, as the transport does.
struct DialectReplay<Reader: DialectReader> {
    var reader: Reader
    /// Payloads as text, `completed`, or `failed`.
    var readings: [String] = []
    var failure: DialectFailure?
    private let describe: @Sendable (Reader.Payload) -> String

    init(
        _ reader: Reader,
        reading stream: String,
        describing describe: @escaping @Sendable (Reader.Payload) -> String
    ) throws {
        self.reader = reader
        self.describe = describe
        var parser = EventStreamParser()
        let bytes = Array(stream.utf8)
        try parser.parse(bytes.span.bytes, to: &self)
    }
}

extension DialectReplay: EventStreamVisitor {
    mutating func event(_ event: consuming ServerSentEvent) -> Bool { take(reader.read(event)) }

    mutating func blockWithoutData(type: String) -> Bool { take(reader.readBlockWithoutData(type: type)) }

    private mutating func take(_ reading: Reading<Reader.Payload>) -> Bool {
        switch reading {
        case .payload(let payload):
            readings.append(describe(payload))
            return true
        case .completed:
            readings.append("completed")
            return false
        case .failure(let failure):
            readings.append("failed")
            self.failure = failure
            return false
        case .nothing:
            return true
        }
    }
}
