// Searches and copies in a chunk of bytes; the one file of this room that may say `unsafe`.
//
// Every function checks its range against the chunk before it touches memory, so a mistake of a caller traps and
// never reads past the end. Called by the parser alone, on the parser's thread.

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

extension Array where Element == UInt8 {
    /// Lends the bytes.
    @inline(__always)
    func withRawSpan<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(unsafe span.bytes)
    }
}

extension RawSpan {
    /// The byte at an offset.
    @inline(__always)
    func byte(_ offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// Four bytes from an offset on, the first one lowest.
    @inline(__always)
    func word(_ offset: Int) -> UInt32 {
        UInt32(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Where a byte comes first within a range; the range's end where it does not come.
    ///
    /// memchr(3): faster than any loop written here from a few bytes on.
    @inline(__always)
    func firstOffset(of byte: UInt8, from start: Int, to end: Int) -> Int {
        precondition(0 <= start && start <= end && end <= byteCount)
        guard start < end else { return end }
        return unsafe withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress,
                let found = unsafe memchr(base + start, Int32(byte), end - start)
            else { return end }
            return unsafe UnsafeRawPointer(found) - base
        }
    }

    /// How many of the 16 bytes from an offset on come before the first LF or CR; 16 where there is neither.
    ///
    /// For short lines: memchr(3) costs its call.
    @inline(__always)
    func lineCount16(_ offset: Int) -> Int {
        let low = Self.lineEnds(
            in: UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
        )
        if low != 0 { return low.trailingZeroBitCount >> 3 }
        let high = Self.lineEnds(
            in: UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
        )
        return 8 + high.trailingZeroBitCount >> 3
    }

    /// Of a word's bytes that are LF or CR, the lowest has its top bit set here; bytes above it may have theirs.
    ///
    /// Subtracting 1 from each byte sets the top bit of one that was zero; a borrow only spoils higher bytes.
    @inline(__always)
    private static func lineEnds(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let lineFeeds = word ^ (ones &* 0x0A)
        let returns = word ^ (ones &* 0x0D)
        return (((lineFeeds &- ones) & ~lineFeeds) | ((returns &- ones) & ~returns)) & (ones &* 0x80)
    }

    /// Two bytes from an offset on, the first one lowest.
    @inline(__always)
    func halfWord(_ offset: Int) -> UInt16 {
        UInt16(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// Whether two ranges of one length, at least 4, hold the same bytes; for short ones, without a call.
    ///
    /// Word by word, the last of them over the one before where it is not whole.
    @inline(__always)
    func hasSameBytes(at left: Int, _ right: Int, count: Int) -> Bool {
        precondition(4 <= count && 0 <= left && 0 <= right && left <= byteCount - count && right <= byteCount - count)
        // Within the two ranges from here on.
        func isSame<Word: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Word.Type) -> Bool {
            unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: left &+ offset, as: Word.self)
                == unsafeLoadUnaligned(fromUncheckedByteOffset: right &+ offset, as: Word.self)
        }
        if count < 8 { return isSame(0, UInt32.self) && isSame(count &- 4, UInt32.self) }
        var offset = 0
        while offset < count &- 8 {
            guard isSame(offset, UInt64.self) else { return false }
            offset &+= 8
        }
        return isSame(count &- 8, UInt64.self)
    }

    /// Whether two ranges of one length hold the same bytes.
    @inline(__always)
    func isEqual(at left: Int, _ right: Int, count: Int) -> Bool {
        precondition(0 <= left && 0 <= right && 0 <= count && left <= byteCount - count && right <= byteCount - count)
        if 4 <= count, count <= 8 {
            return word(left) == word(right) && word(left + count - 4) == word(right + count - 4)
        }
        return unsafe withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return true }
            return unsafe memcmp(base + left, base + right, count) == 0
        }
    }

