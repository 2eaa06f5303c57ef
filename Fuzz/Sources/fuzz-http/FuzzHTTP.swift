// Bytes to a target's checks: the pure rooms that a server's or a caller's text reaches before libcurl does.
//
// One program, since its targets share their sources: `FUZZ_TARGET` of the environment says which one it is. The folder
// `Transport` is the library's own sources, linked, for what is not public.

import Foundation

/// What a target does with one input.
private let check: @Sendable (inout Input) -> Void = {
    switch ProcessInfo.processInfo.environment["FUZZ_TARGET"] {
    case "head": checkHead
    case "retry-after": checkRetryAfter
    case "redirects": checkRedirects
    case "headers": checkHeaders
    case "position": checkPosition
    case let other: preconditionFailure("FUZZ_TARGET=\(other ?? "") is no target")
    }
}()

/// libFuzzer's entry: 0 for "keep what this input found".
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var input = Input(Array(UnsafeBufferPointer(start: bytes, count: count)))
    check(&input)
    return 0
}

/// Takes an input apart from the left; where it has ended there are zeros.
struct Input {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number() -> Int64 {
        Int64(bitPattern: (0..<8).reduce(UInt64(0)) { sum, _ in sum << 8 | UInt64(byte()) })
    }

    /// Up to a separator, which is passed, or the end.
    mutating func bytes(to separator: UInt8) -> [UInt8] {
        let part = bytes[min(position, bytes.count)...].prefix { $0 != separator }
        position += part.count + 1
        return Array(part)
    }

    mutating func text(to separator: UInt8) -> String { String(decoding: bytes(to: separator), as: UTF8.self) }

    /// All that is left.
    mutating func rest() -> [UInt8] {
        defer { position = bytes.count }
        return Array(bytes[min(position, bytes.count)...])
    }
}

/// Whether a message is fit for one line of a log.
func isOneLine(_ message: String) -> Bool { message.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
