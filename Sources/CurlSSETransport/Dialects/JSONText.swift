// JSON text to canonical JSON text, and to the few entries of a GraphQL response that the transport looks at.
//
// RFC 8259, strictly: UTF-8 (section 8.1), no comments, no trailing commas, nothing after the value. Numbers are kept
// as they are spelled, so no digit is lost and `1` is not `1.0`. Values of 512 levels at most.
//
// Not a decoder: what a payload means is the caller's JSONDecoder's. Pure. Called on any thread.

/// Why bytes are not JSON.
struct JSONTextError: Error, Hashable, Sendable {
    /// What is wrong, and at which byte.
    var message: String
}

/// Reads JSON text once, front to back.
package struct JSONText: Sendable {
    /// How deep values may nest.
    static let maxDepth = 512

    /// What kind of value begins at a byte.
    enum Kind: Equatable {
        case object, array, string, number, boolean, null
    }

    /// One entry of an object.
    struct Entry {
        var name: String
        /// Where the value is, without white space around it.
        var value: Range<Int>
        var kind: Kind
    }

    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    /// Reads the bytes, or a range of them.
    init(_ bytes: [UInt8], in range: Range<Int>? = nil) {
        self.bytes = bytes
        position = range?.lowerBound ?? 0
        end = range?.upperBound ?? bytes.count
    }

    /// Whether the bytes are one JSON value, in time and memory linear in their number.
    package static func isValid(_ bytes: [UInt8]) -> Bool {
        var reader = JSONText(bytes)
        reader.skipSpace()
        do {
            try reader.skipValue()
            try reader.readEnd()
            return true
        } catch {
            return false
        }
    }

    /// The text with object entries in the byte order of their names, without white space, each string in its shortest
    /// spelling; equal values of equal number spellings have equal texts.
    ///
    /// - Parameter bytes: One JSON value.
    /// - Returns: The same value.
    /// - Throws: When the bytes are not one JSON value, or an object has an entry twice.
    static func canonical(_ bytes: [UInt8]) throws(JSONTextError) -> [UInt8] {
        var reader = JSONText(bytes)
        var canonical: [UInt8] = []
        canonical.reserveCapacity(bytes.count)
        reader.skipSpace()
        try reader.writeValue(to: &canonical, depth: 0)
        try reader.readEnd()
        return canonical
    }

    /// A string as JSON text, with its quotes.
    static func quote(_ text: String, to target: inout [UInt8]) {
        target.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): target += [UInt8(ascii: "\\"), byte]
            case 0x08: target += Array("\\b".utf8)
            case 0x09: target += Array("\\t".utf8)
            case 0x0A: target += Array("\\n".utf8)
            case 0x0C: target += Array("\\f".utf8)
            case 0x0D: target += Array("\\r".utf8)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                target += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: target.append(byte)
            }
        }
        target.append(UInt8(ascii: "\""))
    }

    // MARK: Walking

    /// The entries of an object; its values are checked and skipped.
    ///
    /// - Returns: In the order of the text; a name that comes twice is there twice.
    /// - Throws: When the bytes are not one JSON object.
    mutating func readObject() throws(JSONTextError) -> [Entry] {
        skipSpace()
        guard try kind() == .object else { throw wrong("an object was expected") }
        var entries: [Entry] = []
        try readEntries { reader, name throws(JSONTextError) in
            entries.append(try reader.readEntry(named: name))
        }
        try readEnd()
        return entries
    }

    /// The elements of an array; checked and skipped.
    ///
    /// - Throws: When the bytes are not one JSON array.
    mutating func readArray() throws(JSONTextError) -> [Entry] {
        skipSpace()
        guard try kind() == .array else { throw wrong("an array was expected") }
        var elements: [Entry] = []
        try readElements { reader throws(JSONTextError) in
            elements.append(try reader.readEntry(named: ""))
        }
        try readEnd()
        return elements
    }

    /// A string's value.
    ///
    /// - Throws: When the bytes are not one JSON string.
    mutating func readText() throws(JSONTextError) -> String {
        skipSpace()
        let text = try readString()
        try readEnd()
        return text
    }

    private mutating func readEntry(named name: String) throws(JSONTextError) -> Entry {
        let start = position
        let kind = try kind()
        try skipValue()
        return Entry(name: name, value: start..<position, kind: kind)
    }

    /// Checks a value and passes it, without recursion: a server's text decides how deep it is.
    private mutating func skipValue() throws(JSONTextError) {
        var closers: [Unicode.Scalar] = []
        value: while true {
            switch try kind() {
            case .object:
                position += 1
                skipSpace()
                if !take("}") {
                    closers.append("}")
                    try check(closers.count)
                    try skipName()
                    continue value
                }
            case .array:
                position += 1
                skipSpace()
                if !take("]") {
                    closers.append("]")
                    try check(closers.count)
                    continue value
                }
            case .string:
                try skipString()
            case .number, .boolean, .null:
                try readScalar()
            }
            while let closer = closers.last {
                skipSpace()
                if take(closer) {
                    closers.removeLast()
                    continue
                }
                guard take(",") else { throw wrong("a comma or \(closer) was expected") }
                skipSpace()
                if closer == "}" { try skipName() }
                continue value
            }
            return
        }
    }

    /// An entry's name and the colon.
    private mutating func skipName() throws(JSONTextError) {
        try skipString()
        skipSpace()
        guard take(":") else { throw wrong("a colon was expected") }
        skipSpace()
    }

    private mutating func writeValue(to target: inout [UInt8], depth: Int) throws(JSONTextError) {
        try check(depth)
        switch try kind() {
        case .object:
            var entries: [(name: String, text: [UInt8])] = []
            try readEntries { reader, name throws(JSONTextError) in
                var text: [UInt8] = []
                try reader.writeValue(to: &text, depth: depth + 1)
                entries.append((name, text))
            }
            // Names are compared as bytes: `==` of String would take two spellings of one character for one name.
            entries.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
            target.append(UInt8(ascii: "{"))
            for (index, entry) in entries.enumerated() {
                if index > 0 {
                    guard !entries[index - 1].name.utf8.elementsEqual(entry.name.utf8) else {
                        throw JSONTextError(message: "the entry \"\(entry.name)\" comes twice")
                    }
                    target.append(UInt8(ascii: ","))
                }
                Self.quote(entry.name, to: &target)
                target.append(UInt8(ascii: ":"))
                target += entry.text
            }
            target.append(UInt8(ascii: "}"))
        case .array:
            target.append(UInt8(ascii: "["))
            var isFirst = true
            try readElements { reader throws(JSONTextError) in
                if !isFirst { target.append(UInt8(ascii: ",")) }
                isFirst = false
                try reader.writeValue(to: &target, depth: depth + 1)
            }
            target.append(UInt8(ascii: "]"))
        case .string:
            Self.quote(try readString(), to: &target)
        case .number, .boolean, .null:
            let start = position
            try readScalar()
            target += bytes[start..<position]
        }
    }

    /// From `{` to past `}`; `body` reads each value.
    private mutating func readEntries(
        _ body: (inout JSONText, String) throws(JSONTextError) -> Void
    ) throws(JSONTextError) {
        position += 1
        skipSpace()
        if take("}") { return }
        while true {
            let name = try readString()
            skipSpace()
            guard take(":") else { throw wrong("a colon was expected") }
            skipSpace()
            try body(&self, name)
            skipSpace()
            if take("}") { return }
            guard take(",") else { throw wrong("a comma or a closing brace was expected") }
            skipSpace()
        }
    }

    /// From `[` to past `]`; `body` reads each value.
    private mutating func readElements(_ body: (inout JSONText) throws(JSONTextError) -> Void) throws(JSONTextError) {
        position += 1
        skipSpace()
        if take("]") { return }
        while true {
            try body(&self)
            skipSpace()
            if take("]") { return }
            guard take(",") else { throw wrong("a comma or a closing bracket was expected") }
            skipSpace()
        }
    }

    // MARK: Tokens

    private func kind() throws(JSONTextError) -> Kind {
        switch peek {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"): return .number
        case let byte? where isDigit(byte): return .number
        default: throw wrong("a value was expected")
        }
    }

    private mutating func readScalar() throws(JSONTextError) {
        switch peek {
        case UInt8(ascii: "t"): try readWord("true")
        case UInt8(ascii: "f"): try readWord("false")
        case UInt8(ascii: "n"): try readWord("null")
        default: try readNumber()
        }
    }

    private mutating func readWord(_ word: StaticString) throws(JSONTextError) {
        for byte in "\(word)".utf8 {
            guard peek == byte else { throw wrong("\(word) was expected") }
            position += 1
        }
    }

    /// RFC 8259, section 6.
    private mutating func readNumber() throws(JSONTextError) {
        _ = take("-")
        if !take("0") { try readDigits() }
        if take(".") { try readDigits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try readDigits()
        }
    }

    private mutating func readDigits() throws(JSONTextError) {
        let start = position
        while let byte = peek, isDigit(byte) { position += 1 }
        guard position > start else { throw wrong("a digit was expected") }
    }

    private func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0") <= byte && byte <= UInt8(ascii: "9") }

    private mutating func skipString() throws(JSONTextError) {
        guard take("\"") else { throw wrong("a string was expected") }
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"):
                _ = try readEscape()
            case 0..<0x20:
                throw wrong("a control character in a string")
            default:
                position += 1
            }
        }
        throw wrong("the text ends in a string")
    }

    private mutating func readString() throws(JSONTextError) -> String {
        guard take("\"") else { throw wrong("a string was expected") }
        var text = ""
        var runStart = position
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                text += try string(runStart..<position)
                position += 1
                return text
            case UInt8(ascii: "\\"):
                text += try string(runStart..<position)
                text.unicodeScalars.append(try readEscape())
                runStart = position
            case 0..<0x20:
                throw wrong("a control character in a string")
            default:
                position += 1
            }
        }
        throw wrong("the text ends in a string")
    }

    private func string(_ range: Range<Int>) throws(JSONTextError) -> String {
        guard let string = String(validating: bytes[range], as: UTF8.self) else { throw wrong("not UTF-8") }
        return string
    }

    /// RFC 8259, section 7; half a surrogate pair has no character and is refused.
    private mutating func readEscape() throws(JSONTextError) -> Unicode.Scalar {
        position += 1
        guard let byte = peek else { throw wrong("the text ends in a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{08}"
        case UInt8(ascii: "f"): return "\u{0C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let unit = try readUnit()
            if let scalar = Unicode.Scalar(unit) { return scalar }
            guard unit < 0xDC00, take("\\"), take("u") else { throw wrong("half a surrogate pair") }
            let low = try readUnit()
            guard 0xDC00...0xDFFF ~= low,
                let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
            else { throw wrong("half a surrogate pair") }
            return scalar
        default:
            throw wrong("an unknown escape")
        }
    }

    /// Four hexadecimal digits.
    private mutating func readUnit() throws(JSONTextError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw wrong("four hexadecimal digits were expected")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard let byte = peek, UInt32(byte) == scalar.value else { return false }
        position += 1
        return true
    }

    private var peek: UInt8? { position < end ? bytes[position] : nil }

    private mutating func readEnd() throws(JSONTextError) {
        skipSpace()
        guard position == end else { throw wrong("more after the value") }
    }

    private func check(_ depth: Int) throws(JSONTextError) {
        guard depth <= Self.maxDepth else { throw wrong("more than \(Self.maxDepth) levels") }
    }

    private func wrong(_ what: String) -> JSONTextError {
        JSONTextError(message: "\(what) at byte \(position)")
    }
}
