// Any fields of three sides come to lines that libcurl may have, or to an error without a value in it.

/// Fields by their sides, then a method and a target.
func checkHeaders(_ input: inout Input) {
    let method = input.text(to: 0xFF)
    let target = input.text(to: 0xFF)
    var sides: [[HTTPField]] = [[], [], []]
    while !input.isAtEnd {
        let side = Int(input.byte() % 3)
        sides[side].append(HTTPField(input.text(to: 0xFE), input.text(to: 0xFE)))
    }

    if (try? HeaderRules.check(method: method)) != nil {
        precondition(ASCII.isToken(method) && method != "HEAD" && method != "CONNECT")
    }
    if (try? HeaderRules.check(target: target)) != nil, !target.isEmpty {
        precondition(target.hasPrefix("/") || target.hasPrefix("?"))
        precondition(target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
    }
    if let field = HeaderRules.lastEventIDField(target) {
        precondition(!field.value.isEmpty && field.value.utf8.count <= HeaderRules.maximumLastEventIDBytes)
        precondition(isOneField(HeaderRules.line(field)))
    }

    do {
        let fields = try HeaderRules.merged(dialect: sides[0], caller: sides[1], credentials: sides[2])
        let names = Set(sides.joined().map { ASCII.lowercased($0.name) })
        precondition(Set(fields.map { ASCII.lowercased($0.name) }) == names)
        for name in names {
            precondition(ASCII.isToken(name) && !HeaderRules.reserved.contains(name))
            // The last side that has the name has it whole.
            let given = sides.last { side in side.contains { ASCII.lowercased($0.name) == name } } ?? []
            func values(_ fields: [HTTPField]) -> [[UInt8]] {
                fields.filter { ASCII.lowercased($0.name) == name }.map { Array(ASCII.trimmed($0.value).utf8) }
            }
            precondition(values(fields) == values(given))
        }
        precondition((try? HeaderRules.merged(dialect: fields, caller: [])) == fields)
        for line in HeaderRules.lines(fields) { precondition(isOneField(line)) }
    } catch {
        precondition(error.kind == .request && isOneLine(error.message))
        // What it says does not depend on a value, but for whether that may be sent.
        let other = sides.map { side in
            side.map { HTTPField($0.name, HeaderRules.isFieldValue($0.value) ? "other" : "o\0ther") }
        }
        do {
            _ = try HeaderRules.merged(dialect: other[0], caller: other[1], credentials: other[2])
            preconditionFailure("a value decided")
        } catch let second {
            precondition(second == error, "a value is shown")
        }
    }
}

/// A name, then `;` and nothing, or `:` and a value or nothing: no byte that would end the line.
private func isOneField(_ line: String) -> Bool {
    let name = line.utf8.prefix(while: ASCII.isToken)
    let rest = line.utf8.dropFirst(name.count)
    return !name.isEmpty && rest.allSatisfy { $0 == UInt8(ascii: "\t") || !ASCII.isControl($0) }
        && (rest.elementsEqual(";".utf8) || rest.elementsEqual(":".utf8)
            || rest.starts(with: ": ".utf8) && rest.count > 2)
}
