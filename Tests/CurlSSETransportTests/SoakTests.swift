import CurlSSETransport
import Glibc
import SubscriptionRuntime
import SubscriptionTesting
import SystemProbe
import Testing

private let head = ReplayServer.eventStreamHead

/// Sees to it that nothing is called back once a round is over.
private final class Witness: Sendable {
    private let state = Lock((calls: 0, late: 0, isOver: false))

    /// Called back.
    func call() {
        state.withLock { state in
            state.calls += 1
            if state.isOver { state.late += 1 }
        }
    }

    /// The cancellation has returned, and the loop has come to it.
    func over() { state.withLock { $0.isOver = true } }

    /// How many calls there were, and how many of them were late.
    var counts: (calls: Int, late: Int) { state.withLock { ($0.calls, $0.late) } }
}

/// A plain stream whose events a witness sees where they are read, on the loop's thread.
private struct Witnessed: Dialect {
    struct Reader: DialectReader {
        var base: EventSource.Reader
        let witness: Witness

        mutating func read(_ event: consuming ServerSentEvent) -> Reading<ServerSentEvent> {
            witness.call()
            return base.read(event)
        }

        static func detached(_ payload: ServerSentEvent) -> ServerSentEvent { EventSource.Reader.detached(payload) }
    }

    let base = EventSource()
    let witness: Witness
    var resumes: Bool { base.resumes }

    func httpRequest(
        for request: EventSourceRequest,
        resuming position: StreamPosition?
    ) throws(TransportError) -> HTTPRequest { try base.httpRequest(for: request, resuming: position) }

    func makeReader() -> Reader { Reader(base: base.makeReader(), witness: witness) }
}

/// Servers that misbehave in every way an opening can be cancelled in.
private struct Servers {
    typealias Transport = CurlTransport<Witnessed>

    let servers: [ReplayServer]
    /// Each makes the transport of one round.
    let ways: [@Sendable (Witness) throws -> Transport]
    let graphQL: GraphQLTransport
    let loop: CurlLoop
    let nginx: Nginx

    init(loop: CurlLoop) async throws {
        self.loop = loop
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
        // Behind TLS: streams of HTTP/2 that share a connection, in silence, without end, ended and refused.
        let secure = try ReplayServer { _, request in
            switch request.target {
            case "/flood": [.send(head), .sendForever(Array("id: 1\n: c\ndata: x\n\n".utf8))]
            case "/short": [.send(head + "data: a\n\nda"), .close]
            case "/busy": [.send(ReplayServer.response(503, body: "busy"))]
            case "/head": [.silence]
            default: [.send(head + ": c\ndata: a\n\n"), .silence]
            }
        }
        nginx = try await Nginx(to: secure)
        servers = [silent, waiting, halfHead, quiet, flood, short, busy, moved, gone, secure]
        // Short deadlines, so that some run out in the middle.
        let configure: @Sendable (inout Configuration) -> Void = {
            $0.connectTimeout = .milliseconds(20)
            $0.firstByteTimeout = .milliseconds(20)
            $0.idleTimeout = .milliseconds(20)
            $0.maxConcurrentOpenings = 4
            $0.highWater = 1024
        }
        let authority = try Certificates.shared().authority
        // Long enough for TLS; where it is silent the connection is closed to all of its streams now and then.
        let configureTLS: @Sendable (inout Configuration) -> Void = {
            $0.idleTimeout = .milliseconds(400)
            $0.highWater = 1024
            $0.tls.caFile = authority
        }
        let token = Credentials(deadline: .seconds(300)) { _ in
            await Task.yield()
            return [HTTPField("Authorization", "t")]
        }
        func way(
            _ url: String,
            credentials: Credentials? = nil,
            _ configure: @escaping @Sendable (inout Configuration) -> Void
        ) -> @Sendable (Witness) throws -> Transport {
            { witness in
                var configuration = Configuration()
                configure(&configuration)
                configuration.onComment = { _ in witness.call() }
                return try Transport(
                    url,
                    dialect: Witnessed(witness: witness),
                    configuration: configuration,
                    credentials: credentials,
                    loop: loop
                )
            }
        }
        let secureURL = nginx.url
        ways =
            servers.dropFirst().dropLast().map { way($0.url, credentials: token, configure) }
            + [
                way("https://127.0.0.1:\(silent.port)/", configure),
                way("https://127.0.0.1:\(silent.port)/") {
                    configure(&$0)
                    $0.httpVersion = .http1_1
                },
                // A name that is looked up to no end until the batch's.
                way("http://held.test/", configure),
                way("http://there.test:\(gone.port)/", configure),
            ]
            + ["/quiet", "/flood", "/flood", "/short", "/busy", "/head"].map { way(secureURL + $0, configureTLS) }
        graphQL = try GraphQLTransport(quiet.url, dialect: GraphQLSSE(), loop: loop)
    }
}

