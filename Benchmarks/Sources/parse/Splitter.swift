#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The ceiling: cuts a stream into lines by memchr(3), for LF and then for a lone CR in the line, and counts the data.
///
/// No events, and no copies but of a line that a chunk cuts, which is carried over: what any parser that finds lines this
/// way cannot beat by much.
struct Splitter: ~Copyable {
    private(set) var events = 0
    private(set) var bytes = 0
    private var data = -1
    private var carried = UnsafeMutableRawPointer.allocate(byteCount: 1 << 10, alignment: 16)
    private var carriedCount = 0
    private var carriedCapacity = 1 << 10

    /// Whether each event's data is copied into a buffer of its own, as the least a client can do that keeps it.
    let copies: Bool

    init(copies: Bool) {
        self.copies = copies
    }

    deinit {
        carried.deallocate()
    }

    mutating func read(_ chunk: UnsafeRawBufferPointer) {
        guard var position = chunk.baseAddress else { return }
        let end = position + chunk.count
        while position < end {
            guard let found = memchr(position, 10, end - position) else { return carry(position, end - position) }
            let lineFeed = UnsafeRawPointer(found)
            if carriedCount > 0 {
                carry(position, lineFeed - position)
                lines(UnsafeRawPointer(carried), carriedCount)
                carriedCount = 0
            } else {
                lines(position, lineFeed - position)
            }
            position = lineFeed + 1
        }
    }

    private mutating func carry(_ start: UnsafeRawPointer, _ count: Int) {
        if carriedCount + count > carriedCapacity {
            carriedCapacity = 2 * (carriedCount + count)
            guard let grown = realloc(carried, carriedCapacity) else { preconditionFailure("no memory") }
            carried = grown
        }
        memcpy(carried + carriedCount, start, count)
        carriedCount += count
    }

    /// What stands before an LF.
    @inline(__always)
    private mutating func lines(_ start: UnsafeRawPointer, _ length: Int) {
        var position = start
        var count = length
        if count > 0, (position + count - 1).load(as: UInt8.self) == 13 { count -= 1 }
        while count > 0, let cut = memchr(position, 13, count) {
            line(position, UnsafeRawPointer(cut) - position)
            count -= UnsafeRawPointer(cut) + 1 - position
            position = UnsafeRawPointer(cut) + 1
        }
        line(position, count)
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
