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
        weak let queue = transport?.curlLoop.events.queue
        _ = await transport?.read(EventSourceRequest())
        if isShutDown {
            await transport?.curlLoop.shutdown()
            _ = await transport?.read(EventSourceRequest())
        }
        transport = nil
        #expect(await holds { loop == nil && events == nil })
        #expect(await holds { mailbox == nil && queue == nil })
    }
}
