import Testing

@testable import CurlSSETransport

@Suite("An origin")
struct OriginTests {
    @Test("has a scheme and a host in lower case, and compares by all three parts")
    func equality() {
        let origin = Origin(scheme: "HTTPS", host: "Example.COM", port: 443)

        #expect(origin == Origin(scheme: "https", host: "example.com", port: 443))
        #expect(origin != Origin(scheme: "http", host: "example.com", port: 443))
        #expect(origin != Origin(scheme: "https", host: "www.example.com", port: 443))
        #expect(origin != Origin(scheme: "https", host: "example.com", port: 444))
    }

    @Test("lowers ASCII alone: a Kelvin sign is no k")
    func unicodeLetters() {
        #expect(
            Origin(scheme: "https", host: "\u{212A}.example", port: 443)
                != Origin(scheme: "https", host: "k.example", port: 443)
        )
    }

    @Test(
        "is written scheme://host:port, an IPv6 address in brackets",
        arguments: [
            ("HTTP", "Example.com", 80, "http://example.com:80"),
            ("https", "127.0.0.1", 8443, "https://127.0.0.1:8443"),
            ("https", "[2001:DB8::1]", 443, "https://[2001:db8::1]:443"),
            ("https", "2001:db8::1", 443, "https://[2001:db8::1]:443"),
        ]
    )
    func description(scheme: String, host: String, port: Int, expected: String) {
        #expect(Origin(scheme: scheme, host: host, port: port).description == expected)
    }
}