/// Opens and cancels, in whatever state that finds the stream.
private func round(_ servers: Servers, _ random: inout Seeded) async -> Witness {
    let witness = Witness()
    let kind = Int.random(in: 0...servers.ways.count, using: &random)
    let yields = Int.random(in: 0..<40, using: &random)
    let nap = Int.random(in: 0..<4, using: &random)
    let events = Int.random(in: 0..<4, using: &random)
    let task: Task<Void, Never>
    if kind == servers.ways.count {
        task = Task { _ = await servers.graphQL.read(GraphQLRequest(query: "{a}")) }
    } else {
        let way = servers.ways[kind]
        task = Task {
            guard let transport = try? way(witness),
                let stream = try? await transport.open(EventSourceRequest(), resuming: nil)
            else { return }
            var iterator = stream.makeAsyncIterator()
            // Nobody reads, until the cancellation: what comes is held back.
            if events == 3 {
                try? await ContinuousClock().sleep(for: .seconds(300))
                return
            }
            // One is read by batches and the other dropped in the middle.
            for _ in 0..<events {
                guard (try? await iterator.next(atMost: 2)) != nil else { return }
            }
            if events == 2 { while (try? await iterator.next(isolation: nil)) != nil {} }
        }
    }
    for _ in 0..<yields { await Task.yield() }
    if nap == 0 { try? await ContinuousClock().sleep(for: .microseconds(500)) }
    // Long enough for TLS, and for a server to fill what a stream keeps unread.
    if nap == 1 { try? await ContinuousClock().sleep(for: .milliseconds(10)) }
    task.cancel()
    await task.value
    // The loop has come to the cancellation once it has come to this.
    await Task(executorPreference: servers.loop.executor) {}.value
    witness.over()
    return witness
}

/// Opens a stream of each kind, and cancels them once a witness was called: on a busy machine each round may be over
/// before anything has come, and a witness that nobody calls sees nothing late either.
private func heard(_ servers: Servers) async -> Witness {
    let witness = Witness()
    let readers = servers.ways.map { way in
        Task {
            guard let transport = try? way(witness),
                let stream = try? await transport.open(EventSourceRequest(), resuming: nil)
            else { return }
            var iterator = stream.makeAsyncIterator()
            while (try? await iterator.next(isolation: nil)) != nil {}
        }
    }
    _ = await holds { witness.counts.calls > 0 }
    for reader in readers { reader.cancel() }
    for reader in readers { await reader.value }
    await Task(executorPreference: servers.loop.executor) {}.value
    witness.over()
    return witness
}

/// What a batch of rounds left behind.
private struct Left {
    var openStreams = 0
    var faults = 0
    var connections = 0
    /// How often something was called back, and how often after its round.
    var calls = 0
    var lateCalls = 0

    var isNothing: Bool { openStreams == 0 && faults == 0 && connections == 0 && lateCalls == 0 }
}

