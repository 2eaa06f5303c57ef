import CCurl
import CurlSSETransport
import Foundation
import SubscriptionRuntime
import SubscriptionTesting
import SystemProbe
import Testing

private let head = ReplayServer.eventStreamHead

/// A server behind nginx: one event, and then silence until it is told to go on, and another.
private func twoEvents() throws -> ReplayServer {
    try ReplayServer(otherwise: [.expectRequest, .send(head + "data: a\n\n"), .silence, .send("data: b\n\n"), .close])
}

/// A server behind nginx that ends its stream after one event.
private func oneEvent() throws -> ReplayServer { try ReplayServer.answering(head, "data: a\n\n") }

/// A configuration that trusts the first authority.
private func trusting(
    _ certificates: Certificates,
    _ configure: (inout Configuration) -> Void = { _ in }
) -> (inout Configuration) -> Void {
    var configuration = Configuration()
    configuration.tls.caFile = certificates.authority
    configure(&configuration)
    let result = configuration
    return { $0 = result }
}

@Suite("TLS and HTTP/2, with nginx in front", .timeLimit(.minutes(5)))
struct TLSTests {
    private let certificates: Certificates

    init() throws {
        certificates = try Certificates.shared()
    }

    // MARK: Trust

    @Test("a server that the CA file vouches for is spoken to, over HTTP/2")
    func trusted() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(nginx.url, trusting(certificates)).read(EventSourceRequest(lastEventID: "7"))
        #expect(read.payloads.map(\.data.text) == ["a"])
        #expect(read.end == .failed(.network))
        #expect(read.error?.httpVersion == "2")
        let request = try #require(server.journal.requests.first)
        #expect(request.field("X-Protocol") == "HTTP/2.0")
        #expect(request.field("Last-Event-ID") == "7")
    }

    @Test("HTTP/1.1 alone is spoken where it is asked for")
    func oldVersion() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(nginx.url, trusting(certificates) { $0.httpVersion = .http1_1 })
            .read(EventSourceRequest())
        #expect(read.payloads.count == 1)
        #expect(server.journal.requests.first?.field("X-Protocol") == "HTTP/1.1")
    }

    @Test("T4: a server that nobody vouches for is a network failure that says so, and gets no request")
    func untrusted() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let other = certificates.otherAuthority
        for read in [
            try await plain(nginx.url) { $0.tls.caFile = other }.read(EventSourceRequest()),
            try await plain(nginx.url).read(EventSourceRequest()),
        ] {
            #expect(read.end == .failed(.network))
            #expect(read.error?.curlCode == 60)
            #expect(read.error?.message.contains("certificate") == true)
            #expect(read.error?.message.contains("verify result") == true)
        }
        #expect(server.journal.connections == 0)
    }

    @Test("a certificate of another name is a network failure that says so")
    func otherName() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(
            "https://elsewhere.test:\(nginx.port)/",
            trusting(certificates) {
                $0.resolve = [.init(host: "elsewhere.test", port: nginx.port, address: "127.0.0.1")]
            }
        ).read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.curlCode == 60)
        #expect(read.error?.message.contains("elsewhere.test") == true)
        #expect(server.journal.connections == 0)
    }

    @Test("only the switch that is named for it does without a check")
    func insecure() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(nginx.url) { $0.tls.insecureSkipsVerification = true }.read(EventSourceRequest())
        #expect(read.payloads.count == 1)
    }

    @Test("T5: the right pin is let pass; a wrong one is a network failure that names the pin, before any request")
    func pins() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let pin = certificates.pin
        let right = try await plain(nginx.url, trusting(certificates) { $0.tls.pinnedPublicKey = pin })
            .read(EventSourceRequest())
        #expect(right.payloads.count == 1)
        let file = certificates.folder.path("server.der")
        let byFile = try await plain(nginx.url, trusting(certificates) { $0.tls.pinnedPublicKey = file })
            .read(EventSourceRequest())
        #expect(byFile.payloads.count == 1)
        let wrong = "sha256//" + String(repeating: "A", count: 43) + "="
        let refused = try await plain(nginx.url, trusting(certificates) { $0.tls.pinnedPublicKey = wrong })
            .read(EventSourceRequest())
        #expect(refused.end == .failed(.network))
        #expect(refused.error?.curlCode == 90)
        #expect(refused.error?.message.contains("pin") == true)
        #expect(server.journal.requestCount == 2)
    }

    @Test("a server that speaks no TLS 1.3 is refused where that is the least")
    func minimumVersion() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(nginx.oldURL, trusting(certificates) { $0.tls.minimumVersion = .tls1_3 })
            .read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.curlCode == 35)
        #expect(try await plain(nginx.oldURL, trusting(certificates)).read(EventSourceRequest()).payloads.count == 1)
        let new = try await plain(nginx.url, trusting(certificates) { $0.tls.minimumVersion = .tls1_3 })
            .read(EventSourceRequest())
        #expect(new.payloads.count == 1)
    }

    @Test("a CA file, certificate or key that cannot be read is an environment failure that names it")
    func files() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let folder = certificates.folder
        let broken = folder.path("names")
        let cases: [(String, (inout Configuration) -> Void)] = [
            ("/nowhere/ca.pem", { $0.tls.caFile = "/nowhere/ca.pem" }),
            (broken, { $0.tls.caFile = broken }),
            ("certificate", { $0.tls.clientCertificate = "/nowhere/alice.pem" }),
            ("certificate", { $0.tls.clientCertificate = broken }),
            (
                "/nowhere/alice.key",
                {
                    $0.tls.clientCertificate = folder.path("alice.pem")
                    $0.tls.clientKey = "/nowhere/alice.key"
                }
            ),
            (
                "key",
                {
                    $0.tls.clientCertificate = folder.path("alice.pem")
                    $0.tls.clientKey = folder.path("bob.key")
                }
            ),
        ]
        for (named, configure) in cases {
            let read = try await plain(nginx.url, trusting(certificates, configure)).read(EventSourceRequest())
            #expect(read.end == .failed(.environment), "\(named)")
            #expect(read.error?.message.contains(named) == true, "\(read.error?.message ?? "")")
        }
        #expect(server.journal.connections == 0)
    }

    @Test("T3: a client is who its certificate says, and two clients on one loop share no connection")
    func clientCertificates() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let folder = certificates.folder
        let loop = try CurlLoop()
        let nobody = try await plain(nginx.mutualURL, loop: loop, trusting(certificates)).read(EventSourceRequest())
        #expect(nobody.end == .failed(.request))
        #expect(nobody.error?.status == 400)
        var streams: [PayloadStream<ServerSentEvent>] = []
        for name in ["alice", "bob", "alice"] {
            let configure = trusting(certificates) {
                $0.tls.clientCertificate = folder.path("\(name).pem")
                $0.tls.clientKey = folder.path("\(name).key")
            }
            let transport = try plain(nginx.mutualURL, loop: loop, configure)
            streams.append(try await transport.open(EventSourceRequest(), resuming: nil))
        }
        let requests = server.journal.requests
        #expect(requests.map { $0.field("X-Client") } == ["CN=alice", "CN=bob", "CN=alice"])
        let connections = requests.map { $0.field("X-Connection") }
        #expect(connections[0] != connections[1])
        #expect(connections[0] == connections[2])
        withExtendedLifetime(streams) {}
    }

    /// Puts a file in another's place, as a rotation does: what has it open keeps what it has.
    private func replace(_ path: String, with source: String) throws {
        try Data(contentsOf: URL(filePath: source)).write(to: URL(filePath: path), options: .atomic)
    }

    @Test("T3: after a client certificate was replaced under its name the next opening presents the new one")
    func rotatedCertificate() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let folder = try TemporaryFolder()
        func rotate(to name: String) throws {
            try replace(folder.path("client.key"), with: certificates.folder.path("\(name).key"))
            try replace(folder.path("client.pem"), with: certificates.folder.path("\(name).pem"))
        }
        try rotate(to: "alice")
        let transport = try plain(
            nginx.mutualURL,
            trusting(certificates) {
                $0.tls.clientCertificate = folder.path("client.pem")
                $0.tls.clientKey = folder.path("client.key")
            }
        )
        var streams: [PayloadStream<ServerSentEvent>] = []
        for name in ["alice", "bob", "alice"] {
            try rotate(to: name)
            for _ in 0..<2 { streams.append(try await transport.open(EventSourceRequest(), resuming: nil)) }
        }
        let requests = server.journal.requests
        let names = ["CN=alice", "CN=alice", "CN=bob", "CN=bob", "CN=alice", "CN=alice"]
        #expect(requests.map { $0.field("X-Client") } == names)
        // Each on a connection of its own time, which two share.
        let connections = requests.map { $0.field("X-Connection") }
        #expect(Set(connections).count == 3)
        #expect(connections[0] == connections[1] && connections[2] == connections[3])
        server.proceed()
        for stream in streams {
            var texts: [String] = []
            _ = await #expect(throws: SubscriptionFailure.self) {
                for try await event in stream { texts.append(event.data.text) }
            }
            #expect(texts == ["a", "b"])
        }
    }

    @Test("T3: nor does a connection that was kept, or its TLS session, keep the old identity for the next opening")
    func rotatedKeptConnection() async throws {
        let server = try ReplayServer { _, _ in [.send(ReplayServer.response(404))] }
        let nginx = try await Nginx(to: server)
        let folder = try TemporaryFolder()
        // Certificate and key in one file.
        func rotate(to name: String) throws {
            let parts = try ["pem", "key"].map {
                try Data(contentsOf: URL(filePath: certificates.folder.path("\(name).\($0)")))
            }
            try (parts[0] + parts[1]).write(to: folder.url.appendingPathComponent("both.pem"), options: .atomic)
        }
        try rotate(to: "alice")
        let transport = try plain(
            nginx.mutualURL,
            trusting(certificates) {
                $0.httpVersion = .http1_1
                $0.tls.clientCertificate = folder.path("both.pem")
            }
        )
        for _ in 0..<2 { #expect(await transport.read(EventSourceRequest()).error?.status == 404) }
        try rotate(to: "bob")
        #expect(await transport.read(EventSourceRequest()).error?.status == 404)
        let requests = server.journal.requests
        #expect(requests.map { $0.field("X-Client") } == ["CN=alice", "CN=alice", "CN=bob"])
        #expect(requests[0].field("X-Connection") == requests[1].field("X-Connection"))
    }

    @Test("T3: after a CA file was replaced under its name the next opening trusts whom the new one names")
    func rotatedAuthority() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let folder = try TemporaryFolder()
        let file = folder.path("ca.pem")
        try replace(file, with: certificates.authority)
        let transport = try plain(nginx.url) { $0.tls.caFile = file }
        #expect(await transport.read(EventSourceRequest()).payloads.count == 1)
        try replace(file, with: certificates.otherAuthority)
        let refused = await transport.read(EventSourceRequest())
        #expect(refused.error?.curlCode == 60)
        try replace(file, with: certificates.authority)
        #expect(await transport.read(EventSourceRequest()).payloads.count == 1)
        #expect(server.journal.requestCount == 2)
    }

    @Test("a CA file or path is trusted in place of the system's, which are not even looked at")
    func authorityAlone() async throws {
        await #expect(processExitsWith: .success) {
            let certificates = try Certificates.shared()
            let server = try oneEvent()
            let nginx = try await Nginx(to: server)
            let (empty, other, right) = (try TemporaryFolder(), try TemporaryFolder(), try TemporaryFolder())
            for (folder, authority) in [(other, certificates.otherAuthority), (right, certificates.authority)] {
                try FileManager.default.copyItem(atPath: authority, toPath: folder.path("ca.pem"))
                try run("openssl", package: "openssl", ["rehash", folder.url.path], log: folder.path("log"))
            }
            let info = try #require(ccurl_version_info()).pointee
            let system = info.capath ?? info.cainfo
            probe_watch_files(system)
            let cases: [(file: String?, path: String?, code: Int?)] = [
                (certificates.otherAuthority, nil, 60),
                (nil, empty.url.path, 60),
                (nil, other.url.path, 60),
                (nil, right.url.path, nil),
                (certificates.otherAuthority, right.url.path, nil),
                (certificates.authority, empty.url.path, nil),
            ]
            for (file, path, code) in cases {
                let read = try await plain(nginx.url) {
                    $0.tls.caFile = file
                    $0.tls.caPath = path
                }.read(EventSourceRequest())
                #expect(read.error?.curlCode == code, "\(file ?? "none"), \(path ?? "none")")
                #expect(read.payloads.count == (code == nil ? 1 : 0))
            }
            #expect(probe_watched_files() == 0)
            nginx.signal(SIGKILL)
        }
    }

    @Test("a server that speaks no TLS 1.2 is refused by itself, whatever OpenSSL would let pass")
    func ancient() async throws {
        await #expect(processExitsWith: .success) {
            let certificates = try Certificates.shared()
            let server = try oneEvent()
            let nginx = try await Nginx(to: server)
            let address = "127.0.0.1:\(nginx.ancientPort)"
            let words = ["s_client", "-connect", address, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
            // There is a way to speak to it.
            try run("openssl", package: "openssl", words, log: certificates.folder.path("ancient.log"))
            let folder = try TemporaryFolder()
            // Read when libcurl is set up, by the first transport.
            try """
            openssl_conf = all
            [all]
            ssl_conf = ssl
            [ssl]
            system_default = tls
            [tls]
            MinProtocol = TLSv1
            CipherString = ALL:@SECLEVEL=0
            """.write(toFile: folder.path("openssl.cnf"), atomically: true, encoding: .utf8)
            setenv("OPENSSL_CONF", folder.path("openssl.cnf"), 1)
            let read = try await plain(nginx.ancientURL, trusting(certificates)).read(EventSourceRequest())
            #expect(read.end == .failed(.network))
            #expect(read.error?.curlCode == 35)
            #expect(
                try await plain(nginx.oldURL, trusting(certificates)).read(EventSourceRequest()).payloads.count == 1
            )
            nginx.signal(SIGKILL)
        }
    }

    @Test("S1: the way from https to http is not followed")
    func downgrade() async throws {
        let target = try oneEvent()
        let server = try ReplayServer { _, _ in [.send(ReplayServer.response(302, [("Location", target.url)]))] }
        let nginx = try await Nginx(to: server)
        let url = target.url
        let read = try await plain(nginx.url, trusting(certificates) { $0.trustedOrigins = [url] })
            .read(EventSourceRequest())
        #expect(read.end == .failed(.request))
        #expect(read.error?.message.contains("from https to http") == true)
        #expect(target.journal.connections == 0)
    }

    // MARK: HTTP/2

    @Test("a burst of openings shares one connection, and one that is cancelled leaves it to the others")
    func shared() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates))
        var streams = try await withThrowingTaskGroup { group in
            for _ in 0..<60 { group.addTask { try await transport.open(EventSourceRequest(), resuming: nil) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(server.journal.requests.map { $0.field("X-Connection") }).count == 1)
        streams.removeLast(30)
        #expect(await holds { transport.counters.openStreams == 30 })
        #expect(await server.reaches { $0.openConnections == 30 }, "\(server.journal)")
        streams.append(try await transport.open(EventSourceRequest(), resuming: nil))
        #expect(Set(server.journal.requests.map { $0.field("X-Connection") }).count == 1)
        server.proceed()
        for stream in streams {
            var texts: [String] = []
            _ = await #expect(throws: SubscriptionFailure.self) {
                for try await event in stream { texts.append(event.data.text) }
            }
            #expect(texts == ["a", "b"])
        }
    }

    @Test(
        "T1: a server that goes away, by its own will or not, fails each stream of the connection by a network failure",
        arguments: [SIGTERM, SIGKILL]
    )
    func goingAway(signal: Int32) async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates))
        await withTaskGroup { group in
            for _ in 0..<30 {
                group.addTask {
                    let read = await transport.read(EventSourceRequest())
                    #expect(read.payloads.map(\.data.text) == ["a"])
                    #expect(read.end == .failed(.network))
                }
            }
            #expect(await holds { transport.counters.openStreams == 30 })
            nginx.signal(signal)
        }
        nginx.waitUntilExit()
        let refused = await transport.read(EventSourceRequest())
        #expect(refused.error?.curlCode == 7)
        try await nginx.start()
        let stream = try await transport.open(EventSourceRequest(), resuming: nil)
        withExtendedLifetime(stream) {}
        #expect(transport.counters.faults == 0)
    }

    @Test("L7: a shared connection that has gone silent is closed with the first stream that finds out")
    func silentConnection() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let loop = try CurlLoop()
        let patient = try plain(nginx.url, loop: loop, trusting(certificates))
        let hasty = try plain(nginx.url, loop: loop, trusting(certificates) { $0.idleTimeout = .milliseconds(300) })
        let neighbour = try await patient.open(EventSourceRequest(), resuming: nil)
        let read = await hasty.read(EventSourceRequest())
        #expect(read.error?.message.contains("said nothing for 300 ms") == true)
        // Its neighbour fails now, and not in five minutes; the next one has a connection of its own.
        let error = await #expect(throws: SubscriptionFailure.self) { for try await _ in neighbour {} }
        #expect(error?.kind == .network)
        let next = try await patient.open(EventSourceRequest(), resuming: nil)
        let connections = server.journal.requests.map { $0.field("X-Connection") }
        #expect(connections.count == 3)
        #expect(connections[0] == connections[1])
        #expect(connections[1] != connections[2])
        withExtendedLifetime(next) {}
    }

    @Test("L7: so is one with a single stream, which would else be kept for the next")
    func silentAlone() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates) { $0.idleTimeout = .milliseconds(200) })
        for _ in 0..<2 { _ = await transport.read(EventSourceRequest()) }
        let connections = server.journal.requests.map { $0.field("X-Connection") }
        #expect(connections.count == 2)
        #expect(connections[0] != connections[1])
    }

    /// How a stream stays silent on a connection where another does not.
    enum Silence: CaseIterable {
        case stream, head, refusal
    }

    @Test("L7: a stream that is silent where its neighbours are heard fails alone", arguments: Silence.allCases)
    func silentBesideOthers(silence: Silence) async throws {
        let server = try ReplayServer { _, request in
            switch (request.target, silence) {
            case ("/quiet", .stream): [.send(head + "data: a\n\n"), .silence]
            case ("/quiet", .head): [.silence]
            case ("/quiet", .refusal): [.send("HTTP/1.1 503 \r\nContent-Length: 1000\r\n\r\nno"), .silence]
            default:
                [.send(head)] + (0..<100).flatMap { [.send("data: \($0)\n\n"), .pause(.milliseconds(50))] } + [.silence]
            }
        }
        let nginx = try await Nginx(to: server)
        let loop = try CurlLoop()
        let patient = try plain(nginx.url, loop: loop, trusting(certificates))
        let hasty = try plain(
            nginx.url,
            loop: loop,
            trusting(certificates) {
                $0.idleTimeout = .seconds(2)
                $0.firstByteTimeout = .seconds(2)
            }
        )
        var heard = try await patient.open(EventSourceRequest(), resuming: nil).makeAsyncIterator()
        let read = await hasty.read(EventSourceRequest(target: "/quiet"))
        #expect(read.end == .failed(.network))
        for number in 0..<100 { #expect(try await heard.next()?.data.text == "\(number)") }
        let next = try await patient.open(EventSourceRequest(), resuming: nil)
        let connections = server.journal.requests.map { $0.field("X-Connection") }
        #expect(connections.count == 3)
        #expect(Set(connections).count == 1, "\(connections)")
        withExtendedLifetime((heard, next)) {}
    }

    @Test("T2: streams beyond what a connection may hold open another one")
    func narrow() async throws {
        let server = try twoEvents()
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.narrowURL, trusting(certificates))
        var streams: [PayloadStream<ServerSentEvent>] = []
        for _ in 0..<5 { streams.append(try await transport.open(EventSourceRequest(), resuming: nil)) }
        #expect(Set(server.journal.requests.map { $0.field("X-Connection") }).count >= 3)
        withExtendedLifetime(streams) {}
    }

    @Test("M6: a stream that nobody reads does not hold up its neighbours, and gives everything in order later")
    func heldBack() async throws {
        let count = 3000
        let payload = String(repeating: "x", count: 4000)
        let server = try ReplayServer { _, request in
            request.target == "/flood"
                ? [.send(head), .sendRepeating(Array("data: \(payload)\n\n".utf8), count: count), .close]
                : [.send(head)] + (0..<200).map { .send("data: \($0)\n\n") } + [.close]
        }
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates))
        let flood = try await transport.open(EventSourceRequest(target: "/flood"), resuming: nil)
        for _ in 0..<5 {
            let read = await transport.read(EventSourceRequest())
            #expect(read.payloads.map(\.data.text) == (0..<200).map(String.init))
        }
        #expect(Set(server.journal.requests.map { $0.field("X-Connection") }).count == 1)
        var arrived = 0
        _ = await #expect(throws: SubscriptionFailure.self) {
            for try await event in flood {
                #expect(event.data.count == payload.utf8.count)
                arrived += 1
            }
        }
        #expect(arrived == count)
    }

    @Test("a stream that is cancelled while it is held back leaves the connection to its neighbours")
    func cancelledHeldBack() async throws {
        let server = try ReplayServer { _, request in
            request.target == "/flood"
                ? [.send(head), .sendForever(Array("data: x\n\n".utf8))]
                : [.send(head + "data: a\n\n"), .silence, .send("data: b\n\n"), .close]
        }
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates))
        let neighbour = try await transport.open(EventSourceRequest(), resuming: nil)
        for count in 1...4 {
            var flood: PayloadStream<ServerSentEvent>?
            flood = try await transport.open(EventSourceRequest(target: "/flood"), resuming: nil)
            // Its window is full, as libcurl takes what comes and hands nothing on: the server cannot send any more.
            let number = server.journal.requests.last?.connection ?? 0
            #expect(await server.reaches { $0[connection: number]?.isHeldBack == true })
            #expect(transport.counters.bytesReceived < count * 512 << 10)
            #expect(flood != nil)
            flood = nil
            #expect(await server.reaches { $0[connection: number]?.peerEnded != nil })
        }
        #expect(await server.reaches { $0.openConnections == 1 })
        server.proceed()
        var texts: [String] = []
        _ = await #expect(throws: SubscriptionFailure.self) {
            for try await event in neighbour { texts.append(event.data.text) }
        }
        #expect(texts == ["a", "b"])
        #expect(Set(server.journal.requests.map { $0.field("X-Connection") }).count == 1)
    }

    @Test(
        "M6: a stream over TLS whose server ends while it is held back gives all that was sent",
        arguments: [Configuration.HTTPVersion.automatic, .http1_1]
    )
    func endedWhileHeldBack(version: Configuration.HTTPVersion) async throws {
        let text = String(repeating: "x", count: 4000)
        let count = 300
        let server = try ReplayServer { _, request in
            request.target == "/flood"
                ? [.send(head)] + (0..<count).map { .send("data: \($0) \(text)\n\n") } + [.close]
                : [.send(head + "data: a\n\n"), .silence, .send("data: b\n\n"), .close]
        }
        let nginx = try await Nginx(to: server)
        let transport = try plain(nginx.url, trusting(certificates) { $0.httpVersion = version })
        // Over HTTP/2 on one connection with it.
        let neighbour = try await transport.open(EventSourceRequest(), resuming: nil)
        let flood = try await transport.open(EventSourceRequest(target: "/flood"), resuming: nil)
        if version == .automatic {
            #expect(await server.reaches { $0[connection: 2]?.ended != nil })
        }
        // Held back: full with what 64 bytes a payload beside its own leave of 256 KiB.
        #expect(await holds { transport.counters.bytesReceived >= 64 * 4000 })
        #expect(transport.counters.bytesReceived < count * 4000 / 2)
        var numbers: [Int?] = []
        let error = await #expect(throws: SubscriptionFailure.self) {
            for try await event in flood { numbers.append(Int(event.data.text.prefix { $0 != " " })) }
        }
        #expect(numbers == Array(0..<count))
        #expect(error?.kind == .network)
        server.proceed()
        var texts: [String] = []
        _ = await #expect(throws: SubscriptionFailure.self) {
            for try await event in neighbour { texts.append(event.data.text) }
        }
        #expect(texts == ["a", "b"])
        #expect(transport.counters.openStreams == 0)
        #expect(transport.counters.faults == 0)
    }

    @Test(
        "M6: a stream that is held back takes none of the processor's time",
        arguments: ["HTTP/2", "HTTP/1.1 over TLS", "HTTP/1.1"]
    )
    func heldBackAtRest(kind: String) async throws {
        await #expect(processExitsWith: .success) { [kind] in
            let secure = kind != "HTTP/1.1"
            let certificates = try Certificates.shared()
            let server = try ReplayServer { _, request in
                request.target == "/flood"
                    ? [.send(head), .sendForever(Array("data: x\n\n".utf8))] : [.send(head), .silence]
            }
            let nginx = try await Nginx(to: server)
            let loop = try CurlLoop()
            let configure = trusting(certificates) {
                $0.httpVersion = kind == "HTTP/2" ? .automatic : .http1_1
                $0.idleTimeout = .seconds(1)
                $0.firstByteTimeout = .seconds(2)
            }
            let transport = try plain(secure ? nginx.url : server.url, loop: loop, configure)
            let flood = try await transport.open(EventSourceRequest(target: "/flood"), resuming: nil)
            #expect(await server.reaches { $0[connection: 1]?.isHeldBack == true })
            // Over HTTP/2 each neighbour has libcurl read more of what it holds back, up to its windows of 32 MiB: until the
            // server has sent nothing more while a neighbour was there.
            var sent: Int?
            while let now = server.journal[connection: 1]?.bytesSent, now != sent {
                sent = now
                _ = await transport.read(EventSourceRequest())
            }
            var (used, limit) = (Duration.seconds(1), Duration.zero)
            // A stream that spins does so each time; what the process itself has to do it does once.
            for _ in 0..<3 where used >= limit {
                let before = ProcessUse.processorTime
                // Another stream's silence takes a second.
                let (read, elapsed) = await timed { await transport.read(EventSourceRequest()) }
                used = ProcessUse.processorTime - before
                limit = elapsed * 0.05 + .milliseconds(50)
                #expect(read.end == .failed(.network))
                #expect(elapsed >= .seconds(1))
            }
            #expect(used < limit, "\(used)")
            withExtendedLifetime(flood) {}
            nginx.signal(SIGKILL)
        }
    }

    // MARK: The way

    @Test("a Unix socket, and an override of what a name resolves to, lead to the server")
    func ways() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let socket = nginx.unixSocket
        let local = try await plain("http://anything.test/a") { $0.unixSocket = socket }.read(EventSourceRequest())
        #expect(local.payloads.count == 1)
        let named = try await plain(
            "https://server.test:\(nginx.port)/b",
            trusting(certificates) {
                $0.resolve = [.init(host: "server.test", port: nginx.port, address: "127.0.0.1")]
            }
        ).read(EventSourceRequest())
        #expect(named.payloads.count == 1)
        #expect(server.journal.requests.map(\.target) == ["/a", "/b"])
    }

    @Test("T6: a proxy tunnels, and its credentials are for it alone")
    func tunnel() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let proxy = try TunnelProxy()
        let read = try await plain(
            nginx.url,
            credentials: Credentials(deadline: .seconds(300)) { _ in [HTTPField("Authorization", "Bearer t")] },
            trusting(certificates) { $0.proxy = .url("http://user:word@127.0.0.1:\(proxy.port)") }
        ).read(EventSourceRequest(headers: [HTTPField("X-Api-Key", "k")]))
        #expect(read.payloads.count == 1)
        let asked = try #require(proxy.heads.first).lowercased()
        #expect(asked.hasPrefix("connect 127.0.0.1:\(nginx.port) http/1.1\r\n"))
        #expect(asked.contains("proxy-authorization: basic "))
        #expect(!asked.contains("bearer") && !asked.contains("x-api-key"))
        let request = try #require(server.journal.requests.first)
        #expect(request.field("Proxy-Authorization") == nil)
        #expect(request.field("X-Api-Key") == "k")
    }

    @Test(
        "T6: a proxy's 407 is a request error, any other refusal of CONNECT a network failure, its body no events",
        arguments: [301, 400, 403, 407, 502, 503]
    )
    func refusedTunnel(status: Int) async throws {
        let proxy = try ReplayServer { _, _ in
            [.send(ReplayServer.response(status, [("Content-Type", "text/event-stream")], body: "data: x\n\n"))]
        }
        let read = try await plain("https://server.test/") { $0.proxy = .url(proxy.url) }.read(EventSourceRequest())
        #expect(read.payloads.isEmpty)
        #expect(read.end == .failed(status == 407 ? .request : .network))
        #expect(read.error?.message.contains("\(status)") == true)
        #expect(proxy.journal.requests.first?.method == "CONNECT")
    }

    @Test("a proxy of plain http is asked for the whole URL")
    func plainProxy() async throws {
        let proxy = try oneEvent()
        let read = try await plain("http://server.test/a?b") { $0.proxy = .url(proxy.url) }.read(EventSourceRequest())
        #expect(read.payloads.count == 1)
        #expect(proxy.journal.requests.first?.target == "http://server.test/a?b")
    }

    @Test(
        "SOCKS leads to the server, by the name where the proxy is to look it up, and tells the proxy alone who asks",
        arguments: ["socks4", "socks4a", "socks5", "socks5h"]
    )
    func socks(scheme: String) async throws {
        let name = "\(scheme).test"
        probe_set_name(name, "127.0.0.1")
        let server = try oneEvent()
        let proxy = try TunnelProxy()
        let isAskedByName = scheme == "socks4a" || scheme == "socks5h"
        let isNewer = scheme.hasPrefix("socks5")
        for (userinfo, said) in [("", ""), ("user:word@", isNewer ? "user:word" : "user")] {
            let url = "http://\(name):\(server.port)/"
            let read = try await plain(url) { $0.proxy = .url("\(scheme)://\(userinfo)127.0.0.1:\(proxy.port)") }
                .read(EventSourceRequest())
            #expect(read.payloads.count == 1)
            let asked = TunnelProxy.SocksRequest(
                version: isNewer ? 5 : 4,
                host: isAskedByName ? name : "127.0.0.1",
                port: server.port,
                userinfo: said
            )
            #expect(proxy.socks.last == asked)
        }
        #expect(proxy.socks.count == 2)
        #expect((probe_lookups(name) == 0) == isAskedByName)
        #expect(server.journal.requests.allSatisfy { $0.field("Host") == "\(name):\(server.port)" })
        #expect(server.journal.requests.allSatisfy { $0.all("Authorization") + $0.all("Proxy-Authorization") == [] })
    }

    @Test("a proxy that refuses, by SOCKS or by itself, is a network failure")
    func refusingProxies() async throws {
        for answer in [[5, 0xFF], [5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0]] as [[UInt8]] {
            let refusing = try ReplayServer(otherwise: [.send(answer), .silence])
            let refused = try await plain("http://server.test/") {
                $0.proxy = .url("socks5h://127.0.0.1:\(refusing.port)")
            }.read(EventSourceRequest())
            #expect(refused.end == .failed(.network))
            #expect(refused.error?.curlCode == 97)
        }
        let dead = try await plain("http://server.test/") { $0.proxy = .url("http://127.0.0.1:1") }
            .read(EventSourceRequest())
        #expect(dead.end == .failed(.network))
        #expect(dead.error?.curlCode == 7)
    }

    @Test("a proxy over TLS is whom the system vouches for, or gets no request: the CA file is for servers")
    func untrustedProxy() async throws {
        let server = try oneEvent()
        let nginx = try await Nginx(to: server)
        let read = try await plain(
            "http://server.test/",
            trusting(certificates) { $0.proxy = .url("https://127.0.0.1:\(nginx.port)") }
        ).read(EventSourceRequest())
        #expect(read.end == .failed(.network))
        #expect(read.error?.curlCode == 60)
        #expect(server.journal.connections == 0)
    }

    @Test("the environment's proxies are heeded only when they are asked for")
    func environment() async {
        await #expect(processExitsWith: .success) {
            let proxy = try ReplayServer.answering(head, "data: proxied\n\n")
            let server = try ReplayServer.answering(head, "data: direct\n\n")
            setenv("http_proxy", proxy.url, 1)
            let direct = try await plain(server).read(EventSourceRequest())
            let proxied = try await plain(server) { $0.proxy = .fromEnvironment }.read(EventSourceRequest())
            let texts = (direct.payloads + proxied.payloads).map(\.data.text)
            exit(texts == ["direct", "proxied"] ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    // MARK: The end of the process

    @Test("a process that exits in the middle of TLS streams exits as it says")
    func exits() async throws {
        for _ in 0..<Setting.count("TRANSPORT_EXITS", default: 3) {
            await #expect(processExitsWith: .exitCode(7)) {
                let certificates = try Certificates.shared()
                let server = try ReplayServer(
                    otherwise: [.expectRequest, .send(head), .sendForever(Array("data: x\n\n".utf8))]
                )
                let nginx = try await Nginx(to: server)
                var configuration = Configuration()
                configuration.tls.caFile = certificates.authority
                let url = nginx.url
                let source = EventSource()
                let transport = try EventSourceTransport(url, dialect: source, configuration: configuration)
                configuration.httpVersion = .http1_1
                let other = try EventSourceTransport(url, dialect: source, configuration: configuration)
                for number in 0..<12 {
                    // Some over HTTP/2, some each over its own connection.
                    Task { _ = await (number % 2 == 0 ? other : transport).read(EventSourceRequest()) }
                }
                _ = await holds { transport.counters.bytesReceived > 1 << 20 }
                nginx.signal(SIGKILL)
                exit(7)
            }
        }
    }

    @Test("a process that exits while its loops are ending exits as it says")
    func exitsAmongEnds() async throws {
        for _ in 0..<Setting.count("TRANSPORT_EXITS", default: 3) {
            await #expect(processExitsWith: .exitCode(7)) {
                let certificates = try Certificates.shared()
                let server = try ReplayServer(
                    otherwise: [.expectRequest, .send(head), .sendForever(Array("data: x\n\n".utf8))]
                )
                let nginx = try await Nginx(to: server)
                var configuration = Configuration()
                configuration.tls.caFile = certificates.authority
                var transports = try (0..<8).map { _ in
                    try EventSourceTransport(nginx.url, dialect: EventSource(), configuration: configuration)
                }
                let tasks = transports.map { transport in
                    Task { _ = await transport.read(EventSourceRequest()) }
                }
                do {
                    let open = transports
                    _ = await holds { open.allSatisfy { $0.counters.bytesReceived > 1 << 16 } }
                }
                // The streams go, the loops with the last who hold them, and the process at the same time.
                for task in tasks { task.cancel() }
                transports = []
                nginx.signal(SIGKILL)
                exit(7)
            }
        }
    }
}
