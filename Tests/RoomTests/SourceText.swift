// Swift source to its code alone, without comments and without what stands in string literals.

/// A source file's code.
struct SourceText {
    /// The code, line for line as in the file.
    let code: String

    /// Strips comments and the contents of strings; what is interpolated into a string counts as its content.
    init(_ source: String) {
        var code: [UInt8] = []
        var rest = Array(source.utf8)[...]

        func starts(with text: String) -> Bool { rest.starts(with: text.utf8) }

        /// Drops up to the end of `closing`, or of the file, and keeps the line ends.
        func skip(past closing: String, escapes: Bool) {
            while let byte = rest.first {
                if starts(with: closing) {
                    rest = rest.dropFirst(closing.utf8.count)
                    return
                }
                if byte == 0x0A { code.append(byte) }
                rest = rest.dropFirst(escapes && byte == UInt8(ascii: "\\") ? 2 : 1)
            }
        }

        while let byte = rest.first {
            if starts(with: "//") {
                rest = rest.drop { $0 != 0x0A }
            } else if starts(with: "/*") {
                rest = rest.dropFirst(2)
                skip(past: "*/", escapes: false)
            } else if starts(with: "\"\"\"") {
                rest = rest.dropFirst(3)
                skip(past: "\"\"\"", escapes: true)
            } else if starts(with: "#\"") {
                rest = rest.dropFirst(2)
                skip(past: "\"#", escapes: false)
            } else if byte == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                skip(past: "\"", escapes: true)
            } else {
                code.append(byte)
                rest = rest.dropFirst()
            }
        }
        self.code = String(decoding: code, as: UTF8.self)
    }

    /// The modules it imports, in order.
    var imports: [String] {
        code.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard let index = words.firstIndex(of: "import"), index < 2 || words[0].hasPrefix("@") else { return nil }
            guard index + 1 < words.count else { return nil }
            // `import struct Foundation.Date` imports Foundation.
            return words[words.count - 1].split(separator: ".").first.map(String.init)
        }
    }

    /// Whether a word stands in the code, not as a part of a longer one.
    ///
    /// A word that ends in an underscore or begins with a mark that no name has is looked for as it is.
    func names(_ word: String) -> Bool {
        func isOfAName(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }

        var from = code.startIndex
        while let found = code[from...].firstRange(of: word) {
            let before = found.lowerBound == code.startIndex ? nil : code[code.index(before: found.lowerBound)]
            let after = found.upperBound == code.endIndex ? nil : code[found.upperBound]
            let startsAlone = !isOfAName(word.first) || !isOfAName(before)
            let endsAlone = word.last == "_" || !isOfAName(word.last) || !isOfAName(after)
            if startsAlone, endsAlone { return true }
            from = found.upperBound
        }
        return false
    }
}
