import Testing

@testable import CurlSSETransport

@Suite("URLs, by libcurl's own parser")
struct CurlURLTests {
    @Test(
        "an origin is scheme, host and port, the port by the scheme where none is given",
        arguments: [
            ("http://example.com/a", "http://example.com:80"),
            ("HTTPS://Example.COM", "https://example.com:443"),
            ("https://user:secret@h:8443/x?y", "https://h:8443"),
            ("http://[::1]:99/", "http://[::1]:99"),
        ]
    )
    func origins(_ url: String, _ origin: String) throws {
        let parsed = try CurlURL.parse(url)
        #expect(parsed.origin.description == origin)
    }

    @Test(
        "a URL without a scheme, of another scheme, or that is none is refused",
        arguments: [
            "example.com/a", "ftp://h/", "file:///etc/passwd", "", "http://", "http://h:99999/", "http://h\0.x/",
        ]
    )
    func refused(_ url: String) {
        #expect(throws: CurlURLError.self) { _ = try CurlURL.parse(url) }
    }

    @Test(
        "a target is appended: a path to the path, a query to the query",
        arguments: [
            ("http://h/a", "/b", "http://h/a/b"),
            ("http://h/a/", "/b?c=1", "http://h/a/b?c=1"),
            ("http://h", "/b", "http://h/b"),
            ("http://h/a?x=1", "?y=2", "http://h/a?x=1&y=2"),
            ("http://h/a?x=1", "/b?y=2", "http://h/a/b?x=1&y=2"),
            ("http://h/a", "", "http://h/a"),
        ]
    )
    func targets(_ url: String, _ target: String, _ expected: String) throws {
        let parsed = try CurlURL.parse(url).appending(target)
        #expect(parsed.text == expected)
    }

    @Test(
        "a target that would change more than path and query is refused",
        arguments: ["b", "/a b", "/a#b", "/a\r\nX: 1"]
    )
    func refusedTargets(_ target: String) {
        #expect(throws: CurlURLError.self) { _ = try CurlURL.parse("http://h/").appending(target) }
    }

    @Test(
        "a Location is resolved against the URL that was asked",
        arguments: [
            ("/b", "https://h/b"), ("b", "https://h/x/b"), ("?q", "https://h/x/a?q"), ("//other/z", "https://other/z"),
            ("http://h/y", "http://h/y"), ("https://h:444/y#frag", "https://h:444/y"),
        ]
    )
    func locations(_ location: String, _ expected: String) throws {
        let base = try CurlURL.parse("https://h/x/a")
        let resolved = try base.resolving(location)
        #expect(resolved.text == expected)
    }

    @Test("userinfo goes on to the same origin and to no other, and a Location brings none of its own")
    func userinfo() throws {
        let base = try CurlURL.parse("https://u:p@h/a")
        let relative = try base.resolving("/b").text
        #expect(relative == "https://u:p@h/b")
        let absolute = try base.resolving("https://h/c").text
        #expect(absolute == "https://u:p@h/c")
        let foreign = try base.resolving("https://other/c").text
        #expect(foreign == "https://other/c")
        #expect(throws: CurlURLError.self) { _ = try base.resolving("https://x:y@h/") }
    }
}
