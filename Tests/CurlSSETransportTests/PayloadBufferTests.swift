import Testing

@testable import CurlSSETransport

private func segment(_ payloads: [Int], bytes: Int, at positions: [(Int, String)] = []) -> PayloadSegment<Int> {
    PayloadSegment(
        payloads: payloads,
        bytes: bytes,
        positions: positions.map { (after: $0.0, position: StreamPosition(lastEventID: $0.1)) }
    )
}

@Suite("The buffer between the loop and a reader")
struct PayloadBufferTests {
    @Test("segments come out in the order they went in, across many rounds")
    func order() {
        var buffer = PayloadBuffer<Int>(highWater: 1 << 20)
        var taken: [Int] = []
        for round in 0..<500 {
            buffer.append(segment([3 * round], bytes: 1))
            buffer.append(segment([3 * round + 1, 3 * round + 2], bytes: 1))
            if round % 7 != 0 { while taken.count < 3 * round, let next = buffer.take() { taken += next.payloads } }
        }
        while let next = buffer.take() { taken += next.payloads }
        #expect(taken == Array(0..<1500))
        #expect(buffer.bytes == 0)
        #expect(buffer.isEmpty)
    }

    @Test("it is full at its high water, and low again only at half of it")
    func water() {
        var buffer = PayloadBuffer<Int>(highWater: 100)
        buffer.append(segment([1], bytes: 60))
        #expect(!buffer.isFull)
        buffer.append(segment([2], bytes: 40))
        #expect(buffer.isFull)
        buffer.append(segment([3], bytes: 10))
        _ = buffer.take()
        #expect(!buffer.isFull)
        #expect(buffer.isLow)
        var other = PayloadBuffer<Int>(highWater: 100)
        other.append(segment([1], bytes: 10))
        other.append(segment([2], bytes: 90))
        _ = other.take()
        #expect(!other.isFull)
        #expect(!other.isLow)
    }

    @Test("a stream that only moves its position keeps the last one, however often it moves")
    func positionsAlone() {
        var buffer = PayloadBuffer<Int>(highWater: 100)
        for id in 0..<10_000 { buffer.append(segment([], bytes: 0, at: [(0, "\(id)")])) }
        let first = buffer.take()
        #expect(first?.positions.map(\.position.lastEventID) == ["9999"])
        let answer1 = buffer.take()
        #expect(answer1 == nil)
    }

    @Test("a position between two payloads holds between them")
    func positionBetweenPayloads() {
        var one = PayloadSegment<Int>()
        one.payloads = [1]
        one.moved(to: StreamPosition(lastEventID: "a"))
        one.moved(to: StreamPosition(lastEventID: "b"))
        one.payloads.append(2)
        one.moved(to: StreamPosition(lastEventID: "c"))
        #expect(one.positions.map(\.after) == [1, 2])
        #expect(one.positions.map(\.position.lastEventID) == ["b", "c"])
    }
}
