#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The ceiling: cuts a stream into lines by memchr(3), for LF and then for a lone CR in the line, and counts the data.
///
/// No copies, no events, no cut lines: what any parser that finds lines this way cannot beat by much.
struct Splitter {
    private(set) var events = 0
    private(set) var bytes = 0
    private var data = -1

    /// Whether each event's data is copied into a buffer of its own, as the least a client can do that keeps it.
    let copies: Bool

    init(copies: Bool) {
        self.copies = copies
    }

    mutating func read(_ chunk: UnsafeRawBufferPointer) {
        guard var position = chunk.baseAddress else { return }
        let end = position + chunk.count
        while position < end, let found = memchr(position, 10, end - position) {
            let lineFeed = UnsafeRawPointer(found)
            var count = lineFeed - position
            if count > 0, (lineFeed - 1).load(as: UInt8.self) == 13 { count -= 1 }
            while count > 0, let cut = memchr(position, 13, count) {
                line(position, UnsafeRawPointer(cut) - position)
                count -= UnsafeRawPointer(cut) + 1 - position
                position = UnsafeRawPointer(cut) + 1
            }
            line(position, count)
            position = lineFeed + 1
        }
    }

    @inline(__always)
    private mutating func line(_ start: UnsafeRawPointer, _ count: Int) {
        if count == 0 {
            if data >= 0 { events += 1 }
            data = -1
        } else if count >= 5, memcmp(start, "data:", 5) == 0 {
            let skipped = count > 5 && (start + 5).load(as: UInt8.self) == 32 ? 6 : 5
            data = count - skipped
            bytes += data
            if copies { keep([UInt8](UnsafeRawBufferPointer(start: start + skipped, count: data))) }
        }
    }

    @inline(never)
    private func keep(_ bytes: [UInt8]) {}
}
