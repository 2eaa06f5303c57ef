import Foundation
import Testing

@Suite("The articles on testing")
struct ArticleTests {
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The lines without their indentation.
    private func lines(_ path: String) throws -> [Substring] {
        let text = try String(contentsOf: Self.top.appending(path: path), encoding: .utf8)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
    }

    @Test("show the code that is compiled and run here", arguments: ["TestingYourCode", "TestingATransport"])
    func examplesAreCompiled(article: String) throws {
        let shown = try lines("Sources/SubscriptionTesting/SubscriptionTesting.docc/\(article).md")
        let compiled = try lines("Tests/DocumentationTests/ArticleExamples.swift")

        let blocks = shown.split(separator: "```", omittingEmptySubsequences: false).flatMap { part in
            part.split(separator: "```swift", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
        }
        #expect(!blocks.isEmpty)
        for block in blocks {
            // A comment stands for what an example leaves to the reader.
            let pieces = block.split { $0.hasPrefix("// ...") }
            for piece in pieces {
                #expect(compiled.firstRange(of: Array(piece)) != nil, "\(piece.joined(separator: "\n"))")
            }
        }
    }
}
