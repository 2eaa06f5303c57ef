// One opening, from its call to its end: the task that reads a stream into its handle.
//
// Runs on the transport's executor where it has one. Cancelled by the handle once the stream is superseded; whatever it
// says after that carries a stale name and changes nothing.

/// Opens the stream and reads it to its end.
///
/// Generic, so that the existential is opened once a stream and reading it is not dynamic.
func drive<Transport: SubscriptionTransport>(
    _ handle: SubscriptionHandle<Transport.Request, Transport.Payload>,
    _ id: SubscriptionStateMachine.StreamID,
    on transport: Transport,
    resuming point: ResumePoint?
) async {
    let clock = handle.core.environment.log == nil ? nil : handle.core.environment.clock
    let asked = clock?.now
    let payloads: Transport.Payloads
    do throws(SubscriptionFailure) {
        payloads = try await transport.open(handle.request, resuming: point)
    } catch {
        return handle.core.failed(error, on: id, at: nil)
    }

    let elapsed = asked.flatMap { asked in clock.map { asked.duration(to: $0.now) } }
    guard handle.core.opened(id, after: elapsed) else { return }

    var iterator = payloads.makeAsyncIterator()
    while let room = await handle.core.room(for: id) {
        let batch: [Transport.Payload]
        do throws(SubscriptionFailure) {
            guard let next = try await iterator.next(atMost: room) else {
                return handle.core.completed(id, at: iterator.resumePoint)
            }
            batch = next
        } catch {
            return handle.core.failed(error, on: id, at: iterator.resumePoint)
        }
        guard await deliver(batch, from: iterator, to: handle, id) else { return }
    }
}

/// Hands a batch to the handle: whole, or in parts where the owners' room has shrunk since it was asked for.
///
/// - Returns: Whether the stream is still the handle's.
private func deliver<Request, Iterator: PayloadIterator>(
    _ batch: [Iterator.Element],
    from iterator: Iterator,
    to handle: SubscriptionHandle<Request, Iterator.Element>,
    _ id: SubscriptionStateMachine.StreamID
) async -> Bool {
    var first = 0
    var count = batch.count
    while first < batch.count {
        let end = first + count
        let part = count == batch.count ? batch : Array(batch[first..<end])
        // A payload that is dropped must be asked for again, so the point moves with the last of the batch.
        let point = end == batch.count ? iterator.resumePoint : nil
        switch handle.accept(part, latest: iterator.detached(batch[end - 1]), point: point, on: id) {
        case .accepted:
            first = end
            count = batch.count - first
        case .superseded:
            return false
        case .excess(let room):
            guard let room = room > 0 ? room : await handle.core.room(for: id) else { return false }
            count = min(room, batch.count - first)
        }
    }
    return true
}
