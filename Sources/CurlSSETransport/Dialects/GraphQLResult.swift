// One execution result's bytes to what the caller's JSONDecoder makes of them. Runs on the caller's thread, when asked.

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One result of a GraphQL operation, as the server sent it.
///
/// The transport has not read it, but for the first of a stream: it may hold errors, and need not be JSON.
public struct GraphQLResult: Hashable, Sendable {
    /// The result's bytes.
    public var content: EventData

    /// Wraps bytes.
    public init(_ content: EventData) {
        self.content = content
    }

    /// The result as text; what is not UTF-8 becomes U+FFFD.
    public var text: String { content.text }

    /// Decodes the result.
    ///
    /// - Parameters:
    ///   - type: What `data` holds.
    ///   - decoder: Decodes it; its strategies and user info apply. Default: a plain one.
    /// - Returns: The result's entries.
    /// - Throws: What the decoder throws for the data, or `DecodingError.dataCorrupted` where the result is no JSON
    ///   object.
    public func decode<Value: Decodable>(
        _ type: Value.Type,
        using decoder: JSONDecoder = JSONDecoder()
    ) throws -> GraphQLResponse<Value> {
        let bytes = Array(content.bytes)
        let entries: GraphQLResponseEntries
        do {
            entries = try GraphQLResponseEntries(bytes)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "not a GraphQL result: \(error.message)")
            )
        }
        var data: Value?
        if case .present = entries.data {
            data = try decoder.decode(DataEntry<Value>.self, from: Data(bytes)).data
        }
        return GraphQLResponse(data: data, errors: entries.errors, extensions: entries.extensions)
    }

    private struct DataEntry<Value: Decodable>: Decodable {
        var data: Value
    }
}

/// A decoded result (GraphQL, section 7.1).
public struct GraphQLResponse<Value> {
    /// The `data` entry; nil where it is absent or `null`.
    public var data: Value?

    /// The `errors` entry; empty where there is none.
    public var errors: [GraphQLError]

    /// The `extensions` entry as JSON text; nil where there is none.
    public var extensions: String?

    /// Makes a response.
    public init(data: Value?, errors: [GraphQLError] = [], extensions: String? = nil) {
        self.data = data
        self.errors = errors
        self.extensions = extensions
    }
}

extension GraphQLResponse: Sendable where Value: Sendable {}
extension GraphQLResponse: Equatable where Value: Equatable {}
extension GraphQLResponse: Hashable where Value: Hashable {}
