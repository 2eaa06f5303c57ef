import CurlSSETransport
import Glibc
import SubscriptionRuntime
import SubscriptionTesting
import SystemProbe
import Testing

private let head = ReplayServer.eventStreamHead

/// Servers that misbehave in every way an opening can be cancelled in.
private struct Servers {
    let servers: [ReplayServer]
    let transports: [EventSourceTransport]
    let graphQL: GraphQLTransport

    init(loop: CurlLoop) throws {
        let silent = try ReplayServer(otherwise: [.silence])
        let waiting = try ReplayServer(otherwise: [.expectRequest, .silence])
        let halfHead = try ReplayServer(otherwise: [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-"), .silence])
        let quiet = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let flood = try ReplayServer(
            otherwise: [.expectRequest, .send(head), .sendForever(Array("id: 1\n: c\ndata: x\n\n".utf8))]
        )
        let short = try ReplayServer { connection, _ in
            [.send(head + "data: a\n\nda"), connection % 2 == 0 ? .close : .reset]
        }
        let busy = try ReplayServer { _, _ in [.send(ReplayServer.response(503, body: "busy"))] }
        let moved = try ReplayServer { _, request in
            let next = request.target == "/" ? "/a" : waiting.url
            return [.send(ReplayServer.response(307, [("Location", next)]))]
        }
        let gone = try ReplayServer()
        gone.refuseConnections()
        servers = [silent, waiting, halfHead, quiet, flood, short, busy, moved, gone]
        // Short deadlines, so that some run out in the middle.
        let configure: (inout Configuration) -> Void = {
            $0.connectTimeout = .milliseconds(20)
            $0.firstByteTimeout = .milliseconds(20)
            $0.idleTimeout = .milliseconds(20)
            $0.maxConcurrentOpenings = 4
            $0.highWater = 1024
        }
        let token = Credentials(deadline: .seconds(300)) { _ in
            await Task.yield()
            return [HTTPField("Authorization", "t")]
        }
        transports =
            try servers.dropFirst().map { try plain($0, credentials: token, loop: loop, configure) }
            + [
                plain("https://127.0.0.1:\(silent.port)/", loop: loop, configure),
                plain("https://127.0.0.1:\(silent.port)/", loop: loop) {
                    configure(&$0)
                    $0.httpVersion = .http1_1
                },
                // A name that is looked up to no end until the batch's.
                plain("http://held.test/", loop: loop, configure),
                plain("http://there.test:\(gone.port)/", loop: loop, configure),
            ]
        graphQL = try GraphQLTransport(quiet.url, dialect: GraphQLSSE(), loop: loop)
    }
}

/// Opens and cancels, in whatever state that finds the stream.
private func round(_ servers: Servers, _ random: inout Seeded) async {
    let kind = Int.random(in: 0...servers.transports.count, using: &random)
    let yields = Int.random(in: 0..<40, using: &random)
    let nap = Int.random(in: 0..<4, using: &random)
    let events = Int.random(in: 0..<3, using: &random)
    let task: Task<Void, Never>
    if kind == servers.transports.count {
        task = Task { _ = await servers.graphQL.read(GraphQLRequest(query: "{a}")) }
    } else {
        let transport = servers.transports[kind]
        task = Task {
            guard let stream = try? await transport.open(EventSourceRequest(), resuming: nil) else { return }
            var iterator = stream.makeAsyncIterator()
            // One is read by batches and the other dropped in the middle.
            for _ in 0..<events {
                guard (try? await iterator.next(atMost: 2)) != nil else { return }
            }
            if events == 2 { while (try? await iterator.next(isolation: nil)) != nil {} }
        }
    }
    for _ in 0..<yields { await Task.yield() }
    if nap == 0 { try? await ContinuousClock().sleep(for: .microseconds(500)) }
    task.cancel()
    await task.value
}

/// What a batch of rounds left behind.
private func batch(_ rounds: Int, seed: UInt64) async throws -> (openStreams: Int, faults: Int, connections: Int) {
    let loop = try CurlLoop()
    let servers = try Servers(loop: loop)
    probe_set_name("there.test", "127.0.0.1")
    probe_set_name("held.test", "")
    await withTaskGroup { group in
        for worker in 0..<32 {
            group.addTask {
                var random = Seeded(seed: seed &+ UInt64(worker))
                for _ in 0..<rounds / 32 { await round(servers, &random) }
            }
        }
    }
    _ = await holds { servers.graphQL.counters.openStreams == 0 }
    let counters = servers.graphQL.counters
    await loop.shutdown()
    probe_set_name("held.test", "127.0.0.1")
    var connections = 0
    for (number, server) in servers.servers.enumerated() {
        if !(await server.reaches { $0.openConnections == 0 }) {
            let left = server.journal.records.filter { $0.ended == nil }
            Setting.report("server \(number): \(left)")
            connections += left.count
        }
        server.stop()
    }
    return (counters.openStreams, counters.faults, connections)
}

@Suite("Ten thousand openings that are cancelled", .timeLimit(.minutes(30)))
struct SoakTests {
    @Test("leave no descriptor, no thread, no connection and no memory behind, in whatever state they were")
    func rounds() async throws {
        // A process of its own: other tests open descriptors and threads meanwhile.
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            probe_use_one_heap()
            let total = Setting.count("TRANSPORT_SOAK", default: 1200)
            let size = min(1000, total / 3)
            let seed = UInt64(Setting.count("TRANSPORT_SEED", default: Int.random(in: 0..<Int.max / 2)))
            func report(_ text: String) { Setting.report("soak, seed \(seed): \(text)") }
            var failures = 0
            // The first batch makes what a process makes once.
            _ = try await batch(size, seed: seed)
            let descriptors = ProcessUse.descriptors
            let threads = ProcessUse.threads
            var resident: [Int] = []
            var heap: [Int] = []
            for number in 1...max(2, total / size - 1) {
                let left = try await batch(size, seed: seed &+ UInt64(number * 1000))
                if left != (0, 0, 0) {
                    report("\(left.openStreams) streams, \(left.faults) faults, \(left.connections) connections left")
                    failures += 1
                }
                resident.append(ProcessMemory.resident)
                heap.append(Int(probe_live_heap()))
            }
            // A thread of the pool takes its time to go.
            if !(await holds { ProcessUse.descriptors <= descriptors && ProcessUse.threads <= threads }) {
                report("\(descriptors) descriptors became \(ProcessUse.descriptors): \(ProcessUse.descriptorTargets)")
                report("\(threads) threads became \(ProcessUse.threads)")
                failures += 1
            }
            let growth = (resident.last ?? 0) - (resident.first ?? 0)
            report(
                "\(total) rounds; \(ProcessUse.descriptors) descriptors, \(ProcessUse.threads) threads; "
                    + "resident \(resident.map { $0 >> 10 }) KiB, live heap \(heap.map { $0 >> 10 }) KiB"
            )
            if growth > Setting.count("TRANSPORT_SOAK_GROWTH", default: 32 << 20) {
                report("resident memory grew by \(growth) bytes")
                failures += 1
            }
            // The least of each half, as a buffer may just be under way to being freed.
            let halves = (heap.prefix(heap.count / 2).min() ?? 0, heap.suffix(heap.count / 2).min() ?? 0)
            if halves.1 - halves.0 > 384 << 10 {
                report("the heap in use grew by \(halves.1 - halves.0) bytes")
                failures += 1
            }
            report("\(failures) failures")
            exit(EXIT_SUCCESS)
        }
        let report = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        // By its words, as a process that ends otherwise hands none over.
        #expect(report.contains(": 0 failures"), "\(report)")
        if Setting.count("TRANSPORT_SOAK", default: 0) > 0 || result == nil { Setting.report(report) }
    }

    @Test("close their sockets at once, also on a loop that is busy with other streams")
    func latency() async throws {
        let busyCount = Setting.count("TRANSPORT_BUSY", default: 100)
        let victims = Setting.count("TRANSPORT_VICTIMS", default: 40)
        let limit = Setting.count("TRANSPORT_CANCEL_MS", default: 2000)
        let event = "data: " + String(repeating: "x", count: 200) + "\n\n"
        let busy = try ReplayServer { _, _ in
            [.send(head)] + (0..<6000).flatMap { _ in [ReplayServer.Step.pause(.milliseconds(100)), .send(event)] }
        }
        let quiet = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let loop = try CurlLoop()
        let noise = try plain(busy, loop: loop)
        let transport = try plain(quiet, loop: loop)
        var latencies: [Duration] = []
        await withTaskGroup { group in
            for _ in 0..<busyCount { group.addTask { _ = await noise.read(EventSourceRequest()) } }
            #expect(await holds { noise.counters.openStreams == busyCount })
            for number in 1...victims {
                let stream = try? await transport.open(EventSourceRequest(), resuming: nil)
                var iterator = stream?.makeAsyncIterator()
                let first = try? await iterator?.next(isolation: nil)
                #expect(first != nil)
                let start = ContinuousClock.now
                iterator = nil
                withExtendedLifetime(stream) {}
                #expect(await quiet.reaches { $0[connection: number]?.peerEnded != nil })
                if let end = quiet.journal[connection: number]?.peerEnded { latencies.append(start.duration(to: end)) }
            }
            let delivered = noise.counters.bytesReceived
            #expect(delivered > 0)
            group.cancelAll()
        }
        latencies.sort()
        let worst = latencies[min(latencies.count - 1, latencies.count * 99 / 100)]
        if Setting.count("TRANSPORT_BUSY", default: 0) > 0 {
            Setting.report(
                "cancel with \(busyCount) busy streams: median \(latencies[latencies.count / 2]), p99 \(worst)"
            )
        }
        #expect(worst < .milliseconds(limit))
    }
}
