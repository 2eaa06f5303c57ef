// The catalogue of what the runtime's tests must cover, and who covers it.
//
// An identifier is named in a comment on the line before its test: `// A01`, or `// A02, A03` where one test has two.

import Foundation
import Testing

@Suite("The catalogue of the runtime's tests")
struct CatalogueTests {
    /// How many identifiers each letter has: retention, kinds, backoff, retry, activity, resumptions, sharing,
    /// delivery, end, observers, models, herds, races.
    static let counts: [(letter: String, count: Int)] = [
        ("A", 13), ("B", 18), ("C", 14), ("D", 10), ("E", 16), ("F", 8), ("G", 9), ("H", 22), ("I", 9), ("J", 5),
        ("K", 7), ("L", 8), ("M", 10),
    ]

    /// What is no test, and why.
    static let elsewhere: [String: String] = [
        "B02": "there is none: its number was given up",
        "L01": "a benchmark: a million handles on a virtual clock, minutes in release",
        "L02": "a benchmark: a simulation of the backoff alone, beside a table of figures",
        "L03": "a benchmark: a million handles against a server of limited capacity",
        "L04": "a benchmark: ten virtual minutes of a fleet whose server accepts and drops",
        "L05": "a benchmark: memory is measured in release, by itself, over a hundred thousand handles",
        "L06": "a benchmark: memory over fifty parkings",
        "L07": "a benchmark: the latest opening of L01's run",
        "L08": "a benchmark: what one chance for all does, which the documentation warns of",
    ]

    /// Every identifier.
    static var all: [String] {
        counts.flatMap { letter, count in
            (1...count).map { "\(letter)\($0 < 10 ? "0" : "")\($0)" }
        }
    }

    /// The identifiers that the comment before a test names, test by test.
    static func named(in text: String) -> [String] {
        let lines = text.split(separator: "\n").map { $0.drop { $0 == " " } }
        return zip(lines, lines.dropFirst()).flatMap { comment, next -> [String] in
            guard comment.hasPrefix("// "), next.hasPrefix("@Test") else { return [] }
            return comment.dropFirst(3).split(separator: ", ").map(String.init).filter { word in
                word.count == 3 && word.first?.isUppercase == true && word.dropFirst().allSatisfy(\.isNumber)
            }
        }
    }

    private static func sources() throws -> [String] {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        return try ["SubscriptionRuntimeTests", "CurlSSETransportTests", "HTTPTests"].flatMap { target in
            let folder = tests.appending(path: target)
            return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
                .map { try String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
        }
    }

    @Test("has a test for each identifier, or a reason why there is none")
    func everyOneIsNamed() throws {
        let named = Set(try Self.sources().flatMap { Self.named(in: $0) })

        for identifier in Self.all where Self.elsewhere[identifier] == nil {
            #expect(named.contains(identifier), "no test names \(identifier)")
        }
        #expect(named.isDisjoint(with: Self.elsewhere.keys))
    }

    @Test("counts an identifier only where a test follows it")
    func onlyBeforeATest() {
        #expect(Self.named(in: "    // A01, B02\n    @Test(\"x\")") == ["A01", "B02"])
        #expect(Self.named(in: "// A01\nfunc x() {}\n// pace, A8\n@Test(\"x\")\n// A01") == [])
    }
}
