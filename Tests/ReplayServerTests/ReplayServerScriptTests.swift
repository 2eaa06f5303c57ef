import Testing

@testable import SubscriptionTesting

@Suite("A replay server's script")
struct ReplayServerScriptTests {
    typealias Step = ReplayServer.Step

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("is cut within a step, between two, and within a repetition without end")
    func cuts() {
        let script: [Step] = [.expectRequest, .send("abc"), .pause(.seconds(1)), .sendForever(bytes("de"))]

        #expect(ReplayServer.cut(script, after: 0, by: .reset) == [.expectRequest, .reset])
        #expect(ReplayServer.cut(script, after: 2, by: .close) == [.expectRequest, .send("ab"), .close])
        #expect(ReplayServer.cut(script, after: 3, by: .close) == [.expectRequest, .send("abc"), .close])
        #expect(
            ReplayServer.cut(script, after: 8, by: .reset)
                == [
                    .expectRequest, .send("abc"), .pause(.seconds(1)), .sendRepeating(bytes("de"), count: 2),
                    .send("d"),
                    .reset,
                ]
        )
    }

    @Test("stays as it is where it sends fewer bytes than the cut asks for")
    func shortScript() {
        let script: [Step] = [.send("abc"), .send(""), .sendRepeating([1], count: 0), .silence]
        #expect(ReplayServer.cut(script, after: 4, by: .reset) == script)
    }

    @Test("is cut into pieces of a size")
    func pieces() {
        #expect(Step.pieces(bytes("abcde"), of: 2) == [.send("ab"), .send("cd"), .send("e")])
        #expect(Step.pieces(bytes("ab"), of: 0) == [.send("a"), .send("b")])
        #expect(Step.pieces([], of: 3) == [])
    }

    @Test("has builders of heads, responses and chunks")
    func builders() {
        #expect(
            ReplayServer.eventStreamHead
                == "HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        #expect(ReplayServer.head(503, [("Retry-After", "7")]) == "HTTP/1.1 503 \r\nRetry-After: 7\r\n\r\n")
        #expect(ReplayServer.response(404, body: "no") == "HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno")
        #expect(ReplayServer.response(204) == "HTTP/1.1 204 \r\n\r\n")
        #expect(ReplayServer.chunk("data: \u{e4}\n\n") == "a\r\ndata: \u{e4}\n\n\r\n")
        #expect(ReplayServer.chunk("") == "0\r\n\r\n")
        #expect(ReplayServer.chunk(bytes("abc")) == bytes("3\r\nabc\r\n"))
        #expect(ReplayServer.chunk([UInt8]()) == bytes("0\r\n\r\n"))
    }
}

@Suite("A replay server's reader of requests")
struct ReplayServerRequestReaderTests {
    private let requests = [
        "GET / HTTP/1.1\r\nA:  b \r\nA: c\r\n\r\n",
        "POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
        "POST /y HTTP/1.0\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n",
        "QUERY /z HTTP/1.1\r\n\r\n",
    ]

    @Test("reads the same requests wherever their bytes are cut")
    func everyCut() throws {
        let all = Array(requests.joined().utf8)
        for size in 1...all.count {
            var reader = ReplayServerRequestReader()
            var read: [ReplayServer.RecordedRequest] = []
            for start in stride(from: 0, to: all.count, by: size) {
                reader.append(all[start..<min(start + size, all.count)])
                while let request = try reader.next(connection: 1, now: .now) { read.append(request) }
            }
            #expect(read.map(\.target) == ["/", "/x", "/y", "/z"])
            #expect(read.map(\.body) == [[], Array("\r\n\r\n".utf8), Array("\r\n".utf8), []])
            #expect(read[0].all("a") == ["b", "c"])
            #expect(!reader.hasBegun)
        }
    }

    @Test(
        "refuses what is no request",
        arguments: [
            "GET /\r\n\r\n", "GET / / HTTP/1.1\r\n\r\n", "GET / FTP/1\r\n\r\n", "GET / HTTP/1.1\r\nA\r\n\r\n",
            "GET / HTTP/1.1\r\n: b\r\n\r\n", "GET / HTTP/1.1\r\nA : b\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFF\r\n",
        ]
    )
    func nonsense(text: String) {
        var reader = ReplayServerRequestReader()
        reader.append(Array(text.utf8)[...])
        #expect(throws: ReplayServerRequestReader.Problem.self) { try reader.next(connection: 1, now: .now) }
    }
}

@Suite("A replay server's reader of long requests")
struct ReplayServerLongRequestTests {
    @Test("refuses a head of over 1 MiB")
    func longHead() throws {
        var reader = ReplayServerRequestReader()
        reader.append(Array("GET / HTTP/1.1\r\nA: ".utf8)[...])
        #expect(try reader.next(connection: 1, now: .now) == nil)
        reader.append([UInt8](repeating: 0x78, count: 1 << 20)[...])
        #expect(throws: ReplayServerRequestReader.Problem.self) { try reader.next(connection: 1, now: .now) }
    }
}

@Suite("A replay server's journal")
struct ReplayServerJournalTests {
    private func request(_ bytes: Int) -> ReplayServer.RecordedRequest {
        ReplayServer.RecordedRequest(
            connection: 1,
            instant: .now,
            head: [],
            method: "POST",
            target: "/",
            fields: [],
            body: [UInt8](repeating: 0, count: bytes)
        )
    }

    @Test("is bounded: the oldest records go first, and the counts stay right")
    func bounds() {
        var journal = ReplayServer.Journal()
        for _ in 0..<10_001 { _ = journal.accepted(at: .now) }
        #expect(journal.connections == 10_001)
        #expect(journal.records.count == 5_001)
        #expect(journal[connection: 1] == nil)
        #expect(journal[connection: 10_001]?.number == 10_001)
        journal.sent(5, on: 1)
        journal.sent(7, on: 10_001)
        #expect(journal.bytesSent == 12)
        #expect(journal[connection: 10_001]?.bytesSent == 7)
    }

    @Test("keeps 64 MiB of requests, and the last one whatever its length")
    func requestBounds() {
        var journal = ReplayServer.Journal()
        for _ in 0..<5 { journal.received(request(16 << 20)) }
        #expect(journal.requestCount == 5)
        #expect(journal.requests.count == 4)
        journal.received(request(65 << 20))
        #expect(journal.requests.count == 1)
    }
}
