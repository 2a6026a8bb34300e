//! `hintflow evaluate`

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::counted::{self, are, counted};
use crate::measure::{self, Metric, Protocol, Scores};
use crate::report::grouped;
use crate::train::folder::read_model;
use crate::train::{Dataset, density, run};
use crate::{Error, Flow};
use clap::Args;
use indicatif::ProgressBar;

use super::density::{SAMPLES, warn};
use super::device::DeviceArgs;
use super::logging::BARS;
use super::{Done, output};

const AFTER_HELP: &str = "\
Measures that apply to the data set of the run:
  lens, cross  LL of test rows; MMD against the data, of a model given
               observations against draws accepted by approximate Bayesian
               computation (ABC); IoU and H-dist against the true shapes that
               fit samples best; Corr
  tables, UCI  log-likelihood and LL of held-out rows; MMD and Corr against
               them, of standardised columns

Then median and worst of the log-densities, how many rows are far below a Gaussian, and
how many samples lie far outside of the data: what a mean hides.

LL is in nats per column without the constant -log(2 pi)/2, as in the paper; the
log-likelihood in nats per row with it. The numbers of draws are the paper's, but
for 100 observations instead of 1,000; --quick is a first look in seconds. A pool
of 10^8 prior draws takes minutes, once for a run: what is accepted is stored in
RUN/abc, and may be copied to another run of the same data set.

Examples:
  hintflow evaluate runs/first
  hintflow evaluate runs/lens --quick
  hintflow evaluate runs/hint --draws 10000000 --json";

/// With more than one draw of these accepted, the accepted ones are rather the prior than the posterior.
const DRAWS_OF_ONE: u64 = 100;

