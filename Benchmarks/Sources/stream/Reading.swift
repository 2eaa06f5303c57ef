// What is read: the dialects to measure, and the transport, read on the loop's own thread where that is what is measured.

internal import CurlSSETransport
internal import SubscriptionRuntime

/// A payload's bytes.
protocol Carrier: Sendable {
    var carried: EventData { get }
}

extension ServerSentEvent: Carrier {
    var carried: EventData { data }
}

extension GraphQLResult: Carrier {
    var carried: EventData { content }
}

/// A dialect to measure.
protocol Measured: Dialect where Payload: Carrier {
    /// What to ask for, another for each number, so that no two share a stream.
    func request(number: Int) -> Request
}

extension EventSource: Measured {
    func request(number: Int) -> EventSourceRequest {
        EventSourceRequest(target: number > 0 ? "?client=\(number)" : "")
    }
}

extension GraphQLSSE: Measured {
    func request(number: Int) -> GraphQLRequest {
        GraphQLRequest(query: "subscription S\(number) { v }")
    }
}

struct Reading<D: Dialect>: SubscriptionTransport {
    let transport: CurlTransport<D>
    let onLoop: Bool

    func open(
        _ request: D.Request,
        resuming: ResumePoint?
    ) async throws(SubscriptionFailure) -> PayloadStream<D.Payload> {
        try await transport.open(request, resuming: resuming)
    }

    var driverExecutor: (any TaskExecutor)? { onLoop ? transport.curlLoop.executor : transport.driverExecutor }
}
