import Testing

@testable import CurlSSETransport

@Suite("Since when every socket has been read")
struct WaitSeriesTests {
    @Test("is since a wait that could have told of more")
    func notFull() {
        var waits = WaitSeries()
        #expect(waits.told(of: 63, most: 64, watched: 200, at: 5) == 5)
        #expect(waits.told(of: 0, most: 64, watched: 200, at: 7) == 7)
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 8) == nil)
        #expect(waits.told(of: 1, most: 64, watched: 200, at: 9) == 9)
    }

    @Test("is, where none could, since the first of as many waits as tell of all")
    func full() {
        var waits = WaitSeries()
        for round: UInt64 in 0..<3 {
            let first = 100 * round
            #expect(waits.told(of: 64, most: 64, watched: 200, at: first + 1) == nil)
            #expect(waits.told(of: 64, most: 64, watched: 200, at: first + 2) == nil)
            #expect(waits.told(of: 64, most: 64, watched: 200, at: first + 3) == nil)
            #expect(waits.told(of: 64, most: 64, watched: 200, at: first + 4) == first + 1)
        }
        #expect(waits.told(of: 64, most: 64, watched: 64, at: 999) == 999)
    }

    @Test("is no later than a pause that came between such waits: who was read before it has not been since")
    func pause() {
        var waits = WaitSeries()
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 1) == nil)
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 2) == nil)
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 6000) == nil)
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 6001) == 1)
        #expect(waits.told(of: 64, most: 64, watched: 200, at: 6002) == nil)
        #expect(waits.told(of: 10, most: 64, watched: 200, at: 6003) == 6003)
    }
}
