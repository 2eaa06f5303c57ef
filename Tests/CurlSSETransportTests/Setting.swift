import Glibc

/// What a longer run is asked for by the environment.
enum Setting {
    /// A count by its variable's name.
    static func count(_ name: String, default value: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? value
    }

    /// Writes a line of figures to the standard error.
    static func report(_ text: String) {
        let line = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}

/// What this process holds of the system.
enum ProcessUse {
    /// How many descriptors are open.
    static var descriptors: Int { entries("/proc/self/fd") - 1 }

    /// What the open descriptors are, by proc_pid_fd(5).
    static var descriptorTargets: [String] {
        (0..<256).compactMap { number in
            var target = [CChar](repeating: 0, count: 256)
            guard readlink("/proc/self/fd/\(number)", &target, target.count - 1) > 0 else { return nil }
            let bytes = target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return "\(number) \(String(decoding: bytes, as: UTF8.self))"
        }
    }

    /// How much of the processors' time all threads have had.
    static var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// How many sockets of this system are in the middle of connecting to a port of the loopback (proc(5), /proc/net/tcp).
    static func connecting(to port: UInt16) -> Int {
        guard let file = fopen("/proc/net/tcp", "r") else { return -1 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 512)
        var count = 0
        while fgets(&line, Int32(line.count), file) != nil {
            let bytes = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
            // SYN_SENT is 02.
            guard fields.count > 3, fields[3] == "02" else { continue }
            let remote = fields[2].split(separator: ":").last.flatMap { UInt16($0, radix: 16) }
            if remote == port { count += 1 }
        }
        return count
    }

    /// How many threads run.
    static var threads: Int { entries("/proc/self/task") }

    private static func entries(_ path: String) -> Int {
        guard let directory = opendir(path) else { return 0 }
        defer { closedir(directory) }
        var count = -2
        while readdir(directory) != nil { count += 1 }
        return count
    }
}
