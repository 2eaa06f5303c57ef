// What a replay server saw and did, as values.
//
// Pure. Written by the server's thread, read by tests through `journal` and `waitUntil`.

extension ReplayServer {
    /// One header field of a recorded request.
    public struct Field: Hashable, Sendable {
        /// The name as it came.
        public var name: String

        /// The value without the blanks around it.
        public var value: String
    }

    /// One request that a replay server read.
    public struct RecordedRequest: Hashable, Sendable {
        /// The connection it came over; the server's first is 1.
        public var connection: Int

        /// When its last byte was read.
        public var instant: ContinuousClock.Instant

        /// The head as it came, its blank line included.
        public var head: [UInt8]

        /// Such as `POST`.
        public var method: String

        /// Such as `/events?from=1`.
        public var target: String

        /// The header fields, in order.
        public var fields: [Field]

        /// The content, its chunks joined.
        public var body: [UInt8]

        /// The value of the first field of the name, without case; nil where there is none.
        public func field(_ name: String) -> String? {
            all(name).first
        }

        /// The values of all fields of the name, without case, in order.
        public func all(_ name: String) -> [String] {
            fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
    }

    /// One connection that a replay server accepted.
    public struct ConnectionRecord: Hashable, Sendable {
        /// How the peer ended the connection.
        public enum PeerEnd: Hashable, Sendable {
            /// By a FIN.
            case closed

            /// By a RST.
            case reset
        }

        /// The first is 1.
        public let number: Int

        /// When it was accepted.
        public let accepted: ContinuousClock.Instant

        /// How many requests were read from it.
        public internal(set) var requests = 0

        /// How many bytes the kernel has taken from the script so far.
        public internal(set) var bytesSent = 0

        /// Whether the kernel takes no more now: the peer does not read, and the buffers between the two are full.
        public internal(set) var isHeldBack = false

        /// How the peer ended it; nil while it has not, and where the server was first.
        public internal(set) var peerEnd: PeerEnd?

        /// When the server saw the peer end it.
        public internal(set) var peerEnded: ContinuousClock.Instant?

        /// When the server let go of it, whoever ended it; nil while it is open.
        public internal(set) var ended: ContinuousClock.Instant?

        /// Why the script could not go on, such as a request that cannot be read.
        public internal(set) var problem: String?
    }

    /// What a replay server saw and did so far.
    public struct Journal: Sendable {
        static let maximumRecords = 10_000
        static let maximumRequestBytes = 64 << 20

        /// How many connections were accepted.
        public internal(set) var connections = 0

        /// How many of them are open.
        public internal(set) var openConnections = 0

        /// How many bytes the kernel has taken from all scripts so far.
        public internal(set) var bytesSent = 0

        /// The connections, in order: the latest 10000 at most.
        public private(set) var records: [ConnectionRecord] = []

        /// The requests, in order: the latest 10000 at most, and of 64 MiB at most.
        public private(set) var requests: [RecordedRequest] = []

        /// How many requests were read, those no longer kept included.
        public private(set) var requestCount = 0

        private var requestBytes = 0

        /// The record of a connection; nil for one that there was not, or that is no longer kept.
        ///
        /// - Parameter number: The first is 1.
        public subscript(connection number: Int) -> ConnectionRecord? {
            guard let first = records.first?.number, records.indices.contains(number - first) else { return nil }
            return records[number - first]
        }

        mutating func accepted(at instant: ContinuousClock.Instant) -> Int {
            connections += 1
            openConnections += 1
            if records.count == Self.maximumRecords { records.removeFirst(Self.maximumRecords / 2) }
            records.append(ConnectionRecord(number: connections, accepted: instant))
            return connections
        }

        mutating func received(_ request: RecordedRequest) {
            requestCount += 1
            requestBytes += request.head.count + request.body.count
            requests.append(request)
            var excess = requests.count > Self.maximumRecords ? Self.maximumRecords / 2 : 0
            var bytes = requests[..<excess].reduce(0) { $0 + $1.head.count + $1.body.count }
            while requestBytes - bytes > Self.maximumRequestBytes, excess < requests.count - 1 {
                bytes += requests[excess].head.count + requests[excess].body.count
                excess += 1
            }
            requests.removeFirst(excess)
            requestBytes -= bytes
            change(request.connection) { $0.requests += 1 }
        }

        mutating func sent(_ count: Int, on number: Int) {
            bytesSent += count
            change(number) {
                $0.bytesSent += count
                $0.isHeldBack = false
            }
        }

        mutating func heldBack(_ number: Int) {
            change(number) { $0.isHeldBack = true }
        }

        mutating func peerEnded(_ number: Int, by end: ConnectionRecord.PeerEnd, at instant: ContinuousClock.Instant) {
            change(number) {
                $0.peerEnd = end
                $0.peerEnded = instant
            }
        }

        mutating func ended(_ number: Int, problem: String?, at instant: ContinuousClock.Instant) {
            openConnections -= 1
            change(number) {
                $0.ended = instant
                $0.isHeldBack = false
                $0.problem = problem
            }
        }

        private mutating func change(_ number: Int, _ body: (inout ConnectionRecord) -> Void) {
            guard let first = records.first?.number, records.indices.contains(number - first) else { return }
            body(&records[number - first])
        }
    }
}

extension ReplayServer.Journal: CustomStringConvertible {
    /// The counts, for a test that fails.
    public var description: String {
        "\(connections) connections (\(openConnections) open), \(requestCount) requests, \(bytesSent) bytes sent"
    }
}