private func batch(_ rounds: Int, seed: UInt64) async throws -> Left {
    let loop = try CurlLoop()
    let servers = try await Servers(loop: loop)
    probe_set_name("there.test", "127.0.0.1")
    probe_set_name("held.test", "")
    var witnesses = await withTaskGroup(of: [Witness].self) { group in
        for worker in 0..<32 {
            group.addTask {
                var random = Seeded(seed: seed &+ UInt64(worker))
                var witnesses: [Witness] = []
                for _ in 0..<rounds / 32 { witnesses.append(await round(servers, &random)) }
                return witnesses
            }
        }
        return await group.reduce(into: []) { $0 += $1 }
    }
    witnesses.append(await heard(servers))
    _ = await holds { servers.graphQL.counters.openStreams == 0 }
    let counters = servers.graphQL.counters
    await loop.shutdown()
    probe_set_name("held.test", "127.0.0.1")
    var left = Left(openStreams: counters.openStreams, faults: counters.faults)
    for witness in witnesses {
        left.calls += witness.counts.calls
        left.lateCalls += witness.counts.late
    }
    for (number, server) in servers.servers.enumerated() {
        if !(await server.reaches { $0.openConnections == 0 }) {
            let records = server.journal.records.filter { $0.ended == nil }
            Setting.report("server \(number): \(records)")
            left.connections += records.count
        }
        server.stop()
    }
    return left
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
            var calls = 0
            // The first batch makes what a process makes once.
            _ = try await batch(size, seed: seed)
            let descriptors = ProcessUse.descriptors
            let threads = ProcessUse.threads
            var resident: [Int] = []
            var heap: [Int] = []
            for number in 1...max(2, total / size - 1) {
                let left = try await batch(size, seed: seed &+ UInt64(number * 1000))
                if !left.isNothing {
                    report("left: \(left)")
                    failures += 1
                }
                calls += left.calls
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
                    + "\(calls) calls; resident \(resident.map { $0 >> 10 }) KiB, live heap \(heap.map { $0 >> 10 }) KiB"
            )
            if calls == 0 {
                report("nothing was called back, in time or late")
                failures += 1
            }
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

    /// What the loop's other streams do meanwhile.
    enum Noise: String, CaseIterable {
        /// Each has ten events a second.
        case events
        /// Each has as much as it can read.
        case floods
    }

    /// Who is cancelled.
    enum Victim: String, CaseIterable {
        case http1
        /// On a connection that a neighbour stays on; behind nginx, which passes the end of a stream on.
        case http2
    }

    @Test(
        "close their sockets at once, also on a loop that is busy with other streams",
        // Floods take a processor each, and the time of every other test: where they are asked for.
        arguments: Setting.count("TRANSPORT_BUSY", default: 0) > 0 ? Noise.allCases : [.events],
        Victim.allCases
    )
    func latency(noise: Noise, victim: Victim) async throws {
        let asked = Setting.count("TRANSPORT_BUSY", default: 0)
        // As many as there are processor time for: a flood fills what a reader keeps unread in each of the loop's turns.
        let busyCount = noise == .events ? max(asked, 100) : 20
        let victims = Setting.count("TRANSPORT_VICTIMS", default: noise == .floods ? 10 : asked >= 1000 ? 200 : 20)
        // What is promised, where it was asked for with a thousand streams, on a machine with nothing else to do. Among the
        // other tests each of the threads that are measured may have to wait for its turn; and of floods a build for debugging
        // reads some megabytes in a turn of the loop, before it hears of anything.
        let promised = noise == .events && asked >= 1000
        let limit = promised ? 50 : Setting.count("TRANSPORT_CANCEL_MS", default: 2000)
        let event = "data: " + String(repeating: "x", count: 200) + "\n\n"
        let busy = try ReplayServer { _, _ in
            switch noise {
            case .events:
                [.send(head)] + (0..<6000).flatMap { _ in [.pause(.milliseconds(100)), .send(event)] }
            case .floods:
                // Once all are there: a server that floods some accepts others late.
                [.send(head), .silence, .sendForever(Array(event.utf8))]
            }
        }
        let quiet = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let nginx = victim == .http2 ? try await Nginx(to: quiet) : nil
        let loop = try CurlLoop()
        let noisy = try plain(busy, loop: loop)
        let authority = try Certificates.shared().authority
        let transport = try plain(nginx?.url ?? quiet.url, loop: loop) { $0.tls.caFile = authority }
        let neighbour = victim == .http2 ? try await transport.open(EventSourceRequest(), resuming: nil) : nil
        var latencies: [Duration] = []
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<busyCount { group.addTask { _ = await noisy.read(upTo: .max) } }
            #expect(await holds { noisy.counters.openStreams == busyCount + (neighbour == nil ? 0 : 1) })
            busy.proceed()
            let (began, before) = (ContinuousClock.now, noisy.counters.bytesReceived)
            for _ in 0..<victims {
                let delivered = noisy.counters.bytesReceived
                let stream = try await transport.open(EventSourceRequest(), resuming: nil)
                let number = quiet.journal.connections
                var iterator: PayloadStream<ServerSentEvent>.AsyncIterator? = stream.makeAsyncIterator()
                #expect(try await iterator?.next(isolation: nil) != nil)
                // The others have been heard since.
                #expect(await holds { noisy.counters.bytesReceived > delivered + event.utf8.count })
                let start = ContinuousClock.now
                iterator = nil
                stream.close()
                #expect(await quiet.reaches { $0[connection: number]?.peerEnded != nil })
                let ended = try #require(quiet.journal[connection: number]?.peerEnded)
                latencies.append(start.duration(to: ended))
            }
            let rate = Double(noisy.counters.bytesReceived - before) / (began.duration(to: .now) / .seconds(1))
            latencies.sort()
            let worst = latencies[min(latencies.count - 1, latencies.count * 99 / 100)]
            if asked > 0 {
                Setting.report(
                    "cancel of \(victim) with \(busyCount) busy streams, \(noise), \(Int(rate / 1000)) kB/s: "
                        + "median \(latencies[latencies.count / 2]), p99 \(worst), worst \(latencies[latencies.count - 1])"
                )
            }
            #expect(worst < .milliseconds(limit))
            group.cancelAll()
        }
        withExtendedLifetime((neighbour, nginx)) {}
    }
}

extension CurlTransport<EventSource> {
    /// Opens a stream and reads so many events, or to its end, and keeps none.
    fileprivate func read(upTo count: Int) async -> Int {
        guard let stream = try? await open(EventSourceRequest(), resuming: nil) else { return 0 }
        var iterator = stream.makeAsyncIterator()
        var read = 0
        while read < count, let batch = try? await iterator.next(atMost: 256) { read += batch.count }
        return read
    }
}
