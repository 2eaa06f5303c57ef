/// What an owner of a subscription takes in turn.
///
/// Between two payloads with no baseline between them nothing was missed. The rule for an owner is one line: at a
/// baseline, fetch the whole again, and only then apply the payloads that follow.
public enum Delivery<Payload: Sendable>: Sendable {
    /// Why what the owner knows may be stale.
    public enum Cause: Sendable, Hashable {
        /// The owner sees the open stream for the first time.
        case opened

        /// The stream was opened again; carries ``SubscriptionHandle/resumptions`` as of that opening.
        case resumed(Int)

        /// The owner fell behind another, and this many payloads were dropped.
        case lagged(dropped: Int)
    }

    /// Everything before may be stale.
    case baseline(Cause)

    /// One payload, in the server's order.
    case payload(Payload)
}

extension Delivery: Equatable where Payload: Equatable {}

extension Delivery.Cause {
    /// What a marker says.
    init(_ marker: Marker) {
        self =
            switch marker {
            case .opened: .opened
            case .resumed(let number): .resumed(number)
            case .lagged(let dropped): .lagged(dropped: dropped)
            }
    }
}
