//! What is known of an epoch when it ends.

/// What a training reports at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochReport {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps done since the beginning.
    pub step: u64,
    /// Mean of the losses read in this epoch, in nats: of noisy batches, in the units of the networks.
    pub train_loss: f64,
    /// Mean loss of the validation rows, in the units of the networks.
    pub validation_loss: Option<f64>,
    /// Mean log-density of the validation rows per dimension, without the normal distribution's constant (the paper's
    /// LL).
    pub ll: Option<f64>,
    /// Learning rate of the epoch, of its last step where it changes from step to step.
    pub learning_rate: f64,
    /// Training rows per second, without scoring and saving.
    pub rows_per_s: f64,
}
