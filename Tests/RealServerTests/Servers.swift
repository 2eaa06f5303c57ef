// Where the real servers are, as scripts/test has written down, and one that a test may kill.

import Foundation
import Testing

/// The servers that scripts/test started.
struct Servers: Decodable {
    let ariadne: String
    let strawberry: String
    let ariadneOverHTTP2: String
    let strawberryOverHTTP2: String
    let plain: String
    /// The PEM file of the authority that signed the servers of HTTP/2.
    let authority: String
    let python: String
    let serve: String

    private enum CodingKeys: String, CodingKey {
        case ariadne, strawberry, plain, authority, python, serve
        case ariadneOverHTTP2 = "ariadne-h2"
        case strawberryOverHTTP2 = "strawberry-h2"
    }

    /// Reads the file that `REAL_SERVERS` names.
    static func read() throws -> Servers {
        guard let path = ProcessInfo.processInfo.environment["REAL_SERVERS"] else {
            throw NoServers(reason: "REAL_SERVERS is not set")
        }
        guard let file = FileManager.default.contents(atPath: path) else {
            throw NoServers(reason: "there is no \(path)")
        }
        return try JSONDecoder().decode(Servers.self, from: file)
    }

    /// A GraphQL server of those.
    func url(_ server: GraphQLServer) -> String {
        switch server {
        case .ariadne: ariadne
        case .strawberry: strawberry
        case .ariadneOverHTTP2: ariadneOverHTTP2
        case .strawberryOverHTTP2: strawberryOverHTTP2
        }
    }
}

/// Why these tests cannot run.
struct NoServers: Error, CustomStringConvertible {
    var reason: String

    var description: String { "\(reason): these tests need real servers, run scripts/test, which starts them" }
}

/// The GraphQL servers.
enum GraphQLServer: CaseIterable, Sendable {
    case ariadne, strawberry, ariadneOverHTTP2, strawberryOverHTTP2

    var isHTTP2: Bool { self == .ariadneOverHTTP2 || self == .strawberryOverHTTP2 }
}

/// A server of a test's own, which it may kill and start again on the same port.
final class OwnServer: Sendable {
    private let process: Process
    /// Where it listens.
    let port: Int

    /// Starts a server and waits until it answers.
    ///
    /// - Parameters:
    ///   - name: ariadne, strawberry or plain.
    ///   - port: The port; 0 for a free one.
    ///   - servers: Where the programs are.
    /// - Throws: Why it is not there.
    init(_ name: String, port: Int = 0, _ servers: Servers) async throws {
        let process = Process()
        process.executableURL = URL(filePath: servers.python)
        process.arguments = [servers.serve, name, "--port", "\(port)"]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let (lines, linesIn) = AsyncStream<String>.makeStream()
        let reading = output.fileHandleForReading
        // It writes its port and no more; a read blocks, and must not hold up the tests' few threads.
        Thread.detachNewThread {
            linesIn.yield(String(decoding: reading.availableData, as: UTF8.self))
            linesIn.finish()
        }
        var said = ""
        for await line in lines { said += line }
        guard let port = Int(said.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            process.terminate()
            throw NoServers(reason: "\(name) did not come up")
        }
        self.process = process
        self.port = port
    }

    deinit {
        end()
    }

    /// Kills it, as a machine that loses power would.
    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
}
