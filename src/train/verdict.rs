//! What the course of a finished training says: unstable, overfitted, or nothing to tell.

use super::dataset::Dataset;
use super::decision::Cooldown;
use super::epoch_report::EpochReport;
use crate::config::{Keep, Training};

/// The end of a training is worse than what came before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Worse {
    /// The training loss was this in this epoch, and rose to this.
    Unstable { epoch: u64, loss: f64, end: f64 },
    /// The held-out rows had this LL after this epoch, and this one at the end.
    Overfitted { epoch: u64, ll: f64, end: f64 },
}

/// Whether the end of a training is worse than what came before it.
pub(super) fn worse_at_the_end(
    reports: &[EpochReport],
    cooldown: Option<Cooldown>,
    settings: &Training,
    data: &Dataset,
) -> Option<Worse> {
    /// Differences per column that are too little to speak of.
    const SLIGHT: f64 = 0.02;
    /// Most epochs that count as the end: a training that became unstable stays so in all of them, where one huge row
    /// only spoils those epochs in which its batch is one of which the loss is read.
    const LAST: usize = 5;
    let columns = data.dim as f64;
    // A log-density of one column deviates by about sqrt(1/2) from row to row.
    let error_of = |rows: f64| 1.0 / (2.0 * columns * rows.max(1.0)).sqrt();
    // The model did not come out of the epochs that a cool-down went back from.
    let gone = |r: &&EpochReport| cooldown.is_some_and(|c| (c.from + 1..=c.start).contains(&r.epoch));
    // Nor does an epoch say anything in which no loss was read, all of its updates having been left out.
    let reports: Vec<_> = reports.iter().filter(|r| !gone(r) && !r.train_loss.is_nan()).collect();
    let last = reports.last()?;

    let best = reports.iter().min_by(|a, b| a.train_loss.total_cmp(&b.train_loss))?;
    let (batch, batches) = (settings.batch(), settings.batches());
    // The loss of one batch in ten is read, and the best of many epochs is a lucky one.
    let noise = 5.0 * error_of((batch * (batches / 10).max(1)) as f64);
    let end = &reports[reports.len() - (reports.len() / LAST).clamp(1, LAST)..];
    let end = end.iter().map(|r| r.train_loss).fold(f64::INFINITY, f64::min);
    if (end - best.train_loss) / columns > noise.max(SLIGHT) {
        return Some(Worse::Unstable { epoch: best.epoch, loss: best.train_loss, end });
    }

    if settings.keep == Keep::Best {
        // What came after the best epoch is no part of the model.
        return None;
    }
    let best = reports
        .iter()
        .filter(|r| r.ll.is_some())
        .max_by(|a, b| a.ll.unwrap_or(f64::NAN).total_cmp(&b.ll.unwrap_or(f64::NAN)))?;
    let (best_ll, last_ll) = (best.ll?, last.ll?);
    let noise = 2.0 * error_of(data.test_rows() as f64);
    (best_ll - last_ll > noise.max(SLIGHT)).then_some(Worse::Overfitted {
        epoch: best.epoch,
        ll: best_ll,
        end: last_ll,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::preset::for_affine_tables;
    use crate::data::Table;

    fn settings() -> Config {
        let mut config = for_affine_tables();
        config.train.keep = Keep::Last;
        (config.train.batch, config.train.batches_per_epoch) = (Some(1000), Some(5));
        config
    }

    /// What is told of a course: training loss and LL of each epoch.
    fn told(config: &Config, test_rows: usize, cooldown: Option<Cooldown>, course: &[(f64, f64)]) -> Option<Worse> {
        let table = |rows| Table::new(vec![], 2, (0..2 * rows).map(|v| (v as f32).sin()).collect()).unwrap();
        let data = Dataset::from_tables(config, "t", table(5000), Some(table(test_rows))).unwrap();
        let report = |(i, &(train_loss, ll)): (usize, &(f64, f64))| EpochReport {
            epoch: i as u64 + 1,
            step: 0,
            train_loss,
            validation_loss: None,
            ll: Some(ll),
            learning_rate: 0.01,
            rows_per_s: 1.0,
        };
        let reports: Vec<_> = course.iter().enumerate().map(report).collect();
        let settings = data.resolve(&config.train, config.model.kind, config.model.coupling).unwrap();
        worse_at_the_end(&reports, cooldown, &settings, &data)
    }

    #[test]
    fn epochs_that_a_cooldown_went_back_from_do_not_count() {
        let mut config = settings();
        let cooldown = Some(Cooldown { start: 4, from: 2 });
        // Epochs 3 and 4 fit the training rows ever more closely; the cool-down begins again from epoch 2.
        let course = [(3.0, -1.5), (2.0, -1.0), (1.0, -1.4), (0.5, -3.0), (1.9, -0.99)];
        assert!(matches!(told(&config, 500, None, &course), Some(Worse::Unstable { .. })));
        assert_eq!(told(&config, 500, cooldown, &course), None);
        let lucky = [(3.0, -1.5), (2.0, -1.0), (1.9, -0.5), (1.9, -1.2), (1.9, -0.99)];
        assert!(matches!(told(&config, 500, None, &lucky), Some(Worse::Overfitted { epoch: 3, .. })));
        assert_eq!(told(&config, 500, cooldown, &lucky), None);
        // What the cool-down does counts, and so does the epoch that it went back to.
        let cooled = |last| [(3.0, -1.5), (2.0, -1.0), (1.0, -1.4), (0.5, -3.0), last];
        assert_eq!(
            told(&config, 500, cooldown, &cooled((2.8, -1.0))),
            Some(Worse::Unstable { epoch: 2, loss: 2.0, end: 2.8 })
        );
        let overfitted = told(&config, 500, cooldown, &cooled((1.5, -1.2)));
        assert_eq!(overfitted, Some(Worse::Overfitted { epoch: 2, ll: -1.0, end: -1.2 }));
        config.train.keep = Keep::Best;
        assert_eq!(told(&config, 500, cooldown, &course), None);
    }

    #[test]
    fn one_huge_row_does_not_make_a_training_unstable() {
        let config = settings();
        let mut course = vec![(2.0, -1.0); 30];
        course[20].0 = 1.9;
        for huge in [12, 26, 29] {
            course[huge].0 = 1e6;
        }
        assert_eq!(told(&config, 500, None, &course), None);
        course[25..].iter_mut().for_each(|(loss, _)| *loss = 2.5);
        let unstable = Worse::Unstable { epoch: 21, loss: 1.9, end: 2.5 };
        assert_eq!(told(&config, 500, None, &course), Some(unstable));
    }

    #[test]
    fn unstable_trainings_are_not_called_overfitted() {
        let mut config = settings();
        let told = |config: &Config, test_rows, course: [(f64, f64); 3]| told(config, test_rows, None, &course);
        let overfitted = [(3.0, -1.5), (2.0, -1.0), (1.5, -1.2)];
        assert_eq!(told(&config, 500, overfitted), Some(Worse::Overfitted { epoch: 2, ll: -1.0, end: -1.2 }));
        assert_eq!(told(&config, 5, overfitted), None, "noise of five rows");
        assert_eq!(told(&config, 500, [(3.0, -1.5), (2.0, -1.0), (1.5, -1.01)]), None);
        config.train.keep = Keep::Best;
        assert_eq!(told(&config, 500, overfitted), None, "the model is that of epoch 2");
        let unstable = told(&config, 500, [(3.0, -1.5), (2.0, -1.0), (2.8, -1.4)]);
        assert_eq!(unstable, Some(Worse::Unstable { epoch: 2, loss: 2.0, end: 2.8 }));
        config.train.batch = Some(2);
        assert_eq!(told(&config, 5, [(3.0, -1.0), (2.0, -1.0), (2.8, -1.0)]), None, "noise of two rows");
    }
}
