import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("An environment's end", .timeLimit(.minutes(10)))
struct EndTests {
    // I01
    @Test("ends every subscription for good before it first suspends, whatever its state")
    func everyState() async throws {
        let transport = Transport(.watched())
        let environment = Environment(transport: transport, clock: TestClock())
        let states = ["idle", "connecting", "open", "waiting", "refused", "completed"]
        let handles = states.map { environment.handle(for: $0) }
        let retentions = handles.dropFirst().map { $0.retain() }
        for _ in retentions {
            let opening = try await transport.nextOpening()
            switch opening.request {
            case "open": opening.accept()
            case "waiting": opening.fail(.dropped)
            case "refused": opening.fail(.refused)
            case "completed":
                opening.accept()
                opening.complete()
            default: break
            }
        }
        await handles[2].reaches { $0.isOpen }
        await handles[3].reaches { $0.isWaiting }
        await handles[4].reaches { $0.isRefused }
        await handles[5].reaches { $0.isCompleted }

        // What `end()` does before its first suspension.
        environment.core.end()

        for handle in handles {
            #expect(handle.status.isGone)
            guard case .environment(.gone)? = handle.error else {
                Issue.record("the error is \(String(describing: handle.error))")
                return
            }
        }
        #expect(environment.waits == 0)
        await environment.end()
        #expect(environment.running == 0)
        #expect(transport.opened == 5)
        #expect(transport.unclosed == 0)
        for retention in retentions { retention.release() }
    }

    // I01
    @Test("ends a parked subscription for good")
    func parked() async {
        let rig = Rig()
        rig.environment.isActive = false
        let retention = rig.handle.retain()

        rig.environment.core.end()

        #expect(rig.handle.status.isGone)
        retention.release()
        #expect(rig.handle.status.isGone)
        #expect(rig.transport.opened == 0)
    }

    // I02, I03
    @Test("asked for twice, and let go of, returns twice, once no call into the transport runs, and is told of once")
    func twice() async throws {
        let threads = AtOnce(3)
        for _ in 0..<Seeded.races() {
            let transport = Transport(.watched())
            let held = Lock<Environment?>(Environment(transport: transport, clock: TestClock()))
            let handles = ["connecting", "open"].compactMap { name in held.withLock { $0?.handle(for: name) } }
            let retentions = handles.map { $0.retain() }
            for _ in handles {
                let opening = try await transport.nextOpening()
                if opening.request == "open" { opening.accept() }
            }
            await handles[1].reaches { $0.isOpen }
            let revisions = handles.map(\.revision)
            @Sendable func take() -> Environment? { held.withLock { $0 } }

            let end = { @Sendable () async in
                guard let environment = take() else { return }
                await environment.end()
                #expect(environment.running == 0)
            }
            await threads.run(
                end,
                end,
                { _ = held.withLock { $0.take() } }
            )

            // Whoever let go of it last, by its end or by its deinit.
            #expect(handles.allSatisfy { $0.status.isGone })
            #expect(zip(handles, revisions).allSatisfy { $0.revision == $1 + 1 })
            await handles[0].environment.state.drain()
            #expect(transport.unclosed == 0)
            for retention in retentions { retention.release() }
            #expect(handles.allSatisfy { $0.status.isGone })
        }
    }

    /// A transport whose calls do not heed their cancellation: each returns when it is let.
    private struct Stubborn: SubscriptionTransport, PayloadSequence {
        typealias Element = Int
        typealias Failure = SubscriptionFailure

        struct Iterator: PayloadIterator {
            let stream: Stubborn

            mutating func next(
                isolation actor: isolated (any Actor)? = #isolation
            ) async throws(SubscriptionFailure) -> Int? {
                await stream.wait(stream.read)
                return nil
            }
        }

        let opened: AsyncStream<Void>
        let read: AsyncStream<Void>

        fileprivate func wait(_ gate: AsyncStream<Void>) async {
            await Task { for await _ in gate {} }.value
        }

        func open(_ request: String, resuming: ResumePoint?) async throws(SubscriptionFailure) -> Stubborn {
            if request == "connecting" { await wait(opened) }
            return self
        }

        func makeAsyncIterator() -> Iterator { Iterator(stream: self) }
    }

