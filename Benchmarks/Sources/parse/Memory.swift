#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The most memory the process has had (getrusage(2)), in MiB.
func peakMemory() -> String {
    var usage = rusage()
    #if canImport(Glibc)
    let result = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let unit = 1 << 10
    #elseif canImport(Musl)
    let result = getrusage(RUSAGE_SELF, &usage)
    let unit = 1 << 10
    #else
    let result = getrusage(RUSAGE_SELF, &usage)
    let unit = 1 << 20
    #endif
    return result == 0 ? "\(usage.ru_maxrss / unit) MiB" : "unknown"
}
