// The value of a Retry-After field to a wait.
//
// Source: RFC 9110, sections 10.2.3 (Retry-After) and 5.6.7 (the three forms of a date).
//
// Pure: the time of day is an argument. Called once a failing response.

/// Reads when a server wants to be asked again.
enum RetryAfter {
    /// The longest wait that a server can ask for: 10 minutes.
    static let maximumSeconds: Int64 = 600

    /// The wait that a value asks for.
    ///
    /// - Parameters:
    ///   - value: A number of seconds or a date, blanks around it allowed.
    ///   - now: The time of day in seconds since 1970-01-01 00:00 UTC.
    /// - Returns: 0 to 10 minutes, what lies outside brought to the nearer end: a date that has passed is 0. nil for
    ///   anything else, such as a sign, a fraction or a list.
    static func duration(_ value: String, now: Int64) -> Duration? {
        let bytes = Array(ASCII.trimmed(value.utf8))
        guard !bytes.isEmpty else { return nil }
        if bytes.allSatisfy(ASCII.isDigit) {
            // No number of digits overflows: what is over the maximum stays over it.
            let seconds = bytes.reduce(Int64(0)) { min($0 * 10 + Int64($1 - UInt8(ascii: "0")), maximumSeconds) }
            return .seconds(seconds)
        }
        guard let date = HTTPDate.seconds(bytes, now: now) else { return nil }
        let (wait, overflow) = date.subtractingReportingOverflow(now)
        // Only a `now` outside of any calendar overflows, and its sign says on which side the date lies.
        guard !overflow else { return .seconds(now < 0 ? maximumSeconds : 0) }
        return .seconds(min(max(wait, 0), maximumSeconds))
    }
}

/// Reads an `HTTP-date` (RFC 9110, section 5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

    /// The date in seconds since 1970-01-01 00:00 UTC.
    ///
    /// - Parameters:
    ///   - bytes: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. The
    ///     forms have case. Whether the day of the week is the date's is not asked.
    ///   - now: Where a year of two digits is looked for: at most 50 years on.
    /// - Returns: nil when the bytes are none of the three, or a day that no calendar has.
    static func seconds(_ bytes: [UInt8], now: Int64) -> Int64? {
        fixdate(bytes) ?? rfc850(bytes, now: now) ?? asctime(bytes)
    }

    private static func fixdate(_ bytes: [UInt8]) -> Int64? {
        var cursor = Cursor(bytes)
        guard cursor.index(of: days.map { String($0.prefix(3)) }) != nil, cursor.skip(", "),
            let day = cursor.number(2), cursor.skip(" "), let month = cursor.index(of: months), cursor.skip(" "),
            let year = cursor.number(4), cursor.skip(" "), let time = cursor.timeOfDay(), cursor.skip(" GMT"),
            cursor.isAtEnd
        else { return nil }
        return seconds(year: year, month: month + 1, day: day, time: time)
    }

    private static func rfc850(_ bytes: [UInt8], now: Int64) -> Int64? {
        var cursor = Cursor(bytes)
        guard cursor.index(of: days) != nil, cursor.skip(", "),
            let day = cursor.number(2), cursor.skip("-"), let month = cursor.index(of: months), cursor.skip("-"),
            let short = cursor.number(2), cursor.skip(" "), let time = cursor.timeOfDay(), cursor.skip(" GMT"),
            cursor.isAtEnd
        else { return nil }
        // "A timestamp that appears to be more than 50 years in the future" is the most recent year in the past that
        // has the same last two digits: the latest such year that is at most 50 years on.
        let today = calendar(now)
        let latest = today.year + 50
        var year = latest - (latest - short) % 100
        if year == latest, (month + 1, day, time) > (today.month, today.day, today.time) { year -= 100 }
        return seconds(year: year, month: month + 1, day: day, time: time)
    }

    private static func asctime(_ bytes: [UInt8]) -> Int64? {
        var cursor = Cursor(bytes)
        guard cursor.index(of: days.map { String($0.prefix(3)) }) != nil, cursor.skip(" "),
            let month = cursor.index(of: months), cursor.skip(" "),
            let day = cursor.skip(" ") ? cursor.number(1) : cursor.number(2), cursor.skip(" "),
            let time = cursor.timeOfDay(), cursor.skip(" "), let year = cursor.number(4), cursor.isAtEnd
        else { return nil }
        return seconds(year: year, month: month + 1, day: day, time: time)
    }

    private static func seconds(year: Int, month: Int, day: Int, time: Int) -> Int64? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day >= 1, day <= lengths[month - 1] else { return nil }
        return Int64(days(year: year, month: month, day: day) * 86_400 + time)
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that start with March.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return shifted * 365 + floor(shifted, 4) - floor(shifted, 100) + floor(shifted, 400) + dayOfYear - 719_468
    }

    private static func floor(_ number: Int, _ divisor: Int) -> Int {
        (number - (number % divisor + divisor) % divisor) / divisor
    }

    /// The date of an instant, which is taken to be in the years 1970 to 9999.
    private static func calendar(_ now: Int64) -> (year: Int, month: Int, day: Int, time: Int) {
        let now = Int(min(max(now, 0), 253_402_300_799))
        let today = now / 86_400
        var year = 1970 + today / 366
        while days(year: year + 1, month: 1, day: 1) <= today { year += 1 }
        var month = 12
        while days(year: year, month: month, day: 1) > today { month -= 1 }
        return (year, month, today - days(year: year, month: month, day: 1) + 1, now % 86_400)
    }

    /// Takes a date apart from the left.
    private struct Cursor {
        private let bytes: [UInt8]
        private var position = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { position == bytes.count }

        mutating func skip(_ text: String) -> Bool {
            guard bytes[position...].starts(with: text.utf8) else { return false }
            position += text.utf8.count
            return true
        }

        mutating func index(of names: [String]) -> Int? {
            guard let index = names.firstIndex(where: { bytes[position...].starts(with: $0.utf8) }) else { return nil }
            position += names[index].utf8.count
            return index
        }

        mutating func number(_ digits: Int) -> Int? {
            let part = bytes[position...].prefix(digits)
            guard part.count == digits, part.allSatisfy(ASCII.isDigit) else { return nil }
            position += digits
            return part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }

        /// `08:49:37` in seconds; a leap second is the second after 59.
        mutating func timeOfDay() -> Int? {
            guard let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2),
                hour < 24, minute < 60, second <= 60
            else { return nil }
            return hour * 3600 + minute * 60 + second
        }
    }
}
