// The one place that writes to standard output and standard error.
//
// Anyone tells it, from any thread, and never waits: lines are made in order under a lock, and one task writes them.
// Whoever brings payloads waits for room first, so a reader of standard output that stops holds the stream back.

import Foundation
import SubscriptionRuntime
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Shows a run.
final class Console: Sendable {
    /// The bytes that may wait to be written before whoever brings payloads has to wait.
    private static let room = 1 << 20

    private struct State {
        var narrator = Narrator()
        var screen: Screen
    }

    private let state: Lock<State>
    private let waiting = Atomic<Int>(0)
    private let chunks: AsyncStream<Chunk>
    private let chunksIn: AsyncStream<Chunk>.Continuation
    private let stops: AsyncStream<Stop>
    private let stopsIn: AsyncStream<Stop>.Continuation
    private let written: AsyncStream<Void>
    private let writtenIn: AsyncStream<Void>.Continuation

    private let output: Int32
    private let status: Int32

    /// A console over two open descriptors, which stay the caller's.
    ///
    /// - Parameters:
    ///   - setting: How they are looked at.
    ///   - output: Standard output's.
    ///   - status: Standard error's.
    init(_ setting: Screen.Setting, output: Int32 = STDOUT_FILENO, status: Int32 = STDERR_FILENO) {
        self.output = output
        self.status = status
        state = Lock(State(screen: Screen(setting)))
        (chunks, chunksIn) = AsyncStream.makeStream()
        (stops, stopsIn) = AsyncStream.makeStream()
        (written, writtenIn) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Takes what an observer says.
    func take(_ input: Narrator.Input) {
        state.withLock { state in
            for happening in state.narrator.take(input) {
                for chunk in state.screen.show(happening) { enqueue(chunk) }
                if case .problem(let problem) = happening, problem.isFatal { stopsIn.yield(.failed(problem.kind)) }
            }
        }
    }

    /// What it has shown or met that ends the run: a failure that is not waited for, or a closed standard output.
    ///
    /// - Returns: Nil when the task is cancelled first.
    func stop() async -> Stop? {
        for await stop in stops { return stop }
        return nil
    }

    /// Shows something at once, past the narrator.
    func show(_ happening: Happening) {
        state.withLock { state in
            for chunk in state.screen.show(happening) { enqueue(chunk) }
        }
    }

    /// How many payloads were shown.
    var payloads: Int { state.withLock { $0.screen.counts.payloads } }

    /// Waits until there is room for more, or the task is cancelled.
    ///
    /// One task at a time.
    func waitForRoom() async {
        guard waiting.load(ordering: .relaxed) > Self.room else { return }
        for await _ in written where waiting.load(ordering: .relaxed) <= Self.room / 2 { return }
    }

    /// Writes what comes, until ``finish()``.
    ///
    /// Blocks its thread while a reader is slow. A closed standard output ends the run, and what comes after is let go.
    func write() async {
        var isClosed = false
        for await chunk in chunks {
            switch chunk {
            case .output(let bytes):
                if !isClosed, !Self.write(bytes, to: output) {
                    isClosed = true
                    stopsIn.yield(.closedOutput)
                }
                waiting.subtract(bytes.count, ordering: .relaxed)
            case .status(let bytes):
                // Who has closed standard error does not want to know.
                _ = Self.write(bytes, to: status)
                waiting.subtract(bytes.count, ordering: .relaxed)
            }
            writtenIn.yield()
        }
    }

    /// Draws the live line a few times a second, until cancelled.
    ///
    /// Returns at once where there is none.
    func drawLiveLine() async {
        guard state.withLock({ $0.screen.isLive }) else { return }
        while !Task.isCancelled {
            state.withLock { state in
                for chunk in state.screen.tick(now: Date().timeIntervalSince1970, width: Self.width(of: status)) {
                    enqueue(chunk)
                }
            }
            // A clock on the screen: this wait has no event of its own.
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Nothing follows: ``write()`` returns when all is written.
    func finish() {
        state.withLock { state in
            for chunk in state.screen.end() { enqueue(chunk) }
        }
        chunksIn.finish()
    }

    private func enqueue(_ chunk: Chunk) {
        switch chunk {
        case .output(let bytes), .status(let bytes): waiting.add(bytes.count, ordering: .relaxed)
        }
        chunksIn.yield(chunk)
    }

    /// Writes all.
    ///
    /// - Returns: False when the descriptor takes no more, as at a pipe whose reader has left.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { buffer in
                #if canImport(Glibc)
                Glibc.write(descriptor, buffer.baseAddress, buffer.count)
                #else
                Musl.write(descriptor, buffer.baseAddress, buffer.count)
                #endif
            }
            if count > 0 {
                written += count
            } else if errno == EAGAIN {
                // A terminal or pipe that another process made non-blocking.
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wait, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// The terminal's columns; 80 where they cannot be told.
    private static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
