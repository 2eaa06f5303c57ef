// What happened into lines: JSON, plain text, and the one live line of a terminal.
//
// Pure: the time and whether this is a terminal are arguments. Called under the console's lock.

import CurlSSETransport

/// Makes the lines of `--json`.
enum JSONLine {
    /// One object on one line, its line end included.
    static func make(_ happening: Happening) -> [UInt8] {
        switch happening {
        case .state(let state): line("{\"kind\":\"state\",\(fields(state))}")
        case .problem(let problem): line(problemText(problem))
        case .resumed(let count): line("{\"kind\":\"resumed\",\"resumptions\":\(count)}")
        case .event(let type, let data, let id):
            line(
                "{\"kind\":\"event\",\"type\":\(JSONLayout.string(type)),"
                    + "\"data\":\(JSONLayout.string(String(decoding: data, as: UTF8.self))),"
                    + "\"id\":\(JSONLayout.string(id))}"
            )
        case .payload(let bytes): payload(bytes)
        case .comment(let text): line("{\"kind\":\"comment\",\"comment\":\(JSONLayout.string(text))}")
        case .complete: line("{\"kind\":\"complete\"}")
        }
    }

    private static func line(_ text: String) -> [UInt8] {
        Array(text.utf8) + [0x0A]
    }

    private static func fields(_ state: Happening.State) -> String {
        switch state {
        case .idle: "\"state\":\"idle\""
        case .connecting: "\"state\":\"connecting\""
        case .open: "\"state\":\"open\""
        case .ended: "\"state\":\"ended\""
        case .waiting(let until, let seconds):
            "\"state\":\"waiting\",\"until\":\"\(Instant.iso8601(until))\",\"seconds\":\(Instant.thousandths(seconds))"
        }
    }

    private static func problemText(_ problem: Problem) -> String {
        let status = problem.status.map { ",\"status\":\($0)" } ?? ""
        return "{\"kind\":\"error\",\"class\":\"\(problem.kind.rawValue)\","
            + "\"message\":\(JSONLayout.string(problem.message))\(status),\"fatal\":\(problem.isFatal)}"
    }

    /// The payload's own text in the line, or a string of it where it is no JSON.
    private static func payload(_ bytes: [UInt8]) -> [UInt8] {
        var line = Array("{\"kind\":\"payload\",\"payload\":".utf8)
        if JSONText.isValid(bytes) {
            line += JSONLayout.oneLine(bytes)
        } else {
            line += JSONLayout.string(String(decoding: bytes, as: UTF8.self)).utf8
        }
        return line + [UInt8(ascii: "}"), 0x0A]
    }
}

/// Makes the lines of the default output.
enum PlainLine {
    /// What standard output gets: payloads, and with `--comments` comments; nothing for the rest.
    ///
    /// - Parameters:
    ///   - happening: What happened.
    ///   - isTerminal: Whether a person reads it: JSON is laid out, and control bytes are shown instead of obeyed.
    /// - Returns: The line with its end, or nil.
    static func make(_ happening: Happening, isTerminal: Bool) -> [UInt8]? {
        switch happening {
        case .event(_, let data, _):
            return (isTerminal ? Terminal.shown(data) : data) + [0x0A]
        case .payload(let bytes):
            guard JSONText.isValid(bytes) else { return (isTerminal ? Terminal.shown(bytes) : bytes) + [0x0A] }
            // What is left of control bytes in valid JSON are C1 and DEL inside its strings.
            return (isTerminal ? Terminal.shown(JSONLayout.pretty(bytes)) : JSONLayout.oneLine(bytes)) + [0x0A]
        case .comment(let text):
            let line = Array((":" + text).utf8)
            return (isTerminal ? Terminal.shown(line) : line) + [0x0A]
        case .state, .problem, .resumed, .complete:
            return nil
        }
    }

    /// What standard error gets, one line a change; nil for what standard output tells.
    ///
    /// - Parameters:
    ///   - happening: What happened.
    ///   - counts: What has come so far.
    ///   - colours: The colours to use.
    /// - Returns: The line without its end, or nil.
    static func status(_ happening: Happening, counts: Counts, colours: Colours) -> String? {
        switch happening {
        case .state(.idle): colours.dim("idle")
        case .state(.connecting): colours.dim("connecting")
        case .state(.open): colours.good("open")
        case .state(.waiting(_, let seconds)): colours.warning("waiting \(Instant.tenths(seconds)) s")
        case .state(.ended): colours.dim("ended") + " (\(counts.sentence))"
        case .problem(let problem):
            (problem.isFatal ? colours.bad("error") : colours.warning("failed"))
                + " (\(problem.kind.rawValue)): \(Terminal.shown(problem.message))"
                + (problem.retryAfter.map { "; the server asks for \(Instant.tenths($0)) s" } ?? "")
        case .resumed(let count): colours.warning("resumed") + " (\(count)): what came in between was missed"
        case .complete: colours.good("complete")
        case .event, .payload, .comment: nil
        }
    }
}

