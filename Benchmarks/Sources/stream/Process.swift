// What the system says of this process.

internal import Glibc

/// A moment of the process.
struct Moment {
    /// Seconds of the monotonic clock.
    var wall: Double
    /// Seconds of CPU, user and system.
    var cpu: Double
    /// How often a thread went to sleep by itself, those that are gone too.
    var switches: Int

    static var now: Moment {
        var usage = rusage()
        getrusage(RUSAGE_SELF_NUMBER, &usage)
        let user = Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1e6
        let system = Double(usage.ru_stime.tv_sec) + Double(usage.ru_stime.tv_usec) / 1e6
        return Moment(wall: Double(monotonicNanoseconds()) / 1e9, cpu: user + system, switches: Int(usage.ru_nvcsw))
    }
}

/// `RUSAGE_SELF`, which is imported as another type than getrusage(2) takes.
private let RUSAGE_SELF_NUMBER: Int32 = 0

/// Nanoseconds of the monotonic clock, which the load server stamps its payloads by.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// A line of /proc/self/status in its own unit; 0 where it is not there.
func processStatus(_ name: String) -> Int {
    guard let file = fopen("/proc/self/status", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), file) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard text.hasPrefix(name + ":") else { continue }
        return Int(text.filter(\.isNumber)) ?? 0
    }
    return 0
}

/// A line to standard error.
func complain(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = write(STDERR_FILENO, line, line.count)
}
