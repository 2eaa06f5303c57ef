// The reading of one open stream: its driver's, and, while the driver is suspended, that of an owner with nothing left.

/// Payloads that a stream brought together, and what they leave behind.
struct Brought: Sendable {
    /// The payloads.
    var batch: Batch

    /// The last of them in a `Box`, fit to be kept.
    let latest: any AnyObject & Sendable

    /// Where to resume once they are accepted; nil for where it was.
    let point: ResumePoint?
}

/// A stream whose driver is suspended until an owner has nothing left.
///
/// Whoever takes it out of the handle's state has it alone: to go on reading in the driver's place, to put it back, or
/// to resume it.
protocol HeldBack: AnyObject, Sendable {
    /// Whose it is.
    var id: SubscriptionStateMachine.StreamID { get }

    /// Takes what is there, at most so many; nil where there is nothing but by waiting, which is the driver's.
    func nextIfReady(atMost count: Int) -> Brought?

    /// Takes back what was taken and found no room: it is the next to be read.
    func keep(_ brought: Brought)

    /// Lets the driver go on.
    func resume()
}

/// One open stream, read by one at a time: by its driver, or in its place while it is suspended.
///
/// The handle's lock hands it from one to the other.
final class StreamReading<Payloads: PayloadSequence>: HeldBack, @unchecked Sendable
where Payloads.Element: Sendable {
    let id: SubscriptionStateMachine.StreamID
    /// nil once it is closed.
    private var iterator: Payloads.AsyncIterator?
    /// What was taken and found no room; the next to be read.
    private var kept: [Payloads.Element]?
    private var driver: Waiter?

    init(_ payloads: Payloads, _ id: SubscriptionStateMachine.StreamID) {
        self.id = id
        iterator = payloads.makeAsyncIterator()
    }

    /// Where to resume, as of the last payload taken.
    ///
    /// nil while some are kept: one that is dropped must be asked for again, so the point moves with the last of them.
    var resumePoint: ResumePoint? { kept == nil ? iterator?.resumePoint : nil }

    /// Takes what is there, at most so many; waits where there is nothing.
    ///
    /// The driver's.
    func next(atMost count: Int) async throws(SubscriptionFailure) -> [Payloads.Element]? {
        if let payloads = takeKept(atMost: count) { return payloads }
        return try await iterator?.next(atMost: count)
    }

    func nextIfReady(atMost count: Int) -> Brought? {
        guard let payloads = takeKept(atMost: count) ?? iterator?.nextIfReady(atMost: count), payloads.count > 0 else {
            return nil
        }
        return brought(payloads)
    }

    /// What the handle is given of payloads that were taken last.
    ///
    /// - Parameter payloads: Not held here any more, nor by the caller: their one owner moves them out of their array.
    /// - Returns: They, the last of them to be kept, and where to resume.
    func brought(_ payloads: consuming [Payloads.Element]) -> Brought {
        let last = payloads[payloads.count - 1]
        let latest = Box(iterator?.detached(last) ?? last)
        return Brought(batch: Batch(payloads), latest: latest, point: resumePoint)
    }

    func keep(_ brought: Brought) {
        kept = brought.batch.unsent(of: Payloads.Element.self) + (kept ?? [])
    }

    private func takeKept(atMost count: Int) -> [Payloads.Element]? {
        guard let payloads = kept else { return nil }
        kept = payloads.count > count ? Array(payloads[count...]) : nil
        return kept == nil ? payloads : Array(payloads[..<count])
    }

    /// Lets go of the stream, whoever still holds this.
    ///
    /// The driver's, at its end: the stream is closed before the driver is over.
    func close() {
        iterator = nil
        kept = nil
    }

    /// The driver is about to be suspended.
    func suspend(_ driver: Waiter) {
        self.driver = driver
    }

    func resume() {
        guard let driver else { preconditionFailure("a stream that is held back has a driver") }
        self.driver = nil
        driver.resume()
    }
}
