//! `hintflow bench`

use clap::{Args, Subcommand, ValueEnum};
use hintflow::bench::{self, CASES, Case};
use hintflow::plan::ConditionOn;

use super::device::DeviceArgs;
use super::{Done, output};

const AFTER_HELP: &str = "\
Example:
  hintflow bench step --case lens1 --json";

/// Time training steps and sampling
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time a training step: forward, backward, update
    Step(Options),
    /// Time the drawing of a batch of samples
    Sample(Options),
}

#[derive(Args)]
struct Options {
    /// Model and batch; may be repeated, or a list with commas
    ///
    /// lens1, lens1d0 (RealNVP), lens2, lens2d0: 20 columns, 100,000 parameters, 1 or 2 blocks. cross4, cross4d1,
    /// cross4d2, cross4d0: 100 columns, 2,000,000 parameters, 4 blocks. Batches of 10,000; small: lens1 with 500.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "lens1")]
    case: Vec<String>,
    /// What the networks of a node see
    #[arg(long, value_enum, default_value_t = On::Input)]
    condition_on: On,
    /// Times to measure; the median is reported
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// One JSON object per case
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum On {
    /// Untransformed columns, as in the paper
    Input,
    /// Transformed columns, as in the authors' code
    Output,
}

impl From<On> for ConditionOn {
    fn from(on: On) -> Self {
        match on {
            On::Input => Self::Input,
            On::Output => Self::Output,
        }
    }
}

impl Bench {
    pub(super) fn run(self) -> Done {
        let (What::Step(options) | What::Sample(options)) = &self.what;
        let names = options.case.iter().flat_map(|name| match name.as_str() {
            "all" => CASES.map(|case| case.name).to_vec(),
            name => vec![name],
        });
        let cases = names.map(Case::named).collect::<hintflow::Result<Vec<_>>>()?;
        let engine = options.device.open()?;
        let (on, repeat) = (options.condition_on.into(), options.repeat as usize);
        for case in cases {
            let (json, text) = match &self.what {
                What::Step(_) => {
                    let t = bench::step(case, on, &engine, repeat)?;
                    let text = format!("{:10} {:>9.3} ms a step of {} rows, {}", t.case, t.step_ms, t.batch, t.adapter);
                    (serde_json::to_string(&t)?, text)
                }
                What::Sample(_) => {
                    let t = bench::sample(case, on, &engine, repeat)?;
                    let text = format!("{:10} {:>9.3} ms for {} samples, {}", t.case, t.sample_ms, t.batch, t.adapter);
                    (serde_json::to_string(&t)?, text)
                }
            };
            output::line(if options.json { &json } else { &text })?;
        }
        Ok(0)
    }
}
