// One opening, from its call to its end: the task that reads a stream into its handle.
//
// Runs on the transport's executor where it has one. Cancelled by the handle once the stream is superseded; whatever it
// says after that carries a stale name and changes nothing.
//
// A task never gives its stack back, and the deepest it ever was is its size. So opening and reading are two functions,
// of which neither holds what the other needs, and what a transaction leaves to do is in no frame that waits: that is
// what keeps some functions here and of `HandleCore` from being inlined.

/// Opens the stream and reads it to its end.
///
/// Generic, so that the existential is opened once a stream and reading it is not dynamic.
func drive<Transport: SubscriptionTransport>(
    _ handle: SubscriptionHandle<Transport.Request, Transport.Payload>,
    _ id: SubscriptionStateMachine.StreamID,
    on transport: Transport,
    resuming point: ResumePoint?
) async {
    guard let payloads = await open(handle, id, on: transport, resuming: point) else { return }
    await read(payloads, into: handle, id)
}

/// Opens the stream; nil where that failed, or where it is no longer the handle's.
private func open<Transport: SubscriptionTransport>(
    _ handle: SubscriptionHandle<Transport.Request, Transport.Payload>,
    _ id: SubscriptionStateMachine.StreamID,
    on transport: Transport,
    resuming point: ResumePoint?
) async -> Transport.Payloads? {
    let asked = handle.core.timeOfAsking
    do throws(SubscriptionFailure) {
        let payloads = try await transport.open(handle.request, resuming: point)
        return handle.core.opened(id, since: asked) ? payloads : nil
    } catch {
        handle.core.failed(error, on: id, at: nil)
        return nil
    }
}

/// Reads an open stream into its handle, to its end.
private func read<Request, Payloads: PayloadSequence>(
    _ payloads: Payloads,
    into handle: SubscriptionHandle<Request, Payloads.Element>,
    _ id: SubscriptionStateMachine.StreamID
) async {
    let stream = StreamReading(payloads, id)
    defer { stream.close() }
    while let room = await handle.core.room(for: stream, of: payloads) {
        do throws(SubscriptionFailure) {
            guard let payloads = try await stream.next(atMost: room) else {
                return handle.core.completed(id, at: stream.resumePoint)
            }
            handle.core.accept(payloads, of: stream)
        } catch {
            return handle.core.failed(error, on: id, at: stream.resumePoint)
        }
    }
}

extension HandleCore {
    /// Now, where the log is to say how long an opening takes.
    @inline(never)
    fileprivate var timeOfAsking: ContinuousClock.Instant? { environment.log == nil ? nil : environment.clock.now }

    @inline(never)
    fileprivate func opened(_ id: StreamID, since asked: ContinuousClock.Instant?) -> Bool {
        opened(id, after: asked.map { $0.duration(to: environment.clock.now) })
    }
}
