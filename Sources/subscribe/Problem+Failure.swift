// The runtime's and the transport's failures into what is shown of them.

import CurlSSETransport
import SubscriptionRuntime

extension Problem {
    /// A stream's failure.
    ///
    /// - Parameters:
    ///   - failure: The failure.
    ///   - isOnce: Whether a network failure ends the run too.
    init(_ failure: SubscriptionFailure, isOnce: Bool) {
        switch failure {
        case .network(let error, let pause):
            self.init(.network, error, isFatal: isOnce)
            retryAfter = pause.map { $0 / .seconds(1) }
        case .request(let error): self.init(.request, error, isFatal: true)
        case .environment(.transport(let error)): self.init(.environment, error, isFatal: true)
        case .environment(let failure): self.init(.environment, failure, isFatal: true)
        }
    }

    /// A failure before there was a stream.
    init(_ error: TransportError) {
        let kind: Kind =
            switch error.kind {
            case .network: .network
            case .request: .request
            case .environment: .environment
            }
        self.init(kind, error, isFatal: true)
    }

    private init(_ kind: Kind, _ error: any Error, isFatal: Bool) {
        self.init(kind: kind, message: "\(error)", status: (error as? TransportError)?.status, isFatal: isFatal)
    }
}