    // I02
    @Test("returns when both a call that opens and one that reads have returned, and not before")
    func returnsAfterItsCalls() async {
        let (opened, letOpen) = AsyncStream<Void>.makeStream()
        let (read, letRead) = AsyncStream<Void>.makeStream()
        let environment = Environment(transport: Stubborn(opened: opened, read: read), clock: TestClock())
        let handles = ["connecting", "open"].map { environment.handle(for: $0) }
        let retentions = handles.map { $0.retain() }
        await handles[1].reaches { $0.isOpen }
        let hasReturned = Lock(false)
        let thread = OneThread(label: "ends")
        let end = Task(executorPreference: thread) {
            await environment.end()
            hasReturned.withLock { $0 = true }
        }
        /// Once all that the end can do by itself has been done.
        func rest() async {
            await Task(executorPreference: thread) {}.value
        }

        await rest()
        #expect(!hasReturned.withLock { $0 })
        #expect(handles.allSatisfy { $0.status.isGone })
        #expect(environment.running == 2)
        letOpen.finish()
        #expect(await settles { environment.running == 1 })
        await rest()
        #expect(!hasReturned.withLock { $0 })
        letRead.finish()

        await end.value
        #expect(environment.running == 0)
        for retention in retentions { retention.release() }
    }

    // M08
    @Test("by its deinit, while handles are asked for, retained and looped over, leaves none of them live")
    func letGoOfWhileHandlesAreRetained() async {
        let threads = AtOnce(4)
        for _ in 0..<Seeded.races() {
            let transport = Transport(.watched(acceptsAtOnce: true))
            let held = Lock<Environment?>(Environment(transport: transport, clock: TestClock()))
            let handles = (0..<2).compactMap { number in held.withLock { $0?.handle(for: "\(number)") } }
            let retained = Lock<[(Handle, Retention)]>([])
            let looped = Lock<SubscriptionEnd?>(nil)

            await threads.run(
                { _ = held.withLock { $0.take() } },
                {
                    let retention = handles[0].retain()
                    retained.withLock { $0.append((handles[0], retention)) }
                },
                {
                    guard let handle = held.withLock({ $0 })?.handle(for: "2") else { return }
                    let retention = handle.retain()
                    retained.withLock { $0.append((handle, retention)) }
                },
                {
                    do throws(SubscriptionEnd) {
                        for try await _ in handles[1].deliveries() {}
                    } catch {
                        looped.withLock { $0 = error }
                    }
                }
            )

            guard case .environment(.gone)? = looped.withLock({ $0 }) else {
                Issue.record("the loop ended by \(String(describing: looped.withLock { $0 }))")
                return
            }
            #expect(retained.withLock { $0.allSatisfy { $0.0.status.isGone } })
            await handles[0].environment.state.drain()
            #expect(transport.live == 0)
            #expect(transport.unclosed == 0)
        }
    }

