import Foundation
import Testing

@Suite("The articles")
struct ArticleTests {
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The lines without their indentation.
    private func lines(_ path: String) throws -> [Substring] {
        let text = try String(contentsOf: Self.top.appending(path: path), encoding: .utf8)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
    }

    /// An article under Sources, and the file beside this one that has its code.
    struct Article: CustomTestStringConvertible {
        var path: String
        var examples: String

        var testDescription: String { path }
    }

    static let articles =
        ["TestingYourCode", "TestingATransport"].map {
            Article(path: "SubscriptionTesting/SubscriptionTesting.docc/\($0).md", examples: "ArticleExamples")
        }
        + ["GettingStarted", "RunningInProduction", "WritingADialect"].map {
            Article(path: "CurlSSETransport/CurlSSETransport.docc/\($0).md", examples: "TransportArticleExamples")
        }
        + [
            Article(
                path: "SubscriptionRuntime/SubscriptionRuntime.docc/Gaps.md",
                examples: "TransportArticleExamples"
            )
        ]

    @Test("show code that is compiled here, each paragraph of it", arguments: articles)
    func examplesAreCompiled(article: Article) throws {
        let shown = try lines("Sources/\(article.path)")
        let compiled = try lines("Tests/DocumentationTests/\(article.examples).swift")

        let blocks = shown.split(separator: "```", omittingEmptySubsequences: false).flatMap { part in
            part.split(separator: "```swift", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
        }
        #expect(!blocks.isEmpty)
        for block in blocks {
            // A comment stands for what an example leaves to the reader.
            let pieces = block.split { $0.hasPrefix("// ...") || $0.hasPrefix("import ") || $0.isEmpty }
            #expect(block.allSatisfy { !$0.hasPrefix("import ") || compiled.contains($0) })
            for piece in pieces {
                #expect(compiled.firstRange(of: Array(piece)) != nil, "\(piece.joined(separator: "\n"))")
            }
        }
    }

    @Test("with Swift code are all compared")
    func allArticlesAreCompared() throws {
        let sources = Self.top.appending(path: "Sources")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: sources.path).filter { path in
            try path.hasSuffix(".md") && lines("Sources/\(path)").contains("```swift")
        }

        #expect(Set(paths) == Set(Self.articles.map(\.path)))
    }
}
