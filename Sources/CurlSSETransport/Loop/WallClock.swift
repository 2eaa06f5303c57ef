// The time of day, for servers that name an instant. Everything else is measured by the loop's own clock.

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

enum WallClock {
    /// Seconds since 1970-01-01 00:00 UTC.
    static var seconds: Int64 { Int64(time(nil)) }
}
