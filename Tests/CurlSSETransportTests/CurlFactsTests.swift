import CCurl
import Glibc
import Testing

@testable import CurlSSETransport

@Suite("What libcurl's result codes mean")
struct CurlFactsTests {
    private func facts(_ code: CURLcode, _ change: (inout CurlFacts) -> Void = { _ in }) -> CurlFacts {
        var facts = CurlFacts(
            code: CurlCode(code),
            message: "",
            systemError: 0,
            connections: 0,
            proxyStatus: 0,
            verifyResult: 0
        )
        change(&facts)
        return facts
    }

    @Test(
        "what may pass is a network failure: names, connections, TLS and what comes over it",
        arguments: [
            CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_WEIRD_SERVER_REPLY,
            CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_OUT_OF_MEMORY, CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR,
            CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_SEND_FAIL_REWIND, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR, CURLE_PROXY,
            CURLE_BAD_CONTENT_ENCODING,
        ]
    )
    func network(code: CURLcode) {
        #expect(facts(code).kind == .network)
        #expect(facts(code) { $0.wasConnected = true }.kind == .network)
    }

    @Test(
        "what this process lacks is an environment failure",
        arguments: [
            CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_FUNCTION_NOT_FOUND, CURLE_INTERFACE_FAILED,
            CURLE_UNKNOWN_OPTION, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE,
        ]
    )
    func environment(code: CURLcode) {
        #expect(facts(code).kind == .environment)
    }

    @Test("a URL that libcurl does not take is a request error, and what looks like one after a connection is not")
    func request() {
        for code in [CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT] {
            #expect(facts(code).kind == .request)
            #expect(facts(code) { $0.wasConnected = true }.kind == .network)
            #expect(facts(code) { $0.connections = 1 }.kind == .network)
        }
    }

    @Test(
        "a protocol that is not supported is a libcurl without TLS before a connection, and a strange server after it"
    )
    func unsupportedProtocol() {
        #expect(facts(CURLE_UNSUPPORTED_PROTOCOL).kind == .environment)
        #expect(facts(CURLE_UNSUPPORTED_PROTOCOL) { $0.wasConnected = true }.kind == .network)
        #expect(facts(CURLE_UNSUPPORTED_PROTOCOL) { $0.connections = 1 }.kind == .network)
    }

    @Test("an option that libcurl cannot read is an environment failure")
    func optionSyntax() {
        #expect(facts(CURLE_SETOPT_OPTION_SYNTAX).kind == .environment)
    }

    @Test("HTTP/2 is left to TLS where this libcurl has it and does not stall paused streams")
    func httpVersions() {
        func curl(_ number: UInt32, http2: Bool = true) -> CurlInfo {
            CurlInfo(
                version: "",
                number: number,
                tls: "OpenSSL",
                hasHTTP2: http2,
                hasAsynchronousResolver: true,
                isThreadsafe: true
            )
        }
        for number in [0x07_5801, 0x08_0900, 0x08_0e00] as [UInt32] {
            #expect(EasyOptions.HTTPVersion(.automatic, by: curl(number)) == .automatic)
        }
        for number in [0x08_0a00, 0x08_0d00, 0x08_0dff] as [UInt32] {
            #expect(EasyOptions.HTTPVersion(.automatic, by: curl(number)) == .http1)
            #expect(EasyOptions.HTTPVersion(.http2, by: curl(number)) == .http2)
        }
        #expect(EasyOptions.HTTPVersion(.automatic, by: curl(0x07_5801, http2: false)) == .http1)
        #expect(EasyOptions.HTTPVersion(.http1_1, by: curl(0x07_5801)) == .http1)
        #expect(curl(0x08_00ff).leaksPausedStreams && curl(0x08_00ff).keepsResets)
        #expect(!curl(0x08_0100).leaksPausedStreams && !curl(0x08_0100).keepsResets)
        #expect(curl(0x07_ffff).sharesNoPlainHTTP2 && !curl(0x08_0000).sharesNoPlainHTTP2)
    }

