internal import SubscriptionRuntime

/// Header fields that say who asks, read anew for each opening.
///
/// They are no part of a request, so two users' equal requests in one environment share a stream: give each identity an
/// environment of its own.
public struct Credentials: Sendable {
    /// How long the provider may take.
    ///
    /// At least zero, or no transport is made with it; default 15 s. Past it the opening fails by a network failure,
    /// and the provider's task is cancelled.
    public var deadline: Duration

    /// The provider.
    let provide: @Sendable (_ refused: Bool) async throws -> [HTTPField]

    /// Credentials by a provider.
    ///
    /// - Parameters:
    ///   - deadline: How long the provider may take.
    ///   - headers: Gives the fields, such as `Authorization`. Called once an opening, and once more, with `refused`
    ///     true, when the server answers 401 to the first. What it throws fails the opening by a network failure: the
    ///     service that gives tokens may come back. A field that the caller or the dialect gave too is replaced.
    public init(
        deadline: Duration = .seconds(15),
        _ headers: @escaping @Sendable (_ refused: Bool) async throws -> [HTTPField]
    ) {
        self.deadline = deadline
        provide = headers
    }
}

extension Credentials {
    /// How asking the provider went.
    private enum Answer: Sendable {
        case fields([HTTPField])
        case failed(String)
        case late
        /// The loop has ended, and with it every deadline.
        case ended
        case cancelled
    }

    /// Asks the provider, within the deadline and the life of the caller's task.
    func fields(refused: Bool, on loop: EventLoop) async throws(SubscriptionFailure) -> [HTTPField] {
        let race = OneShot<Answer>()
        let provider = ask(refused: refused, for: race)
        let alarm = limit(race, on: loop)
        await withTaskCancellationHandler {
            await race.wait()
        } onCancel: {
            race.settle(.cancelled)
        }
        alarm.cancel()
        return try fields(race.settled, of: provider)
    }

    private func ask(refused: Bool, for race: OneShot<Answer>) -> Task<Void, Never> {
        Task { [provide] in
            do {
                race.settle(.fields(try await provide(refused)))
            } catch {
                // The provider's own text may hold what it was about.
                race.settle(.failed("\(type(of: error))"))
            }
        }
    }

    private func limit(_ race: OneShot<Answer>, on loop: EventLoop) -> LoopAlarm {
        let alarm = LoopAlarm { isEarly in race.settle(isEarly ? .ended : .late) }
        let nanoseconds = UInt64(clamping: deadline.nanoseconds)
        loop.mailbox.post(.alarm(alarm, at: LoopTime.now &+ nanoseconds))
        return alarm
    }

    @inline(never)
    private func fields(_ answer: Answer?, of provider: Task<Void, Never>) throws(SubscriptionFailure) -> [HTTPField] {
        switch answer {
        case .fields(let fields):
            return fields
        case .failed(let what):
            throw failure("the credentials provider failed with \(what)")
        case .late:
            provider.cancel()
            throw failure("the credentials provider did not answer within \(deadline)")
        case .ended:
            provider.cancel()
            throw SubscriptionFailure(LoopCore.gone)
        case .cancelled, nil:
            provider.cancel()
            throw failure("the opening was cancelled")
        }
    }

    private func failure(_ message: String) -> SubscriptionFailure {
        SubscriptionFailure(TransportError(kind: .network, message: message))
    }
}
