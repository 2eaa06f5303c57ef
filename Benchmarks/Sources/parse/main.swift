// Measures the event stream parser in memory: gigabytes a second by payload size and chunk size, and whether time
// grows with the bytes alone.
//
//     swift run -c release --package-path Benchmarks parse speed | event | linear | memory LINE-BEGINNING | count PAYLOAD EVENTS ROUNDS
//
// One thread, processor time. What is compared runs in turn, in every round; figures are medians, ratios those of the rounds' own.

import CurlSSETransport

/// Counts what is reported, and keeps the events of one chunk as a client's queue would.
struct Counter: EventStreamVisitor {
    var events = 0
    var bytes = 0
    var kept: [ServerSentEvent] = []

    mutating func event(_ event: consuming ServerSentEvent) -> Bool {
        events += 1
        bytes += event.data.count
        kept.append(event)
        return true
    }
}

/// Counts what it looks at, and has nothing made.
struct Looker: EventStreamVisitor {
    static var looks: Bool { true }

    var events = 0
    var bytes = 0

    mutating func look(at data: RawSpan, type: RawSpan) -> Bool {
        events += 1
        bytes += data.byteCount
        return false
    }

    mutating func event(_ event: consuming ServerSentEvent) -> Bool { true }
}

/// GraphQL results of a size, as a server sends them, about `total` bytes of them.
func stream(payload: Int, total: Int) -> [UInt8] {
    let head = Array("event: next\ndata: {\"data\":{\"v\":\"".utf8)
    let filler = (0..<max(0, payload - 17)).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let tail = Array("\"}}\n\n".utf8)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(total)
    repeat { bytes += head + filler + tail } while bytes.count + payload + 64 < total
    return bytes
}

/// Calls `body` for each chunk of a stream.
private func forEachChunk(of bytes: [UInt8], size: Int, _ body: (RawSpan) -> Void) {
    bytes.withUnsafeBytes { whole in
        var start = 0
        while start < whole.count {
            let end = min(whole.count, start + size)
            body(UnsafeRawBufferPointer(rebasing: whole[start..<end]).bytes)
            start = end
        }
    }
}

/// Parses a stream in chunks; returns how many events it had.
@discardableResult
func parse(_ bytes: [UInt8], chunk size: Int, limit: Int = 64 << 20) -> Int {
    var parser = EventStreamParser(maxEventBytes: limit)
    var counter = Counter()
    forEachChunk(of: bytes, size: size) { chunk in
        guard (try? parser.parse(chunk, to: &counter)) != nil else { return }
        counter.kept.removeAll(keepingCapacity: true)
    }
    return counter.events
}

/// Looks at the events of a stream in chunks; returns how many it had.
@discardableResult
func look(_ bytes: [UInt8], chunk size: Int) -> Int {
    var parser = EventStreamParser(maxEventBytes: 64 << 20)
    var looker = Looker()
    forEachChunk(of: bytes, size: size) { try? parser.parse($0, to: &looker) }
    return looker.events
}

func split(_ bytes: [UInt8], chunk size: Int, copies: Bool) -> Int {
    var splitter = Splitter(copies: copies)
    bytes.withUnsafeBytes { whole in
        var start = 0
        while start < whole.count {
            let end = min(whole.count, start + size)
            splitter.read(UnsafeRawBufferPointer(rebasing: whole[start..<end]))
            start = end
        }
    }
    return splitter.events
}

extension Double {
    /// With a number of decimals.
    func rounded(to decimals: Int) -> String {
        var scale = 1.0
        for _ in 0..<decimals { scale *= 10 }
        let number = Int((self * scale).rounded())
        guard decimals > 0 else { return "\(number)" }
        let fraction = String(number % Int(scale))
        return "\(number / Int(scale))." + String(repeating: "0", count: decimals - fraction.count) + fraction
    }
}

/// Processor seconds that each of some bodies takes, round by round: all of them in turn, so that what disturbs a round is in all.
func interleaved(_ rounds: Int, _ bodies: [() -> Void]) -> [[Double]] {
    var times = bodies.map { _ in [Double]() }
    for body in bodies { body() }
    for _ in 0..<rounds {
        for (place, body) in bodies.enumerated() {
            let before = processorSeconds()
            body()
            times[place].append(processorSeconds() - before)
        }
    }
    return times
}

func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}

/// The median of the rounds' own ratios.
func ratio(_ left: [Double], _ right: [Double]) -> Double {
    median(zip(left, right).map { $0 / $1 })
}

func measureSpeed() {
    print(
        "| payload | chunk | looked ns | splitter ns | looked / splitter | kept ns | kept GB/s | copying splitter ns "
            + "| kept / copying | kept / splitter |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for payload in [50, 200, 2048, 65536] {
        let bytes = stream(payload: payload, total: 8 << 20)
        let events = parse(bytes, chunk: bytes.count)
        for size in [16 << 10, 128 << 10, bytes.count] {
            let times = interleaved(
                15,
                [
                    { precondition(look(bytes, chunk: size) == events) },
                    { precondition(split(bytes, chunk: size, copies: false) == events) },
                    { precondition(parse(bytes, chunk: size) == events) },
                    { precondition(split(bytes, chunk: size, copies: true) == events) },
                ]
            )
            let (looked, bare, kept, copying) = (times[0], times[1], times[2], times[3])
            func each(_ seconds: [Double]) -> String { (median(seconds) * 1e9 / Double(events)).rounded(to: 1) }
            print(
                "| \(payload) | \(size == bytes.count ? "whole" : "\(size >> 10) KiB") "
                    + "| \(each(looked)) | \(each(bare)) | \(ratio(looked, bare).rounded(to: 3)) "
                    + "| \(each(kept)) | \((Double(bytes.count) / median(kept) / 1e9).rounded(to: 2)) "
                    + "| \(each(copying)) | \(ratio(kept, copying).rounded(to: 3)) | \(ratio(kept, bare).rounded(to: 3)) |"
            )
        }
    }
}

