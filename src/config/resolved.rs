//! Settings with nothing left to choose: made once, when the rows of the training are known, and only read from then on.

use std::ops::Deref;

use super::preset::{STRONG, batch_for, decay_for, dropout_for, least_batches};
use super::{Config, CouplingKind, Keep, Train};
use crate::plan::{Kind, Spec};

/// What the choice of settings depends on besides settings: the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownRows {
    /// Training rows.
    pub training: u64,
    /// Whether others judge the training.
    pub validates: bool,
}

/// How a model is trained, with all that depends on the number of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Training {
    train: Train,
    batch: u64,
    batches: u64,
}

impl Training {
    /// The settings of a training on these rows: what is absent is chosen.
    pub(crate) fn of(train: &Train, rows: KnownRows, kind: Kind, coupling: CouplingKind) -> Self {
        let KnownRows { training: rows, validates } = rows;
        let chosen = train.decay.is_none();
        let decay = train.decay.unwrap_or_else(|| decay_for(rows));
        // Whether less decay is better, validation rows say.
        let relaxes = chosen && decay >= STRONG && validates && train.keep == Keep::Best && train.epochs > 1;
        let batch = train.batch.unwrap_or_else(|| batch_for(rows, kind, coupling));
        let once = rows / batch.max(1);
        let few = coupling == CouplingKind::Spline && kind != Kind::Inn && train.batch.is_none();
        let batches = train.batches_per_epoch.unwrap_or(if few { once.max(least_batches(rows)) } else { once });
        let train = Train {
            dropout: Some(train.dropout.unwrap_or_else(|| dropout_for(rows))),
            decay: Some(decay),
            cycles: Some(train.cycles.unwrap_or(if relaxes { 2 } else { 1 })),
            batch: Some(batch),
            batches_per_epoch: Some(batches),
            ..train.clone()
        };
        Self { train, batch, batches }
    }

    /// Rows of a batch.
    pub(crate) fn batch(&self) -> u64 {
        self.batch
    }

    /// Batches of an epoch.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }
}

impl Deref for Training {
    type Target = Train;

    fn deref(&self) -> &Train {
        &self.train
    }
}

/// All settings of a training, and the model that they ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolved {
    config: Config,
    training: Training,
    spec: Spec,
}

impl Resolved {
    /// The settings with those of the training on its rows, and the model for their columns.
    pub(crate) fn new(config: Config, training: Training, spec: Spec) -> Self {
        Self { config: Config { train: training.train.clone(), ..config }, training, spec }
    }

    /// How the model is trained.
    pub(crate) fn training(&self) -> &Training {
        &self.training
    }

    /// The model.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl Deref for Resolved {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

impl Config {
    /// The settings with what a training on these rows chooses; as they are where the rows are not known.
    pub(crate) fn on(self, rows: Option<KnownRows>) -> Self {
        let Some(rows) = rows else { return self };
        let Training { train, .. } = Training::of(&self.train, rows, self.model.kind, self.model.coupling);
        Self { train, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::preset::{for_affine_tables, for_tables};
    use super::*;

    #[test]
    fn small_tables_take_more_batches_and_two_cycles() {
        let of = |train: &Train, training, validates, coupling| {
            let training = Training::of(train, KnownRows { training, validates }, Kind::Flow, coupling);
            (training.batch(), training.batches(), training.cycles.unwrap())
        };
        let with = |rows, change: &dyn Fn(&mut Train)| {
            let mut train = for_tables().train;
            change(&mut train);
            of(&train, rows, true, CouplingKind::Spline)
        };
        let plain = |rows| with(rows, &|_| ());
        assert_eq!(plain(400), (64, 32, 2));
        assert_eq!(plain(2400), (64, 64, 2));
        assert_eq!(plain(6000), (93, 64, 2));
        assert_eq!(plain(30_000), (468, 64, 1));
        // What is asked for stays as it is.
        assert_eq!(with(400, &|train| train.batch = Some(50)), (50, 8, 2));
        assert_eq!(with(400, &|train| train.decay = Some(9.0)), (64, 32, 1));
        assert_eq!(with(400, &|train| train.keep = Keep::Last), (64, 32, 1));
        assert_eq!(of(&for_tables().train, 400, false, CouplingKind::Spline).2, 1, "nobody judges");
        assert_eq!(of(&for_affine_tables().train, 400, true, CouplingKind::Affine), (32, 12, 1));
    }

    #[test]
    fn what_is_resolved_has_nothing_left_to_choose() {
        let config = for_tables();
        let rows = KnownRows { training: 400, validates: true };
        let training = Training::of(&config.train, rows, config.model.kind, config.model.coupling);
        let resolved = Resolved::new(config.clone(), training.clone(), config.model.spec(3, 0).unwrap());
        let Train { batch, batches_per_epoch, dropout, decay, cycles, .. } = resolved.train;
        assert_eq!((batch, batches_per_epoch, cycles), (Some(64), Some(32), Some(2)));
        assert_eq!((dropout, decay), (Some(0.4), Some(7.5)));
        assert_eq!((&resolved.train, resolved.training(), resolved.spec().dim), (&*training, &training, 3));
        // To choose again changes nothing, whatever the rows are.
        let other = KnownRows { training: 9, validates: false };
        assert_eq!(config.clone().on(Some(rows)).on(Some(other)), *resolved);
        assert_eq!(config.clone().on(None), config);
    }
}
