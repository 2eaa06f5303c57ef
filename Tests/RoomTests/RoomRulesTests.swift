import Foundation
import Testing

@Suite("The rooms of the package")
struct RoomRulesTests {
    /// The package's top.
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Each Swift file under a folder, by its path from the top; none where there is no such folder.
    ///
    /// A room whose folder is misspelt is found all the same: its real folder is no room then.
    private static func files(under folder: String) throws -> [(path: String, text: SourceText)] {
        let base = top.appending(path: folder)
        guard FileManager.default.fileExists(atPath: base.path) else { return [] }
        let paths = try FileManager.default.subpathsOfDirectory(atPath: base.path)
        return try paths.filter { $0.hasSuffix(".swift") }.sorted().map { path in
            (folder + "/" + path, SourceText(try String(contentsOf: base.appending(path: path), encoding: .utf8)))
        }
    }

    private static func folder(of path: String) -> String {
        path.split(separator: "/").dropLast().joined(separator: "/")
    }

    @Test("a room imports what it may and says no word it may not", arguments: Room.all.map(\.folder))
    func rules(_ folder: String) throws {
        let room = try #require(Room.all.first { $0.folder == folder })
        let files = try Self.files(under: folder).filter { Self.folder(of: $0.path) == folder }

        for (path, text) in files {
            #expect(room.violations(in: text, file: String(path.split(separator: "/").last ?? "")) == [], "\(path)")
        }
    }

    @Test("every folder of sources is a room")
    func everyFolderIsARoom() throws {
        let folders = Set(try Self.files(under: "Sources").map { Self.folder(of: $0.path) })

        #expect(folders.subtracting(Room.all.map(\.folder)) == [])
    }

    @Test("no code says what ends a process or makes a test wait in line", arguments: ["Sources", "Tests"])
    func neverNamed(_ folder: String) throws {
        let words = Room.neverNamed + (folder == "Sources" ? Room.neverNamedInSources : [])

        for (path, text) in try Self.files(under: folder) {
            for word in words where Room.mayName[path]?.contains(word) != true {
                let isSaid = text.names(word)
                #expect(!isSaid, "\(path) says \(word)")
            }
        }
    }

    @Test("a rule that is broken is found, with the file's module or word")
    func aBrokenRuleIsFound() {
        let room = Room(
            folder: "x",
            imports: ["A"],
            importsOfFiles: ["Own.swift": ["B"]],
            mayNotName: ["Task", "curl_"],
            unsafeFiles: ["Own.swift"]
        )
        let text = SourceText(
            """
            import A
            @testable internal import B
            public import struct C.Thing
            // import D, and a Task with curl_easy_init in a comment
            /* Task */
            let text = "import E Task \\" curl_" // Task
            let tasks = MyTask.my_curl_free(unsafe pointer)
            """
        )

        #expect(room.violations(in: text, file: "Other.swift") == ["imports B", "imports C", "says unsafe"])
        #expect(room.violations(in: text, file: "Own.swift") == ["imports C"])
        #expect(
            room.violations(in: SourceText("a = curl_easy_init(); Task {}"), file: "a") == ["says Task", "says curl_"]
        )
    }
}

extension Room {
    /// What a file of the room does that it may not.
    fileprivate func violations(in text: SourceText, file: String) -> [String] {
        let allowed = imports.union(importsOfFiles[file] ?? [])
        var violations = text.imports.filter { !allowed.contains($0) }.map { "imports \($0)" }
        violations += mayNotName.filter { text.names($0) }.map { "says \($0)" }
        if !isUnsafe, !unsafeFiles.contains(file), text.names("unsafe") {
            violations.append("says unsafe")
        }
        return violations
    }
}
