// Frames of HTTP/2 as bytes, for a server that plays them by hand.
//
// Source: RFC 9113, sections 4.1 and 6; fields by RFC 7541, section 6.2.2: literal, new names, no Huffman code.

import SubscriptionTesting

/// What a server of HTTP/2 sends.
enum HTTP2Frame {
    /// Error codes (RFC 9113, section 7).
    enum Code: UInt32, CaseIterable, Sendable {
        case noError = 0
        case protocolError = 1
        case internalError = 2
        case refusedStream = 7
        case cancel = 8
        case enhanceYourCalm = 11
        case http11Required = 13
    }

    private static let endStream: UInt8 = 1
    private static let endHeaders: UInt8 = 4

    /// A frame of any kind.
    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        bytes(UInt32(payload.count)).dropFirst() + [type, flags] + bytes(stream) + payload
    }

    /// What a connection begins with: no setting is changed, and the client's are acknowledged.
    static let preface = frame(4) + frame(4, flags: 1)

    /// A head.
    static func head(_ fields: [(String, String)], stream: UInt32 = 1, ends: Bool = false) -> [UInt8] {
        var block: [UInt8] = []
        for (name, value) in fields { block += [0] + literal(name) + literal(value) }
        return frame(1, flags: endHeaders | (ends ? endStream : 0), stream: stream, block)
    }

    /// The head of an event stream.
    static let eventStreamHead = head([(":status", "200"), ("content-type", "text/event-stream")])

    /// A part of the content.
    static func data(_ text: String, stream: UInt32 = 1, ends: Bool = false) -> [UInt8] {
        frame(0, flags: ends ? endStream : 0, stream: stream, Array(text.utf8))
    }

    /// The stream is reset.
    static func reset(_ code: Code, stream: UInt32 = 1) -> [UInt8] { frame(3, stream: stream, bytes(code.rawValue)) }

    /// The connection takes no more streams; those up to the last one were, or may have been, processed.
    static func goAway(last: UInt32, _ code: Code = .noError) -> [UInt8] {
        frame(7, bytes(last) + bytes(code.rawValue))
    }

    /// A question whether the peer is there.
    static let ping = frame(6, Array("ping ing".utf8))

    private static func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    /// A text of less than 127 bytes.
    private static func literal(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }
}
