// One transfer's way from the line of its origin to its end, and which deadline holds where. Pure: called on the loop,
// with the loop's time.

/// Decides which deadline a transfer is under.
///
///      queued ---> connecting ---> requested ---> open <---> held
///        | admission   | connect       | first byte | idle      | none
///        +-------------+------+--------+------------+-----------+---> ended
///
/// A transfer whose response is a failure stays `requested` until as much of its body as is kept has come.
struct TransferStateMachine: Sendable {
    /// The limits, in nanoseconds.
    struct Limits: Hashable, Sendable {
        var admission: UInt64
        var connect: UInt64
        var firstByte: UInt64
        var idle: UInt64
    }

    /// Which limit ran out.
    enum Timeout: Hashable, Sendable {
        case admission
        case connect
        case firstByte
        case idle
    }

    private enum State: Hashable {
        case queued(since: UInt64)
        case connecting(since: UInt64)
        case requested(since: UInt64)
        case open(lastByte: UInt64)
        case held
        case ended
    }

    private let limits: Limits
    private var state: State

    /// A transfer that asks for a place.
    init(limits: Limits, now: UInt64) {
        self.limits = limits
        state = .queued(since: now)
    }

    /// The transfer has its place; libcurl connects.
    mutating func admitted(now: UInt64) {
        guard case .queued = state else { return }
        state = .connecting(since: now)
    }

    /// Connected, the request about to be sent.
    ///
    /// True the first time: the opening gives its place back.
    mutating func connected(now: UInt64) -> Bool {
        guard case .connecting = state else { return false }
        state = .requested(since: now)
        return true
    }

    /// The final head was accepted: the stream is open.
    mutating func accepted(now: UInt64) {
        switch state {
        case .connecting, .requested: state = .open(lastByte: now)
        case .queued, .open, .held, .ended: break
        }
    }

    /// Bytes of an open stream came.
    mutating func received(now: UInt64) {
        guard case .open = state else { return }
        state = .open(lastByte: now)
    }

    /// The reader is full: the stream is held back, and its silence is ours.
    mutating func held() {
        guard case .open = state else { return }
        state = .held
    }

    /// The stream goes on, its silence counted from now.
    mutating func resumed(now: UInt64) {
        guard case .held = state else { return }
        state = .open(lastByte: now)
    }

    /// The transfer asks for a place again, at the origin a redirect names.
    mutating func redirected(now: UInt64) {
        switch state {
        case .connecting, .requested: state = .queued(since: now)
        case .queued, .open, .held, .ended: break
        }
    }

    /// The transfer is over.
    ///
    /// True the first time.
    mutating func ended() -> Bool {
        guard state != .ended else { return false }
        state = .ended
        return true
    }

    /// The instant at which the transfer has waited too long, as things stand; nil for never.
    var deadline: UInt64? {
        switch state {
        case .queued(let since): since &+ limits.admission
        case .connecting(let since): since &+ limits.connect
        case .requested(let since): since &+ limits.firstByte
        case .open(let lastByte): lastByte &+ limits.idle
        case .held, .ended: nil
        }
    }

    /// The limit that has run out by now; nil for none.
    func expired(now: UInt64) -> Timeout? {
        guard let deadline, deadline <= now else { return nil }
        switch state {
        case .queued: return .admission
        case .connecting: return .connect
        case .requested: return .firstByte
        case .open: return .idle
        case .held, .ended: return nil
        }
    }

    /// Since when the transfer's present limit runs; nil while none does.
    var waitsSince: UInt64? {
        switch state {
        case .queued(let since), .connecting(let since), .requested(let since): since
        case .open(let lastByte): lastByte
        case .held, .ended: nil
        }
    }

    /// Whether the stream speaks for its connection: it said something after the instant, or is not let speak.
    func isHeard(after instant: UInt64) -> Bool {
        switch state {
        case .open(let lastByte): lastByte > instant
        case .held: true
        case .queued, .connecting, .requested, .ended: false
        }
    }

    /// Whether the stream is held back by its reader.
    var isHeld: Bool { state == .held }

    /// Whether the transfer still waits for its place.
    var isQueued: Bool {
        guard case .queued = state else { return false }
        return true
    }

    /// Whether the transfer is over.
    var isEnded: Bool { state == .ended }
}
