// The transport, read on the loop's own thread where that is what is measured.

internal import CurlSSETransport
internal import SubscriptionRuntime

struct Reading: SubscriptionTransport {
    let transport: EventSourceTransport
    let onLoop: Bool

    func open(
        _ request: EventSourceRequest,
        resuming: ResumePoint?
    ) async throws(SubscriptionFailure) -> PayloadStream<ServerSentEvent> {
        try await transport.open(request, resuming: resuming)
    }

    var driverExecutor: (any TaskExecutor)? { onLoop ? transport.curlLoop.executor : transport.driverExecutor }
}