func measureLinearity() {
    func row(_ name: String, _ chunk: Int, _ make: (Int) -> [UInt8], _ size: Int) {
        let whole = make(size)
        let double = make(2 * size)
        let times = interleaved(5, [{ parse(whole, chunk: chunk) }, { parse(double, chunk: chunk) }])
        let one = median(times[0])
        let chunkName = chunk == .max ? "whole" : "\(chunk) B"
        print(
            "| \(name) | \(size >> 10) KiB | \(chunkName) | \((one * 1e3).rounded(to: 2)) "
                + "| \((one * 1e9 / Double(size)).rounded(to: 3)) | \(ratio(times[1], times[0]).rounded(to: 2)) |"
        )
    }
    func fill(_ unit: String, head: String = "", tail: String = "\n\n") -> (Int) -> [UInt8] {
        { size in
            let unit = Array(unit.utf8)
            var bytes = Array(head.utf8)
            bytes.reserveCapacity(size + 64)
            while bytes.count < size { bytes += unit }
            return bytes + Array(tail.utf8)
        }
    }
    print("| stream | size | chunks | ms | ns a byte | twice the size |")
    print("| --- | --- | --- | --- | --- | --- |")
    for chunk in [1, 64, 8 << 10, .max] {
        row("one event, one line", chunk, fill("0123456789abcdef", head: "data: "), 16 << 20)
    }
    let lines = [
        ("CR", "\r"), ("`data:` LF", "data:\n"), ("`data:` CR", "data:\r"), ("`:` LF", ":\n"), ("`:` CR", ":\r"),
        ("unknown fields", "foo: bar\n"), ("one unknown line", "x"),
    ]
    for (name, unit) in lines {
        for chunk in [1, 64, 8 << 10, .max] {
            row(name, chunk, fill(unit), 1 << 20)
        }
    }
}

/// A line that never ends, 200 MiB of it in 16 KiB chunks: what comes of it, and the process's peak memory.
///
/// - Parameter head: How the line begins. One of the process's life, or the peak is another's.
func measureMemory(_ head: String) {
    var parser = EventStreamParser()
    var counter = Counter()
    var outcome = "skipped"
    let first = Array(head.utf8)
    let filler = [UInt8](repeating: UInt8(ascii: "7"), count: 16 << 10)
    do {
        try first.withUnsafeBytes { try parser.parse($0.bytes, to: &counter) }
        for _ in 0..<(200 << 20) / filler.count {
            try filler.withUnsafeBytes { try parser.parse($0.bytes, to: &counter) }
        }
    } catch {
        outcome = "\(error)"
    }
    print("| `\(head)7777...` | \(outcome) | \(peakMemory()) |")
}

/// For scripts/count-costs: parses the same events again and again in libcurl's chunks, and prints nothing.
func count(payload: Int, events: Int, rounds: Int) {
    let event = stream(payload: payload, total: 0)
    let bytes = [UInt8]((0..<events).map { _ in event }.joined())
    for _ in 0..<rounds {
        let found = parse(bytes, chunk: 16 << 10)
        precondition(found == events)
    }
}

/// One event of 16 MiB at the default limit, again and again: processor time, the system's apart, and page faults.
func measureEvent() {
    let size = 16 << 20
    let rounds = 20
    let bytes = Array("data: ".utf8) + [UInt8](repeating: UInt8(ascii: "7"), count: size) + Array("\n\n".utf8)
    print("| chunks | user ns a byte | system ns a byte | GB a second of processor time | page faults an event |")
    print("| --- | --- | --- | --- | --- |")
    for chunk in [1, 64, 8 << 10, 16 << 10, .max] {
        parse(bytes, chunk: chunk, limit: size)
        let before = processUse()
        for _ in 0..<rounds { parse(bytes, chunk: chunk, limit: size) }
        let after = processUse()
        let user = (after.user - before.user) * 1e9 / Double(size * rounds)
        let system = (after.system - before.system) * 1e9 / Double(size * rounds)
        print(
            "| \(chunk == .max ? "whole" : "\(chunk) B") | \(user.rounded(to: 2)) | \(system.rounded(to: 2)) "
                + "| \((1 / (user + system)).rounded(to: 2)) | \((after.faults - before.faults) / rounds) |"
        )
    }
}

switch CommandLine.arguments.dropFirst().first {
case "speed": measureSpeed()
case "event": measureEvent()
case "linear": measureLinearity()
case "memory": measureMemory(CommandLine.arguments.dropFirst(2).first ?? "data: ")
case "count":
    let numbers = CommandLine.arguments.dropFirst(2).compactMap { Int($0) }
    guard numbers.count == 3 else { fallthrough }
    count(payload: numbers[0], events: numbers[1], rounds: numbers[2])
default: print("usage: parse speed | event | linear | memory LINE-BEGINNING | count PAYLOAD EVENTS ROUNDS")
}
