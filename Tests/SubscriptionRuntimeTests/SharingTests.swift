import SubscriptionTesting
import Testing

@testable import SubscriptionRuntime

@Suite("Equal requests", .timeLimit(.minutes(10)))
struct SharingTests {
    // G01
    @Test("of one environment share one handle and one stream")
    func oneEnvironment() async throws {
        let rig = Rig()

        let again = rig.environment.handle(for: "prices")

        #expect(again === rig.handle)
        let retentions = [rig.handle.retain(), again.retain()]
        _ = try await rig.openStream()
        #expect(rig.transport.opened == 1)
        for retention in retentions { retention.release() }
    }

    /// A request whose every value has the same hash.
    struct Colliding: Hashable {
        var name: String

        func hash(into hasher: inout Hasher) {}
    }

    // G02
    @Test("are equal by their equality: equal hashes alone share nothing")
    func equalHashes() {
        let environment = SubscriptionEnvironment<Colliding, Int>(transport: nil)

        #expect(environment.handle(for: .init(name: "a")) !== environment.handle(for: .init(name: "b")))
    }

    // G03, A11
    @Test("of two environments share nothing, not even over one transport")
    func twoEnvironments() async throws {
        let transport = Transport()
        let environments = (0..<2).map { _ in Environment(transport: transport, clock: TestClock()) }
        let handles = environments.map { $0.handle(for: "prices") }
        let retentions = handles.map { $0.retain() }

        #expect(handles[0] !== handles[1])
        _ = try await transport.nextOpening()
        _ = try await transport.nextOpening()
        #expect(transport.opened == 2)
        for retention in retentions { retention.release() }
        // An optimizer lets go of an array after its last use: environments that are gone open nothing.
        for environment in environments { await environment.end() }
    }

    // G04
    @Test("asked for by many tasks at once, of which each may be the first, share one handle")
    func manyTasks() async {
        let environment = Environment(transport: nil)
        let count = Seeded.count(100, full: 1000)

        // Nobody holds a handle before: each task keeps those that it made or found.
        let found = await withTaskGroup { group in
            for _ in 0..<64 {
                group.addTask { (0..<count).map { environment.handle(for: "\($0)") } }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }

        // An optimizer lets go of an array after its last use.
        withExtendedLifetime(found) {
            for handles in found { #expect(zip(handles, found[0]).allSatisfy { $0 === $1 }) }
            #expect(environment.registered == count)
        }
    }

    // G04
    @Test("asked for by threads at one moment share one handle")
    func threadsAtOnce() async {
        let environment = Environment(transport: nil)
        let threads = AtOnce(2)
        for round in 0..<Seeded.races() {
            let found = Lock<[Handle]>([])
            let ask = { @Sendable () async in
                let handle = environment.handle(for: "\(round)")
                found.withLock { $0.append(handle) }
            }

            await threads.run(ask, ask)

            #expect(found.withLock { $0.count == 2 && $0[0] === $0[1] })
        }
    }

    // G05, G09, A23
    @Test("leave nothing behind once their handle is let go of, and no memory")
    func letGoOf() async {
        let count = Seeded.count(100_000, full: 1_000_000)
        // A process of its own: its memory is this test's alone.
        await #expect(processExitsWith: .success) { [count = count as Int] in
            let environment = Environment(transport: nil)
            var resident = 0

            for number in 0..<count {
                if number == count / 2 { resident = ProcessMemory.resident }
                _ = environment.handle(for: "\(number)")
            }

            #expect(environment.registered == 0)
            #expect(ProcessMemory.resident - resident <= ProcessMemory.slack)
        }
    }

    // G06, M06
    @Test("let go of and asked for at once never share a handle that is gone")
    func letGoOfAndAskedFor() async {
        let environment = Environment(transport: nil)

        await withTaskGroup { group in
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<Seeded.count(20_000, full: 100_000) {
                        let handle = environment.handle(for: "prices")
                        #expect(handle === environment.handle(for: "prices"))
                    }
                }
            }
        }

        #expect(environment.registered == 0)
    }

    // G07, A4
    @Test("retained again while the stream waits do not hasten it")
    func retainedWhileWaiting() async throws {
        let rig = Rig()
        let first = rig.handle.retain()
        try await rig.transport.nextOpening().fail(.dropped)
        let until = await rig.handle.reaches { $0.isWaiting }.until

        let second = rig.handle.retain()

        #expect(rig.handle.status.until == until)
        #expect(rig.transport.opened == 1)
        first.release()
        #expect(rig.handle.status.until == until)
        second.release()
    }

    // G08
    @Test("asked for again after the stream completed open it, a resumption for all")
    func askedForAgainAfterTheEnd() async throws {
        let rig = Rig()
        let observer = rig.handle.retain()
        try await rig.openStream().complete()
        await rig.handle.reaches { $0.isCompleted }

        var deliveries = rig.handle.deliveries().makeAsyncIterator()

        #expect(rig.handle.status.isConnecting)
        _ = try await rig.openStream()
        #expect(try await deliveries.next() == .baseline(.resumed(1)))
        observer.release()
    }

    @Test("keep their handle while deliveries or a retention of it live, though nobody holds the handle")
    func heldByAnOwner() async {
        let environment = Environment(transport: Transport(), clock: TestClock())
        let deliveries = environment.handle(for: "prices").deliveries()

        let retention = environment.handle(for: "prices").retain()
        #expect(environment.registered == 1)
        #expect(environment.handle(for: "prices").isActive)

        _ = consume deliveries
        #expect(environment.registered == 1)
        retention.release()
        _ = consume retention
        await environment.end()
        #expect(await settles { environment.registered == 0 })
    }
}
