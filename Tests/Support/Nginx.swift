import Foundation
import SubscriptionTesting

/// nginx in front of a replay server: TLS and HTTP/2 here, raw bytes behind.
///
/// Tells the server behind it, by header fields, which connection a request came over (`X-Connection`), how
/// (`X-Protocol`) and from whom (`X-Client`).
final class Nginx: @unchecked Sendable {
    /// TLS 1.2 and 1.3, HTTP/2.
    var url: String { "https://127.0.0.1:\(ports[0].port)" }
    /// The same, for clients with a certificate alone.
    var mutualURL: String { "https://127.0.0.1:\(ports[1].port)" }
    /// TLS 1.2 alone.
    var oldURL: String { "https://127.0.0.1:\(ports[2].port)" }
    /// Two streams a connection.
    var narrowURL: String { "https://127.0.0.1:\(ports[3].port)" }

    /// TLS 1.1 alone.
    var ancientURL: String { "https://127.0.0.1:\(ports[4].port)" }

    var port: Int { Int(ports[0].port) }
    /// The port of ``ancientURL``.
    var ancientPort: Int { Int(ports[4].port) }
    var unixSocket: String { folder.path("socket") }

    private let folder: TemporaryFolder
    private let certificates: Certificates
    /// Each keeps a port that nginx listens on.
    private let ports: [ReplayServer]
    private var process: RunningTool?

    /// Starts nginx.
    ///
    /// - Parameter server: Where requests go on to.
    /// - Throws: What is missing, or why it did not start.
    init(to server: ReplayServer) async throws {
        folder = try TemporaryFolder()
        certificates = try Certificates.shared()
        ports = try (0..<5).map { _ in
            let port = try ReplayServer()
            port.refuseConnections()
            return port
        }
        let tls = """
            ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate \(certificates.folder.path("server.pem"));
            ssl_certificate_key \(certificates.folder.path("server.key"));
            """
        let configuration = """
            daemon off; master_process off; pid \(folder.path("pid")); error_log \(folder.path("error.log"));
            events { worker_connections 4096; }
            http {
                access_log off;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                proxy_buffering off; proxy_http_version 1.1; proxy_read_timeout 300s;
                proxy_set_header Connection ""; proxy_set_header X-Connection $connection;
                proxy_set_header X-Protocol $server_protocol; proxy_set_header X-Client $ssl_client_s_dn;
                server {
                    listen 127.0.0.1:\(ports[0].port) ssl http2; listen unix:\(folder.path("socket"));
                    \(tls) location / { proxy_pass \(server.url); }
                }
                server {
                    listen 127.0.0.1:\(ports[1].port) ssl http2; ssl_verify_client on;
                    ssl_client_certificate \(certificates.authority);
                    \(tls) location / { proxy_pass \(server.url); }
                }
                server {
                    listen 127.0.0.1:\(ports[2].port) ssl http2;
                    \(tls.replacingOccurrences(of: " TLSv1.3", with: "")) location / { proxy_pass \(server.url); }
                }
                server {
                    listen 127.0.0.1:\(ports[3].port) ssl http2; http2_max_concurrent_streams 2;
                    \(tls) location / { proxy_pass \(server.url); }
                }
                server {
                    listen 127.0.0.1:\(ports[4].port) ssl; ssl_ciphers ALL:@SECLEVEL=0;
                    \(tls.replacingOccurrences(of: "TLSv1.2 TLSv1.3", with: "TLSv1.1"))
                    location / { proxy_pass \(server.url); }
                }
            }
            """
        try configuration.write(toFile: folder.path("nginx.conf"), atomically: true, encoding: .utf8)
        try await start()
    }

    deinit {
        signal(SIGKILL)
        process?.waitUntilExit()
    }

    /// Starts it, on the same ports.
    func start() async throws {
        try? FileManager.default.removeItem(atPath: folder.path("pid"))
        try? FileManager.default.removeItem(atPath: folder.path("socket"))
        process = try RunningTool(
            "nginx",
            package: "nginx-light",
            ["-p", folder.url.path, "-c", folder.path("nginx.conf"), "-e", folder.path("error.log")],
            log: folder.path("log")
        )
        // Written once it listens.
        let deadline = ContinuousClock.now.advanced(by: .seconds(60))
        while !FileManager.default.fileExists(atPath: folder.path("pid")) {
            guard ContinuousClock.now < deadline else {
                let said = (try? String(contentsOfFile: folder.path("error.log"), encoding: .utf8)) ?? "nothing"
                throw ToolFailure(description: "nginx did not start: \(said)")
            }
            try await ContinuousClock().sleep(for: .milliseconds(5))
        }
    }

    /// Sends it a signal.
    func signal(_ number: Int32) { process?.signal(number) }

    /// Waits until it has ended.
    func waitUntilExit() {
        process?.waitUntilExit()
        process = nil
    }
}
