// The few questions HTTP asks about bytes.
//
// Pure. Called by the other files of this room. Never a Character and never a locale: names of fields, schemes and
// hosts are ASCII, and what Unicode thinks is a capital letter must not make two origins one.

/// Bytes as HTTP sees them.
enum ASCII {
    /// The text with A to Z as a to z, every other byte as it was.
    static func lowercased(_ text: String) -> String {
        String(decoding: text.utf8.lazy.map(lowercased), as: UTF8.self)
    }

    /// A to Z as a to z.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    /// Whether two texts are one but for the case of ASCII letters.
    static func equal(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    /// A space or a tab: OWS (RFC 9110, section 5.6.3).
    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    /// 0 to 9.
    static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    /// A control byte, DEL included.
    static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F
    }

    /// `tchar` (RFC 9110, section 5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default:
            false
        }
    }

    /// `token` (RFC 9110, section 5.6.2): at least one `tchar` and nothing else.
    static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isToken)
    }

    /// The bytes without the blanks around them.
    static func trimmed<Bytes: BidirectionalCollection>(_ bytes: Bytes) -> Bytes.SubSequence
    where Bytes.Element == UInt8 {
        guard let first = bytes.firstIndex(where: { !isBlank($0) }),
            let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return bytes[bytes.endIndex...] }
        return bytes[first...last]
    }

    /// The text without the blanks around it.
    static func trimmed(_ text: String) -> String {
        let trimmed = trimmed(text.utf8)
        // Most have none, and keep their storage then.
        return trimmed.count == text.utf8.count ? text : String(decoding: trimmed, as: UTF8.self)
    }
}
