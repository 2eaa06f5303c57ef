// The bytes of one GraphQL response to the entries the transport looks at: is it an object, are there errors, is it a
// request error. Pure. Called on the loop's thread for a stream's first result and for a refused response's body, and
// on the caller's thread when a payload is decoded.

/// What a GraphQL response has beside its `data` (GraphQL, section 7.1).
struct GraphQLResponseEntries: Sendable {
    /// The `data` entry.
    enum Data: Sendable {
        case absent, null, present
    }

    /// The longest `path` that is rewritten, in bytes.
    private static let maxPathSize = 64 << 10

    var data = Data.absent

    /// Whether there is an `errors` entry that is not `null`.
    var hasErrors = false

    /// The errors, as far as they can be made out.
    var errors: [GraphQLError] = []

    /// The `extensions` entry as JSON text.
    var extensions: String?

    /// Reads a response.
    ///
    /// Where an entry comes twice the last one counts, as most servers' own readers have it.
    ///
    /// - Parameter bytes: One response.
    /// - Throws: When it is not a JSON object in UTF-8.
    init(_ bytes: [UInt8]) throws(JSONTextError) {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw JSONTextError(message: "not UTF-8") }
        var reader = JSONText(bytes)
        for entry in try reader.readObject() {
            switch entry.name {
            case "data":
                data = entry.kind == .null ? .null : .present
            case "errors":
                hasErrors = entry.kind != .null
                errors = try Self.errors(bytes, entry)
            case "extensions":
                extensions = entry.kind == .null ? nil : Self.text(bytes, entry)
            default:
                break
            }
        }
    }

    /// Whether the server refused the operation before it executed it.
    ///
    /// GraphQL, section 7.1.2: a request error has no `data` entry. Some servers write `"data": null` for it; an
    /// execution that fails as a whole looks the same but for the `path` of its errors.
    var isRequestError: Bool {
        guard hasErrors else { return false }
        switch data {
        case .absent: return true
        case .null: return !errors.isEmpty && errors.allSatisfy { $0.path == nil }
        case .present: return false
        }
    }

    /// The list of errors; one error where a server wrote it without a list.
    private static func errors(_ bytes: [UInt8], _ entry: JSONText.Entry) throws(JSONTextError) -> [GraphQLError] {
        switch entry.kind {
        case .array:
            var reader = JSONText(bytes, in: entry.value)
            var errors: [GraphQLError] = []
            for element in try reader.readArray() { errors.append(try error(bytes, element)) }
            return errors
        case .null:
            return []
        case .object, .string, .number, .boolean:
            return [try error(bytes, entry)]
        }
    }

    /// One error; of a value that is no object, the value as its message.
    private static func error(_ bytes: [UInt8], _ entry: JSONText.Entry) throws(JSONTextError) -> GraphQLError {
        var error = GraphQLError(message: "")
        switch entry.kind {
        case .object:
            var reader = JSONText(bytes, in: entry.value)
            for part in try reader.readObject() {
                switch part.name {
                case "message": error.message = try message(bytes, part)
                case "path": error.path = part.kind == .null ? nil : canonical(bytes, part)
                case "extensions": error.extensions = part.kind == .null ? nil : text(bytes, part)
                default: break
                }
            }
        case .array, .string, .number, .boolean, .null:
            error.message = try message(bytes, entry)
        }
        return error
    }

    private static func message(_ bytes: [UInt8], _ entry: JSONText.Entry) throws(JSONTextError) -> String {
        guard entry.kind == .string else { return text(bytes, entry) }
        var reader = JSONText(bytes, in: entry.value)
        return try reader.readText()
    }

    /// The entry without white space; as the server spelled it where it is no path that a server would write.
    private static func canonical(_ bytes: [UInt8], _ entry: JSONText.Entry) -> String {
        guard entry.value.count <= maxPathSize, let path = try? JSONText.canonical(Array(bytes[entry.value])) else {
            return text(bytes, entry)
        }
        return String(decoding: path, as: UTF8.self)
    }

    /// The entry as the server spelled it.
    private static func text(_ bytes: [UInt8], _ entry: JSONText.Entry) -> String {
        String(decoding: bytes[entry.value], as: UTF8.self)
    }
}

extension GraphQLError {
    /// The errors of a response's body; empty where the body is no JSON object or has none.
    ///
    /// - Parameter body: The body, whole: half a JSON text has no errors.
    /// - Returns: The errors.
    static func errors(inBody body: [UInt8]) -> [GraphQLError] {
        guard let entries = try? GraphQLResponseEntries(body) else { return [] }
        return entries.errors
    }
}
