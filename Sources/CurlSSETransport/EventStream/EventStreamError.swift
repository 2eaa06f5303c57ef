/// Something of an event stream is longer than the parser may keep.
///
/// The stream cannot be read on: the parser is spent.
public struct EventStreamError: Error, Hashable, Sendable {
    /// What of a stream is kept until it is whole.
    public enum Part: String, Hashable, Sendable {
        /// The `data` lines of one event, joined by LF.
        case data = "event data"

        /// The value of one `event` field.
        case event = "event field"

        /// The value of one `id` field.
        case id = "id field"

        /// One comment line, of a parser that keeps comments.
        case comment = "comment"
    }

    /// What is too long.
    public var part: Part

    /// The parser's `maxEventBytes`, which it passes.
    public var limit: Int

    /// Makes an error.
    public init(part: Part, limit: Int) {
        self.part = part
        self.limit = limit
    }
}

extension EventStreamError: CustomStringConvertible {
    /// One sentence, with the limit's name and value.
    public var description: String { "\(part.rawValue) over the limit: maxEventBytes is \(limit)" }
}