/// What has come so far.
struct Counts: Equatable {
    var payloads = 0
    /// Of the payloads' data.
    var bytes = 0

    var sentence: String {
        "\(payloads) payload\(payloads == 1 ? "" : "s"), \(Counts.size(bytes))"
    }

    /// Bytes with a unit of 1024 and one decimal.
    static func size(_ bytes: Int) -> String {
        var size = Double(bytes)
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if size < 1024 || unit == "GiB" {
                return unit == "B" ? "\(bytes) B" : "\(Instant.tenths(size)) \(unit)"
            }
            size /= 1024
        }
        return "\(bytes) B"
    }
}

/// The live line of a terminal.
enum LiveLine {
    /// The line as it stands now, without a line end, cut to the terminal's width.
    ///
    /// - Parameters:
    ///   - state: The stream's state.
    ///   - counts: What has come so far.
    ///   - rate: Payloads a second, lately.
    ///   - now: Seconds since 1970.
    ///   - width: Columns, at least 1.
    ///   - colours: The colours to use.
    /// - Returns: The line.
    static func make(
        state: Happening.State?,
        counts: Counts,
        rate: Double,
        now: Double,
        width: Int,
        colours: Colours
    ) -> String {
        let word: String
        let colour: (String) -> String
        switch state {
        case nil, .idle: (word, colour) = ("idle", colours.dim)
        case .connecting: (word, colour) = ("connecting", colours.dim)
        case .open: (word, colour) = ("open", colours.good)
        case .waiting(let until, _):
            (word, colour) = ("waiting, again in \(Instant.tenths(max(0, until - now))) s", colours.warning)
        case .ended: (word, colour) = ("ended", colours.dim)
        }
        let rest = " | \(counts.sentence) | \(Instant.tenths(rate))/s"
        let room = max(1, width - 1)
        let shownWord = String(word.prefix(room))
        return colour(shownWord) + rest.prefix(room - shownWord.count)
    }
}

/// The colours of a terminal, or none.
struct Colours: Equatable {
    var isOn: Bool

    func good(_ text: String) -> String { paint(text, "32") }
    func warning(_ text: String) -> String { paint(text, "33") }
    func bad(_ text: String) -> String { paint(text, "31") }
    func dim(_ text: String) -> String { paint(text, "2") }

    private func paint(_ text: String, _ code: String) -> String {
        isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

/// What a server wrote, made safe for a terminal.
enum Terminal {
    /// The text with its control characters shown as U+FFFD, tab and line feed excepted: a server must not move a
    /// reader's cursor or set a window's title.
    static func shown(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar {
                    case "\t", "\n": scalar
                    case "\u{0}"..<" ", "\u{7F}"..<"\u{A0}": "\u{FFFD}"
                    default: scalar
                    }
                }
            )
        )
    }

    /// The same for bytes, which may be no UTF-8.
    static func shown(_ bytes: [UInt8]) -> [UInt8] {
        Array(shown(String(decoding: bytes, as: UTF8.self)).utf8)
    }
}

/// Times as text.
enum Instant {
    /// A UTC instant to the millisecond, such as `2026-11-30T07:41:28.250Z`.
    ///
    /// - Parameter seconds: Since 1970-01-01, not before.
    /// - Returns: The text.
    static func iso8601(_ seconds: Double) -> String {
        let milliseconds = Int(max(0, seconds) * 1000)
        let (days, inDay) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        let (year, month, day) = civil(days: days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(inDay / 3_600_000, 2)):\(padded(inDay / 60_000 % 60, 2)):\(padded(inDay / 1000 % 60, 2))"
            + ".\(padded(inDay % 1000, 3))Z"
    }

    /// Three decimals, rounded down.
    static func thousandths(_ value: Double) -> String {
        let thousandths = Int(max(0, value) * 1000)
        return "\(thousandths / 1000).\(padded(thousandths % 1000, 3))"
    }

    /// One decimal, rounded.
    static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// The Gregorian date of a day counted from 1970-01-01.
    ///
    /// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    private static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let ofEra = shifted % 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * ofYear + 2) / 153
        let day = ofYear - (153 * march + 2) / 5 + 1
        let month = march < 10 ? march + 3 : march - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