    // I04
    @Test("leaves nothing that could open again")
    func nothingOpensAgain() async {
        let rig = Rig()
        await rig.environment.end()

        let retention = rig.handle.retain()
        rig.handle.retry()
        rig.environment.isActive = false
        rig.environment.isActive = true

        #expect(rig.handle.status.isGone)
        #expect(!rig.environment.isActive)
        let other = rig.environment.handle(for: "other")
        #expect(other.status.isGone)
        let another = other.retain()
        #expect(other.status.isGone)
        await #expect(throws: SubscriptionEnd.self) {
            for try await _ in other.deliveries() {}
        }
        #expect(rig.transport.opened == 0)
        retention.release()
        another.release()
    }

    // I05
    @Test("comes when it is let go of, retained or not")
    func letGoOf() async throws {
        let transport = Transport(.watched())
        var environment: Environment? = Environment(transport: transport, clock: TestClock())
        let handle = environment?.handle(for: "prices")
        let retention = handle?.retain()
        let opening = try await transport.nextOpening()
        opening.accept()
        await handle?.reaches { $0.isOpen }

        environment = nil

        #expect(handle?.status.isGone == true)
        try await opening.closing()
        retention?.release()
    }

    // I06
    @Test("ends a stream that is held back")
    func heldBack() async throws {
        let rig = Rig()
        var deliveries = rig.handle.deliveries(limit: 2).makeAsyncIterator()
        let opening = try await rig.openStream()
        opening.feed(1, 2, 3)
        await rig.handle.reaches(events: 1)

        await rig.environment.end()

        #expect(rig.environment.running == 0)
        await #expect(throws: SubscriptionEnd.self) { try await deliveries.next() }
    }

    // I07
    @Test("leaves nothing of it in memory, whatever its streams were at")
    func memory() async throws {
        weak var transport: Transport?
        weak var clock: TestClock?
        weak var core: EnvironmentCore<String, Int>?
        weak var state: EnvironmentState?
        struct Weakly {
            weak var handle: Handle?
            weak var core: HandleCore?
        }
        var handles: [Weakly] = []
        do {
            let rig = Rig()
            transport = rig.transport
            clock = rig.clock
            core = rig.environment.core
            state = rig.environment.core.state
            let names = ["connecting", "open", "waiting", "held back", "looped over", "connecting too", "refused"]
            let strong = names.map { rig.environment.handle(for: $0) }
            handles = strong.map { Weakly(handle: $0, core: $0.core) }
            let heldBack = strong[3].deliveries(limit: 2)
            let loopedOver = Task {
                for try await _ in strong[4].deliveries(limit: 2) {}
            }
            let retentions = strong.map { $0.retain() }
            for _ in names {
                let opening = try await rig.transport.nextOpening()
                switch opening.request {
                case "open", "looped over": opening.accept()
                case "waiting": opening.fail(.dropped)
                case "held back":
                    opening.feed(1, 2, 3, 4)
                    opening.accept()
                case "refused": opening.fail(.refused)
                default: break
                }
            }
            await strong[1].reaches { $0.isOpen }
            await strong[2].reaches { $0.isWaiting }
            await strong[4].reaches { $0.isOpen }
            await strong[6].reaches { $0.isRefused }
            while strong[3].core.heldBack == nil { await Task.yield() }
            _ = try await rig.clock.nextDeadline()
            #expect(rig.environment.waits == 1)
            await rig.environment.end()
            #expect(rig.environment.waits == 0)
            #expect(rig.environment.running == 0)
            #expect(rig.transport.unclosed == 0)
            await #expect(throws: SubscriptionEnd.self) { try await loopedOver.value }
            for retention in retentions { retention.release() }
            _ = consume heldBack
        }

        // The sleep was cancelled, and its task may take a moment to return, as that of a loop.
        #expect(await settles { core == nil && state == nil && transport == nil && clock == nil })
        #expect(await settles { handles.allSatisfy { $0.handle == nil && $0.core == nil } })
    }

    // I08
    @Test("waits for a deaf transport, though everybody is told at once")
    func deafTransport() async throws {
        let rig = Rig(.watched(isDeaf: true))
        let retention = rig.handle.retain()
        let opening = try await rig.transport.nextOpening()
        let environment = rig.environment
        let hasReturned = Lock(false)
        let thread = OneThread(label: "ends")
        let end = Task(executorPreference: thread) {
            await environment.end()
            hasReturned.withLock { $0 = true }
        }
        // All that the end can do by itself has been done then.
        await Task(executorPreference: thread) {}.value
        #expect(rig.handle.status.isGone)
        #expect(!hasReturned.withLock { $0 })
        #expect(environment.running == 1)

        opening.accept()

        await end.value
        #expect(environment.running == 0)
        #expect(rig.transport.unclosed == 0)
        retention.release()
    }

    // I09
    @Test("while handles are asked for and retained leaves none of them live")
    func whileHandlesAreRetained() async {
        for round in 0..<Seeded.count(200, full: 10_000) {
            let transport = Transport(.watched(acceptsAtOnce: true))
            let environment = Environment(transport: transport, clock: TestClock())
            let retaining = Task {
                (0..<20).map { number in
                    let handle = environment.handle(for: "\(round) \(number)")
                    return (handle, handle.retain())
                }
            }

            await environment.end()
            let live = transport.live
            let retained = await retaining.value

            #expect(live == 0)
            #expect(retained.allSatisfy { $0.0.status.isGone })
            await environment.end()
            #expect(transport.unclosed == 0)
        }
    }
}