/// The paper's measures of a trained model on its data set
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Evaluate {
    /// Run folder of a finished training
    run: PathBuf,
    /// Few draws, for a first look
    #[arg(long)]
    quick: bool,
    /// Pairs of batches for MMD, or observations where the model is given some; 0: no MMD [default: 100; quick: 5]
    #[arg(long, value_name = "N", help_heading = "Numbers of draws")]
    batches: Option<usize>,
    /// Rows of such a batch, and draws that ABC accepts for an observation [default: 4000; quick: 1000]
    #[arg(long, value_name = "N", help_heading = "Numbers of draws")]
    batch_rows: Option<usize>,
    /// Samples to which the best true shape is fitted, at most those of --correlated [default: 1000; quick: 100]
    #[arg(long, value_name = "N", help_heading = "Numbers of draws")]
    fitted: Option<usize>,
    /// Rows whose correlations are compared [default: 1000000; quick: 20000]
    #[arg(long, value_name = "N", help_heading = "Numbers of draws")]
    correlated: Option<usize>,
    /// Prior draws that ABC chooses from [default: 100000000; quick: 200000]
    #[arg(long, value_name = "N", help_heading = "Numbers of draws")]
    draws: Option<u64>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Evaluate {
    pub(super) fn run(self, quiet: bool) -> Done {
        if self.run.is_file() {
            let what = "is a file; `evaluate` needs the run folder, whose config.toml says what the data set is";
            return Err(Error::format(&self.run, what).into());
        }
        let config = run::settings_of(&self.run)?;
        let file = read_model(&self.run)?;
        let protocol = self.protocol();
        let data = measure::dataset_of_run(&self.run, &config, &file)?;
        let engine = self.device.open()?;
        let device = engine.info().name;
        let flow = Flow::from_file(file, &engine)?;

        let has_shapes = config.data.preset.is_some_and(|preset| preset.shapes(config.data.outline).is_some());
        let has_abc = has_shapes && data.cond_dim > 0;
        if !has_shapes && (self.fitted.is_some() || self.draws.is_some()) {
            tracing::warn!("--fitted and --draws are for shapes, and without effect on the measures of a table");
        }
        let used = if has_shapes { protocol } else { self.within(&data, protocol) };
        if has_abc && protocol.batches > 0 && protocol.draws / DRAWS_OF_ONE < protocol.batch_rows as u64 {
            tracing::warn!(
                "MMD compares with {} of only {} draws of the prior, which are hardly a posterior: take more --draws or \
                 fewer --batch-rows",
                grouped(protocol.batch_rows as u64),
                grouped(protocol.draws)
            );
        }

        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| BARS.add(ProgressBar::new_spinner()));
        let mut tell = |text: &str| {
            match &bar {
                Some(bar) => {
                    bar.set_message(text.to_owned());
                    bar.tick();
                }
                None => tracing::debug!("{text}"),
            }
            Ok(())
        };
        let scores = measure::measure(&flow, &config, &data, &protocol, &self.run.join("abc"), &mut tell)?;
        tell("median and worst of the log-densities")?;
        let density = density::held_out(&flow, &data, flow.training().as_ref(), SAMPLES)?;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if scores.not_finite > 0 {
            let (samples, are) = (counted(scores.not_finite, "sample"), are(scores.not_finite));
            tracing::warn!("{samples} {are} not finite, and no part of the measures");
        }
        if data.test.is_empty() {
            tracing::warn!("no rows are held out: compared with training rows, and without a likelihood");
        }
        if !has_shapes && used.correlated < 2 {
            tracing::warn!("there is a single row to compare with, which has no MMD and no correlations");
        }
        match self.json {
            true => {
                let all = serde_json::json!({ "scores": scores, "protocol": used, "density": density });
                output::line(&all.to_string())?;
            }
            false => {
                let how = how(&scores, &used, has_abc);
                let perfect = perfect(&scores, &used, has_abc);
                let words = density.in_words().join("\n");
                output::line(&format!("{}\nMeasured on {device}{how}.{perfect}\n\n{words}", lines(&scores)))?;
            }
        }
        warn(&density);
        Ok(0)
    }

    /// What is left of the protocol for a table; says so where more was asked for.
    fn within(&self, data: &Dataset, protocol: Protocol) -> Protocol {
        let rows = measure::rows_of(data);
        let left = protocol.within(rows);
        let less = |asked: Option<usize>, left: usize| asked.is_some_and(|asked| asked > left);
        if less(self.batches, left.batches)
            || less(self.batch_rows, left.batch_rows)
            || less(self.correlated, left.correlated)
        {
            let (are, noun) = (are(rows), counted::of(&rows, "row"));
            tracing::warn!("there {are} only {} {noun} to compare with, fewer than asked for", grouped(rows as u64));
        }
        left
    }

    fn protocol(&self) -> Protocol {
        let base = if self.quick { Protocol::QUICK } else { Protocol::PAPER };
        let correlated = self.correlated.unwrap_or(base.correlated);
        Protocol {
            batches: self.batches.unwrap_or(base.batches),
            batch_rows: self.batch_rows.unwrap_or(base.batch_rows),
            fitted: self.fitted.unwrap_or(base.fitted.min(correlated)),
            correlated,
            draws: self.draws.unwrap_or(base.draws),
        }
    }
}

/// A line for each measure that has a number.
fn lines(scores: &Scores) -> String {
    let shown = Metric::ALL.into_iter().filter_map(|metric| Some((metric, metric.of(scores)?)));
    shown
        .map(|(metric, value)| {
            let value = format!("{value:.*}", metric.decimals());
            let better = if metric.rises() { "higher" } else { "lower" };
            format!("{:<14} {value:>9}   {}; {better} is better\n", metric.name(), metric.meaning())
        })
        .collect()
}

