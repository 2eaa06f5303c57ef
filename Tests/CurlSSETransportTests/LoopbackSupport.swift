import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

/// What a stream ended with.
enum StreamEnd: Equatable {
    case completed
    case failed(TransportError.Kind)
}

/// A stream read to its end.
struct ReadStream<Payload: Sendable> {
    var payloads: [Payload] = []
    var end = StreamEnd.completed
    var error: TransportError?
    var retryAfter: Duration?
    var resumePoint: ResumePoint?

    /// Where the stream was left.
    var position: StreamPosition? { resumePoint.flatMap { StreamPosition($0) } }
}

extension SubscriptionFailure {
    /// The transport's own error in it.
    var transportError: TransportError? {
        switch self {
        case .network(let error, _): error as? TransportError
        case .request(let error): error as? TransportError
        case .environment(.transport(let error)): error as? TransportError
        case .environment: nil
        }
    }

    /// The floor the server set.
    var retryAfter: Duration? {
        guard case .network(_, let retryAfter) = self else { return nil }
        return retryAfter
    }

    /// The kind, by the case.
    var kind: TransportError.Kind {
        switch self {
        case .network: .network
        case .request: .request
        case .environment: .environment
        }
    }
}

extension CurlTransport {
    /// Opens a stream and reads it to its end.
    func read(_ request: Request, resuming: ResumePoint? = nil) async -> ReadStream<Payload> {
        var result = ReadStream<Payload>()
        do throws(SubscriptionFailure) {
            let stream = try await open(request, resuming: resuming)
            var iterator = stream.makeAsyncIterator()
            do throws(SubscriptionFailure) {
                while let payload = try await iterator.next(isolation: nil) { result.payloads.append(payload) }
                result.resumePoint = iterator.resumePoint
            } catch {
                result.resumePoint = iterator.resumePoint
                throw error
            }
        } catch {
            result.end = .failed(error.kind)
            result.error = error.transportError
            result.retryAfter = error.retryAfter
        }
        return result
    }
}

extension ReplayServer {
    /// Waits until the journal fulfils a condition, for a minute: a test may wait long for its turn among others.
    func reaches(isolation: isolated (any Actor)? = #isolation, _ condition: (Journal) -> Bool) async -> Bool {
        await waitUntil(timeout: .seconds(60), condition)
    }

    /// A server whose every connection reads a request, sends these, and closes.
    static func answering(_ pieces: String...) throws -> ReplayServer {
        try ReplayServer(otherwise: [.expectRequest] + pieces.map { .send($0) } + [.close])
    }
}

/// A plain transport to a server, on a loop of its own unless it is given one.
func plain(
    _ server: ReplayServer,
    _ path: String = "/",
    credentials: Credentials? = nil,
    loop: CurlLoop? = nil,
    _ configure: (inout Configuration) -> Void = { _ in }
) throws -> EventSourceTransport {
    try plain(server.url + path, credentials: credentials, loop: loop, configure)
}

/// A plain transport to a URL, on a loop of its own unless it is given one.
func plain(
    _ url: String,
    credentials: Credentials? = nil,
    loop: CurlLoop? = nil,
    _ configure: (inout Configuration) -> Void = { _ in }
) throws -> EventSourceTransport {
    var configuration = Configuration()
    configure(&configuration)
    return try EventSourceTransport(
        url,
        dialect: EventSource(),
        configuration: configuration,
        credentials: credentials,
        loop: loop
    )
}

/// A GraphQL transport to a server, on a loop of its own.
func graphQL(
    _ server: ReplayServer,
    _ configure: (inout Configuration) -> Void = { _ in }
) throws -> GraphQLTransport {
    var configuration = Configuration()
    configure(&configuration)
    return try GraphQLTransport(server.url + "/graphql", dialect: GraphQLSSE(), configuration: configuration)
}

/// How long an operation took, and what it gave.
///
/// On a thread of its own, so that it is not measured how busy other tests keep the pool.
func timed<Value>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Value
) async rethrows -> (value: Value, elapsed: Duration) {
    try await withTaskExecutorPreference(timingThread) {
        let start = ContinuousClock.now
        let value = try await body()
        return (value, start.duration(to: .now))
    }
}

private let timingThread = OneThread(label: "timed")

/// Waits until a condition holds that nothing tells of.
///
/// - Returns: Whether it came to hold within a minute: a test may wait long for its turn among others.
func holds(isolation: isolated (any Actor)? = #isolation, _ condition: () -> Bool) async -> Bool {
    let deadline = ContinuousClock.now.advanced(by: .seconds(60))
    while !condition() {
        guard !Task.isCancelled, ContinuousClock.now < deadline else { return false }
        try? await ContinuousClock().sleep(for: .milliseconds(2))
    }
    return true
}
