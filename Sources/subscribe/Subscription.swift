// The options of a subscription into a transport, a request and a run over them.

import CurlSSETransport
import Foundation
import SubscriptionRuntime

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// One subscription of the command line.
struct Subscription {
    private let options: Options
    private let console: Console
    private let configuration: Configuration

    /// Prepares it.
    ///
    /// - Throws: What is wrong with an option's value.
    init(_ options: Options) throws(UsageError) {
        let console = Console(Self.setting(options.output, comments: options.comments))
        var configuration = Self.configuration(options)
        if options.comments {
            configuration.onComment = { text in console.take(.comment(text)) }
        }
        do {
            try configuration.validate()
        } catch {
            throw UsageError(message: error.message)
        }
        self.options = options
        self.console = console
        self.configuration = configuration
    }

    /// Runs it to its end.
    ///
    /// - Parameter requests: What signals ask for.
    /// - Returns: The exit code.
    /// - Throws: What is wrong with the command line, before anything was opened.
    func run(_ requests: AsyncStream<SignalRequest>) async throws(UsageError) -> Int32 {
        let opened = try opening()
        let writing = Task { await console.write() }
        let drawing = Task { await console.drawLiveLine() }
        let stop = await opened(requests)
        drawing.cancel()
        await drawing.value
        console.finish()
        await writing.value
        return stop.exitCode
    }

    /// Reads what the command line names, and says how to run it.
    private func opening() throws(UsageError) -> (AsyncStream<SignalRequest>) async -> Stop {
        let headers = options.headers.map { HTTPField($0.name, $0.value) }
        switch options.dialect {
        case .plain(let method, let data, let lastEventID):
            let request = EventSourceRequest(
                method: method ?? "GET",
                headers: headers,
                body: try data.map { source throws(UsageError) in try Self.read(source) },
                lastEventID: lastEventID ?? ""
            )
            return { requests in
                await run(EventSource(), asking: request, requests) { event in
                    .event(type: event.type, data: Array(event.data.bytes), id: event.lastEventID)
                }
            }
        case .graphQL(let query, let variables, let operation):
            let text = String(decoding: try Self.read(query), as: UTF8.self)
            let request = try Self.request(text, variables, operation, headers)
            return { requests in
                await run(GraphQLSSE(), asking: request, requests) { result in
                    .payload(Array(result.content.bytes))
                }
            }
        }
    }

    private static func request(
        _ query: String,
        _ variables: String?,
        _ operation: String?,
        _ headers: [HTTPField]
    ) throws(UsageError) -> GraphQLRequest {
        guard let variables else { return GraphQLRequest(query: query, operationName: operation, headers: headers) }
        do {
            return try GraphQLRequest(
                query: query,
                operationName: operation,
                variablesJSON: variables,
                headers: headers
            )
        } catch {
            throw UsageError(message: "--variables: \(error.message)")
        }
    }

    private func run<D: Dialect>(
        _ dialect: D,
        asking request: D.Request,
        _ requests: AsyncStream<SignalRequest>,
        shown: @escaping @Sendable (D.Payload) -> Happening
    ) async -> Stop {
        let loop: CurlLoop
        let transport: CurlTransport<D>
        do throws(TransportError) {
            loop = try CurlLoop(label: "subscribe")
            transport = try CurlTransport(options.url, dialect: dialect, configuration: configuration, loop: loop)
        } catch {
            let problem = Problem(error)
            console.take(.failed(problem, after: 0))
            console.take(.left(.ended))
            return .failed(problem.kind)
        }
        let run = Run(over: transport, asking: request, options: RunOptions(options), on: console, shown: shown)
        let stop = await run.untilStop(requests)
        // No connection is left for the process's exit to find.
        await loop.shutdown()
        return stop
    }

    // MARK: From options

    /// How this process's outputs are looked at.
    static func setting(_ output: Output, comments: Bool) -> Screen.Setting {
        Screen.Setting(
            output: output,
            outputIsTerminal: isatty(STDOUT_FILENO) == 1,
            statusIsTerminal: isatty(STDERR_FILENO) == 1,
            noColour: ProcessInfo.processInfo.environment["NO_COLOR"]?.isEmpty == false,
            comments: comments
        )
    }

    private static func configuration(_ options: Options) -> Configuration {
        var configuration = Configuration()
        configuration.tls.caFile = options.authority
        configuration.tls.clientCertificate = options.certificate
        configuration.tls.clientKey = options.key
        configuration.tls.insecureSkipsVerification = options.insecure
        if let proxy = options.proxy { configuration.proxy = .url(proxy) }
        switch options.http {
        case .http1: configuration.httpVersion = .http1_1
        case .http2: configuration.httpVersion = .http2
        case nil: break
        }
        if let timeout = options.connectTimeout { configuration.connectTimeout = timeout }
        if let timeout = options.firstByteTimeout { configuration.firstByteTimeout = timeout }
        if let timeout = options.idleTimeout { configuration.idleTimeout = timeout }
        if let bytes = options.maxEventBytes { configuration.maxEventBytes = bytes }
        return configuration
    }

    private static func read(_ source: Source) throws(UsageError) -> [UInt8] {
        switch source {
        case .text(let text):
            return Array(text.utf8)
        case .file("-"):
            return Array(FileHandle.standardInput.readDataToEndOfFile())
        case .file(let path):
            do {
                return Array(try Data(contentsOf: URL(filePath: path)))
            } catch {
                throw UsageError(message: "\(path) cannot be read")
            }
        }
    }
}

extension RunOptions {
    /// When a run ends, as the command line says.
    init(_ options: Options) {
        self.init(count: options.count, maxTime: options.maxTime, once: options.once)
    }
}
