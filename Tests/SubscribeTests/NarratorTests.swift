import Testing

@testable import subscribe

@Suite("The order in which a run is told")
struct NarratorTests {
    private let down = Problem(kind: .network, message: "down", isFatal: false)

    private func event(_ number: Int) -> Happening {
        .event(type: "message", data: Array("\(number)".utf8), id: "\(number)")
    }

    private func told(_ inputs: [Narrator.Input]) -> [Happening] {
        var narrator = Narrator()
        return inputs.flatMap { narrator.take($0) }
    }

    @Test("a stream that is opened, brings two payloads and completes")
    func aWholeStream() {
        #expect(
            told([
                .opening(after: 0), .opened(resumptions: 0, after: 0), .payload(event(1)), .payload(event(2)),
                .completed,
            ])
                == [.state(.connecting), .state(.open), event(1), event(2), .complete, .state(.ended)]
        )
    }

    @Test("a failure is told after the payloads that came before it, however late those are")
    func payloadsAreLate() {
        let wait = Happening.State.waiting(until: 10, seconds: 0.5)

        let happenings = told([
            .opening(after: 0), .opened(resumptions: 0, after: 0), .failed(down, after: 2),
            .waiting(until: 10, seconds: 0.5, after: 2), .opening(after: 2), .opened(resumptions: 1, after: 2),
            .payload(event(1)), .payload(event(2)), .payload(event(3)),
        ])

        #expect(
            happenings == [
                .state(.connecting), .state(.open), event(1), event(2), .problem(down), .state(wait),
                .state(.connecting), .state(.open), .resumed(1), event(3),
            ]
        )
    }

    @Test("a wait that is told after the next opening is an old one, and not told")
    func aStaleWait() {
        let happenings = told([
            .opening(after: 0), .failed(down, after: 0), .opening(after: 0), .waiting(until: 10, seconds: 1, after: 0),
        ])

        #expect(happenings == [.state(.connecting), .problem(down), .state(.connecting)])
    }

    @Test("a wait that is told twice is shown once")
    func aRepeatedWait() {
        let wait = Narrator.Input.waiting(until: 10, seconds: 1, after: 0)

        #expect(
            told([.opening(after: 0), .failed(down, after: 0), wait, wait])
                == [.state(.connecting), .problem(down), .state(.waiting(until: 10, seconds: 1))]
        )
    }

    @Test("each attempt of an outage is an error and a wait, and the outage is one resumption")
    func anOutage() {
        let happenings = told([
            .opening(after: 0), .failed(down, after: 0), .waiting(until: 1, seconds: 1, after: 0), .opening(after: 0),
            .failed(down, after: 0), .waiting(until: 3, seconds: 2, after: 0), .opening(after: 0),
            .opened(resumptions: 1, after: 0),
        ])

        #expect(
            happenings == [
                .state(.connecting), .problem(down), .state(.waiting(until: 1, seconds: 1)), .state(.connecting),
                .problem(down), .state(.waiting(until: 3, seconds: 2)), .state(.connecting), .state(.open), .resumed(1),
            ]
        )
    }

    @Test("parked is idle, and the way back is a resumption")
    func parking() {
        let happenings = told([
            .opening(after: 0), .opened(resumptions: 0, after: 0), .payload(event(1)), .parked(after: 1),
            .opening(after: 1), .opened(resumptions: 1, after: 1),
        ])

        #expect(
            happenings == [
                .state(.connecting), .state(.open), event(1), .state(.idle), .state(.connecting), .state(.open),
                .resumed(1),
            ]
        )
    }

    @Test("a refusal is an error and the end, with nothing between")
    func aRefusal() {
        let refusal = Problem(kind: .request, message: "no", status: 400, isFatal: true)

        #expect(
            told([.opening(after: 0), .failed(refusal, after: 0), .left(.ended)])
                == [.state(.connecting), .problem(refusal), .state(.ended)]
        )
    }

    @Test("what is still held is told at the end")
    func theRestIsTold() {
        #expect(
            told([.opening(after: 0), .failed(down, after: 1), .left(.idle)])
                == [.state(.connecting), .problem(down), .state(.idle)]
        )
    }

    @Test("a comment waits for nothing")
    func comments() {
        #expect(told([.comment(" hi"), .opening(after: 1), .comment("")]) == [.comment(" hi"), .comment("")])
    }

    @Test("the wait after a failure that ends the run is not told")
    func noWaitAfterTheLastFailure() {
        let last = Problem(kind: .network, message: "down", isFatal: true)

        #expect(
            told([.opening(after: 0), .failed(last, after: 0), .waiting(until: 1, seconds: 1, after: 0), .left(.ended)])
                == [.state(.connecting), .problem(last), .state(.ended)]
        )
    }

    @Test("nothing is told after the end")
    func theEndIsTheEnd() {
        #expect(told([.left(.idle), .opening(after: 0), .payload(event(1)), .completed]) == [.state(.idle)])
    }
}
