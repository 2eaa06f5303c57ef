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

/// This process's time on a processor in seconds, and its page faults, so far (getrusage(2)).
func processUse() -> (user: Double, system: Double, faults: Int) {
    var usage = rusage()
    #if canImport(Glibc)
    let result = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    #else
    let result = getrusage(RUSAGE_SELF, &usage)
    #endif
    guard result == 0 else { return (.nan, .nan, 0) }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return (seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_minflt)
}

/// This process's time on a processor, to the nanosecond.
func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
