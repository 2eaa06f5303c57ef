// The command line.

/// What to measure.
struct Arguments {
    enum Kind: String {
        /// Until every body ends; figures over the whole run.
        case blast
        /// Figures over a window once all streams are open.
        case trickle
        /// As blast; payloads carry the time they were sent at.
        case lat
        /// As trickle; payloads carry the time they were due at.
        case late

        /// Whether figures are over a window.
        var hasWindow: Bool { self == .trickle || self == .late }
    }

    var kind = Kind.blast
    var url = ""
    var connections = 1
    var seconds = 5.0
    /// Between the last opening and the window.
    var pause = 0.5
    /// Events of each stream after which it is left; nil for when the body ends.
    var limit: Int?
    /// Owners of each subscription; nil for the transport's own sequence.
    var deliveries: Int?
    var onLoop = false
    /// Seconds of silence before TCP asks whether the server is there; nil for the library's default.
    var keepalive: Double?
    /// GraphQL over SSE, its results undecoded; else plain events.
    var isGraphQL = false

    static let usage = """
        usage: stream blast|trickle|lat|late URL [-n CONNECTIONS] [-s SECONDS] [-w SECONDS] [-k SECONDS]
                      [-e EVENTS] [--deliveries OWNERS] [--on-loop] [--graphql]
          -s  how long a window is                      -w  how long after the last opening it begins
          -k  silence before TCP's first keepalive      -e  events after which each stream is left
        """

    init?(_ words: [String]) {
        guard words.count >= 2, let kind = Kind(rawValue: words[0]) else { return nil }
        self.kind = kind
        url = words[1]
        var rest = words.dropFirst(2)
        while let word = rest.popFirst() {
            switch word {
            case "--on-loop":
                onLoop = true
            case "--graphql":
                isGraphQL = true
            case "-n", "-s", "-w", "-k", "-e", "--deliveries":
                guard let value = rest.popFirst().flatMap(Double.init), value > 0 else { return nil }
                switch word {
                case "-n": connections = Int(value)
                case "-s": seconds = value
                case "-w": pause = value
                case "-k": keepalive = value
                case "-e": limit = Int(value)
                default: deliveries = Int(value)
                }
            default:
                return nil
            }
        }
        // A subscription comes back after the body's end: it is left once it has what was asked for.
        if deliveries != nil, limit == nil { limit = asked }
    }

    /// The events a stream has by its URL, where it says so.
    private var asked: Int? {
        let pairs = url.split(separator: "?").last?.split(separator: "&") ?? []
        return pairs.first { $0.hasPrefix("n=") }.flatMap { Int($0.dropFirst(2)) }
    }

    /// The events of all streams, an owner's each; nil where they have no end.
    var expected: Int? {
        guard !kind.hasWindow, let each = limit ?? asked else { return nil }
        return each * connections * (deliveries ?? 1)
    }
}
