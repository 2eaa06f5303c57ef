// Payloads that are taken from the end of their array, which moves them, where a look at them by index copies each.

extension Array {
    /// Reverses the order.
    ///
    /// By moves, where `reverse()` copies each element that it swaps.
    @inlinable
    @inline(__always)
    package mutating func turnRound() {
        var elements = mutableSpan
        var low = 0
        var high = elements.count - 1
        while low < high {
            elements.swapAt(low, high)
            low += 1
            high -= 1
        }
    }
}
