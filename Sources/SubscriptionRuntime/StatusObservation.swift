// Tells the Observation library that a handle's values changed.

internal import Observation

/// A handle's values, as the Observation library sees them.
///
/// A class of its own, and not generic, so that its key paths are constants: a generic class makes new ones at each
/// mention.
final class StatusObservation: Observable, Sendable {
    private let registrar = ObservationRegistrar()

    /// Stands for the status and the latest payload, which change together.
    private var values: Bool { false }

    /// The values are read.
    func accessed() {
        registrar.access(self, keyPath: \.values)
    }

    /// The values have changed.
    ///
    /// Under no lock: observers run here.
    func changed() {
        registrar.withMutation(of: self, keyPath: \.values) {}
    }
}
