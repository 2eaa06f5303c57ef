/// The fields the standard knows (WHATWG HTML 9.2.6), and the comment.
enum Field: UInt8, Sendable {
    case data, event, id, retry
    /// A line that begins with a colon: a field without a name, as it were.
    case comment

    /// The field whose name begins with the byte; no two names share one.
    init?(firstByte: UInt8) {
        switch firstByte {
        case UInt8(ascii: "d"): self = .data
        case UInt8(ascii: "e"): self = .event
        case UInt8(ascii: "i"): self = .id
        case UInt8(ascii: "r"): self = .retry
        default: return nil
        }
    }

    /// The bytes of `data`, the first one lowest.
    static let dataWord: UInt32 = 0x61_7461_64

    /// The name's bytes, the first one lowest.
    @inline(__always)
    private var name: UInt64 {
        switch self {
        case .data: 0x61_7461_64
        case .event: 0x74_6e65_7665
        case .id: 0x64_69
        case .retry: 0x79_7274_6572
        case .comment: 0
        }
    }

    /// The name's length in bytes.
    @inline(__always)
    var nameCount: Int {
        switch self {
        case .data: 4
        case .event, .retry: 5
        case .id: 2
        case .comment: 0
        }
    }

    /// The name's byte at an index below `nameCount`.
    @inline(__always)
    func nameByte(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: name >> UInt64(8 * index)) }

    /// Whether a range, as long as the name, holds it.
    @inline(__always)
    func isNamed(in chunk: RawSpan, from start: Int, to end: Int) -> Bool {
        guard end - start >= 4 else {
            for index in 0..<end - start where chunk.byte(start + index) != nameByte(index) { return false }
            return true
        }
        return chunk.word(start) == UInt32(truncatingIfNeeded: name)
            && (end - start == 4 || chunk.byte(start + 4) == nameByte(4))
    }

    /// Where the field's value begins in a line that is not empty; nil where the line is another field's.
    ///
    /// A line without a colon is a name with an empty value. One space after the colon is no part of the value.
    @inline(__always)
    func value(of chunk: RawSpan, from start: Int, to end: Int) -> Int? {
        let count = nameCount
        guard end - start >= count, isNamed(in: chunk, from: start, to: start + count) else { return nil }
        let colon = start + count
        if colon == end { return end }
        guard chunk.byte(colon) == UInt8(ascii: ":") else { return nil }
        let value = colon + 1
        return value < end && chunk.byte(value) == UInt8(ascii: " ") ? value + 1 : value
    }
}

/// The value of a `retry` field, read as it comes and never stored.
///
/// Digits alone count (WHATWG HTML 9.2.6); a number of any length is a number, and saturates.
struct RetryValue: Sendable {
    private var milliseconds: Int64 = 0
    private var hasDigits = false
    private var isNumber = true

    /// An empty value.
    init() {}

    /// A whole value.
    init(_ chunk: RawSpan, from start: Int, to end: Int) {
        append(chunk, from: start, to: end)
    }

    /// More of the value.
    mutating func append(_ chunk: RawSpan, from start: Int, to end: Int) {
        var offset = start
        while isNumber, offset < end {
            let digit = Int64(chunk.byte(offset)) - 0x30
            isNumber = 0 <= digit && digit <= 9
            hasDigits = true
            let (tens, overflows) = milliseconds.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = tens.addingReportingOverflow(digit)
            milliseconds = overflows || overflowsToo ? .max : sum
            offset += 1
        }
    }

    /// What the value says, at most `Int64.max` milliseconds; nil where the field is to be ignored.
    var duration: Duration? { isNumber && hasDigits ? .milliseconds(milliseconds) : nil }
}
