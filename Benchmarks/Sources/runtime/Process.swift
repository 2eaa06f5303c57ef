// What the system says of this process, and how figures are written.

internal import Glibc

/// Seconds of CPU so far, user and system.
func processSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let user = Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1e6
    return user + Double(usage.ru_stime.tv_sec) + Double(usage.ru_stime.tv_usec) / 1e6
}

/// Bytes in memory now: the second number of /proc/self/statm, in pages.
func residentBytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let fields = text.split(separator: " ")
    return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
}

extension Double {
    /// With a number of decimals.
    func rounded(to decimals: Int) -> String {
        var scale = 1.0
        for _ in 0..<decimals { scale *= 10 }
        let number = Int((self * scale).rounded())
        guard decimals > 0 else { return "\(number)" }
        let fraction = String(abs(number) % Int(scale))
        return "\(number / Int(scale))." + String(repeating: "0", count: decimals - fraction.count) + fraction
    }
}

extension Duration {
    /// As seconds.
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
