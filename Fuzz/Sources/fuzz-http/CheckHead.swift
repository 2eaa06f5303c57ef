// Any lines come to a head or an error and never trap; a head is bounded, clean, and comes to itself when written out;
// its verdict and its failure are those of the table.

/// The lines of one response as libcurl gives them, and its body.
func checkHead(_ input: inout Input) {
    let now = Int64(input.byte()) * 10_000_000
    let mayAuthenticate = input.byte() % 2 == 0
    let bytes = input.rest()
    var lines: [[UInt8]] = []
    for byte in bytes {
        if lines.isEmpty || lines[lines.count - 1].last == UInt8(ascii: "\n") { lines.append([]) }
        lines[lines.count - 1].append(byte)
    }

    guard let (head, rest) = read(lines) else { return }
    precondition((200...999).contains(head.status))
    precondition(head.fields.count <= ResponseHeadParser.maximumFields)
    for field in head.fields {
        precondition(ASCII.isToken(field.name))
        precondition(!field.value.utf8.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D })
        precondition(ASCII.trimmed(field.value).utf8.elementsEqual(field.value.utf8))
    }
    let written =
        ["HTTP/\(head.version) \(head.status) x\r\n"] + head.fields.map { "\($0.name): \($0.value)\r\n" } + ["\r\n"]
    let again = read(written.map { Array($0.utf8) })
    // What was not UTF-8 has grown, and may pass the limit now.
    precondition(again?.head == head || written.reduce(0) { $0 + $1.utf8.count } > ResponseHeadParser.maximumBytes)

    let body = rest.flatMap { $0 }
    var classifier = ResponseClassifier(mayAuthenticate: mayAuthenticate) { _ in [] }
    let verdict = classifier.head(head)
    switch (head.status, verdict) {
    case (200, .open), (200, .collect), (204, .completed), (205, .completed): break
    case (301...303, .redirect), (307...308, .redirect): break
    case (401, .authenticate): precondition(mayAuthenticate)
    case (401, .collect): precondition(!mayAuthenticate)
    case (200, _), (204, _), (205, _), (301...303, _), (307...308, _), (401, _): preconditionFailure("\(verdict)")
    default: precondition(verdict == .collect)
    }
    let wantsMore = classifier.body(body.span.bytes)
    let facts = ResponseFacts(origin: Origin(scheme: "http", host: "h", port: 80), bytesReceived: body.count, now: now)
    let failure = classifier.failure(facts)
    precondition(failure.bodyPrefix == Array(body.prefix(ResponseClassifier.maximumBodyBytes)))
    precondition(wantsMore == (body.count < ResponseClassifier.maximumBodyBytes))
    let mayPass = [408, 421, 425, 429].contains(head.status) || head.status >= 500
    precondition(failure.kind == (mayPass ? .network : .request))
    if let wait = failure.retryAfter { precondition(mayPass && wait >= .zero && wait <= .seconds(600)) }
    precondition(isOneLine(failure.message))
}

/// The head that lines come to, and the lines after it; nil for none.
private func read(_ lines: [[UInt8]]) -> (head: ResponseHead, rest: [[UInt8]])? {
    var parser = ResponseHeadParser()
    for (index, line) in lines.enumerated() {
        do {
            guard let head = try parser.push(line: line) else { continue }
            return (head, Array(lines[(index + 1)...]))
        } catch {
            precondition(error.kind == .network && isOneLine(error.message))
            for late in lines { precondition((try? parser.push(line: late)) == .some(nil), "read after an error") }
            return nil
        }
    }
    return nil
}
