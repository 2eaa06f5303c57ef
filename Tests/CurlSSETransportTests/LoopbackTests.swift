import CurlSSETransport
import SubscriptionRuntime
import SubscriptionTesting
import Testing

private let head = ReplayServer.eventStreamHead

@Suite("A stream over a real socket", .timeLimit(.minutes(5)))
struct LoopbackTests {
    @Test("events arrive in order, and the end of the body is a network failure")
    func events() async throws {
        let server = try ReplayServer.answering(head, "data: a\n\nid: 7\nevent: tick\nda", "ta: b\n\n: c\n\ndata: half")
        let read = try await plain(server).read(EventSourceRequest())
        #expect(read.payloads.map(\.data.text) == ["a", "b"])
        #expect(read.payloads.map(\.type) == ["message", "tick"])
        #expect(read.payloads.map(\.lastEventID) == ["", "7"])
        #expect(read.end == .failed(.network))
        #expect(read.position?.lastEventID == "7")
        #expect(read.error?.message.contains("ended without completing") == true)
        #expect(read.error?.message.hasSuffix(", with half an event that is discarded") == true)
    }

    @Test("a plain request asks by GET for an event stream that is not from a cache, and says who asks")
    func request() async throws {
        let server = try ReplayServer.answering(head)
        _ = try await plain(server, "/a?b=c").read(
            EventSourceRequest(target: "/d?e=f", headers: [HTTPField("X-Own", "1")], lastEventID: "9")
        )
        let request = try #require(server.journal.requests.first)
        #expect(request.method == "GET")
        #expect(request.target == "/a/d?b=c&e=f")
        #expect(request.all("Accept") == ["text/event-stream"])
        #expect(request.field("Cache-Control") == "no-cache")
        #expect(request.field("Last-Event-ID") == "9")
        #expect(request.field("X-Own") == "1")
        #expect(request.field("User-Agent")?.hasPrefix("swift-subscriptions/") == true)
        #expect(request.field("Expect") == nil)
        #expect(request.field("Accept-Encoding") == nil)
    }

