import Foundation
import SubscriptionTesting
import Testing

/// What a server can make the tool hold.
@Suite("The tool's memory", .timeLimit(.minutes(2)))
struct ToolMemoryTests {
    /// Whether ThreadSanitizer is in these tests, and so in the tool: its shadow is several times what is measured.
    private static let isSanitized = dlsym(nil, "__tsan_init") != nil

    /// A line of 200 MiB, then an event.
    private func server(_ beginning: String) throws -> ReplayServer {
        let filler = [UInt8](repeating: UInt8(ascii: "7"), count: 64 << 10)
        return try ReplayServer(
            otherwise: [
                .expectRequest, .send(ReplayServer.eventStreamHead), .send(beginning),
                .sendRepeating(filler, count: (200 << 20) / filler.count), .send("\n\ndata: end\n\n"), .silence,
            ]
        )
    }

    /// One after the other and niced: beside this there are tests that wait for parts of a second.
    @Test(
        "stays under 60 MiB on a line that never ends: skipped, or an error that names the limit",
        .enabled(if: !isSanitized)
    )
    func endlessLine() async throws {
        let cases = [
            (":", "event end"), ("foo: ", "event end"), ("retry: ", "event end"),
            ("data: ", "event data over the limit: maxEventBytes is 16777216"),
            ("event: ", "event field over the limit: maxEventBytes is 16777216"),
            ("id: ", "id field over the limit: maxEventBytes is 16777216"),
        ]
        for (beginning, outcome) in cases {
            let server = try server(beginning)
            defer { server.stop() }

            let tool = try ToolProcess(
                ["-n", "19", ToolProcess.path, server.url, "--plain", "--json"],
                program: "/usr/bin/nice"
            )
            let isSkipped = outcome == "event end"
            let lines = await tool.lines(upTo: isSkipped ? "\"event\"" : "\"error\"")
            let peak = try #require(tool.peakMemory)
            tool.signal(SIGTERM)

            let last = try #require(lines.last)
            #expect(isSkipped ? gist(last) == outcome : gist(last) == "error network" && last.contains(outcome))
            #expect(peak < 60 << 20, "\(beginning)")
            print("peak memory of the tool on `\(beginning)7777...`: \(peak >> 20) MiB")
            #expect(await tool.exitCode() == 143)
        }
    }
}
