// JSON as text: whether it is any, on one line, laid out for a reader, and strings into it.
//
// A payload's JSON is passed on as the server wrote it. Decoding and encoding it again would round its numbers.
// Source: RFC 8259. Pure. Called where lines are made.

/// What can be done with JSON without decoding it.
enum JSONText {
    /// The deepest nesting that is taken for JSON; what is deeper is handed on as text.
    static let deepest = 1000

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

    /// Whether the bytes are one JSON value in valid UTF-8, nested no deeper than ``deepest``.
    static func isValid(_ bytes: [UInt8]) -> Bool {
        guard String(validating: bytes, as: UTF8.self) != nil else { return false }
        var scanner = Scanner(bytes: bytes)
        return scanner.document()
    }

    /// Walks over one document.
    private struct Scanner {
        let bytes: [UInt8]
        var index = 0

        init(bytes: [UInt8]) {
            self.bytes = bytes
        }

        private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

        mutating func document() -> Bool {
            guard value(depth: 0) else { return false }
            skipSpace()
            return index == bytes.count
        }

        private mutating func skipSpace() {
            while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
        }

        private mutating func take(_ byte: UInt8) -> Bool {
            guard current == byte else { return false }
            index += 1
            return true
        }

        private mutating func value(depth: Int) -> Bool {
            guard depth <= JSONText.deepest else { return false }
            skipSpace()
            switch current {
            case UInt8(ascii: "{"): return members(depth: depth + 1)
            case UInt8(ascii: "["): return elements(depth: depth + 1)
            case UInt8(ascii: "\""): return string()
            case UInt8(ascii: "t"): return word("true")
            case UInt8(ascii: "f"): return word("false")
            case UInt8(ascii: "n"): return word("null")
            default: return number()
            }
        }

        private mutating func members(depth: Int) -> Bool {
            index += 1
            skipSpace()
            if take(UInt8(ascii: "}")) { return true }
            repeat {
                skipSpace()
                guard string() else { return false }
                skipSpace()
                guard take(UInt8(ascii: ":")), value(depth: depth) else { return false }
                skipSpace()
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "}"))
        }

        private mutating func elements(depth: Int) -> Bool {
            index += 1
            skipSpace()
            if take(UInt8(ascii: "]")) { return true }
            repeat {
                guard value(depth: depth) else { return false }
                skipSpace()
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "]"))
        }

        private mutating func string() -> Bool {
            guard take(UInt8(ascii: "\"")) else { return false }
            while let byte = current {
                index += 1
                switch byte {
                case UInt8(ascii: "\""): return true
                case UInt8(ascii: "\\"): guard escape() else { return false }
                case 0..<0x20: return false
                default: break
                }
            }
            return false
        }

        private mutating func escape() -> Bool {
            guard let byte = current else { return false }
            index += 1
            guard byte == UInt8(ascii: "u") else { return "\"\\/bfnrt".utf8.contains(byte) }
            for _ in 0..<4 {
                guard let digit = current, Character(UnicodeScalar(digit)).isHexDigit else { return false }
                index += 1
            }
            return true
        }

        private mutating func word(_ text: String) -> Bool {
            text.utf8.allSatisfy { take($0) }
        }

        private mutating func digits() -> Bool {
            let start = index
            while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
            return index > start
        }

        private mutating func number() -> Bool {
            _ = take(UInt8(ascii: "-"))
            if !take(UInt8(ascii: "0")) {
                guard digits() else { return false }
            }
            if take(UInt8(ascii: ".")) {
                guard digits() else { return false }
            }
            if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
                if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
                guard digits() else { return false }
            }
            return true
        }
    }
}
