// A redirect to whether it is followed, and with what.
//
// Source: RFC 9110, section 15.4; Fetch, "HTTP-redirect fetch" (a cross-origin hop drops what identifies the caller).
// Narrower than both, on purpose:
//   - A method never changes. 301, 302 and 303 would turn anything but GET into a GET without its content, and a
//     subscription asked for without its operation is another question.
//   - Content goes to another origin only when the configuration trusts that origin.
//   - The request's fields, once dropped, stay dropped: a hop over a foreign origin may have chosen the way back.
//   - https never becomes http, whatever is trusted.
//
// Pure, over URLs that libcurl has parsed and resolved. Called on the loop's queue, once a redirect.

/// What to do about a redirect.
enum RedirectDecision: Hashable, Sendable {
    /// Ask the new URL, by the same method.
    ///
    /// - `keepsBody`: With the request's content, where it has any.
    /// - `keepsHeaders`: With the caller's fields, the credentials and `Last-Event-ID`; without it only with the
    ///   dialect's own.
    case follow(keepsBody: Bool, keepsHeaders: Bool)

    /// Fail the opening, of kind `request`. The reason goes on after "not followed: "; it has origins in it, and no
    /// path, query or userinfo.
    case refuse(String)
}

/// Follows one opening through its redirects.
struct RedirectRules: Sendable {
    /// The most redirects of one opening.
    static let maximumHops = 10

    /// Where a redirect leads: its `Location`, resolved against the URL that was asked and parsed.
    struct Target: Hashable, Sendable {
        /// The absolute URL, as libcurl writes it.
        var url: String

        /// Its origin; the scheme may be any.
        var origin: Origin
    }

    private let method: String
    private let hasBody: Bool
    private let trusted: Set<Origin>
    private var origin: Origin
    private let start: String
    /// Beside the start, made where there is a redirect: few openings meet one.
    private var visited: Set<String> = []
    private var hops = 0

    /// Whether the caller's fields still go with the request.
    private(set) var keepsHeaders = true

    /// Starts at the URL an opening asks first.
    ///
    /// - Parameters:
    ///   - method: The request's.
    ///   - hasBody: Whether the request has content.
    ///   - start: The URL asked first.
    ///   - trusted: The origins that may have what the first may have.
    init(method: String, hasBody: Bool, start: Target, trusted: Set<Origin> = []) {
        self.method = method
        self.hasBody = hasBody
        self.trusted = trusted
        origin = start.origin
        self.start = start.url
    }

    /// The URL asked last answered with a redirect.
    ///
    /// - Parameters:
    ///   - status: 301, 302, 303, 307 or 308; any other is refused.
    ///   - target: Where it leads; nil when there is no `Location`, or none that can be read.
    /// - Returns: What to do. After `follow` the target is the URL asked last.
    mutating func redirected(status: Int, to target: Target?) -> RedirectDecision {
        guard let target else { return .refuse("its Location is missing or cannot be read") }
        let to = target.origin
        guard to.scheme == "http" || to.scheme == "https" else {
            return .refuse("it leads to a scheme other than http and https")
        }
        guard !(origin.scheme == "https" && to.scheme == "http") else {
            return .refuse("it leads from https to http (\(to))")
        }
        switch status {
        case 307, 308:
            break
        case 301, 302, 303:
            guard !hasBody, method == "GET" else {
                return .refuse("it would turn the \(method) into a GET without its content")
            }
        default:
            return .refuse("its status is no redirect's")
        }
        guard hops < Self.maximumHops else {
            return .refuse("it is one more than the \(Self.maximumHops) redirects that an opening follows")
        }
        // The method never changes, so the URL alone says whether this was asked before.
        let identity = Self.identity(target.url)
        guard identity != Self.identity(start), !visited.contains(identity) else {
            return .refuse("it leads back to a URL that was asked before (\(to))")
        }
        let isTrusted = to == origin || trusted.contains(to)
        guard isTrusted || !hasBody else {
            return .refuse("it leads with the request's content to another origin, which is not trusted (\(to))")
        }

        hops += 1
        visited.insert(identity)
        origin = to
        keepsHeaders = keepsHeaders && isTrusted
        return .follow(keepsBody: hasBody, keepsHeaders: keepsHeaders)
    }

    /// The URL without its fragment, which is never sent.
    private static func identity(_ url: String) -> String {
        String(decoding: url.utf8.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
    }
}
