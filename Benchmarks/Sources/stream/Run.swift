// One measurement, from its start to its line.

internal import CurlSSETransport
internal import SubscriptionRuntime

struct Run<D: Measured>: Sendable {
    let arguments: Arguments
    let dialect: D
    let transport: CurlTransport<D>
    let environment: SubscriptionEnvironment<D.Request, D.Payload>
    let tally = Tally()
    let residentBefore = processStatus("VmRSS")

    init(_ arguments: Arguments, _ dialect: D) throws {
        self.arguments = arguments
        self.dialect = dialect
        var configuration = Configuration()
        if let keepalive = arguments.keepalive { configuration.keepaliveIdle = .seconds(keepalive) }
        transport = try CurlTransport(arguments.url, dialect: dialect, configuration: configuration)
        environment = SubscriptionEnvironment(transport: Reading(transport: transport, onLoop: arguments.onLoop))
    }

    /// Measures and prints.
    ///
    /// - Returns: Whether all streams went as they should.
    /// - Throws: That not all streams opened.
    func measure() async throws -> Bool {
        var first = Moment.now
        var last = first
        var events = 0
        var resident = 0
        var hasWindow = true
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<arguments.connections { start(number, in: &group) }
            guard arguments.kind.hasWindow else { return }
            hasWindow = await areOpen()
            if hasWindow {
                let clock = ContinuousClock()
                // What the openings left behind is none of the window's.
                try? await clock.sleep(for: .seconds(arguments.pause))
                first = Moment.now
                tally.begin()
                let before = tally.events
                try? await clock.sleep(for: .seconds(arguments.seconds))
                last = Moment.now
                events = tally.events - before
                // While they are open: some of what they hold goes back to the system with them.
                resident = processStatus("VmRSS")
                checkWindow()
            }
            tally.close()
            group.cancelAll()
        }
        if !arguments.kind.hasWindow {
            last = Moment.now
            events = tally.events
            resident = processStatus("VmRSS")
        }
        await environment.end()
        if !arguments.kind.hasWindow { check(events) }
        if let failure = tally.firstFailure { complain("stream: \(failure)") }
        guard hasWindow else { throw NotOpen() }
        report(first, last, events, resident)
        await transport.curlLoop.shutdown()
        return tally.failures == 0
    }

    /// Waits until all streams are open; false when one failed, or it took too long.
    ///
    /// Polled: a figure's window may begin some milliseconds after the last stream is open.
    private func areOpen() async -> Bool {
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(30)
        while transport.counters.openStreams < arguments.connections {
            if transport.counters.failures > 0 || tally.failures > 0 {
                tally.failed("an opening failed")
                return false
            }
            if clock.now > deadline {
                tally.failed(
                    "\(transport.counters.openStreams) of \(arguments.connections) streams are open after 30 s"
                )
                return false
            }
            try? await clock.sleep(for: .milliseconds(5))
        }
        return true
    }

    /// A stream that ended inside the window, or came back, is a failure.
    private func checkWindow() {
        let (open, openings) = (transport.counters.openStreams, transport.counters.openings)
        if open == arguments.connections, openings == arguments.connections { return }
        tally.failed("\(openings) openings, and \(open) streams are open at the window's end")
    }

    /// Other events than were asked for are a failure; an owner is told what it lost.
    private func check(_ events: Int) {
        guard let expected = arguments.expected, events + tally.lostPayloads != expected else { return }
        tally.failed("\(events) events and \(tally.lostPayloads) lost, not \(expected)")
    }

    private func start(_ number: Int, in group: inout TaskGroup<Void>) {
        let request = dialect.request(number: number)
        for _ in 0..<(arguments.deliveries ?? 1) {
            group.addTask(executorPreference: arguments.onLoop ? transport.curlLoop.executor : nil) {
                if arguments.deliveries == nil {
                    await readSequence(request)
                } else {
                    await readDeliveries(request)
                }
            }
        }
    }

    /// Reads the transport's own sequence to its end.
    func readSequence(_ request: D.Request) async {
        var counter = Counter(tally, arguments)
        do throws(SubscriptionFailure) {
            let stream = try await transport.open(request, resuming: nil)
            for try await payload in stream where !counter.took(payload) { break }
            if arguments.kind.hasWindow { tally.failed("a stream completed inside the window") }
        } catch {
            note(error)
        }
        counter.end()
    }

    /// Takes a subscription's deliveries until it has had all that were asked for.
    func readDeliveries(_ request: D.Request) async {
        let handle = environment.handle(for: request)
        var counter = Counter(tally, arguments)
        do throws(SubscriptionEnd) {
            for try await delivery in handle.deliveries() {
                switch delivery {
                case .payload(let payload):
                    if !counter.took(payload) { return counter.end() }
                case .baseline(.lagged(let dropped)):
                    if !counter.lost(dropped) { return counter.end() }
                case .baseline(.resumed):
                    tally.failed("a stream ended and came back")
                    return counter.end()
                case .baseline(.opened):
                    break
                }
            }
            if arguments.limit != nil || arguments.kind.hasWindow { tally.failed("deliveries ended too soon") }
        } catch {
            tally.failed("\(error)")
        }
        counter.end()
    }

    /// A body that ends, by libcurl and by HTTP, is how a blast ends; anything else is a failure.
    ///
    /// Whether all events had come by then is looked at in the end.
    func note(_ failure: SubscriptionFailure) {
        if !arguments.kind.hasWindow, case .network(let error as TransportError, _) = failure,
            error.status == 200, error.curlCode == nil
        {
            return
        }
        tally.failed("\(failure)")
    }

    func report(_ first: Moment, _ last: Moment, _ events: Int, _ resident: Int) {
        let cpu = last.cpu - first.cpu
        let wall = last.wall - first.wall
        var line = "RESULT peer=stream kind=\(arguments.kind.rawValue) conns=\(arguments.connections) events=\(events)"
        line += " mb=\(Double(transport.counters.bytesReceived) / 1e6) wall=\(wall) cpu=\(cpu)"
        line += " ev_s=\(Double(events) / wall) mb_s=\(Double(transport.counters.bytesReceived) / 1e6 / wall)"
        line += " cpu_per_m=\(events == 0 ? 0 : cpu / Double(events) * 1e6)"
        line += " wakeups_s=\(Double(last.switches - first.switches) / wall)"
        line += " rss0_kb=\(residentBefore) rss1_kb=\(resident) threads=\(processStatus("Threads"))"
        line += " sum=\(tally.sum) lost=\(tally.lostPayloads) failures=\(tally.failures)"
        if let delays = tally.delays {
            line += " p50_us=\(delays.median) p99_us=\(delays.p99) max_us=\(delays.maximum)"
        }
        print(line)
    }
}

/// Not all streams opened.
struct NotOpen: Error, CustomStringConvertible {
    var description: String { "not all streams opened; no figures" }
}
