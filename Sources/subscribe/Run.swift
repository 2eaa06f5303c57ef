// One run: a subscription in an environment of its own, shown on a console until something ends it.

import Foundation
import SubscriptionRuntime

/// Holds one subscription and tells what happens.
struct Run<Request: Hashable & Sendable, Payload: Sendable>: Sendable {
    private let console: Console
    private let watch: Watch
    private let environment: SubscriptionEnvironment<Request, Payload>
    private let handle: SubscriptionHandle<Request, Payload>
    private let shown: @Sendable (Payload) -> Happening
    private let count: Int?
    private let maxTime: Duration?

    /// Prepares a run, which opens nothing before ``untilStop(_:)``.
    ///
    /// - Parameters:
    ///   - transport: Opens the streams.
    ///   - request: What is asked for.
    ///   - options: When to end.
    ///   - console: What shows the run.
    ///   - shown: What is shown of a payload.
    init(
        over transport: some SubscriptionTransport<Request, Payload>,
        asking request: Request,
        options: RunOptions,
        on console: Console,
        shown: @escaping @Sendable (Payload) -> Happening
    ) {
        let watch = Watch(console, isOnce: options.once)
        environment = SubscriptionEnvironment(transport: WatchedTransport(base: transport, watch: watch))
        let handle = environment.handle(for: request)
        watch.read { [weak handle] in
            guard let status = handle?.status else { return Watch.Counts() }
            return Watch.Counts(payloads: status.events, resumptions: status.resumptions)
        }
        self.console = console
        self.watch = watch
        self.handle = handle
        self.shown = shown
        count = options.count
        maxTime = options.maxTime
    }

    /// Runs until something ends it, and closes what it opened.
    ///
    /// - Parameter requests: What signals ask for.
    /// - Returns: What ended it. Everything that happened has been told to the console, the last state included.
    func untilStop(_ requests: AsyncStream<SignalRequest>) async -> Stop {
        let stop = await withTaskGroup(of: Stop?.self) { group in
            group.addTask { await showStates() }
            group.addTask { await showPayloads() }
            group.addTask { await followSignals(requests) }
            group.addTask { await console.stop() }
            group.addTask { await waitForMaxTime() }
            defer { group.cancelAll() }
            for await stop in group {
                if let stop { return stop }
            }
            return .completed
        }
        await environment.end()
        if stop != .completed { console.take(.left(stop.state)) }
        return stop
    }

    private func showPayloads() async -> Stop? {
        var received = 0
        do throws(SubscriptionEnd) {
            for try await delivery in handle.deliveries() {
                // What is a baseline to an owner, the watch has told.
                guard case .payload(let payload) = delivery else { continue }
                console.take(.payload(shown(payload)))
                received += 1
                if received == count { return .counted }
                await console.waitForRoom()
            }
        } catch {
            switch error {
            case .request: return .failed(.request)
            case .environment: return Task.isCancelled ? nil : .failed(.environment)
            }
        }
        guard !Task.isCancelled else { return nil }
        console.take(.completed)
        return .completed
    }

    /// The waits and the parkings: what the transport does not know of.
    private func showStates() async -> Stop? {
        var waitedFor: ContinuousClock.Instant?
        for await status in handle.statuses {
            switch status.stream {
            case .waiting(let until) where until != waitedFor:
                waitedFor = until
                let now = ContinuousClock.now
                console.take(
                    .waiting(
                        until: Date().timeIntervalSince1970 + (until - now) / .seconds(1),
                        seconds: (until - (watch.failedAt ?? now)) / .seconds(1),
                        after: status.events
                    )
                )
            case .idle where !environment.isActive:
                console.take(.parked(after: status.events))
            case .idle, .connecting, .open, .waiting, .ended:
                break
            }
        }
        return nil
    }

    private func followSignals(_ requests: AsyncStream<SignalRequest>) async -> Stop? {
        for await request in requests {
            switch request {
            case .end(let code):
                return .signal(code)
            case .park:
                environment.isActive = false
            case .unpark:
                environment.isActive = true
            case .reopen:
                environment.isActive = false
                environment.isActive = true
            }
        }
        return nil
    }

    private func waitForMaxTime() async -> Stop? {
        guard let maxTime else { return nil }
        // What is asked for is a time to pass: there is no event to wait for.
        guard (try? await Task.sleep(for: maxTime)) != nil else { return nil }
        return .timedOut(hasPayloads: console.payloads > 0)
    }
}

/// When a run ends before its stream does.
struct RunOptions: Equatable {
    var count: Int?
    var maxTime: Duration?
    var once = false
}
