// Any position comes back from its resume point; any bytes are a position that comes back, or none.

import SubscriptionRuntime

/// A duration's parts, then an ID; and the whole as a resume point.
func checkPosition(_ input: inout Input) {
    var whole = input
    let hasRetry = input.byte() % 2 == 0
    let seconds = input.number()
    let attoseconds = input.number() % 1_000_000_000_000_000_000
    let id = String(decoding: input.rest(), as: UTF8.self)

    // One sign, as the standard library's own durations have it.
    let isNegative = seconds < 0
    let retry = Duration(
        secondsComponent: seconds,
        attosecondsComponent: isNegative ? -abs(attoseconds) : abs(attoseconds)
    )
    let position = StreamPosition(lastEventID: id, retry: hasRetry ? retry : nil)
    guard let back = StreamPosition(position.resumePoint) else { preconditionFailure("a position is lost") }
    precondition(back.lastEventID.utf8.elementsEqual(id.utf8))
    precondition((back.retry != nil) == hasRetry)
    if hasRetry {
        let (thousands, overflows) = max(seconds, 0).multipliedReportingOverflow(by: 1000)
        let part = isNegative ? 0 : abs(attoseconds) / 1_000_000_000_000_000
        let (sum, overflowsToo) = thousands.addingReportingOverflow(part)
        precondition(back.retry == .milliseconds(overflows || overflowsToo ? Int64.max : sum))
    }

    if let read = StreamPosition(ResumePoint(whole.rest())) {
        precondition(StreamPosition(read.resumePoint) == read)
    }
}
