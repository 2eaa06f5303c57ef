enum Demo {
    static func run(_ output: Output, requests: AsyncStream<SignalRequest>) async throws(UsageError) -> Int32 { 0 }
}
