// Any value is 0 to 10 minutes or nothing; a number and a date are what the C library makes of them.

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A time of day and a value; and a date made of the value, in each of the three forms.
func checkRetryAfter(_ input: inout Input) {
    let now = input.number()
    let value = input.rest()
    let text = String(decoding: value, as: UTF8.self)

    let wait = RetryAfter.duration(text, now: now)
    if let wait { precondition(wait >= .zero && wait <= .seconds(600)) }
    if !value.isEmpty, value.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
        let digits = String(text.drop { $0 == "0" })
        precondition(wait == .seconds(digits.utf8.count > 3 ? 600 : min(Int(digits) ?? 0, 600)))
    }
    // The years 1000 to 9999: strftime(3) pads no year before, and the forms have four digits.
    let first: Int64 = -30_610_224_000
    let last: Int64 = 253_402_300_799
    if let date = HTTPDate.seconds(value, now: now), (first...last).contains(date) {
        precondition(HTTPDate.seconds(Array(format(date, "%a, %d %b %Y %H:%M:%S GMT").utf8), now: now) == date)
    }

    var seed = Input(value)
    let date = first + Int64(UInt64(bitPattern: seed.number()) % UInt64(last - first + 1))
    precondition(HTTPDate.seconds(Array(format(date, "%a, %d %b %Y %H:%M:%S GMT").utf8), now: now) == date)
    precondition(HTTPDate.seconds(Array(format(date, "%a %b %e %H:%M:%S %Y").utf8), now: now) == date)

    // A year of two digits is that of the date where the date is at most 50 years on and less than 50 back.
    let today = first + Int64(UInt64(bitPattern: now) % UInt64(last - first + 1))
    let year: Int64 = 31_556_952
    let short = Array(format(date, "%A, %d-%b-%y %H:%M:%S GMT").utf8)
    if today >= 0, today < last - 60 * year, date < today + 49 * year, date > today - 49 * year {
        precondition(HTTPDate.seconds(short, now: today) == date)
    }
    // Else it is a date of that name, where its year has the 29th of February.
    if let other = HTTPDate.seconds(short, now: now) {
        precondition(format(other, "%d-%b-%y %H:%M:%S") == format(date, "%d-%b-%y %H:%M:%S"))
    }
}

/// A date as strftime(3) writes it.
private func format(_ seconds: Int64, _ format: String) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    var text = [CChar](repeating: 0, count: 64)
    let count = strftime(&text, text.count, format, &parts)
    return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
