import Testing

@testable import CurlSSETransport

@Suite("The line of an origin's openings")
struct AdmissionTests {
    @Test("so many are let in at once, and the others in the order they came")
    func order() {
        var admission = Admission<String, Int>()
        for id in 0..<3 {
            let answer1 = admission.requested(id, at: "a", limit: 3)
            #expect(answer1)
        }
        for id in 3..<6 {
            let answer2 = admission.requested(id, at: "a", limit: 3)
            #expect(!answer2)
        }
        let answer3 = admission.released(1, at: "a")
        #expect(answer3 == 3)
        let answer4 = admission.released(3, at: "a")
        #expect(answer4 == 4)
        let answer5 = admission.released(0, at: "a")
        #expect(answer5 == 5)
        let answer6 = admission.released(2, at: "a")
        #expect(answer6 == nil)
        #expect(admission.admittedCount == 2)
    }

    @Test("origins do not wait for each other")
    func origins() {
        var admission = Admission<String, Int>()
        let answer7 = admission.requested(1, at: "a", limit: 1)
        #expect(answer7)
        let answer8 = admission.requested(2, at: "a", limit: 1)
        #expect(!answer8)
        let answer9 = admission.requested(3, at: "b", limit: 1)
        #expect(answer9)
        let answer10 = admission.released(3, at: "b")
        #expect(answer10 == nil)
        let answer11 = admission.released(1, at: "a")
        #expect(answer11 == 2)
    }

    @Test("one that leaves the line is passed by, and gives no place back")
    func leaving() {
        var admission = Admission<String, Int>()
        _ = admission.requested(1, at: "a", limit: 1)
        _ = admission.requested(2, at: "a", limit: 1)
        _ = admission.requested(3, at: "a", limit: 1)
        let answer12 = admission.released(2, at: "a")
        #expect(answer12 == nil)
        let answer13 = admission.released(2, at: "a")
        #expect(answer13 == nil)
        #expect(admission.waitingCount == 1)
        let answer14 = admission.released(1, at: "a")
        #expect(answer14 == 3)
        let answer15 = admission.released(3, at: "a")
        #expect(answer15 == nil)
        #expect(admission.admittedCount == 0)
        let answer16 = admission.released(3, at: "a")
        #expect(answer16 == nil)
    }

    @Test("under any script at most the limit holds places, nobody is lost, and everyone is let in in order")
    func scripts() {
        let seed = UInt64.random(in: .min ... .max)
        var random = Seeded(seed: seed)
        var admission = Admission<Int, Int>()
        var inside: [Int: Set<Int>] = [:]
        var line: [Int: [Int]] = [:]
        for id in 0..<20_000 {
            let key = Int.random(in: 0..<3, using: &random)
            if Bool.random(using: &random) {
                if admission.requested(id, at: key, limit: 4) {
                    inside[key, default: []].insert(id)
                } else {
                    line[key, default: []].append(id)
                }
            } else if Bool.random(using: &random), let leaver = line[key]?.randomElement(using: &random) {
                let answer17 = admission.released(leaver, at: key)
                #expect(answer17 == nil, "seed \(seed)")
                line[key]?.removeAll { $0 == leaver }
            } else if let leaver = inside[key]?.min() {
                inside[key]?.remove(leaver)
                let next = admission.released(leaver, at: key)
                #expect(next == line[key]?.first, "seed \(seed)")
                if let next {
                    line[key]?.removeFirst()
                    inside[key]?.insert(next)
                }
            }
            #expect((inside[key]?.count ?? 0) <= 4, "seed \(seed)")
        }
        #expect(admission.waitingCount == line.values.reduce(0) { $0 + $1.count }, "seed \(seed)")
    }
}
