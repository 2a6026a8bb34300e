//! What the course of a finished training says: unstable, overfitted, or nothing to tell.

use super::best::Kept;
use super::dataset::Dataset;
use super::folder::RunFolder;
use super::metrics::EpochReport;
use crate::config::{Config, Keep};

/// What to tell where the end of a training is worse than what came before it.
pub(super) fn worse_at_the_end(reports: &[EpochReport], config: &Config, data: &Dataset) -> Option<String> {
    /// Differences per column that are too little to speak of.
    const SLIGHT: f64 = 0.02;
    let columns = data.dim as f64;
    // A log-density of one column deviates by about sqrt(1/2) from row to row.
    let error_of = |rows: f64| 1.0 / (2.0 * columns * rows.max(1.0)).sqrt();
    let last = reports.last()?;

    let best = reports.iter().min_by(|a, b| a.train_loss.total_cmp(&b.train_loss))?;
    let (batch, batches) = (config.train.batch.unwrap_or(1), config.train.batches_per_epoch.unwrap_or(1));
    // The loss of one batch in ten is read, and the best of many epochs is a lucky one.
    let noise = 5.0 * error_of((batch * (batches / 10).max(1)) as f64);
    if (last.train_loss - best.train_loss) / columns > noise.max(SLIGHT) {
        return Some(format!(
            "training became unstable: the training loss was {:.4} in epoch {} and is {:.4} at the end; lower train.lr",
            best.train_loss, best.epoch, last.train_loss
        ));
    }

    if config.train.keep == Keep::Best {
        // What came after the best epoch is no part of the model.
        return None;
    }
    let best = reports
        .iter()
        .filter(|r| r.ll.is_some())
        .max_by(|a, b| a.ll.unwrap_or(f64::NAN).total_cmp(&b.ll.unwrap_or(f64::NAN)))?;
    let (best_ll, last_ll) = (best.ll?, last.ll?);
    let noise = 2.0 * error_of(data.test_rows() as f64);
    (best_ll - last_ll > noise.max(SLIGHT)).then(|| {
        format!(
            "held-out rows were scored better after epoch {} (LL {best_ll:.4}) than at the end (LL {last_ll:.4}): the model \
             fits the training rows too closely; keep the best epoch's model with train.keep = \"best\", or take a smaller width",
            best.epoch
        )
    })
}

/// What is said of a run that has nothing left to do.
pub(super) fn already_finished(folder: &RunFolder, config: &Config, kept: Option<Kept>) -> String {
    let (path, model) = (folder.path().display(), folder.model());
    let anew = format!("start a new run with --init {}", model.display());
    let early = kept.filter(|kept| kept.stopped_early);
    match early.and_then(|kept| kept.in_words(&config.train)) {
        Some(text) if early.is_some_and(|kept| kept.cooldown.is_some()) => {
            format!("{path} is finished: {text}. To train on, {anew}")
        }
        Some(text) => format!(
            "{path} is finished: {text}. To train on, raise train.patience in {} (0: never stop) and resume again, or {anew}",
            folder.config().display()
        ),
        _ => format!("{path} is finished: all {} epochs are done. To train on, {anew}", config.train.epochs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;
    use crate::data::Table;

    #[test]
    fn unstable_trainings_are_not_called_overfitted() {
        let mut config = for_tables();
        config.train.keep = Keep::Last;
        let table = |rows| Table::new(vec![], 2, (0..2 * rows).map(|v| (v as f32).sin()).collect()).unwrap();
        let told = |config: &Config, test_rows, course: [(f64, f64); 3]| {
            let data = Dataset::from_tables(config, "t", table(5000), Some(table(test_rows))).unwrap();
            let report = |(i, (train_loss, ll)): (usize, (f64, f64))| EpochReport {
                epoch: i as u64 + 1,
                step: 0,
                train_loss,
                test_loss: None,
                ll: Some(ll),
                lr: 0.01,
                rows_per_s: 1.0,
            };
            let reports: Vec<_> = course.into_iter().enumerate().map(report).collect();
            worse_at_the_end(&reports, config, &data).unwrap_or_default()
        };
        config.train.batch = Some(1000);
        config.train.batches_per_epoch = Some(5);
        let overfitted = [(3.0, -1.5), (2.0, -1.0), (1.5, -1.2)];
        assert!(told(&config, 500, overfitted).contains("after epoch 2 (LL -1.0000)"));
        assert_eq!(told(&config, 5, overfitted), "", "noise of five rows");
        assert_eq!(told(&config, 500, [(3.0, -1.5), (2.0, -1.0), (1.5, -1.01)]), "");
        config.train.keep = Keep::Best;
        assert_eq!(told(&config, 500, overfitted), "", "the model is that of epoch 2");
        let unstable = told(&config, 500, [(3.0, -1.5), (2.0, -1.0), (2.8, -1.4)]);
        assert!(unstable.contains("unstable") && unstable.contains("train.lr"), "{unstable}");
        config.train.batch = Some(2);
        assert_eq!(told(&config, 5, [(3.0, -1.0), (2.0, -1.0), (2.8, -1.0)]), "", "noise of two rows");
    }
}
