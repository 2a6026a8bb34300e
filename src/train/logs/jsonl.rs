//! `metrics.jsonl`: a line of JSON for each epoch, with the names that `metrics.csv` has.

use serde::{Deserialize, Serialize};

use super::now;
use crate::train::epoch_report::EpochReport;

pub(super) const FILE: &str = "metrics.jsonl";

#[derive(Serialize)]
struct Line {
    epoch: u64,
    step: u64,
    // What is no finite number is `null`.
    train_loss: f64,
    test_loss: Option<f64>,
    ll: Option<f64>,
    lr: f64,
    rows_per_s: f64,
    /// Seconds since 1970.
    time: f64,
}

/// The line of an epoch.
pub(super) fn record(report: &EpochReport) -> Vec<u8> {
    let &EpochReport { epoch, step, train_loss, validation_loss, ll, learning_rate, rows_per_s } = report;
    let line =
        Line { epoch, step, train_loss, test_loss: validation_loss, ll, lr: learning_rate, rows_per_s, time: now() };
    let mut json = serde_json::to_vec(&line).unwrap_or_else(|e| unreachable!("numbers that are no JSON: {e}"));
    json.push(b'\n');
    json
}

/// The length of the whole lines up to a step.
pub(super) fn kept(bytes: &[u8], step: u64) -> usize {
    #[derive(Deserialize)]
    struct Step {
        step: u64,
    }
    let of_steps = |line: &&[u8]| {
        line.ends_with(b"\n") && serde_json::from_slice::<Step>(line).is_ok_and(|found| found.step <= step)
    };
    bytes.split_inclusive(|&byte| byte == b'\n').take_while(of_steps).map(<[u8]>::len).sum()
}
