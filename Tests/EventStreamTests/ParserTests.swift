import Testing

@testable import CurlSSETransport

@Suite("The event stream parser", .longComputation)
struct ParserTests {
    @Test("a CR that ends a chunk ends its line at once: the event does not wait for the next byte")
    func loneReturnDispatches() throws {
        var parser = EventStreamParser()

        let first = try parser.parse(Array("data: x\r\r".utf8))
        let second = try parser.parse(Array("\ndata: y\r".utf8))
        let third = try parser.parse(Array("\r".utf8))

        #expect(first.map(\.data.text) == ["x"])
        #expect(second.isEmpty)
        #expect(third.map(\.data.text) == ["y"])
    }

    @Test("an event is reported with the chunk that ends it, and its buffer is its own when it was cut")
    func eventOfCutChunks() throws {
        var parser = EventStreamParser()

        #expect(try parser.parse(Array("data: ab".utf8)).isEmpty)
        #expect(try parser.parse(Array("cd\n".utf8)).isEmpty)
        #expect(try parser.parse(Array("\n".utf8)).map(\.data.text) == ["abcd"])
    }

    @Test("things are reported in the order of the stream")
    func order() {
        let stream = Array(": a\nretry: 1\nid: 1\n\n: b\nevent: e\nid: 2\n: c\n\ndata: x\nretry: 2\n: d\n\n".utf8)
        let expected: [Happening] = [
            .comment(EventData(" a")), .retry(.milliseconds(1)), .idMoved("1"),
            .comment(EventData(" b")), .comment(EventData(" c")), .idMoved("2"), .blockWithoutData("e"),
            .retry(.milliseconds(2)), .comment(EventData(" d")),
            .event(ServerSentEvent(data: EventData("x"), lastEventID: "2")),
        ]

        let parser = EventStreamParser(keepsComments: true)

        #expect(Outcome(of: [stream], by: parser).happenings == expected)
        #expect(Outcome(of: stream.chunks(of: 1), by: parser).happenings == expected)
    }

    @Test("what is reported before an error comes before the error is thrown")
    func reportsBeforeError() {
        var parser = EventStreamParser(maxEventBytes: 4)
        var recorder = Recorder()
        let stream = Array("id: 7\ndata: a\n\ndata: 12345\n\ndata: b\n\n".utf8)

        #expect(throws: EventStreamError(part: .data, limit: 4)) {
            try parser.parse(stream.span.bytes, to: &recorder)
        }

