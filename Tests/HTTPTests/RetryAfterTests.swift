import Testing

@testable import CurlSSETransport

@Suite("Retry-After")
struct RetryAfterTests {
    /// 1994-11-06 08:49:37 UTC, the date of RFC 9110's examples.
    private let example: Int64 = 784_111_777

    @Test(
        "H10: is a number of seconds, 600 at most",
        arguments: [
            ("7", 7), ("0", 0), ("  7\t", 7), ("007", 7), ("600", 600), ("601", 600), ("99999999999999999999", 600),
            (String(repeating: "9", count: 400), 600),
        ]
    )
    func seconds(value: String, wait: Int) {
        #expect(RetryAfter.duration(value, now: 0) == .seconds(wait))
    }

    @Test(
        "H10: nonsense is no wait",
        arguments: [
            "", " ", "-1", "+5", "7, 8", "7 8", "1.5", "7s", "0x10", "\u{663}", "soon", "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GMT x",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt", "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 94", "Sun Nov 6 08:49:37 1994", "Thu, 29 Feb 1900 00:00:00 GMT",
        ]
    )
    func nonsense(value: String) {
        #expect(RetryAfter.duration(value, now: example - 60) == nil)
    }

    @Test(
        "H10: is a date of one of three forms",
        arguments: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    )
    func dates(value: String) {
        #expect(HTTPDate.seconds(Array(value.utf8), now: example) == example)
        #expect(RetryAfter.duration(value, now: example - 90) == .seconds(90))
        #expect(RetryAfter.duration(value, now: example - 601) == .seconds(600))
        #expect(RetryAfter.duration(value, now: example + 1) == .zero, "a date that has passed")
    }

    @Test(
        "a date is counted in the calendar's days",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Fri, 31 Dec 2027 23:59:59 GMT", 1_830_297_599), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Thu Feb 29 00:00:00 2024", 1_709_164_800), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Sat, 01 Mar 0000 00:00:00 GMT", -62_162_035_200),
        ]
    )
    func calendar(value: String, seconds: Int64) {
        #expect(HTTPDate.seconds(Array(value.utf8), now: 0) == seconds)
    }

    @Test(
        "a year of two digits is the latest at most 50 years on",
        arguments: [
            // 2026-11-30 00:00:00 UTC is 1795996800.
            ("Monday, 30-Nov-26 00:01:00 GMT", 1_795_996_860), ("Monday, 30-Nov-76 00:00:00 GMT", 3_373_920_000),
            ("Tuesday, 01-Dec-76 00:00:00 GMT", 218_246_400), ("Saturday, 01-Jan-77 00:00:00 GMT", 220_924_800),
            ("Friday, 31-Dec-99 23:59:59 GMT", 946_684_799),
        ]
    )
    func shortYears(value: String, seconds: Int64) {
        #expect(HTTPDate.seconds(Array(value.utf8), now: 1_795_996_800) == seconds)
    }

    @Test("no time of day overflows", arguments: [Int64.min, -1, 0, Int64.max])
    func extremes(now: Int64) {
        for value in [
            "Fri, 31 Dec 9999 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT", "Sat, 01 Mar 0000 00:00:00 GMT",
        ] {
            let wait = RetryAfter.duration(value, now: now)
            #expect(wait.map { $0 >= .zero && $0 <= .seconds(600) } == true)
        }
    }
}