    @Test("a GraphQL request is posted as JSON, and a bare complete ends its stream and the connection at once")
    func graphQLRequest() async throws {
        let server = try ReplayServer(
            otherwise: [
                .expectRequest,
                .send(
                    head
                        + "event: next\ndata: {\"data\":{\"a\":1}}\n\nevent: complete\n\nevent: next\ndata: {\"data\":1}\n\n"
                ),
                .silence,
            ]
        )
        let read = try await graphQL(server).read(
            GraphQLRequest(query: "subscription { a }", operationName: "S", variables: ["b": 2, "a": 1])
        )
        #expect(read.payloads.map(\.text) == ["{\"data\":{\"a\":1}}"])
        #expect(read.end == .completed)
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
        let request = try #require(server.journal.requests.first)
        #expect(request.method == "POST")
        #expect(request.field("Content-Type") == "application/json")
        #expect(request.all("Accept") == ["text/event-stream"])
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"query":"subscription { a }","operationName":"S","variables":{"a":1,"b":2}}"#
        )
    }

    @Test("a first result that is a request error is a request failure with the server's errors, and no payload")
    func requestError() async throws {
        for data in [
            #"{"errors":[{"message":"no such field","extensions":{"code":"X"}}]}"#,
            #"{"data":null,"errors":[{"message":"no such field","extensions":{"code":"X"}}]}"#,
        ] {
            let server = try ReplayServer.answering(head, "event: next\ndata: \(data)\n\nevent: complete\n\n")
            let read = try await graphQL(server).read(GraphQLRequest(query: "subscription { b }"))
            #expect(read.payloads.isEmpty)
            #expect(read.end == .failed(.request))
            #expect(read.error?.graphQLErrors == [GraphQLError(message: "no such field", extensions: #"{"code":"X"}"#)])
        }
    }

    @Test("nobody listening is a network failure that names the server and says so")
    func refused() async throws {
        let server = try ReplayServer()
        let transport = try plain(server)
        server.stop()
        let read = await transport.read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.host == "127.0.0.1:\(server.port)")
        #expect(read.error?.errno == 111)
        #expect(
            read.error?.description
                == "could not connect to 127.0.0.1:\(server.port): connection refused (curl 7, errno 111)"
        )
    }

    @Test("a stream resumes from the last ID of what was taken, an ID without data included")
    func resuming() async throws {
        let server = try ReplayServer(
            scripts: [
                [.expectRequest, .send(head + "retry: 1500\nid: 1\ndata: a\n\nid: 2\n\nid: 3\ndata: half"), .close],
                [.expectRequest, .send(head + "data: b\n\nid\ndata: c\n\n"), .close],
                [.expectRequest, .send(head), .close],
            ]
        )
        let transport = try plain(server)
        let first = await transport.read(EventSourceRequest(lastEventID: "0"))
        #expect(first.position == StreamPosition(lastEventID: "2", retry: .milliseconds(1500)))
        #expect(first.retryAfter == .milliseconds(1500))

        let second = await transport.read(EventSourceRequest(lastEventID: "0"), resuming: first.resumePoint)
        #expect(second.payloads.map(\.lastEventID) == ["2", ""])
        #expect(second.retryAfter == .milliseconds(1500))

        // The server took its ID back: nothing is sent, and not the request's own.
        _ = await transport.read(EventSourceRequest(lastEventID: "0"), resuming: second.resumePoint)
        #expect(server.journal.requests.map { $0.field("Last-Event-ID") } == ["0", "2", nil])
    }

    @Test("the position counts what was taken and not what was read, payload by payload")
    func positionOfWhatWasTaken() async throws {
        let server = try ReplayServer(
            otherwise: [
                .expectRequest, .send(head + "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\n\nid: 4\ndata: c\n\n"),
                .silence,
            ]
        )
        let stream = try await plain(server).open(EventSourceRequest(), resuming: nil)
        var iterator = stream.makeAsyncIterator()
        #expect(iterator.resumePoint == nil)
        var seen: [String] = []
        for _ in 0..<3 {
            _ = try await iterator.next(isolation: nil)
            seen.append(iterator.resumePoint.flatMap { StreamPosition($0) }?.lastEventID ?? "none")
        }
        // After b the ID without data has moved the stream on: all before it was taken.
        #expect(seen == ["1", "3", "4"])
    }

    @Test("batches are whole, in order and as small as asked")
    func batches() async throws {
        let body = (0..<1000).map { "data: \($0)\n\n" }.joined()
        let server = try ReplayServer.answering(head, body)
        let stream = try await plain(server).open(EventSourceRequest(), resuming: nil)
        var iterator = stream.makeAsyncIterator()
        var numbers: [String] = []
        var failure: SubscriptionFailure?
        do throws(SubscriptionFailure) {
            var size = 1
            while let batch = try await iterator.next(atMost: size) {
                #expect((1...size).contains(batch.count))
                numbers += batch.map(\.data.text)
                size = size % 37 + 1
            }
        } catch {
            failure = error
        }
        #expect(numbers == (0..<1000).map(String.init))
        #expect(failure?.kind == .network)
    }

    @Test("a stream that is dropped, unread or in the middle, closes its connection")
    func dropped() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let transport = try plain(server)
        _ = try await transport.open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })

        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        for try await _ in stream { break }
        #expect(await server.reaches { $0[connection: 2]?.peerEnded != nil })
        withExtendedLifetime(stream) {}
    }

    @Test("a cancelled opening closes its connection and fails")
    func cancelledOpening() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .silence])
        let transport = try plain(server)
        let opening = Task { try await transport.open(EventSourceRequest(), resuming: nil) }
        #expect(await server.reaches { $0.requestCount == 1 })
        opening.cancel()
        let result = await opening.result
        #expect(throws: SubscriptionFailure.self) { try result.get() }
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
    }

    @Test("a reader whose task is cancelled gets nil, and the connection closes")
    func cancelledReader() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence])
        let stream = try await plain(server).open(EventSourceRequest(), resuming: nil)
        let (first, mark) = AsyncStream<Void>.makeStream()
        let reader = Task {
            var count = 0
            for try await _ in stream {
                count += 1
                mark.yield()
            }
            return count
        }
        for await _ in first { break }
        reader.cancel()
        #expect(try await reader.value == 1)
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
    }

    @Test("a reader whose task is cancelled gets nil after the batch in its hand, however much more is there")
    func cancelledReaderOfAFlood() async throws {
        let server = try ReplayServer(
            otherwise: [.expectRequest, .send(head), .sendForever(Array("data: a\n\n".utf8))]
        )
        let stream = try await plain(server).open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
        let reader = Task {
            var count = 0
            for try await _ in stream {
                count += 1
                withUnsafeCurrentTask { $0?.cancel() }
            }
            return count
        }
        #expect(try await reader.value <= 128)
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
    }

    @Test("a server is held back while nobody reads, and everything arrives in order once somebody does")
    func backpressure() async throws {
        let count = 3000
        let payload = String(repeating: "x", count: 16 << 10)
        let server = try ReplayServer(
            otherwise: [
                .expectRequest, .send(head), .sendRepeating(Array("data: \(payload)\n\n".utf8), count: count), .close,
            ]
        )
        let transport = try plain(server)
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
        let sent = server.journal.bytesSent
        #expect(sent < 24 << 20)
        #expect(transport.counters.bytesReceived < 1 << 20)

        var arrived = 0
        var end: SubscriptionFailure?
        do throws(SubscriptionFailure) {
            for try await event in stream {
                #expect(event.data.count == payload.utf8.count)
                arrived += 1
            }
        } catch {
            end = error
        }
        #expect(arrived == count)
        #expect(end?.kind == .network)
    }

    @Test("a loop that is shut down ends its streams and refuses new ones, and may be shut down twice")
    func shutdown() async throws {
        let server = try ReplayServer(otherwise: [.expectRequest, .send(head), .silence])
        let transport = try plain(server)
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        await transport.curlLoop.shutdown()
        await transport.curlLoop.shutdown()
        await #expect(throws: SubscriptionFailure.self) { for try await _ in stream {} }
        let read = await transport.read(EventSourceRequest())
        #expect(read.end == .failed(.environment))
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
    }

    @Test("a stream outlives its transport, and the loop ends with the last of its users")
    func outliving() async throws {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .silence, .send("data: late\n\n"), .silence,
        ])
        var transport: EventSourceTransport? = try plain(server)
        weak let loop = transport?.curlLoop
        var stream = try await transport?.open(EventSourceRequest(), resuming: nil)
        transport = nil
        server.proceed()
        var iterator = stream?.makeAsyncIterator()
        stream = nil
        #expect(try await iterator?.next(isolation: nil)?.data.text == "late")
        #expect(loop != nil)
        iterator = nil
        #expect(loop == nil)
        #expect(await server.reaches { $0[connection: 1]?.peerEnded != nil })
    }

    @Test("a reader leaves others their turn where it runs, however much there is")
    func turns() async throws {
        let server = try ReplayServer(otherwise: [
            .expectRequest, .send(head), .sendForever(Array("data: \(String(repeating: "7", count: 92))\n\n".utf8)),
        ])
        let transport = try plain(server)
        let thread = OneThread(label: "turns")
        let (isReading, began) = AsyncStream.makeStream(of: Void.self)
        let reader = Task(executorPreference: thread) {
            var count = 0
            for try await _ in try await transport.open(EventSourceRequest(), resuming: nil) {
                count += 1
                if count == 1_000 { began.finish() }
                // Slower than the server: there is always more.
                let took = ContinuousClock.now
                while ContinuousClock.now - took < .microseconds(20) {}
            }
            return count
        }
        for await _ in isReading {}
        let canceller = Task(executorPreference: thread) {
            for _ in 0..<20 { await Task.yield() }
            reader.cancel()
        }
        #expect(try await reader.value > 0)
        await canceller.value
    }

    @Test(
        "what comes as a header behind the body ends nothing, unless it begins another answer",
        arguments: [
            ("X-Sum: 1\r\n", "ended without completing: the body ended, after 9 bytes"),
            ("HTTP/1.1: 1\r\n", "the answer began anew after 9 bytes"),
        ]
    )
    func trailer(lines: String, message: String) async throws {
        let head = ReplayServer.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        let server = try ReplayServer.answering(head, ReplayServer.chunk("data: a\n\n"), "0\r\n" + lines + "\r\n")
        let transport = try plain(server)
        let read = await transport.read(EventSourceRequest())
        #expect(read.payloads.map(\.data.text) == ["a"])
        #expect(read.end == .failed(.network))
        #expect(read.error?.message.contains(message) == true, "\(read.error?.message ?? "-")")
        #expect(await holds { transport.counters.openStreams == 0 })
    }

    @Test("comments are handed over verbatim when asked for, in the order of the stream")
    func comments() async throws {
        let server = try ReplayServer.answering(head, ": one\n:two\ndata: a\n\n:\n")
        let seen = Recorder<String>()
        _ = try await plain(server) { $0.onComment = { seen.append($0) } }.read(EventSourceRequest())
        #expect(seen.values == [" one", "two", ""])
    }

    @Test("H14: an opening is at least once: a POST goes again over a new connection where a kept one turns out closed")
    func atLeastOnce() async throws {
        let server = try ReplayServer(scripts: [
            // The second request has been read when the connection closes without a byte.
            [.expectRequest, .send(ReplayServer.response(404)), .expectRequest, .close],
            [.expectRequest, .send(head + "event: next\ndata: {\"data\":1}\n\nevent: complete\n\n"), .close],
        ])
        let transport = try graphQL(server)
        let refused = await transport.read(GraphQLRequest(query: "subscription { a }"))
        #expect(refused.error?.status == 404)
        let read = await transport.read(GraphQLRequest(query: "subscription { b }"))
        #expect(read.payloads.map(\.text) == ["{\"data\":1}"])
        #expect(read.end == .completed)
        let requests = server.journal.requests
        #expect(requests.map(\.method) == ["POST", "POST", "POST"])
        #expect(requests.map(\.connection) == [1, 1, 2])
        #expect(requests.count == 3 && requests[1].body == requests[2].body)
        #expect(transport.counters.openings == 2)
    }

    @Test("eight connections without a stream are kept at most, however many there were at once")
    func keptConnections() async throws {
        let server = try ReplayServer { _, _ in [.silence, .send(ReplayServer.response(404))] }
        let transport = try plain(server)
        await withTaskGroup { group in
            for _ in 0..<30 {
                group.addTask { #expect(await transport.read(EventSourceRequest()).error?.status == 404) }
            }
            #expect(await server.reaches { $0.requestCount == 30 })
            server.proceed()
        }
        #expect(await server.waitUntil { $0.openConnections <= 8 }, "\(server.journal)")
        await transport.curlLoop.shutdown()
        #expect(await server.reaches { $0.openConnections == 0 })
    }
}
