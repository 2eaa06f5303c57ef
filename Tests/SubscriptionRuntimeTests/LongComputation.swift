import Dispatch
import Testing

/// Runs a test that computes for long on one thread beside the pool.
///
/// Tests run at once, and the pool has as many threads as there are processors: a test that keeps one busy for seconds
/// would have every test that waits for a deadline or a socket measure those seconds.
struct LongComputation: SuiteTrait, TestTrait, TestScoping {
    /// For the tests inside a suite, too.
    let isRecursive = true

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        try await withTaskExecutorPreference(Self.thread) { try await function() }
    }

    private static let thread = OneThread(label: "long computation")
}

extension Trait where Self == LongComputation {
    /// Runs on one thread beside the pool.
    static var longComputation: Self { LongComputation() }
}