/// Of how much the measures are; `accepted` where MMD compares with accepted draws of the prior.
fn how(scores: &Scores, protocol: &Protocol, accepted: bool) -> String {
    let many = |n: usize, noun: &str| format!("{} {}", grouped(n as u64), counted::of(&n, noun));
    let (batches, rows) = (protocol.batches, protocol.batch_rows);
    let draws = grouped(protocol.draws);
    let mmd = match accepted {
        true => format!(
            "MMD of {}, {} of each and the {} nearest of {draws} prior draws",
            many(batches, "observation"),
            many(rows, "sample"),
            grouped(rows as u64)
        ),
        false if batches == 1 => format!("MMD of a pair of batches of {}", many(rows, "row")),
        false => format!("MMD of {} pairs of batches of {}", grouped(batches as u64), many(rows, "row")),
    };
    let parts = [
        scores.mmd.is_some().then_some(mmd),
        scores.iou.is_some().then(|| format!("IoU and H-dist of {}", many(protocol.fitted, "shape"))),
        scores.corr.is_some().then(|| format!("Corr of {}", many(protocol.correlated, "row"))),
    ];
    parts.into_iter().flatten().map(|part| format!(", {part}")).collect()
}

/// What a model without fault would have, as a sentence; against accepted draws nobody knows.
fn perfect(scores: &Scores, protocol: &Protocol, accepted: bool) -> String {
    let parts: Vec<_> = [
        (scores.mmd.is_some() && !accepted).then(|| format!("an MMD of up to {:.3}", protocol.least_mmd())),
        scores.corr.is_some().then(|| format!("a Corr of up to {:.4}", protocol.least_corr())),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("\nA model without fault would have about {} with as many rows.", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_what_has_a_number() {
        let text = lines(&Scores { ll: Some(-0.25), corr: Some(0.00214), ..Scores::default() });
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        assert_eq!(words, [["LL", "-0.250"], ["Corr", "0.0021"]]);
    }

    #[test]
    fn help_has_the_numbers_of_the_protocols() {
        let help = Evaluate::augment_args(clap::Command::new("evaluate").term_width(0)).render_long_help().to_string();
        let (paper, quick) = (Protocol::PAPER, Protocol::QUICK);
        for [paper, quick] in [
            [paper.batches, quick.batches],
            [paper.batch_rows, quick.batch_rows],
            [paper.fitted, quick.fitted],
            [paper.correlated, quick.correlated],
            [paper.draws as usize, quick.draws as usize],
        ] {
            let text = format!("[default: {paper}; quick: {quick}]");
            assert!(help.contains(&text), "{text}: {help}");
        }
    }

    #[test]
    fn draws_are_told_of_what_was_measured() {
        let scores = Scores { mmd: Some(0.1), corr: Some(0.1), ..Scores::default() };
        let table = how(&scores, &Protocol::QUICK, false);
        assert_eq!(table, ", MMD of 5 pairs of batches of 1,000 rows, Corr of 20,000 rows");
        let shapes = how(&Scores { iou: Some(0.9), ..scores }, &Protocol::QUICK, true);
        assert!(shapes.contains("5 observations") && shapes.contains("200,000 prior draws"), "{shapes}");
        assert!(shapes.contains("IoU and H-dist of 100 shapes"), "{shapes}");
        assert_eq!(how(&Scores::default(), &Protocol::QUICK, true), "");
        let one = Protocol { batches: 1, ..Protocol::QUICK };
        assert!(how(&scores, &one, false).contains("MMD of a pair of batches"));
        assert!(how(&scores, &one, true).contains("MMD of 1 observation, "));
    }

    #[test]
    fn numbers_of_a_model_without_fault_are_told_of_what_has_them() {
        let scores = Scores { mmd: Some(0.1), corr: Some(0.1), ..Scores::default() };
        let table = Protocol::PAPER.within(300);
        let text = perfect(&scores, &table, false);
        assert!(text.contains("an MMD of up to 0.018 and a Corr of up to 0.0651 with"), "{text}");
        let text = perfect(&scores, &Protocol::PAPER, true);
        assert!(!text.contains("MMD") && text.contains("a Corr of up to 0.0011"), "{text}");
        assert_eq!(perfect(&Scores::default(), &table, false), "");
    }
}
