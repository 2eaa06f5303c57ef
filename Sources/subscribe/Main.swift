// The process: its arguments, its signals, its exit code.

import Foundation

@main
enum Main {
    static func main() {
        // Before any other thread is there, which would take the signals.
        Signals.block()
        let (requests, requestsIn) = AsyncStream<SignalRequest>.makeStream()
        let words = Array(CommandLine.arguments.dropFirst())
        // The main thread is not given back, so nothing may run on the main actor.
        Task.detached { exit(await run(words, requests: requests)) }
        Signals.wait(requestsIn)
    }

    /// Does what the command line asks for.
    ///
    /// - Returns: The exit code.
    private static func run(_ words: [String], requests: AsyncStream<SignalRequest>) async -> Int32 {
        do throws(UsageError) {
            switch try Arguments.parse(words) {
            case .help:
                print(Help.text)
                return 0
            case .version(let isVerbose):
                print(VersionText.make(isVerbose: isVerbose))
                return 0
            case .demo(let output):
                return try await Demo.run(output, requests: requests)
            case .subscribe(let options):
                return try await Subscription(options).run(requests)
            }
        } catch {
            try? FileHandle.standardError.write(
                contentsOf: Data("subscribe: \(error.message)\n\(Help.usage)\nsubscribe --help says more.\n".utf8)
            )
            return usageExitCode
        }
    }
}
