// A client of the load server: how much CPU, time and memory a stream's payloads cost on their way to a loop.
//
// Prints one line: RESULT key=value ... Fails where a stream did, or had other events than its URL asks for.

internal import CurlSSETransport
internal import Dispatch
internal import Glibc

guard let arguments = Arguments(Array(CommandLine.arguments.dropFirst())) else {
    complain(Arguments.usage)
    exit(2)
}

// The main thread waits here: where it is given to libdispatch, callgrind dies of what that does with it.
let done = DispatchSemaphore(value: 0)
nonisolated(unsafe) var status: Int32 = 1
Task.detached {
    do {
        let isGood =
            arguments.isGraphQL
            ? try await Run(arguments, GraphQLSSE()).measure() : try await Run(arguments, EventSource()).measure()
        if isGood { status = 0 }
    } catch {
        complain("stream: \(error)")
    }
    done.signal()
}
done.wait()
exit(status)
