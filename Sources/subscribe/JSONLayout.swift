// JSON as text: on one line, laid out for a reader, and strings into it.
//
// A payload's JSON is passed on as the server wrote it. Decoding and encoding it again would round its numbers.
// Source: RFC 8259. Pure. Called where lines are made.

/// What can be done with JSON without decoding it.
enum JSONLayout {
    /// The same JSON on one line.
    ///
    /// - Parameter bytes: JSON, in which a line end can only stand between tokens.
    /// - Returns: The bytes without line ends.
    static func oneLine(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        bytes.filter { $0 != 0x0A && $0 != 0x0D }
    }

    /// The same JSON over lines, two spaces a level, every token as it was.
    ///
    /// - Parameter bytes: Valid JSON.
    /// - Returns: The lines, without a line end at the end.
    static func pretty(_ bytes: [UInt8]) -> [UInt8] {
        var lines: [UInt8] = []
        var depth = 0
        var isInString = false
        var isEscaped = false
        // Whether the last token opened an object or an array that has nothing in it so far.
        var isEmpty = false

        func breakLine(_ lines: inout [UInt8], _ depth: Int) {
            lines.append(0x0A)
            lines.append(contentsOf: repeatElement(0x20, count: 2 * depth))
        }

        for byte in bytes {
            if isInString {
                lines.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D:
                continue
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if !isEmpty { breakLine(&lines, depth) }
                isEmpty = false
                lines.append(byte)
                continue
            default:
                break
            }
            if isEmpty { breakLine(&lines, depth) }
            isEmpty = false
            lines.append(byte)
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                isEmpty = true
            case UInt8(ascii: ","):
                breakLine(&lines, depth)
            case UInt8(ascii: ":"):
                lines.append(0x20)
            case UInt8(ascii: "\""):
                isInString = true
            default:
                break
            }
        }
        return lines
    }

    /// A string's JSON, quotes and all.
    static func string(_ text: String) -> String {
        var json = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": json += "\\\""
            case "\\": json += "\\\\"
            case "\n": json += "\\n"
            case "\r": json += "\\r"
            case "\t": json += "\\t"
            case "\u{0}"..<" ", "\u{7F}"..<"\u{A0}":
                let digits = String(scalar.value, radix: 16)
                json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: json.unicodeScalars.append(scalar)
            }
        }
        return json + "\""
    }
}
