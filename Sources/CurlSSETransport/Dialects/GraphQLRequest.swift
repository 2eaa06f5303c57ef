// A GraphQL operation and its variables to the JSON body that opens a subscription.
//
// Pure. Made on the caller's thread.

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One GraphQL operation to subscribe to.
///
/// Equal requests of one environment share one stream. Variables are kept as canonical JSON text: the order of an
/// object's entries, white space and the spelling of strings make no difference; the spelling of a number does (`1` is
/// not `1.0`), and no digit of one is lost. Headers are part of the request; credentials are the transport's.
public struct GraphQLRequest: Hashable, Sendable {
    /// How the operation is named to the server.
    public enum Document: Hashable, Sendable {
        /// The document's text.
        case query(String)

        /// The ID of a document the server knows (`documentId`).
        case id(String)

        /// Whether both are texts, or both IDs, of the same bytes.
        public static func == (left: Document, right: Document) -> Bool {
            switch (left, right) {
            case (.query(let left), .query(let right)), (.id(let left), .id(let right)): left.hasSameBytes(as: right)
            case (.query, .id), (.id, .query): false
            }
        }
    }

    /// The document.
    public let document: Document

    /// Which of the document's operations; nil where it has one.
    public let operationName: String?

    /// The variables as canonical JSON text, an object; nil for none.
    public let variablesJSON: String?

    /// The protocol's extensions as canonical JSON text, an object; nil for none.
    public let extensionsJSON: String?

    /// The caller's header fields, for this request.
    public let headers: [HTTPField]

    /// An operation without variables.
    public init(query: String, operationName: String? = nil, headers: [HTTPField] = []) {
        self.init(.query(query), operationName, variables: nil, extensions: nil, headers)
    }

    /// An operation.
    ///
    /// - Parameters:
    ///   - query: The document's text.
    ///   - operationName: Which of its operations. Default: nil, the only one.
    ///   - variables: Anything that encodes as a JSON object.
    ///   - extensions: Anything that encodes as a JSON object. Default: none.
    ///   - headers: Header fields for this request. Default: none.
    ///   - encoder: Encodes variables and extensions.
    /// - Throws: What the encoder throws, or a ``TransportError`` of kind `request` for what is not an object.
    public init(
        query: String,
        operationName: String? = nil,
        variables: some Encodable,
        extensions: (any Encodable)? = nil,
        headers: [HTTPField] = [],
        using encoder: JSONEncoder = JSONEncoder()
    ) throws {
        let variables = try Self.encode(variables, named: "variables", using: encoder)
        let extensions = try Self.encode(extensions, named: "extensions", using: encoder)
        self.init(.query(query), operationName, variables: variables, extensions: extensions, headers)
    }

    /// An operation whose variables are JSON text.
    ///
    /// - Parameters:
    ///   - query: The document's text.
    ///   - operationName: Which of its operations. Default: nil, the only one.
    ///   - variablesJSON: A JSON object (RFC 8259) of at most 512 levels, none of whose objects has an entry twice.
    ///   - extensionsJSON: Another. Default: none.
    ///   - headers: Header fields for this request. Default: none.
    /// - Throws: An error of kind `request` for anything else, saying what is wrong at which byte.
    public init(
        query: String,
        operationName: String? = nil,
        variablesJSON: String,
        extensionsJSON: String? = nil,
        headers: [HTTPField] = []
    ) throws(TransportError) {
        let variables = try Self.canonical(variablesJSON, named: "variables")
        let extensions = try Self.canonical(extensionsJSON, named: "extensions")
        self.init(.query(query), operationName, variables: variables, extensions: extensions, headers)
    }

    /// An operation the server knows, without variables.
    public init(documentID: String, operationName: String? = nil, headers: [HTTPField] = []) {
        self.init(.id(documentID), operationName, variables: nil, extensions: nil, headers)
    }