    /// A range as text; what is not UTF-8 becomes U+FFFD.
    func text(from start: Int, count: Int) -> String {
        precondition(0 <= start && 0 <= count && start <= byteCount - count)
        return unsafe withUnsafeBytes { bytes in
            unsafe String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]), as: UTF8.self)
        }
    }

    /// A range in a buffer of its own.
    func copy(from start: Int, count: Int) -> [UInt8] {
        precondition(0 <= start && 0 <= count && start <= byteCount - count)
        return unsafe withUnsafeBytes { bytes in
            unsafe Array(UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
        }
    }

    /// Appends a range to a buffer that is to hold at most `limit` bytes.
    ///
    /// The buffer's memory doubles, from 1 MiB on it quadruples, so n bytes cost O(n) however they come, and stops at
    /// the limit; or it goes to the `expected` size at once, where that is no more than eight times what has come.
    /// Each step of a large buffer is memory that the system has to clear page by page, which costs more than all the
    /// copying; what is reserved and not yet written costs nothing.
    func append(from start: Int, to end: Int, onto buffer: inout [UInt8], limit: Int, expecting expected: Int = 0) {
        precondition(0 <= start && start <= end && end <= byteCount)
        let count = buffer.count + (end - start)
        if count > buffer.capacity {
            let grown = Swift.min((count < 1 << 20 ? 2 : 4) * count, limit)
            let size = count <= expected && expected / 8 <= count ? expected : grown
            buffer.reserveCapacity(Swift.max(count, size))
        }
        if end - start == 1 {
            buffer.append(byte(start))
            return
        }
        unsafe withUnsafeBytes { bytes in
            unsafe buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        }
    }

    /// Ranges, joined by LF, in a buffer of their own.
    func join(_ lines: ArraySlice<BlockBatch.Line>, count: Int) -> [UInt8] {
        unsafe withUnsafeBytes { source in
            unsafe [UInt8](unsafeUninitializedCapacity: count) { target, used in
                unsafe used = Self.copy(lines, of: source, to: target, at: 0)
            }
        }
    }

    /// The data of a batch's events that share a buffer, one after the other, in a buffer of that size.
    func gather(_ batch: borrowing BlockBatch) -> [UInt8] {
        guard batch.sharedCount > 0 else { return [] }
        return unsafe withUnsafeBytes { source in
            unsafe [UInt8](unsafeUninitializedCapacity: batch.sharedCount) { target, used in
                for record in batch.records where record.sharesBuffer {
                    if record.lineCount == 1 {
                        let line = BlockBatch.Line(start: record.start, count: record.count)
                        unsafe used = Self.copy(line, of: source, to: target, at: used)
                    } else {
                        let lines = batch.lines[record.lineRange]
                        unsafe used = Self.copy(lines, of: source, to: target, at: used)
                    }
                }
            }
        }
    }

    /// Copies lines and the LFs between them; returns where the next byte goes.
    private static func copy(
        _ lines: ArraySlice<BlockBatch.Line>,
        of source: UnsafeRawBufferPointer,
        to target: UnsafeMutableBufferPointer<UInt8>,
        at offset: Int
    ) -> Int {
        var offset = offset
        for index in lines.indices {
            if index != lines.startIndex {
                unsafe target[offset] = UInt8(ascii: "\n")
                offset += 1
            }
            unsafe offset = copy(lines[index], of: source, to: target, at: offset)
        }
        return offset
    }

    /// Copies one line; returns where the next byte goes.
    @inline(__always)
    private static func copy(
        _ line: BlockBatch.Line,
        of source: UnsafeRawBufferPointer,
        to target: UnsafeMutableBufferPointer<UInt8>,
        at offset: Int
    ) -> Int {
        let start = Int(line.start)
        let count = Int(line.count)
        precondition(start <= source.count - count && offset <= target.count - count)
        if count > 0, let from = source.baseAddress, let to = target.baseAddress {
            unsafe memcpy(to + offset, from + start, count)
        }
        return offset + count
    }
}
