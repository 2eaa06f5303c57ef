// The text of `--help`.

/// What `--help` says.
enum Help {
    /// One screen, and a line of it for a usage error.
    static let usage = "usage: subscribe URL (--query TEXT | --query-file FILE | --plain) [options], subscribe --demo"

    static let text = """
        \(usage)

        Holds a subscription open, comes back by itself after a failure, and prints what arrives.

        What to ask
          --query TEXT             a GraphQL subscription (GraphQL over SSE, distinct connections mode)
          --query-file FILE        the same from a file; - is standard input
          --variables JSON         its variables
          --operation NAME         which of the document's operations
          --plain                  any other event stream (EventSource)
          --method NAME            with --plain: the method instead of GET
          --data BODY|@FILE        with --plain: a body
          --last-event-id ID       with --plain: where to begin
          --header 'NAME: VALUE'   a header field; again for more

        How to connect
          --cacert FILE            the certificate authorities to trust, in PEM
          --cert FILE, --key FILE  a client certificate and its key, in PEM
          --insecure               do not verify the server's certificate
          --proxy URL              a proxy; none otherwise, whatever the environment says
          --http 1.1|2             hold to one HTTP version
          --connect-timeout S      seconds to a connection, fractions allowed (15)
          --first-byte-timeout S   from there to the response's head (60)
          --idle-timeout S         from each byte to the next (300)
          --max-event-bytes N      the most data of one event (16777216)

        When to end
          --count N                after N payloads
          --max-time S             after S seconds
          --once                   at the first failure, instead of coming back

        What to print
          --json                   a JSON object a line for everything that happens
          --comments               comments of the stream too
          --quiet                  nothing about the stream's state on standard error
          --verbose                more of it
          --version                this tool's version and libcurl's; with --verbose what it can do
          --demo                   a stream, a failure and the way back, against a server of its own
          --help

        Signals: INT and TERM end (a second one at once), USR1 closes the stream and keeps it closed, USR2 opens it
        again, HUP does both.

        Exit: 0 completed by the server, or --count or --max-time reached; 1 usage; 2 the server refused the request;
        3 this machine cannot make it; 4 a network failure with --once, or nothing before --max-time; 130 and 143
        INT and TERM; 141 standard output was closed.
        """
}
