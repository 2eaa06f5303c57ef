/// What a loop has done so far, for metrics.
///
/// Read together, though not at one instant.
public struct TransportCounters: Hashable, Sendable {
    /// Streams that were asked for.
    public var openings: Int

    /// Streams that are open now.
    public var openStreams: Int

    /// Openings and streams that ended by a failure.
    public var failures: Int

    /// Bytes of event streams that were read.
    public var bytesReceived: Int

    /// Payloads of streams that have ended.
    public var payloads: Int

    /// Calls that libcurl refused and should not have.
    ///
    /// Anything but 0 is a fault of this library's.
    public var faults: Int
}
