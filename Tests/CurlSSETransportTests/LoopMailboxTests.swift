import Dispatch
import Synchronization
import Testing

@testable import CurlSSETransport

@Suite("A loop's mailbox")
struct LoopMailboxTests {
    private final class Wakes: Sendable {
        let count = Atomic<Int>(0)
    }

    private func mailbox() -> (LoopMailbox, Wakes) {
        let wakes = Wakes()
        return (LoopMailbox(wake: { wakes.count.add(1, ordering: .relaxed) }), wakes)
    }

    @Test("wakes a loop that waits at the first post, and at no other")
    func wakes() {
        let (mailbox, wakes) = mailbox()
        mailbox.post(.shutdown)
        #expect(wakes.count.load(ordering: .relaxed) == 0)
        #expect(!mailbox.await())
        var taken: [LoopCommand] = []
        mailbox.takeAll(into: &taken)
        #expect(taken.count == 1)
        #expect(mailbox.await())
        mailbox.post(.shutdown)
        mailbox.post(.shutdown)
        #expect(wakes.count.load(ordering: .relaxed) == 1)
        taken = []
        mailbox.takeAll(into: &taken)
        #expect(taken.count == 2)
    }

    @Test("wakes no loop that has stopped waiting, which takes what came all the same")
    func stopped() {
        let (mailbox, wakes) = mailbox()
        #expect(mailbox.await())
        mailbox.stopAwaiting()
        mailbox.post(.shutdown)
        #expect(wakes.count.load(ordering: .relaxed) == 0)
        #expect(!mailbox.await())
        var taken: [LoopCommand] = []
        mailbox.takeAll(into: &taken)
        #expect(taken.count == 1)
    }

    @Test("loses nothing and wakes whoever waits, whatever comes at once", .timeLimit(.minutes(1)))
    func atOnce() {
        let woken = DispatchSemaphore(value: 0)
        let mailbox = LoopMailbox(wake: { woken.signal() })
        let count = 20_000
        DispatchQueue.global().async {
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                for _ in 0..<count { mailbox.post(.shutdown) }
            }
        }
        // A wake that is missing is a wait that never ends.
        var total = 0
        var taken: [LoopCommand] = []
        while total < 4 * count {
            taken.removeAll(keepingCapacity: true)
            mailbox.takeAll(into: &taken)
            total += taken.count
            if mailbox.await(), total < 4 * count { woken.wait() }
            mailbox.stopAwaiting()
        }
        #expect(total == 4 * count)
    }
}
