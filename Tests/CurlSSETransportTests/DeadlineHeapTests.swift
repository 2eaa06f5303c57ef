import Testing

@testable import CurlSSETransport

@Suite("The loop's heap of deadlines")
struct DeadlineHeapTests {
    @Test("entries fall due in the order of their instants, none before its own")
    func order() {
        let seed = UInt64.random(in: .min ... .max)
        var random = Seeded(seed: seed)
        var heap = DeadlineHeap<UInt64>()
        var expected: [UInt64] = []
        for _ in 0..<5000 {
            let instant = UInt64.random(in: 0..<1000, using: &random)
            heap.insert(instant, at: instant)
            expected.append(instant)
        }
        expected.sort()
        var popped: [UInt64] = []
        for now in stride(from: UInt64(0), through: 1000, by: 10) {
            while let key = heap.popDue(now: now) {
                #expect(key <= now, "seed \(seed)")
                popped.append(key)
            }
        }
        #expect(popped == expected, "seed \(seed)")
        #expect(heap.earliest == nil)
    }

    @Test("what nobody waits for any more can be thrown out without losing the others")
    func compaction() {
        var heap = DeadlineHeap<Int>()
        for key in 0..<100 { heap.insert(key, at: UInt64(1000 - key)) }
        heap.compact { $0 % 10 == 0 }
        #expect(heap.count == 10)
        var popped: [Int] = []
        while let key = heap.popDue(now: .max) { popped.append(key) }
        #expect(popped == [90, 80, 70, 60, 50, 40, 30, 20, 10, 0])
    }
}
