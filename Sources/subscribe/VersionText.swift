// The text of `--version`.

import CurlSSETransport

/// What `--version` says.
enum VersionText {
    /// This tool's version and libcurl's.
    ///
    /// - Parameter isVerbose: Whether to add what the libcurl found at run time can do, and what is worked around.
    /// - Returns: The lines, without a line end at the end.
    static func make(isVerbose: Bool) -> String {
        let curl = CurlGlobal.info
        var lines = [
            "subscribe \(Version.current)",
            "libcurl \(curl.version), TLS \(curl.tls.map { "by \($0)" } ?? "no"), HTTP/2 \(word(curl.hasHTTP2))",
        ]
        if isVerbose {
            lines += [
                "names are resolved beside the loop: \(word(curl.hasAsynchronousResolver))",
                "a cancelled look-up of a name holds up nothing (built with libcurl 7.87 or later): "
                    + word(CurlGlobal.leavesLookUps),
                "libcurl is set up from any thread: \(word(curl.isThreadsafe))",
                "a paused HTTP/2 stream is resumed before it is cancelled (libcurl before 8.1): "
                    + word(curl.leaksPausedStreams),
                "the reset of a cancelled HTTP/2 stream is sent by its neighbour's doing (libcurl before 8.1): "
                    + word(curl.keepsResets),
                "HTTP/2 without TLS takes a connection a stream (libcurl before 8.0): " + word(curl.sharesNoPlainHTTP2),
                "HTTP/2 only when asked for (libcurl 8.10 to 8.13 stalls paused streams): "
                    + word(curl.stallsPausedStreams),
                "Fixes of libcurl's faults come with your distribution's package, whose version this one does not tell.",
            ]
        }
        return lines.joined(separator: "\n")
    }

    private static func word(_ isSo: Bool) -> String { isSo ? "yes" : "no" }
}
