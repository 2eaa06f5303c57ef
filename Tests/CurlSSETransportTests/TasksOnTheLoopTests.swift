import Dispatch
import Glibc
import SubscriptionRuntime
import SubscriptionTesting
import Testing

@testable import CurlSSETransport

private let head = ReplayServer.eventStreamHead

@Suite("Tasks on the loop's own thread", .timeLimit(.minutes(5)))
struct TasksOnTheLoopTests {
    @Test("an owner on the loop's own thread gets everything")
    func onLoop() async throws {
        let server = try ReplayServer.answering(head, (0..<500).map { "data: \($0)\n\n" }.joined())
        let transport = try plain(server)
        let task = Task(executorPreference: transport.curlLoop.executor) {
            await transport.read(EventSourceRequest()).payloads.map(\.data.text)
        }
        #expect(await task.value == (0..<500).map(String.init))
    }

    @Test("an owner on the loop's own thread takes what was read before more is")
    func takenAsItIsRead() async throws {
        let event = "data: " + String(repeating: "7", count: 92) + "\n\n"
        let count = 8_000
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .sendRepeating(Array(event.utf8), count: count), .silence,
        ])
        // Whatever else the machine does meanwhile is no time of the owner's.
        let loop = CurlLoop(try EventLoop(label: "CurlSSE.loop", mostTimeForJobs: .max / 2))
        let transport = try plain(server, loop: loop) { $0.highWater = 64 << 20 }
        let ahead = try await Task(executorPreference: transport.curlLoop.executor) {
            let stream = try await transport.open(EventSourceRequest(), resuming: nil)
            var iterator = stream.makeAsyncIterator()
            var ahead = 0
            for number in 0..<count {
                guard try await iterator.next() != nil else { break }
                ahead = max(ahead, transport.counters.bytesReceived - number * event.utf8.count)
            }
            return ahead
        }.value
        // What is handed over at once, and a part of a body.
        #expect(ahead <= 144 << 10)
    }

    /// What a task may do in the middle of a read.
    enum Leaving: CaseIterable {
        case leavesTheStream, shutsTheLoopDown
    }

    @Test(
        "an owner on the loop's own thread may leave, or end the loop, while libcurl reads",
        arguments: Leaving.allCases
    )
    func leftWithinARead(leaving: Leaving) async throws {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .sendForever(Array("data: \(String(repeating: "7", count: 92))\n\n".utf8)),
        ])
        let loop = try CurlLoop()
        let transport = try plain(server, loop: loop)
        let taken = try await Task(executorPreference: loop.executor) {
            var taken = 0
            for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) {
                taken += 1
                // Well within the body, and not at a batch's end.
                if taken == 2_001 { break }
            }
            if leaving == .shutsTheLoopDown { await loop.shutdown() }
            return taken
        }.value
        #expect(taken == 2_001)
        #expect(await server.reaches { $0.openConnections == 0 })
    }

    @Test("an owner on the loop's own thread that takes long within a read makes no other stream silent")
    func longWithinARead() async throws {
        let event = "data: " + String(repeating: "7", count: 92) + "\n\n"
        let busy = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .sendRepeating(Array(event.utf8), count: 5_000), .silence,
        ])
        var script: [ReplayServer.Step] = [.expectRequest, .send(head)]
        for _ in 0..<200 { script += [.send("data: ping\n\n"), .pause(.milliseconds(100))] }
        let pinging = try ReplayServer(otherwise: script + [.silence])
        let loop = try CurlLoop()
        let other = try plain(pinging, loop: loop) { $0.idleTimeout = .seconds(4) }
        let pinged = Task {
            var count = 0
            for try await _ in try await other.open(EventSourceRequest(), resuming: nil) {
                count += 1
                if count == 60 { break }
            }
            return count
        }
        #expect(await pinging.reaches { ($0[connection: 1]?.bytesSent ?? 0) > head.utf8.count + 30 })
        let transport = try plain(busy, loop: loop)
        try await Task(executorPreference: loop.executor) {
            var taken = 0
            for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) {
                taken += 1
                // What a task of the loop should not do.
                if taken == 2_001 { sleep(5) }
                if taken == 5_000 { break }
            }
        }.value
        #expect(try await pinged.value == 60)
    }

    @Test("a loop that was kept from its turns makes no stream silent, however many have something to say")
    func longBesideMany() async throws {
        // Many more than one wait tells of.
        let count = 200
        var script: [ReplayServer.Step] = [.expectRequest, .send(head)]
        for _ in 0..<200 { script += [.send(": ping\n\n"), .pause(.milliseconds(200))] }
        let server = try ReplayServer(otherwise: script + [.silence])
        let loop = try CurlLoop()
        // Long beside what a server may be kept from its own turns on a busy machine.
        let transport = try plain(server, loop: loop) { $0.idleTimeout = .seconds(5) }
        let failed = Recorder<String>()
        let readers = (0..<count).map { _ in
            Task {
                let read = await transport.read(EventSourceRequest())
                if let error = read.error, !Task.isCancelled { failed.append(error.message) }
            }
        }
        #expect(await holds { transport.counters.openStreams == count })
        // Twice: the first time libcurl's own timers are due, by which it looks at every socket.
        for _ in 0..<2 {
            // What a task of the loop should not do.
            await Task(executorPreference: loop.executor) { _ = sleep(6) }.value
            let before = transport.counters.bytesReceived
            #expect(await holds { transport.counters.bytesReceived >= before + 15 * count * 8 })
            #expect(failed.values == [])
        }
        for reader in readers { reader.cancel() }
        for reader in readers { await reader.value }
    }

    @Test("an owner on the loop's own thread that takes long does not keep the loop from another stream")
    func turnsWithinReads() async throws {
        let event = "data: " + String(repeating: "7", count: 1_016) + "\n\n"
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head), .sendForever(Array(event.utf8))])
        let loop = try CurlLoop()
        let transport = try plain(server, loop: loop)
        // Both run on the one thread: the order in which they take is the loop's.
        let order = Recorder<Int>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<2 {
                group.addTask(executorPreference: loop.executor) {
                    var taken = 0
                    for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) {
                        order.append(reader)
                        let began = ContinuousClock.now
                        while ContinuousClock.now - began < .microseconds(100) {}
                        taken += 1
                        if taken == 4_000 { break }
                    }
                }
            }
            // When one has taken all, the other's last row is no matter.
            try await group.next()
            group.cancelAll()
        }
        let first = order.values.first
        let together = order.values.drop { $0 == first }
        let rows = together.reduce(into: [(reader: Int, count: Int)]()) { rows, reader in
            if rows.last?.reader == reader { rows[rows.count - 1].count += 1 } else { rows.append((reader, 1)) }
        }
        #expect(rows.count > 2)
        // What is handed over at once, and what is read in the time that tasks have within reads.
        #expect(rows.dropLast().allSatisfy { $0.count <= 600 }, "\(rows.map(\.count))")
    }

    @Test("a reader with an executor of its own does not wait for the pool, whoever is read with it")
    func ownExecutor() async {
        await #expect(processExitsWith: .success) {
            let server = try ReplayServer(otherwise: [
                .expectRequest, .send(head), .silence, .send("data: a\n\n"), .silence,
            ])
            let loop = try CurlLoop()
            let transport = try plain(server, loop: loop)
            let thread = OneThread(label: "reader")
            let isRead = DispatchSemaphore(value: 0)
            for _ in 0..<3 {
                Task.detached { for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) {} }
            }
            Task.detached(executorPreference: thread) {
                for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) { isRead.signal() }
            }
            #expect(await holds { transport.counters.openStreams == 4 })
            // From here on the pool has no thread for anybody: its threads and the loop's are held up.
            let isOver = DispatchSemaphore(value: 0)
            let goesOn = DispatchSemaphore(value: 0)
            for _ in 0..<64 { Task.detached { holdUp(by: isOver) } }
            Task.detached(executorPreference: loop.executor) { holdUp(by: goesOn) }
            server.proceed()
            // Looked at by this thread, as nobody is left who could tell it.
            let sent = 4 * (head.utf8.count + 9)
            while server.journal.records.reduce(0, { $0 + $1.bytesSent }) < sent { usleep(1_000) }
            // Now there is something of all four, for one turn.
            goesOn.signal()
            #expect(wait(for: isRead))
            for _ in 0..<64 { isOver.signal() }
        }
    }
}

/// What a task should not do.
private func holdUp(by semaphore: DispatchSemaphore) {
    semaphore.wait()
}

/// Less than the second after which Dispatch gives a pool another thread whose threads do not come back.
private func wait(for semaphore: DispatchSemaphore) -> Bool {
    semaphore.wait(timeout: .now() + .milliseconds(800)) == .success
}