    /// An operation the server knows.
    ///
    /// - Parameters:
    ///   - documentID: The document's ID.
    ///   - operationName: Which of its operations. Default: nil, the only one.
    ///   - variables: Anything that encodes as a JSON object.
    ///   - extensions: Anything that encodes as a JSON object. Default: none.
    ///   - headers: Header fields for this request. Default: none.
    ///   - encoder: Encodes variables and extensions.
    /// - Throws: What the encoder throws, or a ``TransportError`` of kind `request` for what is not an object.
    public init(
        documentID: String,
        operationName: String? = nil,
        variables: some Encodable,
        extensions: (any Encodable)? = nil,
        headers: [HTTPField] = [],
        using encoder: JSONEncoder = JSONEncoder()
    ) throws {
        let variables = try Self.encode(variables, named: "variables", using: encoder)
        let extensions = try Self.encode(extensions, named: "extensions", using: encoder)
        self.init(.id(documentID), operationName, variables: variables, extensions: extensions, headers)
    }

    /// An operation the server knows, whose variables are JSON text.
    ///
    /// - Parameters:
    ///   - documentID: The document's ID.
    ///   - operationName: Which of its operations. Default: nil, the only one.
    ///   - variablesJSON: A JSON object (RFC 8259) of at most 512 levels, none of whose objects has an entry twice.
    ///   - extensionsJSON: Another. Default: none.
    ///   - headers: Header fields for this request. Default: none.
    /// - Throws: An error of kind `request` for anything else, saying what is wrong at which byte.
    public init(
        documentID: String,
        operationName: String? = nil,
        variablesJSON: String,
        extensionsJSON: String? = nil,
        headers: [HTTPField] = []
    ) throws(TransportError) {
        let variables = try Self.canonical(variablesJSON, named: "variables")
        let extensions = try Self.canonical(extensionsJSON, named: "extensions")
        self.init(.id(documentID), operationName, variables: variables, extensions: extensions, headers)
    }

    private init(
        _ document: Document,
        _ operationName: String?,
        variables: String?,
        extensions: String?,
        _ headers: [HTTPField]
    ) {
        self.document = document
        self.operationName = operationName
        variablesJSON = variables
        extensionsJSON = extensions
        self.headers = headers
    }

    /// Whether a server could not tell them apart: all is compared byte for byte.
    public static func == (left: GraphQLRequest, right: GraphQLRequest) -> Bool {
        left.document == right.document && left.operationName.hasSameBytes(as: right.operationName)
            && left.variablesJSON.hasSameBytes(as: right.variablesJSON)
            && left.extensionsJSON.hasSameBytes(as: right.extensionsJSON) && left.headers == right.headers
    }

    /// The body of the request: `query` or `documentId`, then what else there is.
    var body: [UInt8] {
        var body: [UInt8] = []
        switch document {
        case .query(let text):
            body += Array("{\"query\":".utf8)
            JSONText.quote(text, to: &body)
        case .id(let id):
            body += Array("{\"documentId\":".utf8)
            JSONText.quote(id, to: &body)
        }
        if let operationName {
            body += Array(",\"operationName\":".utf8)
            JSONText.quote(operationName, to: &body)
        }
        if let variablesJSON {
            body += Array(",\"variables\":\(variablesJSON)".utf8)
        }
        if let extensionsJSON {
            body += Array(",\"extensions\":\(extensionsJSON)".utf8)
        }
        body.append(UInt8(ascii: "}"))
        return body
    }

    private static func encode(
        _ value: (any Encodable)?,
        named name: String,
        using encoder: JSONEncoder
    ) throws -> String? {
        guard let value else { return nil }
        return try canonical(Array(encoder.encode(value)), named: name)
    }

    private static func canonical(_ text: String?, named name: String) throws(TransportError) -> String? {
        guard let text else { return nil }
        return try canonical(Array(text.utf8), named: name)
    }

    /// An object's canonical text; nil for `null`.
    private static func canonical(_ bytes: [UInt8], named name: String) throws(TransportError) -> String? {
        let text: [UInt8]
        do {
            text = try JSONText.canonical(bytes)
        } catch {
            throw TransportError(kind: .request, message: "\(name) are not JSON: \(error.message)")
        }
        switch text.first {
        case UInt8(ascii: "{"):
            return String(decoding: text, as: UTF8.self)
        case UInt8(ascii: "n"):
            return nil
        default:
            throw TransportError(kind: .request, message: "\(name) are not a JSON object")
        }
    }
}
