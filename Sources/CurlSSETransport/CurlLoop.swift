internal import SubscriptionRuntime

/// One thread that drives libcurl for any number of streams.
///
/// A transport makes one of its own unless it is given one; several transports may share one, and one is enough for
/// thousands of streams. It lives as long as a transport or a stream uses it, or until ``shutdown()``.
///
/// The thread is its own, asleep while nothing arrives, and takes none of the process's signals. Beside it a loop has two
/// descriptors.
public final class CurlLoop: Sendable {
    let events: EventLoop

    /// Makes a loop and starts it.
    ///
    /// - Parameter label: The name of its thread, for debuggers; the system keeps the first 15 bytes.
    /// - Throws: An error of kind `environment` when libcurl cannot be initialised, or no descriptor or
    ///   thread is left.
    public init(label: String = "CurlSSE.loop") throws(TransportError) {
        events = try EventLoop(label: label)
    }

    /// A loop of its own making.
    init(_ events: EventLoop) {
        self.events = events
    }

    deinit {
        events.mailbox.post(.shutdown)
    }

    /// Runs tasks on the loop's own thread.
    ///
    /// Such a task is handed payloads without a change of thread, as they are read from the socket, and holds up every
    /// stream of the loop while it runs: it must not block, nor compute for long, nor wait for the loop by other means
    /// than `await`.
    public var executor: any TaskExecutor { events.executor }

    /// Ends every stream of the loop by an environment failure, closes every connection and stops the loop.
    ///
    /// Openings fail from now on. Returns when the loop's descriptors are closed; calling it again only waits.
    public func shutdown() async {
        await events.shutdown()
    }
}
