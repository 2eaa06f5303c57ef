import Testing

@testable import subscribe

@Suite("JSON as text")
struct JSONTextTests {
    @Test(
        "JSON is told from what is none",
        arguments: [
            ("{}", true), (" [ ] ", true), ("{\"a\":[1,-0.5e+3,true,false,null,\"\\u00e9\\n\"]}", true), ("0", true),
            ("\"x\"", true), ("12345678901234567890.000000000000000001", true), ("{\"a\":1,}", false), ("[1,]", false),
            ("01", false), ("-", false), ("1.", false), (".5", false), ("1e", false), ("nul", false), ("", false),
            ("{} {}", false), ("{\"a\" 1}", false), ("\"a\nb\"", false), ("\"\\x\"", false), ("\"\\u12g4\"", false),
            ("[1", false), ("{a:1}", false),
        ]
    )
    func validity(_ text: String, _ isValid: Bool) {
        #expect(JSONText.isValid(Array(text.utf8)) == isValid)
    }

    @Test("what is no UTF-8 is no JSON")
    func invalidUTF8() {
        #expect(!JSONText.isValid([0x22, 0xFF, 0x22]))
    }

    @Test("nesting is bounded: what is deeper is no JSON, and nothing crashes")
    func nesting() {
        let deepest = JSONText.deepest

        #expect(JSONText.isValid(Array(repeating: 0x5B, count: deepest) + Array(repeating: 0x5D, count: deepest)))
        #expect(!JSONText.isValid(Array(repeating: 0x5B, count: 1_000_000)))
    }

    @Test("line ends go, and every other byte stays")
    func oneLine() {
        let pretty = "{\r\n  \"big\": 12345678901234567890.10,\n  \"text\": \"a\\nb\"\r}"

        #expect(
            JSONText.oneLine(pretty.utf8)
                == Array("{  \"big\": 12345678901234567890.10,  \"text\": \"a\\nb\"}".utf8)
        )
    }

    @Test("laid out for a reader, every token is as it was")
    func pretty() {
        let json = "{\"a\":[1.50,{\"b\":\"x,{}: \\\"\"}],\"c\":{},\"d\":[ ]}"

        #expect(
            String(decoding: JSONText.pretty(Array(json.utf8)), as: UTF8.self) == """
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
            JSONText.string("a\"b\\c\n\r\t\u{0}\u{1B}\u{7F}\u{9B}\u{2028}é")
                == #""a\"b\\c\n\r\t\u0000\u001b\u007f\u009b\#u{2028}é""#
        )
    }
}
