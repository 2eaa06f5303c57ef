// Bytes a handle.

internal import SubscriptionRuntime
internal import SubscriptionTesting

private struct Dropped: Error {}

/// Says what a handle of one state takes, in resident bytes.
///
/// One state a process: freed memory counts as taken. "transport" is a stream without a handle, as the scripted
/// transport keeps it: what of an open handle is not the runtime's. A handle that is read is known to the Observation
/// library from then on, which takes some more.
func measureMemory(_ state: String, count: Int, isRead: Bool) async throws {
    typealias Scripted = ScriptedTransport<Int, Int>
    let transport = Scripted(.init(acceptsAtOnce: state == "open" || state == "transport"))
    let environment = SubscriptionEnvironment(transport: transport, clock: TestClock())
    var handles: [SubscriptionHandle<Int, Int>] = []
    var retentions: [Retention] = []
    var openings: [Scripted.Opening] = []
    var streams: [ScriptedPayloads<Int, Int>.Iterator] = []
    handles.reserveCapacity(count)
    retentions.reserveCapacity(count)
    openings.reserveCapacity(count)
    streams.reserveCapacity(count)

    let before = residentBytes()
    for number in 0..<count {
        guard state != "transport" else {
            guard let stream = try? await transport.open(number, resuming: nil) else { continue }
            streams.append(stream.makeAsyncIterator())
            openings.append(try await transport.nextOpening())
            continue
        }
        handles.append(environment.handle(for: number))
        if isRead { _ = (handles[number].status, handles[number].latest) }
        guard state != "idle" else { continue }
        retentions.append(handles[number].retain())
        let opening = try await transport.nextOpening()
        if state == "open" {
            openings.append(opening)
            while transport.live <= number { await Task.yield() }
        } else {
            opening.fail(.network(Dropped()))
            while environment.waiting <= number { await Task.yield() }
        }
    }
    // The last streams are about to be read.
    while case .connecting? = handles.last?.stream { await Task.yield() }
    let each = Double(residentBytes() - before) / Double(count)
    print("RESULT state=\(state) read=\(isRead) handles=\(count) bytes=\(each.rounded(to: 0))")
    withExtendedLifetime((handles, retentions, openings, streams)) {}
}
