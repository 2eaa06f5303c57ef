import Testing

@testable import CurlSSETransport

private let limits = TransferStateMachine.Limits(admission: 60, connect: 15, firstByte: 30, idle: 300)

@Suite("The deadlines of a transfer")
struct TransferStateMachineTests {
    @Test("each stage has its own deadline, counted from its beginning")
    func stages() {
        var machine = TransferStateMachine(limits: limits, now: 1000)
        #expect(machine.deadline == 1060)

        machine.admitted(now: 1050)
        #expect(machine.deadline == 1065)

        let changed1 = machine.connected(now: 1060)
        #expect(changed1)
        #expect(machine.deadline == 1090)

        machine.accepted(now: 1080)
        #expect(machine.deadline == 1380)

        machine.received(now: 1200)
        #expect(machine.deadline == 1500)
    }

    @Test("a limit runs out at its instant and not before, and says which it was")
    func expiry() {
        var machine = TransferStateMachine(limits: limits, now: 0)
        #expect(machine.expired(now: 59) == nil)
        #expect(machine.expired(now: 60) == .admission)
        machine.admitted(now: 10)
        #expect(machine.expired(now: 25) == .connect)
        _ = machine.connected(now: 10)
        #expect(machine.expired(now: 40) == .firstByte)
        machine.accepted(now: 10)
        #expect(machine.expired(now: 309) == nil)
        #expect(machine.expired(now: 310) == .idle)
    }

    @Test("time in which the reader holds the stream back is no silence of the server's")
    func holding() {
        var machine = TransferStateMachine(limits: limits, now: 0)
        machine.admitted(now: 0)
        _ = machine.connected(now: 0)
        machine.accepted(now: 0)

        machine.held()
        #expect(machine.isHeld)
        #expect(machine.deadline == nil)
        machine.received(now: 5)
        #expect(machine.deadline == nil)

        machine.resumed(now: 10_000)
        #expect(machine.deadline == 10_300)
    }

    @Test("an opening gives its place back once, at its first connection")
    func placeGivenBackOnce() {
        var machine = TransferStateMachine(limits: limits, now: 0)
        let changed2 = machine.connected(now: 1)
        #expect(!changed2)
        machine.admitted(now: 0)
        let changed3 = machine.connected(now: 1)
        #expect(changed3)
        let changed4 = machine.connected(now: 2)
        #expect(!changed4)
    }

    @Test("a redirect stands in line again, with a deadline of its own")
    func redirect() {
        var machine = TransferStateMachine(limits: limits, now: 0)
        machine.admitted(now: 0)
        _ = machine.connected(now: 5)
        machine.redirected(now: 20)
        #expect(machine.isQueued)
        #expect(machine.deadline == 80)
        machine.admitted(now: 20)
        let changed5 = machine.connected(now: 21)
        #expect(changed5)
    }

    @Test("what comes after the end changes nothing")
    func afterTheEnd() {
        var machine = TransferStateMachine(limits: limits, now: 0)
        machine.admitted(now: 0)
        let changed6 = machine.ended()
        #expect(changed6)
        let changed7 = machine.ended()
        #expect(!changed7)
        machine.accepted(now: 1)
        machine.received(now: 1)
        machine.held()
        machine.redirected(now: 1)
        machine.admitted(now: 1)
        let changed8 = machine.connected(now: 1)
        #expect(!changed8)
        #expect(machine.isEnded)
        #expect(machine.deadline == nil)
        #expect(machine.expired(now: .max) == nil)
    }
}
