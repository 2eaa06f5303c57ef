import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

/// Openings that hold their place: the server accepts them, and says nothing of TLS.
private func blocked(
    _ server: ReplayServer,
    loop: CurlLoop? = nil,
    _ configure: (inout Configuration) -> Void
) throws -> EventSourceTransport {
    try plain("https://127.0.0.1:\(server.port)/", loop: loop) {
        // With HTTP/2 possible the second would wait for what the first one's connection can do.
        $0.httpVersion = .http1_1
        // A test may wait long for its turn among others.
        $0.connectTimeout = .seconds(600)
        $0.admissionTimeout = .seconds(600)
        configure(&$0)
    }
}

@Suite("The openings of one origin", .timeLimit(.minutes(5)))
struct OpeningLineTests {
    @Test("connect so many at a time, and the others in the order they came")
    func order() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let transport = try blocked(server) {
            $0.maxConcurrentOpenings = 2
            $0.connectTimeout = .milliseconds(200)
        }
        let ended = Recorder<Int>()
        await withTaskGroup { group in
            for number in 0..<8 {
                // On the loop's thread, so that they end in the loop's order.
                group.addTask(executorPreference: transport.curlLoop.executor) {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.error?.message == "no connection to 127.0.0.1:\(server.port) within 200 ms")
                    ended.append(number / 2)
                }
                // The next one comes once this one stands in line.
                #expect(await holds { transport.counters.openings == number + 1 })
            }
        }
        #expect(ended.values == [0, 0, 1, 1, 2, 2, 3, 3])
        // On a machine that has no time for it one may have run out before its socket was made.
        #expect(await server.reaches { $0.connections > 2 && $0.openConnections == 0 }, "\(server.journal)")
        let records = server.journal.records
        for (number, later) in records.enumerated() {
            // Which of two that began together comes first is the system's to say: how many are there beside is not.
            let beside = records[..<number].count { ($0.ended ?? .now) > later.accepted }
            #expect(beside <= 1, "\(records)")
        }
    }

    @Test("wait for a place no longer than the admission deadline, which the connect deadline is no part of")
    func admissionTimeout() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let transport = try blocked(server) {
            $0.maxConcurrentOpenings = 1
            $0.admissionTimeout = .milliseconds(300)
        }
        let first = Task { await transport.read(EventSourceRequest()) }
        #expect(await server.reaches { $0.connections == 1 })
        let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
        #expect(read.end == .failed(.network))
        #expect(
            read.error?.message
                == "no place among the openings at 127.0.0.1:\(server.port) became free within 300 ms"
        )
        #expect(elapsed >= .milliseconds(300))
        // Its connect deadline is ten minutes away.
        #expect(elapsed < .seconds(30))
        first.cancel()
        _ = await first.value
        #expect(server.journal.connections == 1)
    }

    @Test("pass by one that was cancelled in line, which never connects")
    func leaving() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let transport = try blocked(server) { $0.maxConcurrentOpenings = 1 }
        var tasks: [Task<ReadStream<ServerSentEvent>, Never>] = []
        for number in 0..<3 {
            tasks.append(Task { await transport.read(EventSourceRequest()) })
            #expect(await holds { transport.counters.openings == number + 1 })
        }
        tasks[1].cancel()
        #expect(await tasks[1].value.end == .failed(.network))
        #expect(await server.reaches { $0.connections == 1 })
        tasks[0].cancel()
        _ = await tasks[0].value
        #expect(await server.reaches { $0.connections == 2 && $0.openConnections == 1 })
        tasks[2].cancel()
        _ = await tasks[2].value
        #expect(await server.reaches { $0.openConnections == 0 })
        #expect(server.journal.connections == 2)
    }

    @Test("do not wait for those of another origin")
    func otherOrigin() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let loop = try CurlLoop()
        let transport = try blocked(server, loop: loop) { $0.maxConcurrentOpenings = 1 }
        let first = Task { await transport.read(EventSourceRequest()) }
        #expect(await server.reaches { $0.connections == 1 })
        let other = try ReplayServer.answering(head, "data: a\n\n")
        let read = try await plain(other, loop: loop) { $0.maxConcurrentOpenings = 1 }.read(EventSourceRequest())
        #expect(read.payloads.count == 1)
        first.cancel()
        _ = await first.value
    }

    @Test(
        "give their place back when their request leaves: sixty-four that wait for their heads have asked within a second",
        arguments: ["HTTP/1.1", "HTTP/2"]
    )
    func silentHeads(version: String) async throws {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .silence, .send(head + ": ping\n\n"), .silence, .send("data: a\n\n"), .close,
        ])
        let nginx = version == "HTTP/2" ? try await Nginx(to: server) : nil
        let authority = try Certificates.shared().authority
        let transport = try plain(nginx?.url ?? server.url) {
            $0.maxConcurrentOpenings = 4
            $0.tls.caFile = authority
        }
        await withTaskGroup { group in
            for _ in 0..<64 {
                // On the loop's thread, so that they do not wait for a turn among the tests.
                group.addTask(executorPreference: transport.curlLoop.executor) {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.payloads.count == 1)
                }
            }
            #expect(await server.reaches { $0.requestCount == 64 })
            #expect(transport.counters.openStreams == 0)
            server.proceed()
            #expect(await holds { transport.counters.openStreams == 64 })
            server.proceed()
        }
        let requests = server.journal.requests
        if nginx != nil { #expect(Set(requests.map { $0.field("X-Connection") }).count == 1) }
        let instants = requests.map(\.instant)
        if let first = instants.min(), let last = instants.max() {
            let spread = first.duration(to: last)
            #expect(spread < .seconds(1))
            if Setting.count("TRANSPORT_FIGURES", default: 0) > 0 { Setting.report("64 requests within \(spread)") }
        }
        withExtendedLifetime(nginx) {}
    }

    @Test("that fail one after the other, as fast as a loop can, all fail, and the last as the first")
    func refusedLine() async throws {
        let server = try ReplayServer()
        server.refuseConnections()
        let transport = try plain(server) { $0.maxConcurrentOpenings = 1 }
        await withTaskGroup { group in
            for _ in 0..<500 {
                group.addTask {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.error?.curlCode == 7)
                }
            }
        }
        #expect(transport.counters.failures == 500)
        #expect(transport.counters.faults == 0)
    }

    @Test("that cannot even begin let the next one in")
    func unusableLine() async throws {
        let server = try ReplayServer(otherwise: [.silence])
        let loop = try CurlLoop()
        let first = try blocked(server, loop: loop) { $0.maxConcurrentOpenings = 1 }
        let broken = try blocked(server, loop: loop) {
            $0.maxConcurrentOpenings = 1
            // Longer than any text that libcurl takes (CURL_MAX_INPUT_LENGTH): it says so where the text is set.
            $0.tls.caPath = String(repeating: "x", count: 9 << 20)
        }
        let holder = Task { await first.read(EventSourceRequest()) }
        #expect(await server.reaches { $0.connections == 1 })
        await withTaskGroup { group in
            for _ in 0..<3 {
                group.addTask {
                    let read = await broken.read(EventSourceRequest())
                    #expect(read.end == .failed(.environment))
                }
            }
            #expect(await holds { first.counters.openings == 4 })
            holder.cancel()
        }
        _ = await holder.value
        #expect(server.journal.connections == 1)
    }
}
