import CurlSSETransport
import Testing

/// Replays every stream of Fixtures/event-stream in many cuttings: the result is that of the standard each time.
@Suite("A recorded event stream", .longComputation)
struct FixtureTests {
    @Test("there are at least 150, and each says what it proves")
    func fixturesAreThere() {
        #expect(Fixture.all.count >= 150)
        #expect(Fixture.all.allSatisfy { !$0.expected.proves.isEmpty })
    }

    @Test("comes to what the standard says", arguments: Fixture.all)
    func whole(_ fixture: Fixture) {
        let expected = fixture.expected

        let outcome = Outcome(of: [fixture.stream], by: fixture.parser)

        #expect(outcome.events == fixture.expectedEvents)
        #expect(outcome.comments.map(\.text) == expected.comments)
        #expect(
            outcome.happenings.compactMap { if case .blockWithoutData(let type) = $0 { type } else { nil } }
                == expected.blocksWithoutData
        )
        #expect(outcome.retry == expected.retry.map { .milliseconds($0) })
        #expect(Array(outcome.lastEventID.utf8) == Array(expected.lastEventID.utf8))
        #expect(outcome.halfEventDiscarded == expected.halfEventDiscarded)
        #expect(outcome.error == fixture.expectedError)
    }

    @Test("comes to the same cut at any byte", arguments: Fixture.all)
    func cutInTwo(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)

        for offset in fixture.stream.indices {
            let cut = Outcome(of: fixture.stream.cut(at: [offset]), by: fixture.parser)
            #expect(cut == whole, "cut at \(offset)")
        }
    }

    @Test("comes to the same byte by byte", arguments: Fixture.all)
    func byteByByte(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)

        let bytes = Outcome(of: fixture.stream.chunks(of: 1), by: fixture.parser)

        #expect(bytes == whole)
    }

    @Test("comes to the same in 200 random cuttings", arguments: Fixture.all)
    func randomCuttings(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)
        var generator = Seeded(seed: Seeded.ofTheRun)

        for _ in 0..<200 {
            let count = Int.random(in: 0...max(1, fixture.stream.count / 3), using: &generator)
            let offsets = (0..<count).map { _ in Int.random(in: 0...fixture.stream.count, using: &generator) }.sorted()
            let cut = Outcome(of: fixture.stream.cut(at: offsets), by: fixture.parser)
            #expect(cut == whole, "SEED=\(Seeded.ofTheRun), cut at \(offsets)")
        }
    }

    @Test("comes to the same with comments skipped, but for the comments", arguments: Fixture.all)
    func withoutComments(_ fixture: Fixture) {
        guard fixture.expectedError?.part != .comment else { return }
        var expected = Outcome(of: [fixture.stream], by: fixture.parser)
        expected.happenings.removeAll { if case .comment = $0 { true } else { false } }
        let parser = EventStreamParser(
            lastEventID: fixture.expected.options?.lastEventID ?? "",
            maxEventBytes: fixture.parser.maxEventBytes
        )

        #expect(Outcome(of: [fixture.stream], by: parser) == expected)
        #expect(Outcome(of: fixture.stream.chunks(of: 1), by: parser) == expected)
    }

    @Test("stopped after any report, says nothing more and is where that report was", arguments: Fixture.all)
    func stoppedEarly(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)

        for count in 1..<max(1, whole.happenings.count) {
            let stopped = Outcome(of: [fixture.stream], by: fixture.parser, stopAfter: count)
            #expect(stopped.happenings == Array(whole.happenings.prefix(count)))
            #expect(stopped == Outcome(of: fixture.stream.chunks(of: 1), by: fixture.parser, stopAfter: count))
            #expect(stopped == Outcome(of: fixture.stream.chunks(of: 7), by: fixture.parser, stopAfter: count))
            #expect(!stopped.halfEventDiscarded)
            #expect(stopped.error == nil)
        }
    }

    /// The cuttings that take each of the parser's ways.
    private static func cuttings(of stream: [UInt8]) -> [[ArraySlice<UInt8>]] {
        [[stream[...]], stream.chunks(of: 1), stream.chunks(of: 7), stream.cut(at: [stream.count / 2])]
    }

    @Test("comes to the same for a visitor that looks at each event first and wants it", arguments: Fixture.all)
    func lookedAt(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)

        for chunks in Self.cuttings(of: fixture.stream) {
            #expect(Outcome(of: chunks, by: fixture.parser) { _ in true } == whole)
        }
        for count in 1..<max(1, whole.happenings.count) {
            let stopped = Outcome(of: [fixture.stream], by: fixture.parser, stopAfter: count)
            #expect(Outcome(of: [fixture.stream], by: fixture.parser, stopAfter: count) { _ in true } == stopped)
        }
    }

    @Test("comes to the same but for the events that a visitor passes by", arguments: Fixture.all)
    func passedBy(_ fixture: Fixture) {
        let whole = Outcome(of: [fixture.stream], by: fixture.parser)

        for wanted in [{ _ in false }, { $0 % 2 == 0 }] as [(Int) -> Bool] {
            var expected = whole
            var number = 0
            expected.happenings = whole.happenings.filter { happening in
                guard case .event = happening else { return true }
                defer { number += 1 }
                return wanted(number)
            }
            for chunks in Self.cuttings(of: fixture.stream) {
                #expect(Outcome(of: chunks, by: fixture.parser, looking: wanted) == expected)
            }
        }
    }
}