    @Test("no descriptors, no buffers and no memory heal; no right to make sockets does not")
    func sockets() {
        for number in [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT] {
            let found = facts(CURLE_COULDNT_CONNECT) { $0.socketError = number }
            #expect(found.kind == .network)
            #expect(found.errno == number)
            #expect(found.what.hasPrefix("no socket could be made: "))
        }
        #expect(facts(CURLE_COULDNT_CONNECT) { $0.socketError = EACCES }.kind == .environment)
    }

    @Test("a socket that could not be made for one address says nothing of a failure at another")
    func otherSocket() {
        let found = facts(CURLE_PEER_FAILED_VERIFICATION) {
            $0.socketError = EACCES
            $0.wasConnected = false
            $0.message = "SSL certificate problem: self-signed certificate"
        }
        #expect(found.kind == .network)
        #expect(found.what == "SSL certificate problem: self-signed certificate")
    }

    @Test("a look-up that failed says whether a thread could not be had for it or there is no such name")
    func resolver() {
        let thread = facts(CURLE_COULDNT_RESOLVE_HOST) {
            $0.message = "getaddrinfo() thread failed to start"
            $0.systemError = EAGAIN
        }
        #expect(thread.kind == .network)
        #expect(thread.what == "getaddrinfo() thread failed to start (resource temporarily unavailable)")
        #expect(thread.suffix == "curl 6, errno 11")
        let name = facts(CURLE_COULDNT_RESOLVE_HOST) { $0.message = "Could not resolve host: a.test" }
        #expect(name.kind == .network)
        #expect(name.what == "could not resolve host: a.test")
        #expect(name.suffix == "curl 6")
    }

    @Test("a proxy's 407 is a request error, every other refusal of CONNECT a network failure")
    func proxies() {
        #expect(facts(CURLE_RECV_ERROR) { $0.proxyStatus = 407 }.kind == .request)
        for status in [301, 400, 403, 404, 500, 502, 503] {
            let found = facts(CURLE_RECV_ERROR) { $0.proxyStatus = status }
            #expect(found.kind == .network)
            #expect(found.what == "the proxy refused CONNECT with \(status)")
        }
        #expect(facts(CURLE_SSL_CERTPROBLEM) { $0.proxyStatus = 200 }.kind == .environment)
    }

    @Test("a proxy whose URL libcurl cannot use is an environment failure, without the URL's words")
    func proxyURL() {
        for text in ["Unsupported proxy scheme for 'x://u:hunter2@p'", "Unsupported proxy syntax in 'hunter2': Bad"] {
            let found = facts(CURLE_COULDNT_CONNECT) { $0.message = text }
            #expect(found.kind == .environment)
            #expect(!found.what.contains("hunter2"))
        }
    }

    @Test("the sentence is libcurl's buffer, or its name for the code where the buffer is empty")
    func sentences() {
        #expect(facts(CURLE_GOT_NOTHING).what == "server returned nothing (no headers, no data)")
        #expect(facts(CURLE_GOT_NOTHING) { $0.message = "Empty reply from server" }.what == "empty reply from server")
        let reset = facts(CURLE_RECV_ERROR) {
            $0.message = "Recv failure: Connection reset by peer"
            $0.systemError = ECONNRESET
            $0.wasConnected = true
        }
        #expect(reset.what == "recv failure: Connection reset by peer")
        #expect(reset.suffix == "curl 56, errno 104")
        let unverified = facts(CURLE_PEER_FAILED_VERIFICATION) { $0.verifyResult = 18 }
        #expect(unverified.suffix == "curl 60, verify result 18")
        #expect(facts(CURLE_PARTIAL_FILE) { $0.verifyResult = 1 }.suffix == "curl 18")
    }

    @Test("the error number of an address that was given up is not that of the connection")
    func staleErrno() {
        let found = facts(CURLE_PARTIAL_FILE) {
            $0.systemError = ECONNREFUSED
            $0.wasConnected = true
        }
        #expect(found.errno == nil)
        #expect(facts(CURLE_SSL_CONNECT_ERROR) { $0.systemError = ECONNRESET }.errno == ECONNRESET)
    }
}
