import Testing

@testable import subscribe

@Suite("JSON as text")
struct JSONLayoutTests {
    @Test("line ends go, and every other byte stays")
    func oneLine() {
        let pretty = "{\r\n  \"big\": 12345678901234567890.10,\n  \"text\": \"a\\nb\"\r}"

        #expect(
            JSONLayout.oneLine(pretty.utf8)
                == Array("{  \"big\": 12345678901234567890.10,  \"text\": \"a\\nb\"}".utf8)
        )
    }

    @Test("laid out for a reader, every token is as it was")
    func pretty() {
        let json = "{\"a\":[1.50,{\"b\":\"x,{}: \\\"\"}],\"c\":{},\"d\":[ ]}"

        #expect(
            String(decoding: JSONLayout.pretty(Array(json.utf8)), as: UTF8.self) == """
                {
                  "a": [
                    1.50,
                    {
                      "b": "x,{}: \\""
                    }
                  ],
                  "c": {},
                  "d": []
                }
                """
        )
    }

    @Test("a string's control characters are escaped, DEL and C1 too")
    func strings() {
        #expect(
            JSONLayout.string("a\"b\\c\n\r\t\u{0}\u{1B}\u{7F}\u{9B}\u{2028}é")
                == #""a\"b\\c\n\r\t\u0000\u001b\u007f\u009b\#u{2028}é""#
        )
    }
}
