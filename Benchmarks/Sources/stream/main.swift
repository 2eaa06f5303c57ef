// A client of the load server: how much CPU, time and memory a stream's payloads cost on their way to a loop.
//
// Prints one line: RESULT key=value ...

guard let arguments = Arguments(Array(CommandLine.arguments.dropFirst())) else {
    print(Arguments.usage)
    throw ExitFailure()
}
try await Run(arguments).measure()

struct ExitFailure: Error {}
