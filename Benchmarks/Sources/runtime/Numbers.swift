// A transport that counts: the numbers from zero, as many at once as it is asked for.

internal import SubscriptionRuntime

/// Opens at once, and completes after its count.
///
/// As little as a transport can do that makes an array a batch.
struct Numbers: SubscriptionTransport {
    /// What a batch has at most.
    static let batch = 128

    let count: Int
    var executor: (any TaskExecutor)?

    var driverExecutor: (any TaskExecutor)? { executor }

    func open(_ request: Int, resuming: ResumePoint?) async throws(SubscriptionFailure) -> NumberSequence {
        NumberSequence(count: count)
    }
}

struct NumberSequence: PayloadSequence {
    typealias Element = Int
    typealias Failure = SubscriptionFailure

    let count: Int

    func makeAsyncIterator() -> Iterator { Iterator(count: count) }

    struct Iterator: PayloadIterator {
        typealias Element = Int

        let count: Int
        private var next = 0

        init(count: Int) {
            self.count = count
        }

        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(SubscriptionFailure) -> Int? {
            try await next(atMost: 1)?.first
        }

        mutating func next(atMost limit: Int) async throws(SubscriptionFailure) -> [Int]? {
            nextIfReady(atMost: limit)
        }

        mutating func nextIfReady(atMost limit: Int) -> [Int]? {
            guard next < count else { return nil }
            let end = Swift.min(count, next + Swift.min(limit, Numbers.batch))
            defer { next = end }
            return Array(next..<end)
        }
    }
}
