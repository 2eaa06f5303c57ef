// One measurement, from its start to its line.

internal import CurlSSETransport
internal import SubscriptionRuntime

struct Run: Sendable {
    let arguments: Arguments
    let transport: EventSourceTransport
    let environment: SubscriptionEnvironment<EventSourceRequest, ServerSentEvent>
    let tally = Tally()
    let residentBefore = processStatus("VmRSS")

    init(_ arguments: Arguments) throws {
        self.arguments = arguments
        transport = try EventSourceTransport(arguments.url, dialect: EventSource())
        environment = SubscriptionEnvironment(transport: Reading(transport: transport, onLoop: arguments.onLoop))
    }

    func measure() async throws {
        var first = Moment.now
        var last = first
        var events = 0
        var resident = 0
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<arguments.connections { start(number, in: &group) }
            guard arguments.kind.hasWindow else { return }
            let clock = ContinuousClock()
            // Polled: a figure's window may begin some milliseconds after the last stream is open.
            while transport.counters.openStreams < arguments.connections {
                try? await clock.sleep(for: .milliseconds(5))
            }
            // What the openings left behind is none of the window's.
            try? await clock.sleep(for: .milliseconds(500))
            first = Moment.now
            tally.begin()
            let before = tally.events
            try? await clock.sleep(for: .seconds(arguments.seconds))
            last = Moment.now
            events = tally.events - before
            // While they are open: some of what they hold goes back to the system with them.
            resident = processStatus("VmRSS")
            group.cancelAll()
        }
        if !arguments.kind.hasWindow {
            last = Moment.now
            events = tally.events
            resident = processStatus("VmRSS")
        }
        report(first, last, events, resident)
        await environment.end()
        await transport.curlLoop.shutdown()
    }

    private func start(_ number: Int, in group: inout TaskGroup<Void>) {
        // Each its own request, so that no two share a stream.
        let request = EventSourceRequest(target: arguments.connections > 1 ? "?client=\(number)" : "")
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
    func readSequence(_ request: EventSourceRequest) async {
        var counter = Counter(tally, arguments)
        do throws(SubscriptionFailure) {
            let stream = try await transport.open(request, resuming: nil)
            for try await event in stream where !counter.took(event) { break }
        } catch {
            note(error)
        }
        counter.end()
    }

    /// Takes a subscription's deliveries until its stream ends for the first time.
    func readDeliveries(_ request: EventSourceRequest) async {
        let handle = environment.handle(for: request)
        var counter = Counter(tally, arguments)
        do throws(SubscriptionEnd) {
            for try await delivery in handle.deliveries() {
                switch delivery {
                case .payload(let event):
                    if !counter.took(event) { return counter.end() }
                case .baseline(.lagged(let dropped)):
                    tally.lost(dropped)
                case .baseline:
                    break
                }
            }
        } catch {
            tally.failed()
        }
        counter.end()
    }

    /// A body that ends is how a blast ends; anything else is told.
    func note(_ failure: SubscriptionFailure) {
        guard case .network(let error as TransportError, _) = failure, error.bytesReceived > 0 else {
            print(failure)
            return tally.failed()
        }
    }

    func report(_ first: Moment, _ last: Moment, _ events: Int, _ resident: Int) {
        let cpu = last.cpu - first.cpu
        let wall = last.wall - first.wall
        var line = "RESULT peer=stream kind=\(arguments.kind.rawValue) conns=\(arguments.connections) events=\(events)"
        line += " mb=\(Double(transport.counters.bytesReceived) / 1e6) wall=\(wall) cpu=\(cpu)"
        line += " ev_s=\(Double(events) / wall) mb_s=\(Double(transport.counters.bytesReceived) / 1e6 / wall)"
        line += " cpu_per_m=\(events == 0 ? 0 : cpu / Double(events) * 1e6)"
        line += " rss0_kb=\(residentBefore) rss1_kb=\(resident) threads=\(processStatus("Threads"))"
        line += " lost=\(tally.lostPayloads) failures=\(tally.failures)"
        if let delays = tally.delays {
            line += " p50_us=\(delays.median) p99_us=\(delays.p99) max_us=\(delays.maximum)"
        }
        print(line)
    }
}
