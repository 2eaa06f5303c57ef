import Foundation
import SubscriptionRuntime
import SubscriptionTesting
import Testing

@testable import CurlSSETransport

@Suite("The life of a loop", .timeLimit(.minutes(5)))
struct LoopLifetimeTests {
    @Test("ends with the last of its users, and leaves none of its parts behind", arguments: [true, false])
    func parts(isShutDown: Bool) async throws {
        let server = try ReplayServer.answering(ReplayServer.eventStreamHead, "data: a\n\n")
        var transport: EventSourceTransport? = try plain(server)
        weak let loop = transport?.curlLoop
        weak let events = transport?.curlLoop.events
        weak let mailbox = transport?.curlLoop.events.mailbox
        weak let thread = transport?.curlLoop.events.thread
        _ = await transport?.read(EventSourceRequest())
        if isShutDown {
            await transport?.curlLoop.shutdown()
            _ = await transport?.read(EventSourceRequest())
        }
        transport = nil
        #expect(await holds { loop == nil && events == nil })
        #expect(await holds { mailbox == nil && thread == nil })
    }

    /// Dispatch has 255 threads for all serial queues of a process: loops that stood on these stopped there.
    @Test("is its own: three hundred in one process all run, and their threads end with them")
    func many() async throws {
        var loops = try (0..<300).map { _ in try CurlLoop(label: "many") }
        for loop in loops {
            let isOnLoop = await Task(executorPreference: loop.executor) { loop.events.thread.isCurrent }.value
            #expect(isOnLoop)
        }
        #expect(threads(named: "many") == 300)
        loops = []
        #expect(await holds { threads(named: "many") == 0 })
    }

    /// How many threads of this process have a name.
    private func threads(named name: String) -> Int {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        let names = tasks.map { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
        return names.count { $0 == name + "\n" }
    }

    @Test("a loop whose streams are all open and silent is woken about once a second, whenever they were opened")
    func idleWakeUps() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(ReplayServer.eventStreamHead), .silence])
        let loop = try CurlLoop()
        // libcurl's own limit is a second behind, and not forgotten once it is connected.
        let transport = try plain(server, loop: loop) { $0.connectTimeout = .milliseconds(2500) }
        var streams: [PayloadStream<ServerSentEvent>] = []
        let clock = ContinuousClock()
        for _ in 0..<64 {
            streams.append(try await transport.open(EventSourceRequest(), resuming: nil))
            try await clock.sleep(for: .milliseconds(15))
        }
        let before = loop.events.counters.waits.count
        #expect(before > 64)
        // What is measured is a rate.
        try await clock.sleep(for: .seconds(5))
        let count = loop.events.counters.waits.count - before
        #expect(count <= 24)
        #expect(transport.counters.openStreams == 64)
        withExtendedLifetime(streams) {}
    }
}
