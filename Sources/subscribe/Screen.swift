// What happened into what is written where.
//
// Pure: times and the terminal's width are arguments. Called under the console's lock.

/// Bytes for one of the two outputs.
enum Chunk: Equatable {
    case output([UInt8])
    case status([UInt8])
}

/// Where the run is shown.
struct Screen {
    /// How standard output and standard error are looked at.
    struct Setting: Equatable {
        var output = Output()
        var outputIsTerminal = false
        var statusIsTerminal = false
        /// The environment has a NO_COLOR that is not empty (no-color.org).
        var noColour = false
        /// Show comments.
        var comments = false
    }

    private let setting: Setting
    private let colours: Colours
    private(set) var counts = Counts()
    private var state: Happening.State?
    /// Counts of the last two seconds, the oldest first; never empty once the first tick was.
    private var samples: [(time: Double, payloads: Int)] = []
    private var lineIsDrawn = false

    /// A screen that nothing was shown on.
    init(_ setting: Setting) {
        self.setting = setting
        colours = Colours(isOn: setting.statusIsTerminal && !setting.noColour)
    }

    /// Whether there is a live line, which wants ``tick(now:width:)`` a few times a second.
    var isLive: Bool { setting.statusIsTerminal && !setting.output.quiet && !setting.output.json }

    /// Shows one.
    ///
    /// - Parameter happening: What happened.
    /// - Returns: What is to be written, in order.
    mutating func show(_ happening: Happening) -> [Chunk] {
        switch happening {
        case .state(let next): state = next
        case .event(_, let data, _): count(data.count)
        case .payload(let bytes): count(bytes.count)
        case .comment where !setting.comments: return []
        case .comment, .problem, .resumed, .complete: break
        }
        if setting.output.json {
            return [.output(JSONLine.make(happening))]
        }
        if let line = PlainLine.make(happening, isTerminal: setting.outputIsTerminal) {
            // A live line on the same terminal would end up in the payload.
            return (setting.outputIsTerminal ? erased() : []) + [.output(line)]
        }
        guard isTold(happening), let line = PlainLine.status(happening, counts: counts, colours: colours) else {
            return []
        }
        return erased() + [.status(Array((line + "\n").utf8))]
    }

    /// Draws the live line again.
    ///
    /// - Parameters:
    ///   - now: Seconds since 1970.
    ///   - width: The terminal's columns.
    /// - Returns: What is to be written; nothing where there is no live line.
    mutating func tick(now: Double, width: Int) -> [Chunk] {
        guard isLive else { return [] }
        samples.append((now, counts.payloads))
        while samples.count > 2, samples[1].time <= now - 2 { samples.removeFirst() }
        let line = LiveLine.make(
            state: state,
            counts: counts,
            rate: rate(now: now),
            now: now,
            width: width,
            colours: colours
        )
        lineIsDrawn = true
        return [.status(Array("\r\u{1B}[K\(line)".utf8))]
    }

    /// Takes the live line away.
    mutating func end() -> [Chunk] {
        erased()
    }

    /// Whether standard error gets a line for it: on a terminal the live line tells the states but the last.
    private func isTold(_ happening: Happening) -> Bool {
        if setting.output.quiet { return false }
        guard isLive, case .state(let state) = happening else { return true }
        return state == .ended
    }

    private mutating func count(_ bytes: Int) {
        counts.payloads += 1
        counts.bytes += bytes
    }

    private func rate(now: Double) -> Double {
        guard let first = samples.first, now > first.time else { return 0 }
        return Double(counts.payloads - first.payloads) / (now - first.time)
    }

    private mutating func erased() -> [Chunk] {
        defer { lineIsDrawn = false }
        return lineIsDrawn ? [.status(Array("\r\u{1B}[K".utf8))] : []
    }
}
