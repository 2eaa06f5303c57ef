// The built tool as a process, and what it prints line by line.

import Foundation
import Testing

/// A run of the tool.
final class ToolProcess: Sendable {
    /// The lines of its standard output, and of its standard error where that was asked for, as they come.
    let lines: AsyncStream<String>

    private let process: Process
    private let exits: AsyncStream<Int32>

    /// The tool that was built beside these tests.
    static let path = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "subscribe")
        .path

    /// Starts the tool, or another program.
    init(_ arguments: [String], program: String = path, readsErrors: Bool = false) throws {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardInput = FileHandle.nullDevice
        if readsErrors { process.standardError = pipe } else { process.standardError = FileHandle.nullDevice }
        let (exits, exitsIn) = AsyncStream<Int32>.makeStream()
        process.terminationHandler = { process in
            exitsIn.yield(process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
            exitsIn.finish()
        }
        try process.run()
        let output = pipe.fileHandleForReading
        let (lines, linesIn) = AsyncStream<String>.makeStream()
        // A read blocks, and must not hold up the tests' few threads.
        Thread.detachNewThread {
            var rest = Data()
            while true {
                // What there is, and not so many bytes as were asked for.
                let data = output.availableData
                guard !data.isEmpty else { break }
                rest += data
                while let end = rest.firstIndex(of: 0x0A) {
                    linesIn.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
                    rest = rest[rest.index(after: end)...]
                }
            }
            linesIn.finish()
        }
        self.process = process
        self.exits = exits
        self.lines = lines
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// Sends a signal.
    func signal(_ number: Int32) {
        kill(process.processIdentifier, number)
    }

    /// The most resident memory it has had so far, in bytes (`VmHWM`, proc_pid_status(5)); nil once it has ended.
    var peakMemory: Int? {
        let path = "/proc/\(process.processIdentifier)/status"
        guard let status = try? String(contentsOfFile: path, encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return nil }
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
    }

    /// Waits for its end.
    ///
    /// - Returns: The exit code; minus the signal's number where a signal ended it.
    func exitCode() async -> Int32 {
        for await code in exits { return code }
        return -1
    }

    /// Waits for its end, and collects all lines.
    func output() async -> (lines: [String], exitCode: Int32) {
        var all: [String] = []
        for await line in lines { all.append(line) }
        return (all, await exitCode())
    }

    /// Waits for a line that contains a text.
    ///
    /// - Returns: The lines up to it; all of them where none does.
    @discardableResult
    func lines(upTo text: String) async -> [String] {
        var all: [String] = []
        for await line in lines {
            all.append(line)
            if line.contains(text) { break }
        }
        return all
    }
}

/// A JSON line without what differs from run to run.
func gist(_ line: String) -> String {
    guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        let kind = object["kind"] as? String
    else { return "no JSON: \(line)" }
    return switch kind {
    case "state": object["state"] as? String ?? "?"
    case "event": "event \(object["data"] as? String ?? "?")"
    case "error": "error \(object["class"] as? String ?? "?")"
    case "resumed": "resumed \(object["resumptions"] as? Int ?? -1)"
    case "comment": "comment\(object["comment"] as? String ?? "?")"
    default: kind
    }
}
