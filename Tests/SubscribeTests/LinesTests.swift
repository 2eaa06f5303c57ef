import Foundation
import Testing

@testable import subscribe

@Suite("The lines of the tool")
struct LinesTests {
    private func json(_ happening: Happening) -> String {
        String(decoding: JSONLine.make(happening), as: UTF8.self)
    }

    private func plain(_ happening: Happening, isTerminal: Bool) -> String? {
        PlainLine.make(happening, isTerminal: isTerminal).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "everything that happens is a JSON object on a line",
        arguments: [
            (.state(.idle), #"{"kind":"state","state":"idle"}"#),
            (.state(.connecting), #"{"kind":"state","state":"connecting"}"#),
            (.state(.open), #"{"kind":"state","state":"open"}"#),
            (.state(.ended), #"{"kind":"state","state":"ended"}"#),
            (
                .state(.waiting(until: 1_796_024_488.25, seconds: 0.75)),
                #"{"kind":"state","state":"waiting","until":"2026-11-30T07:41:28.250Z","seconds":0.750}"#
            ),
            (
                .problem(Problem(kind: .network, message: "no \"route\"", status: 503, isFatal: false)),
                #"{"kind":"error","class":"network","message":"no \"route\"","status":503,"fatal":false}"#
            ),
            (
                .problem(Problem(kind: .environment, message: "no CA", isFatal: true)),
                #"{"kind":"error","class":"environment","message":"no CA","fatal":true}"#
            ),
            (.resumed(2), #"{"kind":"resumed","resumptions":2}"#),
            (
                .event(type: "message", data: Array("a\nb".utf8), id: "7"),
                #"{"kind":"event","type":"message","data":"a\nb","id":"7"}"#
            ),
            (.comment(" ping"), #"{"kind":"comment","comment":" ping"}"#),
            (.complete, #"{"kind":"complete"}"#),
            (.payload(Array("{\n \"n\": 1.10\r\n}".utf8)), #"{"kind":"payload","payload":{ "n": 1.10}}"#),
            (.payload(Array("no {json".utf8)), #"{"kind":"payload","payload":"no {json"}"#),
        ] as [(Happening, String)]
    )
    func jsonLines(_ happening: Happening, _ line: String) throws {
        #expect(json(happening) == line + "\n")

        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(line.utf8)) }
    }

    @Test("data that is no UTF-8 is a line of valid JSON all the same")
    func invalidUTF8() {
        let line = JSONLine.make(.event(type: "message", data: [0x61, 0xFF], id: ""))

        #expect(line == Array("{\"kind\":\"event\",\"type\":\"message\",\"data\":\"a\u{FFFD}\",\"id\":\"\"}\n".utf8))
    }

    @Test("a payload's numbers keep every digit")
    func digits() {
        #expect(
            json(.payload(Array("{\"id\":9007199254740993,\"p\":0.10}".utf8))).contains("9007199254740993,\"p\":0.10")
        )
    }

    @Test("without --json, standard output gets payloads alone")
    func payloadsAlone() {
        #expect(plain(.payload(Array("{\n\"a\":1}".utf8)), isTerminal: false) == "{\"a\":1}\n")
        #expect(plain(.event(type: "x", data: Array("a\u{1B}[2J".utf8), id: ""), isTerminal: false) == "a\u{1B}[2J\n")
        #expect(plain(.state(.open), isTerminal: false) == nil)
        #expect(plain(.problem(Problem(kind: .network, message: "", isFatal: false)), isTerminal: false) == nil)
    }

    @Test("on a terminal JSON is laid out, and a server cannot write control characters")
    func onATerminal() {
        #expect(plain(.payload(Array("{\"a\":1}".utf8)), isTerminal: true) == "{\n  \"a\": 1\n}\n")
        #expect(
            plain(.event(type: "x", data: Array("a\u{1B}[2J\r\u{9B}1m\tb".utf8), id: ""), isTerminal: true)
                == "a\u{FFFD}[2J\u{FFFD}\u{FFFD}1m\tb\n"
        )
    }

    @Test(
        "instants are ISO 8601 in UTC, to the millisecond",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_827_696.5, "2000-02-29T12:34:56.500Z"),
            (1_735_689_599.999, "2024-12-31T23:59:59.999Z"), (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ]
    )
    func instants(_ seconds: Double, _ text: String) {
        #expect(Instant.iso8601(seconds) == text)
    }

    @Test("the live line says what the stream does, and is cut to the terminal")
    func theLiveLine() {
        func line(_ state: Happening.State?, width: Int = 80, isColoured: Bool = false) -> String {
            LiveLine.make(
                state: state,
                counts: Counts(payloads: 12, bytes: 3 * 1024),
                rate: 2.5,
                now: 100,
                width: width,
                colours: Colours(isOn: isColoured)
            )
        }

        #expect(line(.open) == "open | 12 payloads, 3.0 KiB | 2.5/s")
        #expect(line(.waiting(until: 107.25, seconds: 8)) == "waiting, again in 7.3 s | 12 payloads, 3.0 KiB | 2.5/s")
        #expect(line(.waiting(until: 99, seconds: 8)).hasPrefix("waiting, again in 0.0 s"))
        #expect(line(.open, width: 12) == "open | 12 p")
        #expect(line(.open, width: 1) == "o")
        #expect(line(.open, isColoured: true).hasPrefix("\u{1B}[32mopen\u{1B}[0m |"))
    }
}

@Suite("What is written where")
struct ScreenTests {
    private func screen(_ change: (inout Screen.Setting) -> Void = { _ in }) -> Screen {
        var setting = Screen.Setting()
        change(&setting)
        return Screen(setting)
    }

    private let event = Happening.event(type: "message", data: Array("x".utf8), id: "")
    private let failure = Happening.problem(Problem(kind: .network, message: "down", isFatal: false))

    private func text(_ chunks: [Chunk]) -> [String] {
        chunks.map { chunk in
            switch chunk {
            case .output(let bytes): "out: " + String(decoding: bytes, as: UTF8.self)
            case .status(let bytes): "err: " + String(decoding: bytes, as: UTF8.self)
            }
        }
    }

    @Test("in a pipe, each change of the state is a line on standard error, without colour")
    func inAPipe() {
        var screen = screen()

        let chunks = [
            .state(.open), event, failure, .state(.waiting(until: 9, seconds: 1.5)), .resumed(1), .state(.ended),
        ]
        .flatMap { screen.show($0) }

        #expect(
            text(chunks) == [
                "err: open\n", "out: x\n", "err: failed (network): down\n", "err: waiting 1.5 s\n",
                "err: resumed (1): what came in between was missed\n", "err: ended (1 payload, 1 B)\n",
            ]
        )
        #expect(screen.tick(now: 1, width: 80).isEmpty)
    }

    @Test("with --json everything is on standard output, and nothing on standard error")
    func json() {
        var screen = screen {
            $0.output.json = true; $0.statusIsTerminal = true
        }

        let chunks = [.state(.open), event, failure].flatMap { screen.show($0) } + screen.tick(now: 1, width: 80)

        #expect(chunks.count == 3)
        #expect(text(chunks).allSatisfy { $0.hasPrefix("out: {") })
    }

    @Test("--quiet leaves payloads alone")
    func quiet() {
        var screen = screen {
            $0.output.quiet = true; $0.statusIsTerminal = true
        }

        let chunks = [.state(.open), event, failure, .state(.ended)].flatMap { screen.show($0) }

        #expect(text(chunks + screen.tick(now: 1, width: 80)) == ["out: x\n"])
    }

    @Test("on a terminal the state is one live line, which gives way to what stays")
    func live() {
        var screen = screen {
            $0.outputIsTerminal = true; $0.statusIsTerminal = true; $0.noColour = true
        }

        var chunks = screen.show(.state(.open)) + screen.tick(now: 1, width: 80)
        chunks += screen.show(event) + screen.show(failure) + screen.tick(now: 1.5, width: 80) + screen.end()

        let erase = "err: \r\u{1B}[K"
        #expect(
            text(chunks) == [
                erase + "open | 0 payloads, 0 B | 0.0/s", erase, "out: x\n", "err: failed (network): down\n",
                erase + "open | 1 payload, 1 B | 2.0/s", erase,
            ]
        )
    }

    @Test("colour is for terminals, and not where NO_COLOR stands")
    func colour() {
        var coloured = screen { $0.statusIsTerminal = true }
        var plain = screen {
            $0.statusIsTerminal = true; $0.noColour = true
        }

        #expect(text(coloured.show(failure)) == ["err: \u{1B}[33mfailed\u{1B}[0m (network): down\n"])
        #expect(text(plain.show(failure)) == ["err: failed (network): down\n"])
    }

    @Test("comments are shown when asked for")
    func comments() {
        var silent = screen()
        var telling = screen { $0.comments = true }

        #expect(silent.show(.comment(" hi")).isEmpty)
        #expect(text(telling.show(.comment(" hi"))) == ["out: : hi\n"])
    }
}
