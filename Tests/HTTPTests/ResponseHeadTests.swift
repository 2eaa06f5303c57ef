import Testing

@testable import CurlSSETransport

@Suite("The head of a response")
struct ResponseHeadTests {
    /// Feeds lines, each with a CRLF, and returns the heads that came.
    private func heads(_ lines: [String], end: String = "\r\n") throws -> [ResponseHead] {
        var parser = ResponseHeadParser()
        return try lines.compactMap { try parser.push(line: Array(($0 + end).utf8)) }
    }

    /// Feeds lines up to the failure, which must come at the last of them.
    private func failure(_ lines: [[UInt8]]) throws -> TransportError {
        var parser = ResponseHeadParser()
        for line in lines.dropLast() { _ = try parser.push(line: line) }
        let error = try #require(throws: TransportError.self) {
            try parser.push(line: lines.last ?? [])
        }
        #expect(try parser.push(line: Array("\r\n".utf8)) == nil, "a spent parser says nothing more")
        return error
    }

    private func failure(_ lines: String...) throws -> TransportError {
        try failure(lines.map { Array(($0 + "\r\n").utf8) })
    }

    @Test("comes at its blank line, with version, status and fields")
    func oneHead() throws {
        let heads = try heads(["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "X:", ""])
        #expect(
            heads == [
                ResponseHead(
                    version: "1.1",
                    status: 200,
                    fields: [HTTPField("Content-Type", "text/event-stream"), HTTPField("X", "")]
                )
            ]
        )
    }

    @Test(
        "has a status line with a reason or without, of any version",
        arguments: [
            ("HTTP/1.1 200 OK", "1.1", 200), ("HTTP/1.0 404 Not Found", "1.0", 404), ("HTTP/2 200 ", "2", 200),
            ("HTTP/2 200", "2", 200), ("HTTP/2.0 503", "2", 503), ("HTTP/3 204", "3", 204),
            ("HTTP/1.1 999", "1.1", 999),
            ("HTTP/1.1 200 gr\u{fc}n  und so", "1.1", 200),
        ]
    )
    func statusLines(line: String, version: String, status: Int) throws {
        let head = try #require(try heads([line, ""]).first)
        #expect(head.version == version)
        #expect(head.status == status)
    }

    @Test("ends its lines with CRLF, with LF or with nothing", arguments: ["\r\n", "\n", ""])
    func lineEnds(end: String) throws {
        let head = try #require(try heads(["HTTP/1.1 200 OK", "A: b", ""], end: end).first)
        #expect(head.fields == [HTTPField("A", "b")])
    }

    @Test("a name is looked up without case, and a field may come twice")
    func lookup() throws {
        let head = try #require(try heads(["HTTP/1.1 200 OK", "A: 1", "B: 2", "a: 3", ""]).first)
        #expect(head.last("A") == "3")
        #expect(head.all("a") == ["1", "3"])
        #expect(head.last("C") == nil)
        #expect(head.all("C") == [])
    }

    @Test(
        "a value is without the blanks around it",
        arguments: [("A:b", "b"), ("A:  b c \t", "b c"), ("A: \t", ""), ("A::", ":")]
    )
    func blanks(line: String, value: String) throws {
        #expect(try heads(["HTTP/1.1 200 OK", line, ""]).first?.last("A") == value)
    }

    @Test("1xx heads are skipped, with their fields")
    func interim() throws {
        let heads = try heads([
            "HTTP/1.1 100 Continue", "", "HTTP/1.1 103 Early Hints", "Link: x", "", "HTTP/1.1 200 OK", "A: b", "",
        ])
        #expect(heads == [ResponseHead(version: "1.1", status: 200, fields: [HTTPField("A", "b")])])
    }

    @Test("trailers after the final head are ignored")
    func trailers() throws {
        let heads = try heads(["HTTP/1.1 200 OK", "", "Content-Type: text/html", "junk", ""])
        #expect(heads == [ResponseHead(version: "1.1", status: 200, fields: [])])
    }

    @Test("a second response inside one transfer is a network failure, not a trailer")
    func secondResponse() throws {
        let error = try failure("HTTP/2 200", "", "HTTP/1.1 200 OK")
        #expect(error.kind == .network)
        #expect(error.message.contains("anew"))
    }

    @Test("a folded line goes on with the value before it, after one space")
    func folding() throws {
        let head = try #require(try heads(["HTTP/1.1 200 OK", "A: b", "\t  c ", " ", " d", "E:", " f", ""]).first)
        #expect(head.fields == [HTTPField("A", "b c d"), HTTPField("E", "f")])
    }

    @Test(
        "a status line that cannot be read is a network failure",
        arguments: [
            "", "junk", "ICY 200 OK", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 2x0", "HTTP/1.1  200",
            "HTTP/1.1 099 X", "HTTP/x 200", "HTTP/1.1.1 200", "HTTP/ 200", "http/1.1 200", "HTTP/1.1 -20",
            "HTTP/11 200",
        ]
    )
    func badStatusLines(line: String) throws {
        #expect(try failure(line).kind == .network)
    }

    @Test(
        "a line that is no field is a network failure that does not repeat it",
        arguments: ["hunter2", ": hunter2", "A : hunter2", "A B: hunter2", "A\u{e4}: hunter2", " hunter2"]
    )
    func badFields(line: String) throws {
        let error = try failure("HTTP/1.1 200 OK", line)
        #expect(error.kind == .network)
        #expect(error.status == 200)
        #expect(error.httpVersion == "1.1")
        #expect(!error.message.contains("hunter2"))
    }

    @Test("NUL and a CR inside a value are a network failure", arguments: ["A: b\0c", "A: b\rc", "A: b\r\r", "\0"])
    func controlBytes(line: String) throws {
        #expect(try failure("HTTP/1.1 200 OK", line).kind == .network)
    }

    @Test("bytes that are not UTF-8 become U+FFFD in a value")
    func latin1() throws {
        var parser = ResponseHeadParser()
        _ = try parser.push(line: Array("HTTP/1.1 200 OK\r\n".utf8))
        _ = try parser.push(line: Array("A: ".utf8) + [0xFC] + Array("\r\n".utf8))
        #expect(try parser.push(line: Array("\r\n".utf8))?.last("A") == "\u{FFFD}")
    }

    @Test("M2: 256 fields are taken, and one more is a network failure that names the limit")
    func manyFields() throws {
        let lines = ["HTTP/1.1 200 OK"] + (0..<256).map { "X-\($0): y" }
        #expect(try heads(lines + [""]).first?.fields.count == 256)

        let error = try failure((lines + ["one-more: z"]).map { Array(($0 + "\r\n").utf8) })
        #expect(error.kind == .network)
        #expect(error.message.contains("256"))
    }

    @Test("M2: 64 KiB are taken, and one byte more is a network failure that names the limit")
    func longHead() throws {
        let status = "HTTP/1.1 200 OK\r\n"
        let rest = 65_536 - status.utf8.count - "A: \r\n".utf8.count - "\r\n".utf8.count
        let value = String(repeating: "x", count: rest)
        #expect(try heads(["HTTP/1.1 200 OK", "A: " + value, ""]).first?.last("A") == value)

        let error = try failure("HTTP/1.1 200 OK", "A: " + value + "x", "")
        #expect(error.kind == .network)
        #expect(error.message.contains("65536"))
        #expect(try failure(String(repeating: "x", count: 70_000)).kind == .network)
        let folds =
            [Array("HTTP/1.1 200 OK\r\n".utf8), Array("A: b\r\n".utf8)]
            + Array(repeating: Array(" x\r\n".utf8), count: (65_536 - 17 - 6) / 4 + 1)
        #expect(try failure(folds).kind == .network)
    }

    @Test("each head has the bounds for itself: interim responses do not add up")
    func interimBounds() throws {
        let interim = ["HTTP/1.1 103 Early Hints", "Link: " + String(repeating: "x", count: 60_000), ""]
        #expect(try heads(interim + interim + ["HTTP/1.1 200 OK", ""]).count == 1)
    }
}
