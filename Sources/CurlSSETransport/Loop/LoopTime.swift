// The loop's clock, and durations in its unit.

internal import Dispatch

enum LoopTime {
    /// Nanoseconds of the system's monotonic clock, which libcurl measures by too.
    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension Duration {
    /// In nanoseconds, rounded down, saturating.
    var nanoseconds: Int64 {
        let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return components.seconds < 0 ? .min : .max }
        let (sum, overflowed) = seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }

    /// In whole milliseconds, rounded up.
    var milliseconds: Int { Int(clamping: (nanoseconds + 999_999) / 1_000_000) }

    /// In whole seconds, rounded up.
    var wholeSeconds: Int { Int(clamping: components.seconds) + (components.attoseconds > 0 ? 1 : 0) }
}
