// The backoff alone: when each handle would ask again, by ours and by other rules. No runtime, no clock.

internal import Glibc
internal import SubscriptionRuntime

/// How a wait is drawn.
private enum Jitter: String, CaseIterable {
    case ours = "half to whole step"
    case full = "nothing to whole step"
    case decorrelated = "up to three times the last"
    case none = "whole step"
    case milder = "20 % either way, by 1.6"

    /// Seconds of a wait, from how many went before and how long the last was.
    func wait(_ attempt: Int, last: Double, _ generator: inout some RandomNumberGenerator) -> Double {
        let step = Backoff.step(attempt).seconds
        switch self {
        case .ours: return step * .random(in: 0.5...1, using: &generator)
        case .full: return step * .random(in: 0...1, using: &generator)
        case .decorrelated: return min(Backoff.cap.seconds, .random(in: 1...max(1, 3 * last), using: &generator))
        case .none: return step
        case .milder:
            let milder = min(Backoff.cap.seconds, Backoff.base.seconds * pow(1.6, Double(attempt)))
            return milder * .random(in: 0.8...1.2, using: &generator)
        }
    }
}

func simulateBackoff(handles count: Int) {
    print("| outage s | jitter | opens a handle | peak attempts/s | peak re-opens/s | half open s | 99 % open s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for outage in [0, 10, 60, 600] {
        for jitter in Jitter.allCases { simulate(jitter, outage: outage, count: count) }
    }
}

private func simulate(_ jitter: Jitter, outage: Int, count: Int) {
    // The same numbers in every run: the system's cost a call each.
    var generator = Seeded(seed: 1)
    let span = outage + 91
    // By the fifth of a second.
    var attempts = [Int](repeating: 0, count: span * 5)
    var opened = [Int](repeating: 0, count: span * 5)
    var delays: [Double] = []
    delays.reserveCapacity(count)
    var total = 0
    for _ in 0..<count {
        var time = 0.0
        var last = 1.0
        var attempt = 0
        repeat {
            last = jitter.wait(attempt, last: last, &generator)
            time += last
            attempt += 1
            attempts[Int(time * 5)] += 1
        } while time < Double(outage)
        total += attempt
        opened[Int(time * 5)] += 1
        delays.append(time - Double(outage))
    }
    delays.sort()
    /// The fullest fifth of a second, as a rate of a million handles.
    func peak(_ counts: [Int]) -> String { (Double(counts.max() ?? 0) * 5e6 / Double(count)).rounded(to: 0) }
    print(
        "| \(outage) | \(jitter.rawValue) | \((Double(total) / Double(count)).rounded(to: 2)) "
            + "| \(peak(attempts)) | \(peak(opened)) "
            + "| \(delays[count / 2].rounded(to: 2)) | \(delays[count * 99 / 100].rounded(to: 2)) |"
    )
}
