import Foundation
import Testing

@testable import CurlSSETransport

@Suite("The names of a file's contents")
struct FileVersionTests {
    @Test("each leads to the same file, and differs from every other", arguments: ["/a.pem", "/sub/a.pem", "/sub/"])
    func names(_ path: String) throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path("sub"), withIntermediateDirectories: true)
        for file in ["a.pem", "sub/a.pem"] {
            try file.write(toFile: folder.path(file), atomically: true, encoding: .utf8)
        }
        let whole = folder.url.path + path
        let inode = try FileManager.default.attributesOfItem(atPath: whole)[.systemFileNumber] as? UInt64
        let versions = Array(0..<300) + [UInt16.max - 1, .max]
        let names = versions.map { FileVersions.name(of: whole, version: $0) }
        #expect(names[0] == whole)
        #expect(Set(names).count == versions.count)
        for name in names {
            let found = try FileManager.default.attributesOfItem(atPath: name)[.systemFileNumber] as? UInt64
            #expect(found == inode, "\(name)")
            #expect(name.utf8.count <= whole.utf8.count + 48)
        }
    }

    @Test("a path without a folder stays in the folder it was in")
    func relative() {
        #expect(FileVersions.name(of: "a.pem", version: 2) == "././/a.pem")
        #expect(FileVersions.name(of: "/a.pem", version: 2) == "/././/a.pem")
    }

    @Test("a name stays until its file, or one that belongs to it, is another")
    func changes() throws {
        let folder = try TemporaryFolder()
        let (file, key) = (folder.path("a.pem"), folder.path("a.key"))
        func write(_ text: String, to path: String) throws {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        try write("1", to: file)
        var versions = FileVersions()
        var names = [versions.name(of: file, with: [key])]
        #expect(versions.name(of: file, with: [key]) == file)
        try write("2", to: file)
        names.append(versions.name(of: file, with: [key]))
        #expect(versions.name(of: file, with: [key]) == names[1])
        try write("2", to: key)
        names.append(versions.name(of: file, with: [key]))
        try FileManager.default.removeItem(atPath: file)
        names.append(versions.name(of: file, with: [key]))
        #expect(versions.name(of: file, with: [key]) == names[3])
        #expect(Set(names).count == 4)
        #expect(versions.name(of: file) == file)
    }
}
