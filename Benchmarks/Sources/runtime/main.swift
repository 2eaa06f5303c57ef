// Measures the runtime alone: payloads in memory, handles by the hundred thousand, a herd of them after an outage.
//
// No network, no libcurl: the transports are `SubscriptionTesting`'s and two of this folder, time is a `TestClock`.

internal import SubscriptionRuntime

let usage = """
    usage: runtime payloads [COUNT]                 ns a payload through handle and deliveries; default 1000000
           runtime count OWNERS COUNT               the same on one thread, always in the same steps; prints nothing
           runtime memory idle|waiting|open|transport [COUNT] [read]
                                                    L05: bytes a handle, whose status and latest payload somebody
                                                    has read once; default 100000, one state a process
           runtime outage [HANDLES] [SECONDS]       L01, L07: an outage; default 1000000 handles, 60 s; CSV on stdout
           runtime capacity [HANDLES]               L03: a server that accepts a hundredth a second; default 1000000
           runtime flapping [HANDLES] [SECONDS]     L04: a server that accepts and drops; default 200000, 600 s
           runtime parking [HANDLES] [ROUNDS]       L06: memory over parkings; default 100000 handles, 50 rounds
           runtime chance [HANDLES]                 L08: what one chance for all does, and one seed for two environments
           runtime backoff [HANDLES]                L02: the backoff alone, simulated
    """

let words = CommandLine.arguments.dropFirst()

/// A number of the command line, by its place after the mode.
func number(_ place: Int, or otherwise: Int) -> Int {
    let word = words.dropFirst(place).first
    return word.flatMap { Int($0) } ?? otherwise
}

switch words.first {
case "payloads": await measurePayloads(number(1, or: 1_000_000))
case "count": countPayloads(owners: number(1, or: 1), count: number(2, or: 100_000))
case "memory":
    let state = words.dropFirst().first ?? "idle"
    try await measureMemory(state, count: number(2, or: 100_000), isRead: words.last == "read")
case "outage": measureOutage(handles: number(1, or: 1_000_000), seconds: number(2, or: 60))
case "capacity": measureCapacity(handles: number(1, or: 1_000_000))
case "flapping": measureFlapping(handles: number(1, or: 200_000), seconds: number(2, or: 600))
case "parking": measureParking(handles: number(1, or: 100_000), rounds: number(2, or: 50))
case "chance": measureChance(handles: number(1, or: 1_000))
case "backoff": simulateBackoff(handles: number(1, or: 1_000_000))
default: print(usage)
}
