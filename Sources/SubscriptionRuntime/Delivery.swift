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
    /// The one cause that says what two neighbours say: resumed beats lagged beats opened, and lags add.
    func merged(with later: Self) -> Self {
        switch (self, later) {
        case (.resumed(let earlier), .resumed(let later)): .resumed(max(earlier, later))
        case (.resumed, _): self
        case (_, .resumed): later
        case (.lagged(let earlier), .lagged(let later)): .lagged(dropped: earlier + later)
        case (.lagged, .opened): self
        case (.opened, _): later
        }
    }
}
