import CurlSSETransport
import Foundation
import SubscriptionRuntime
import Testing

@Suite("Real servers", .timeLimit(.minutes(2)))
struct RealServerTests {
    private let servers: Servers

    init() throws {
        servers = try Servers.read()
    }

    private func environment(
        _ url: String
    ) throws -> SubscriptionEnvironment<GraphQLRequest, GraphQLResult> {
        var configuration = Configuration()
        configuration.tls.caFile = servers.authority
        return SubscriptionEnvironment(
            transport: try GraphQLTransport(url, dialect: GraphQLSSE(), configuration: configuration)
        )
    }

    private struct Count: Decodable {
        var count: Int
    }

    @Test("a subscription arrives whole and completes", arguments: GraphQLServer.allCases)
    func arrivesWhole(_ server: GraphQLServer) async throws {
        let environment = try environment(servers.url(server))
        let request = try GraphQLRequest(
            query: "subscription($to: Int!) { count(to: $to, intervalMs: 0) }",
            variables: ["to": 500]
        )
        let handle = environment.handle(for: request)
        // The loop's end releases its owner; another owner keeps the state to be looked at.
        let retention = handle.retain()
        defer { retention.release() }

        var counts: [Int] = []
        for try await delivery in handle.deliveries() {
            guard case .payload(let result) = delivery else { continue }
            counts.append(try #require(try result.decode(Count.self).data).count)
        }

        #expect(counts == Array(1...500))
        #expect(handle.resumptions == 0)
        guard case .ended(nil) = handle.stream else {
            Issue.record("the stream is \(handle.stream)")
            return
        }
        await environment.end()
    }

    @Test(
        "an operation that is not valid ends as a request error with the server's message",
        arguments: GraphQLServer.allCases
    )
    func validationError(_ server: GraphQLServer) async throws {
        let environment = try environment(servers.url(server))
        let handle = environment.handle(for: GraphQLRequest(query: "subscription { nothing }"))

        var payloads = 0
        var refusal: TransportError?
        do throws(SubscriptionEnd) {
            for try await delivery in handle.deliveries() {
                if case .payload = delivery { payloads += 1 }
            }
        } catch {
            guard case .request(let error) = error else { throw error }
            refusal = error as? TransportError
        }

        #expect(payloads == 0)
        #expect(refusal?.graphQLErrors.map(\.message) == ["Cannot query field 'nothing' on type 'Subscription'."])
        #expect(handle.events == 0)
        await environment.end()
    }

    @Test("many subscriptions at once arrive whole", arguments: GraphQLServer.allCases)
    func manyAtOnce(_ server: GraphQLServer) async throws {
        let environment = try environment(servers.url(server))

        let sums = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...40 {
                group.addTask {
                    let query = "subscription { count(to: \(number), intervalMs: 1) }"
                    var sum = 0
                    for try await delivery in environment.handle(for: GraphQLRequest(query: query)).deliveries() {
                        guard case .payload(let result) = delivery else { continue }
                        sum += try result.decode(Count.self).data?.count ?? 0
                    }
                    return sum
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }

        #expect(sums.sorted() == (1...40).map { $0 * ($0 + 1) / 2 })
        await environment.end()
    }

    @Test("a server that is killed leaves its subscription waiting, and its restart is a resumption")
    func killedAndRestarted() async throws {
        let first = try await OwnServer("ariadne", servers)
        let environment = try environment("http://127.0.0.1:\(first.port)/graphql")
        let handle = environment.handle(
            for: GraphQLRequest(query: "subscription { count(to: 100000, intervalMs: 20) }")
        )

        var causes: [Delivery<GraphQLResult>.Cause] = []
        var second: OwnServer?
        var payloadsAfter = 0
        for try await delivery in handle.deliveries() {
            switch delivery {
            case .baseline(let cause):
                causes.append(cause)
            case .payload where second != nil:
                payloadsAfter += 1
            case .payload:
                first.end()
                var waited = false
                for await status in handle.statuses {
                    if case .waiting = status.stream {
                        waited = true
                        break
                    }
                }
                #expect(waited)
                second = try await OwnServer("ariadne", port: first.port, servers)
            }
            // What the first server had sent before it was killed may still come.
            if causes.count == 2, payloadsAfter > 0 { break }
        }

        #expect(causes == [.opened, .resumed(1)])
        #expect(handle.resumptions == 1)
        second?.end()
        await environment.end()
    }

    @Test("a plain stream is taken up after its last event, over and over")
    func plainResumes() async throws {
        let server = try await OwnServer("plain", servers)
        let environment = SubscriptionEnvironment(
            transport: try EventSourceTransport("http://127.0.0.1:\(server.port)/one", dialect: EventSource())
        )

        var data: [String] = []
        for try await delivery in environment.handle(for: EventSourceRequest()).deliveries() {
            guard case .payload(let event) = delivery else { continue }
            data.append(event.data.text)
            if data.count == 3 { break }
        }

        #expect(data == ["event 1", "event 2", "event 3"])
        await environment.end()
        server.end()
    }

    @Test(
        "the tool prints three payloads and the end of each server, over the HTTP version that is asked for",
        arguments: GraphQLServer.allCases,
        [nil, "1.1", "2"]
    )
    func theTool(_ server: GraphQLServer, _ version: String?) async throws {
        // HTTP/2 without TLS is not spoken by these servers.
        if version == "2", !server.isHTTP2 { return }
        var arguments = [servers.url(server), "--query", "subscription { count(to: 3) }", "--json"]
        arguments += ["--cacert", servers.authority, "--max-time", "30"]
        if let version { arguments += ["--http", version] }

        let (lines, code) = try await ToolProcess(arguments).output()

        #expect(
            lines.map(gist) == ["connecting", "open", "payload", "payload", "payload", "complete", "ended"],
            "\(lines)"
        )
        #expect(code == 0)
    }

    @Test("a redirect of a mounted application is followed with its body")
    func mounted() async throws {
        let url = servers.ariadne.replacing("/graphql", with: "/mounted")

        let (lines, code) = try await ToolProcess([url, "--query", "subscription { count(to: 2) }"]).output()

        #expect(lines == ["{\"data\": {\"count\": 1}}", "{\"data\": {\"count\": 2}}"])
        #expect(code == 0)
    }

    @Test("the tool leaves at any moment of a live TLS stream: the code is 130, and nothing crashes")
    func leavesLiveStreams() async throws {
        for round in 0..<10 {
            let tool = try ToolProcess([
                servers.strawberryOverHTTP2, "--query", "subscription { count(to: 100000, intervalMs: 1) }", "--json",
                "--cacert", servers.authority,
            ])
            // A moment that differs: after so many lines.
            var lines = 0
            for await _ in tool.lines {
                lines += 1
                if lines > round * 3 { break }
            }
            tool.signal(SIGINT)
            #expect(await tool.exitCode() == 130)
        }
    }
}