        #expect(recorder.happenings == [.event(ServerSentEvent(data: EventData("a"), lastEventID: "7"))])
        #expect(parser.lastEventID == "7")
    }

    @Test("after an error the parser ignores everything")
    func spentAfterError() throws {
        var parser = EventStreamParser(maxEventBytes: 4)

        #expect(throws: EventStreamError.self) { try parser.parse(Array("event: 12345".utf8)) }

        #expect(try parser.parse(Array("\n\ndata: a\n\nid: 4\n\n".utf8)).isEmpty)
        #expect(parser.lastEventID.isEmpty)
        let losesHalf = parser.finish()
        #expect(!losesHalf)
    }

    @Test("after its end the parser ignores everything")
    func spentAfterFinish() throws {
        var parser = EventStreamParser()
        #expect(try parser.parse(Array("data: a\n".utf8)).isEmpty)

        let first = parser.finish()
        let afterwards = try parser.parse(Array("\n".utf8))
        let second = parser.finish()

        #expect(first)
        #expect(afterwards.isEmpty)
        #expect(!second)
    }

    @Test("an error names the part, the limit's name and its value")
    func errorSaysItsLimit() {
        let errors = ["data: 12345", "event: 12345", "id: 12345", ":12345"].map { text in
            Outcome(of: [Array(text.utf8)], by: EventStreamParser(maxEventBytes: 4, keepsComments: true)).error
        }

        #expect(
            errors.map { $0.map { "\($0)" } } == [
                "event data over the limit: maxEventBytes is 4",
                "event field over the limit: maxEventBytes is 4",
                "id field over the limit: maxEventBytes is 4",
                "comment over the limit: maxEventBytes is 4",
            ]
        )
    }

    @Test("a stopped parser is where its last report was: the ID and the retry after it do not count")
    func stoppedPosition() {
        let stream = Array("id: 1\nretry: 1\ndata: a\n\nid: 2\nretry: 2\ndata: b\n\n".utf8)

        let stopped = Outcome(of: [stream], by: EventStreamParser(), stopAfter: 2)

        #expect(stopped.lastEventID == "1")
        #expect(stopped.retry == .milliseconds(1))
    }

    @Test("small events share a buffer, large ones have their own, and what holds over twice its bytes is copied")
    func buffers() throws {
        var parser = EventStreamParser()
        let large = String(repeating: "x", count: 5000)

        let events = try parser.parse(Array("data: ab\n\ndata: \(large)\n\ndata: cd\ndata: e\n\n".utf8))

        #expect(events.map(\.data.text) == ["ab", large, "cd\ne"])
        // The first lies in a copy of the chunk, the last in a buffer of its own lines' size.
        #expect(events.map { $0.data.bytes.startIndex } == [6, 0, 0])
        #expect(events.map { $0.data.block.bytes.count } == [5036, 5000, 4])
        #expect(events.map { $0.data.detached().block.bytes.count } == [2, 5000, 4])
        #expect(events.map { $0.detached().data.block.bytes.count } == [2, 5000, 4])
        #expect(events.map { $0.detached() } == events)
    }

    @Test("data that is looked at alone holds no more than twice its bytes, the names of its neighbours among them")
    func detachedData() throws {
        let large = String(repeating: "x", count: 5000)
        let id = String(repeating: "i", count: 5000)
        var parser = EventStreamParser()
        let numbered = (0..<100).map { "id: \(id)\($0)\ndata: y\n\n" }.joined()

        let events = try parser.parse(Array("data: \(large)\n\n\(numbered)data: \(large)\n\n".utf8))

        for data in [events[0].data, events[101].data] {
            #expect(data.text == large)
            let block = data.detached().block
            #expect(block.bytes.count == 5000)
            #expect(block.others.isEmpty)
            #expect(block.first.lastEventID.isEmpty)
        }
    }

    @Test(
        "a block that is told by its beginning is read to the chunk's end like any other",
        arguments: [
            Array(repeating: "event\ndata: a\n\n", count: 1093).joined(), "event\ndata: a\n\nevent\ndata: \n\r",
            "event\rdata: a\r\revent\rdata: b\r\r", "data: a\n\ndata: \n\r", "data: a\n\ndata: \r\r",
            "event:x\ndata: a\n\nevent:x\ndata: \n\n",
        ]
    )
    func lastOfMany(stream: String) {
        let bytes = Array(stream.utf8)
        let one = Outcome(of: bytes.map { [$0] }, by: EventStreamParser())
        #expect(one.happenings.count >= 2)
        for cut in Set([0, bytes.count / 2, bytes.count - 1] + (max(0, bytes.count - 40)..<bytes.count)) {
            let whole = Outcome(of: [Array(bytes[..<cut]), Array(bytes[cut...])], by: EventStreamParser())
            #expect(whole.happenings == one.happenings)
        }
    }

    @Test("a limit below zero is zero")
    func limitIsClamped() {
        #expect(EventStreamParser(maxEventBytes: -1).maxEventBytes == 0)
    }

    @Test("blocks that begin alike, nearly alike and not at all come to the same together and each by itself")
    func beginnings() throws {
        let beginnings = [
            "data:", "data: ", "data:  ", "event: a\ndata: ", "event: a\ndata:", "event: b\ndata: ", "event:a\ndata: ",
            "event: ab\ndata: ", "event: a \ndata: ", "event\ndata: ", "event: a\ndatb: ", "event: a\n data: ",
            "event: a\rdata: ", "Event: a\ndata: ", "id: 1\nevent: a\ndata: ",
        ]
        for first in beginnings {
            for second in beginnings {
                let blocks = ["x", "", " y", "a longer one of more than sixteen bytes"].flatMap { data in
                    ["\(first)\(data)\n\n", "\(second)\(data)\n\n", "\(second)\(data)\n\n"]
                }
                var together = EventStreamParser()
                var apart = EventStreamParser()

                let events = try together.parse(Array(blocks.joined().utf8))

                #expect(try events == blocks.flatMap { try apart.parse(Array($0.utf8)) })
                var bytes = EventStreamParser()
                #expect(try events == blocks.joined().utf8.flatMap { try bytes.parse([$0]) })
            }
        }
    }

    @Test("empty chunks change nothing")
    func emptyChunks() {
        let stream = Array("\u{FEFF}id: 1\r\ndata: a\r\n\r\n".utf8)
        let cut = stream.chunks(of: 1).flatMap { chunk in [ArraySlice([]), chunk, ArraySlice([])] }

        #expect(Outcome(of: cut, by: EventStreamParser()) == Outcome(of: [stream], by: EventStreamParser()))
    }

    @Test("random streams of fields and line ends come to the same in random cuttings")
    func randomStreams() {
        let seed = Seeded.ofTheRun
        var generator = Seeded(seed: seed)
        let pieces = [
            "\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", "data", "data:", "data: ", "data: x", "event: e", "event",
            "id: 1", "id: 2\0", "id", "retry: 10", "retry: 1x", ": c", ":", "foo: bar", "\u{FEFF}", " ", "x", "\0",
            "da", "ev", "\u{1F600}", "data: 0123456789abcdef",
        ].map { Array($0.utf8) }

        for round in 0..<2000 {
            let count = Int.random(in: 0...24, using: &generator)
            let stream = (0..<count).flatMap { _ in pieces.randomElement(using: &generator) ?? [] }
            let parser = EventStreamParser(maxEventBytes: round % 4 == 0 ? 12 : 1 << 20, keepsComments: round % 2 == 0)
            let whole = Outcome(of: [stream], by: parser)
            let bytes = Outcome(of: stream.chunks(of: 1), by: parser)
            let cuts = (0..<4).map { _ in Int.random(in: 0...stream.count, using: &generator) }.sorted()
            let cut = Outcome(of: stream.cut(at: cuts), by: parser)
            let looking = Outcome(of: stream.cut(at: cuts), by: parser) { _ in true }
            #expect(bytes == whole, "SEED=\(seed) round \(round): \(String(decoding: stream, as: UTF8.self))")
            #expect(looking == whole, "SEED=\(seed) round \(round) at \(cuts), looking")
            #expect(cut == whole, "SEED=\(seed) round \(round) at \(cuts): \(String(decoding: stream, as: UTF8.self))")
        }
    }

    @Test("a thousand blocks of several kinds in one chunk come to the same as in bytes, stopped anywhere too")
    func manyBlocksInOneChunk() {
        let block = ": c\nretry: 1\n\nid: 1\n\nevent: e\n\n\nid: 2\nevent: f\ndata: x\ndata: y\n\ndata: z\n\n"
        let stream = Array(String(repeating: block, count: 200).utf8)
        let parser = EventStreamParser(keepsComments: true)
        let bytes = Outcome(of: stream.chunks(of: 1), by: parser)

        #expect(bytes.happenings.count == 200 * 6)
        #expect(Outcome(of: [stream], by: parser) == bytes)
        for count in [1, 127, 128, 129, 130, 255, 256, 257, 1000] {
            let stopped = Outcome(of: [stream], by: parser, stopAfter: count)
            #expect(stopped.happenings == Array(bytes.happenings.prefix(count)))
        }
    }

    @Test("events keep their order over ten thousand in chunks of 1 to 40 bytes")
    func tenThousandInOrder() {
        let seed = Seeded.ofTheRun
        var generator = Seeded(seed: seed)
        let stream = (0..<10_000).flatMap { Array("data: \($0)\n\n".utf8) }
        var cuts: [Int] = []
        var offset = Int.random(in: 1...40, using: &generator)
        while offset < stream.count {
            cuts.append(offset)
            offset += Int.random(in: 1...40, using: &generator)
        }

        let outcome = Outcome(of: stream.cut(at: cuts), by: EventStreamParser())
        let whole = Outcome(of: [stream], by: EventStreamParser())

        #expect(outcome.events.map(\.data.text) == (0..<10_000).map { "\($0)" }, "SEED=\(seed)")
        #expect(outcome == whole)
    }
}
