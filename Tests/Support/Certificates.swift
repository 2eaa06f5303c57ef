import Foundation
import Glibc
import SubscriptionRuntime

/// A program of the system that a test needs, and that is missing or failed.
struct ToolFailure: Error, CustomStringConvertible {
    var description: String
}

/// A program of the system that runs.
struct RunningTool: Sendable {
    private let process: pid_t

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - name: Its name on PATH, or in /usr/sbin.
    ///   - package: The Debian package that has it.
    ///   - arguments: Its arguments.
    ///   - log: The file that takes what it says.
    /// - Throws: It is missing, or did not start.
    init(_ name: String, package: String, _ arguments: [String], log: String) throws {
        let path = try tool(name, package: package)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // A descriptor between its making and its FD_CLOEXEC would be inherited: a connection of another test then stays
        // open for as long as the program runs.
        for descriptor in 3..<Int32(1024) { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A thread of the pool has its signals blocked, and a child would inherit that.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var texts = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for text in texts { free(text) } }
        var process = pid_t()
        let result = posix_spawn(&process, path, &actions, &attributes, &texts, environ)
        guard result == 0 else { throw ToolFailure(description: "\(name) did not start: errno \(result)") }
        self.process = process
    }

    /// Sends it a signal.
    func signal(_ number: Int32) { kill(process, number) }

    /// Waits until it has ended; once.
    ///
    /// - Returns: Its status as waitpid(2) gives it.
    @discardableResult
    func waitUntilExit() -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}

/// Runs a program of the system to its end.
///
/// - Throws: It is missing, or it failed, with what it said.
func run(_ name: String, package: String, _ arguments: [String], log: String) throws {
    let running = try RunningTool(name, package: package, arguments, log: log)
    guard running.waitUntilExit() == 0 else {
        let said = (try? String(contentsOfFile: log, encoding: .utf8)) ?? "nothing"
        throw ToolFailure(description: "\(name) failed: \(said)")
    }
}

/// Where a program of the system is.
func tool(_ name: String, package: String) throws -> String {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for directory in path.split(separator: ":").map(String.init) + ["/usr/sbin"] {
        let file = "\(directory)/\(name)"
        if access(file, X_OK) == 0 { return file }
    }
    throw ToolFailure(description: "\(name) is missing, which these tests need: apt-get install \(package)")
}

/// A folder that goes with its owner, or with the process where the process ends first.
final class TemporaryFolder: Sendable {
    let url: URL

    /// The folders that are there, and whether exit(3) removes them.
    private static let existing = Lock<(paths: Set<String>, isRegistered: Bool)>(([], false))

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        let path = url.path
        Self.existing.withLock { existing in
            existing.paths.insert(path)
            if !existing.isRegistered { atexit { TemporaryFolder.removeAll() } }
            existing.isRegistered = true
        }
    }

    deinit {
        let path = url.path
        _ = Self.existing.withLock { $0.paths.remove(path) }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// What a static keeps, and what a process that calls exit(3) in the middle of a test leaves, has no deinit.
    private static func removeAll() {
        for path in existing.withLock({ $0.paths }) { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The path of a file in it.
    func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}

/// Two authorities that know nothing of each other, and what the first one has signed.
///
/// Made by openssl(1), once a process.
struct Certificates: Sendable {
    let folder: TemporaryFolder

    /// The pin of the server's public key, as CURLOPT_PINNEDPUBLICKEY(3) takes it.
    let pin: String

    var authority: String { folder.path("ca.pem") }
    var otherAuthority: String { folder.path("other.pem") }

    private static let made = Result { try Certificates() }

    /// The certificates of this process.
    static func shared() throws -> Certificates { try made.get() }

    private init() throws {
        folder = try TemporaryFolder()
        let folder = folder
        func openssl(_ arguments: String) throws {
            // Files by their names alone are in the folder.
            let words = arguments.split(separator: " ").map { word in
                word.hasSuffix(".pem") || word.hasSuffix(".key") || word.hasSuffix(".csr") || word.hasSuffix(".der")
                    || ["names", "server.hash"].contains(word) ? folder.path(String(word)) : String(word)
            }
            try run("openssl", package: "openssl", words, log: folder.path("log"))
        }
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        for name in ["ca", "other"] {
            try openssl("req -x509 \(key) -keyout \(name).key -out \(name).pem -days 2 -subj /CN=\(name)")
        }
        let names = "subjectAltName=DNS:localhost,DNS:server.test,IP:127.0.0.1"
        try names.write(toFile: folder.path("names"), atomically: true, encoding: .utf8)
        for name in ["server", "alice", "bob"] {
            try openssl("req -new \(key) -keyout \(name).key -out \(name).csr -subj /CN=\(name)")
            try openssl(
                "x509 -req -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out \(name).pem"
            )
        }
        try openssl("pkey -in server.key -pubout -outform DER -out server.der")
        try openssl("dgst -sha256 -binary -out server.hash server.der")
        pin =
            "sha256//" + (try Data(contentsOf: folder.url.appendingPathComponent("server.hash"))).base64EncodedString()
    }
}
