// A client of the load server: how much CPU, time and memory a stream's payloads cost on their way to a loop.
//
// Prints one line: RESULT key=value ... Fails where a stream did, or had other events than its URL asks for.

internal import CurlSSETransport
internal import Glibc

guard let arguments = Arguments(Array(CommandLine.arguments.dropFirst())) else {
    complain(Arguments.usage)
    exit(2)
}
do {
    let isGood =
        arguments.isGraphQL
        ? try await Run(arguments, GraphQLSSE()).measure() : try await Run(arguments, EventSource()).measure()
    guard isGood else { exit(1) }
} catch {
    complain("stream: \(error)")
    exit(1)
}
