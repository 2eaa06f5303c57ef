import Foundation
import SubscriptionTesting
import Testing

@Suite("The README")
struct ReadmeTests {
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.top.appending(path: path), encoding: .utf8)
    }

    private func between(_ start: String, _ end: String, in text: String) throws -> String {
        let from = try #require(text.firstRange(of: start)).upperBound
        let to = try #require(text[from...].firstRange(of: end)).lowerBound
        return String(text[from..<to])
    }

    @Test("its service loop is the one that is compiled here")
    func theSnippetIsCompiled() throws {
        let shown = try between("```swift\n", "```", in: text("README.md"))
        let compiled = try between(
            "// begin\n",
            "// end\n",
            in: text("Tests/DocumentationTests/ReadmeSnippet.swift")
        )

        #expect(shown == compiled)
    }

    @Test("its service loop fetches a baseline at each opening, and applies each payload", .timeLimit(.minutes(1)))
    func theSnippetRuns() async throws {
        func next(_ price: Double) -> String { "event: next\ndata: {\"data\":{\"price\":\(price)}}\n\n" }
        let server = try ReplayServer(scripts: [
            [.expectRequest, .send(ReplayServer.eventStreamHead), .send(next(1.5)), .reset],
            [.expectRequest, .send(ReplayServer.eventStreamHead), .send(next(2.5) + "event: complete\ndata:\n\n")],
        ])
        defer { server.stop() }
        let ledger = Ledger()

        try await follow("ACME", at: server.url, in: ledger)

        #expect(await ledger.log == ["fetched ACME", "1.5", "fetched ACME", "2.5"])
    }

    @Test("the scripts and files that it names are there", arguments: ["README.md", "CONTRIBUTING.md"])
    func whatItNamesIsThere(_ document: String) throws {
        let text = try text(document)
        let paths =
            text.matches(of: /`((scripts|Sources|Tests|Fixtures|\.ci)\/[A-Za-z0-9_.\/-]*)[^`]*`/).map {
                String($0.output.1)
            }
            + text.matches(of: /\]\(([A-Za-z][^):#]*)\)/).map { String($0.output.1) }

        #expect(!paths.isEmpty)
        for path in paths {
            #expect(FileManager.default.fileExists(atPath: Self.top.appending(path: path).path), "\(path)")
        }
    }
}
