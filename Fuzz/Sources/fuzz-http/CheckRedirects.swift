// Any way through any servers: no more than ten hops, none twice, none down from https; content and fields go where they
// may.

/// The origins and URLs of a walk, few enough that they meet again.
func checkRedirects(_ input: inout Input) {
    let origins = [
        Origin(scheme: "https", host: "a", port: 443), Origin(scheme: "HTTPS", host: "A", port: 8443),
        Origin(scheme: "http", host: "a", port: 80), Origin(scheme: "http", host: "[::1]", port: 80),
        Origin(scheme: "http", host: "::1", port: 80), Origin(scheme: "ftp", host: "a", port: 21),
        Origin(scheme: "file", host: "", port: 0), Origin(scheme: "https", host: "b", port: 443),
    ]
    func target(_ byte: UInt8) -> RedirectRules.Target {
        let origin = origins[Int(byte % 8)]
        let fragment = byte & 8 == 0 ? "" : "#f"
        return RedirectRules.Target(url: "\(origin)/\(byte >> 4)\(fragment)", origin: origin)
    }
    func isWeb(_ origin: Origin) -> Bool { ["http", "https"].contains(origin.scheme) }

    let flags = input.byte()
    let trust = input.byte()
    let hasBody = flags & 1 == 0
    let method = flags & 2 == 0 ? "POST" : "GET"
    let trusted = Set(origins.indices.filter { trust >> $0 & 1 == 1 }.map { origins[$0] })
    let start = target(input.byte())
    guard isWeb(start.origin) else { return }
    var rules = RedirectRules(method: method, hasBody: hasBody, start: start, trusted: trusted)
    precondition(rules.keepsHeaders)

    // What was asked, the fragments cut off; the last one is where the walk is.
    var asked = [start.url.split(separator: "#")[0]]
    var here = start.origin
    var keepsHeaders = true
    while !input.isAtEnd {
        let byte = input.byte()
        let status = [301, 302, 303, 307, 308, 300, 304, 200][Int(byte % 8)]
        let next = byte & 0xF0 == 0xF0 ? nil : target(input.byte())
        let isSafe = next.map { $0.origin == here || trusted.contains($0.origin) } ?? false
        let mayGo =
            next.map { next in
                isWeb(next.origin) && !(here.scheme == "https" && next.origin.scheme == "http")
                    && asked.count <= 10 && !asked.contains(next.url.split(separator: "#")[0])
                    && ([307, 308].contains(status)
                        || [301, 302, 303].contains(status) && method == "GET" && !hasBody)
                    && (isSafe || !hasBody)
            } ?? false
        switch rules.redirected(status: status, to: next) {
        case .follow(let keepsBody, let keeps):
            keepsHeaders = keepsHeaders && isSafe
            precondition(mayGo && keepsBody == hasBody && keeps == keepsHeaders)
            if let next {
                asked.append(next.url.split(separator: "#")[0])
                here = next.origin
            }
        case .refuse(let reason):
            precondition(!mayGo && isOneLine(reason))
        }
        precondition(rules.keepsHeaders == keepsHeaders)
    }
}
