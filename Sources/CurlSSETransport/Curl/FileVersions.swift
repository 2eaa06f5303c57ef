// Which content of a file a connection was made by.
//
// libcurl tells connections, TLS sessions and its copy of a CA file apart by the names of files (`Curl_ssl_config_matches`
// in lib/vtls/vtls.c, `cached_x509_store_different` in lib/vtls/openssl.c): after a file was replaced under its name, a
// new opening would go over a connection of the old identity. So each content has a name of its own here, which leads
// to the same file.
//
// Thread: the loop's.

internal import CCurl

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// Names files by their content, as far as stat(2) tells it.
struct FileVersions {
    /// What differs once a file was replaced or written to.
    private struct Stamp: Hashable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var seconds: [Int]
        var nanoseconds: [Int]

        /// The stamp of the file at a path; nil where there is none.
        init?(_ path: String) {
            var found = Self.empty
            guard unsafe stat(path, &found) == 0 else { return nil }
            device = UInt64(found.st_dev)
            inode = UInt64(found.st_ino)
            size = Int64(found.st_size)
            #if canImport(Darwin)
            let times = [found.st_mtimespec, found.st_ctimespec]
            #else
            let times = [found.st_mtim, found.st_ctim]
            #endif
            seconds = times.map { Int($0.tv_sec) }
            nanoseconds = times.map { Int($0.tv_nsec) }
        }

        private static var empty: stat { stat() }
    }

    private var known: [[String]: (stamps: [Stamp?], version: UInt16)] = [:]

    /// A name of the first file that is another one once any of the files has changed.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - others: Files that change what the first one stands for, such as its key.
    /// - Returns: The path itself until the first change that is seen.
    mutating func name(of path: String, with others: [String] = []) -> String {
        let paths = [path] + others
        let stamps = paths.map { Stamp($0) }
        guard let last = known[paths] else {
            known[paths] = (stamps, 0)
            return path
        }
        guard last.stamps != stamps else { return Self.name(of: path, version: last.version) }
        // After 65535 changes the first name comes again, whose connections are long gone.
        let version = last.version &+ 1
        known[paths] = (stamps, version)
        return Self.name(of: path, version: version)
    }

    /// The path with the version's bits written before its last part: `./` for 0, `.//` for 1.
    static func name(of path: String, version: UInt16) -> String {
        var bits = ""
        var rest = version
        while rest > 0 {
            bits += rest & 1 == 0 ? "./" : ".//"
            rest >>= 1
        }
        let utf8 = path.utf8
        let start = utf8.lastIndex(of: UInt8(ascii: "/")).map { utf8.index(after: $0) } ?? utf8.startIndex
        return path[..<start] + bits + path[start...]
    }

    /// Names the files of a transfer by what is in them now.
    mutating func apply(to options: inout EasyOptions) {
        options.caFile = options.caFile.map { name(of: $0) }
        options.caPath = options.caPath.map { name(of: $0) }
        options.clientCertificate = options.clientCertificate.map { path in
            name(of: path, with: options.clientKey.map { [$0] } ?? [])
        }
        if let pin = options.pinnedPublicKey, !pin.hasPrefix("sha256//") { options.pinnedPublicKey = name(of: pin) }
    }
}
