//! `hintflow bench`

use std::io::Write;

use crate::Engine;
use crate::bench::{
    Bench as Timed, CARDS, CASES, Card, Case, Effort, KernelTimes, Part, Product, ProductTime, SampleTiming, Spread,
    StepTiming, Subject,
};
use crate::counted::counted;
use crate::engine::Footprint;
use crate::flow::Memory;
use crate::plan::ConditionOn;
use crate::report::grouped;
use clap::{Args, Subcommand, ValueEnum};

use super::device::{self, DeviceArgs};
use super::{Done, output};

const AFTER_HELP: &str = "\
A device is timed only after its results were compared: those of a GPU with the
CPU engine, those of the CPU engine with the definition of the model. Where they
differ, the command says so and exits with 5.

Example:
  hintflow bench step --case lens2,cross4 --device gpu
  hintflow bench kernels --case lens2
  hintflow bench sample --case all --json
  hintflow bench model --gpu 'RX 6800'";

/// Time training steps, sampling and kernels
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time a training step: gather, noise, forward, backward, update
    Step(Options),
    /// Time the drawing of a batch of samples, with their copy to the host
    Sample(Options),
    /// Show where the time of a step and of sampling goes, kernel by kernel
    ///
    /// On a GPU its own clock times every dispatch; times are medians of the repeats. On the CPU engine, with one
    /// thread unless --threads or HINTFLOW_RUN__THREADS says otherwise, every operation is timed, then each matrix
    /// product in the shapes of the case's layers.
    Kernels(Kernels),
    /// Predict what a training step takes on GPUs that are not here
    ///
    /// A model of time, to be confronted with measurements: nothing is run. benches/README.md has its assumptions.
    Model(Model),
}

#[derive(Args)]
struct Model {
    /// Model and batch; several with commas, or `all`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    case: Vec<String>,
    /// Graphics card, by its name or that of an adapter; several with commas, or `all`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    gpu: Vec<String>,
    /// What the networks of a node see
    #[arg(long, value_enum, default_value_t = On::Input)]
    condition_on: On,
    /// One JSON object per case and card, each on its line, with the kernels
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Options {
    /// Model and batch; several with commas, or `all`
    ///
    /// lens1, lens1d0 (RealNVP), lens2, lens2d0: 20 columns, 100,000 parameters, 1 or 2 blocks. cross4, cross4d1,
    /// cross4d2, cross4d0: 100 columns, 2,000,000 parameters, 4 blocks. Batches of 10,000; small: lens1 with 500.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "lens1")]
    case: Vec<String>,
    /// What the networks of a node see
    #[arg(long, value_enum, default_value_t = On::Input)]
    condition_on: On,
    /// What a training step keeps of its activations [default: stored]
    ///
    /// HINTFLOW_TRAIN__MEMORY in the environment does the same. Drawing samples keeps nothing.
    #[arg(long, value_enum)]
    memory: Option<Activations>,
    /// Seconds to measure for each result; at least five repeats
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Repeats, instead of --seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// One JSON object per result, each on its line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Args)]
struct Kernels {
    /// List every dispatch too, in the order they run
    #[arg(long)]
    each: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, ValueEnum)]
enum On {
    /// Untransformed columns, as in the paper
    Input,
    /// Transformed columns, as in the authors' code
    Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Activations {
    /// All of them
    Stored,
    /// Those of the last block; the others are computed again
    Reversible,
}

impl From<Activations> for Memory {
    fn from(activations: Activations) -> Self {
        match activations {
            Activations::Stored => Self::Stored,
            Activations::Reversible => Self::Reversible,
        }
    }
}

impl From<On> for ConditionOn {
    fn from(on: On) -> Self {
        match on {
            On::Input => Self::Input,
            On::Output => Self::Output,
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds from 0 to 3600".into()),
    }
}

impl Bench {
    /// Whether ranks that an MPI launcher started share what is timed: training steps.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.what, What::Step(_))
    }

    pub(super) fn run(self) -> Done {
        match self.what {
            What::Step(options) => options.each(options.memory()?, |timed, effort, json| {
                let timing = timed.step(effort)?;
                output::line(&if json { serde_json::to_string(&timing)? } else { step_text(&timing) })?;
                Ok(())
            }),
            What::Model(model) => model.run(),
            What::Sample(Options { memory: Some(_), .. }) => Err(crate::Error::config(
                "--memory",
                "is for training steps, since drawing samples keeps nothing; leave it out",
            )
            .into()),
            What::Sample(options) => options.each(Memory::default(), |timed, effort, json| {
                let timing = timed.sample(effort)?;
                output::line(&if json { serde_json::to_string(&timing)? } else { sample_text(&timing) })?;
                Ok(())
            }),
            What::Kernels(Kernels { mut options, each }) => {
                // One thread: what an operation takes is not what several threads that disturb each other take.
                options.device.default_to_threads(1)?;
                let on = options.condition_on.into();
                options.each(options.memory()?, |timed, effort, json| {
                    for part in [Part::Step, Part::Sample] {
                        let times = timed.kernels(part, effort)?;
                        if json {
                            output::line(&serde_json::to_string(&times)?)?;
                        } else {
                            print_kernels(&times, each)?;
                        }
                    }
                    if timed.engine().info().engine == "cpu" {
                        let times: Vec<_> = Product::all(timed.case(), on)?.iter_mut().map(Product::time).collect();
                        if json {
                            let object = serde_json::json!({
                                "case": timed.case().name,
                                "adapter": timed.engine().info().name,
                                "products": times,
                            });
                            output::line(&object.to_string())?;
                        } else {
                            print_products(&times)?;
                        }
                    }
                    Ok(())
                })
            }
        }
    }
}

/// The cases with these names.
fn cases(names: &[String]) -> crate::Result<Vec<Case>> {
    let names = names.iter().flat_map(|name| match name.trim() {
        "all" => CASES.map(|case| case.name).to_vec(),
        name => vec![name],
    });
    names.map(Case::named).collect()
}

impl Model {
    fn run(self) -> Done {
        let names = self.gpu.iter().flat_map(|name| match name.trim() {
            "all" => CARDS.map(|card| card.name).to_vec(),
            name => vec![name],
        });
        let cards = names.map(Card::named).collect::<crate::Result<Vec<_>>>()?;
        let on = self.condition_on.into();
        let mut lines = Vec::new();
        for case in cases(&self.case)? {
            let all = cards.iter().map(|card| card.predict(&case, on)).collect::<crate::Result<Vec<_>>>()?;
            if self.json {
                for prediction in &all {
                    lines.push(serde_json::to_string(prediction)?);
                }
            } else {
                let times: Vec<_> = all.iter().map(|prediction| time(prediction.predicted_ms)).collect();
                lines.push(format!("| {} | {} |", case.name, times.join(" | ")));
            }
        }
        if !self.json {
            let names: Vec<_> = cards.iter().map(|card| card.name).collect();
            let head = format!("| step, predicted | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
            lines.insert(0, head);
        }
        output::line(&lines.join("\n"))?;
        Ok(0)
    }
}

impl Options {
    /// What a training step keeps: by the flag, else by the environment, as for `train`.
    fn memory(&self) -> crate::Result<Memory> {
        const VARIABLE: &str = "HINTFLOW_TRAIN__MEMORY";
        match (self.memory, device::variable(VARIABLE)?) {
            (Some(activations), _) => Ok(activations.into()),
            (None, None) => Ok(Memory::default()),
            (None, Some(text)) => Activations::from_str(text.trim(), false)
                .map(Memory::from)
                .map_err(|_| crate::Error::config(VARIABLE, format!("must be stored or reversible, is `{text}`"))),
        }
    }

    /// Calls `f` with every case on the device.
    fn each(&self, memory: Memory, mut f: impl FnMut(&Timed, &Effort, bool) -> anyhow::Result<()>) -> Done {
        let cases = cases(&self.case)?;
        let engine: Engine = self.device.open()?;
        let effort = Effort { seconds: self.seconds, repeats: self.repeat.map(|repeat| repeat as usize) };
        for case in cases {
            f(&Timed::new(case, self.condition_on.into(), memory, &engine)?, &effort, self.json)?;
        }
        Ok(0)
    }
}

fn step_text(t: &StepTiming) -> String {
    let mut lines = heading(&t.subject);
    lines.push(format!("step        {}", spread(&t.spread)));
    if let Some(ms) = t.step_ms_in_a_row {
        lines.push(format!("            {} where the host does not wait for each, as in training", time(ms)));
    }
    if let Some(exchange) = &t.exchange {
        let share = |ms: f64| format!("{} ({:.1} %)", time(ms), 100.0 * ms / t.step_ms);
        let (alone, waiting) = (share(exchange.alone_ms), share(exchange.in_step_ms));
        let sent = mebibytes(exchange.bytes as f64);
        lines.push(format!("{} ranks     {alone} for messages, {sent} sent; {waiting} with waiting", exchange.ranks));
    }
    lines.push(rate(&t.subject, 6, t.gflops));
    lines.extend(device_lines(t.dispatches, t.tiles, t.bytes_moved, t.step_ms));
    lines.push(memory(&t.memory));
    lines.join("\n  ")
}

fn sample_text(t: &SampleTiming) -> String {
    let mut lines = heading(&t.subject);
    lines.push(format!("samples     {}", spread(&t.spread)));
    lines.push(rate(&t.subject, 2, t.gflops));
    lines.extend(device_lines(t.dispatches, t.tiles, t.bytes_moved, t.sample_ms));
    lines.push(memory(&t.memory));
    lines.join("\n  ")
}

fn memory(held: &Footprint) -> String {
    let Footprint { weights, optimizer, gradients, activations, data, transfer } = *held;
    let parts = [
        ("weights", weights),
        ("optimizer", optimizer),
        ("gradients", gradients),
        ("activations", activations),
        ("data", data),
        ("transfer", transfer),
    ];
    let part = |(name, bytes): &(&str, usize)| format!("{name} {}", mebibytes(*bytes as f64));
    let parts: Vec<_> = parts.iter().filter(|(_, bytes)| *bytes > 0).map(part).collect();
    format!("memory      {}: {}", mebibytes(held.total() as f64), parts.join(", "))
}

fn heading(subject: &Subject) -> Vec<String> {
    let check = &subject.check;
    let settings = [
        Some(match subject.condition_on {
            ConditionOn::Input => "networks see untransformed columns (input)",
            ConditionOn::Output => "networks see transformed columns (output)",
        }),
        subject.memory_mode.map(|memory| match memory {
            Memory::Stored => "activations stored",
            Memory::Reversible => "activations computed again (reversible)",
        }),
    ];
    let settings: Vec<_> = settings.into_iter().flatten().collect();
    vec![
        format!("{} on {}", subject.case, subject.adapter),
        format!(
            "checked     {} {} with {}",
            counted(check.rows, "row"),
            if check.rows == 1 { "agrees" } else { "agree" },
            check.against
        ),
        format!("settings    {}", settings.join(", ")),
    ]
}

fn spread(s: &Spread) -> String {
    if s.repeats == 1 {
        return format!("{}: once", time(s.median));
    }
    format!(
        "{}: median of {}, {} to {}, quartiles {} and {}",
        time(s.median),
        s.repeats,
        time(s.min),
        time(s.max),
        time(s.lower_quartile),
        time(s.upper_quartile)
    )
}

fn rate(subject: &Subject, per_parameter: u32, gflops: f64) -> String {
    let (params, rows) = (grouped(subject.params as u64), grouped(subject.batch as u64));
    format!("speed       {gflops:.1} GFLOP/s, counted as {per_parameter} x {params} parameters x {rows} rows")
}

/// What only a GPU has.
fn device_lines(dispatches: Option<usize>, tiles: usize, bytes: Option<u64>, ms: f64) -> Vec<String> {
    let (Some(dispatches), Some(bytes)) = (dispatches, bytes) else { return Vec::new() };
    let (mib, rate) = (mebibytes(bytes as f64), bytes as f64 / (ms * 1e6));
    vec![
        format!("dispatches  {dispatches} for each of {}", counted(tiles, "tile")),
        format!("moves       {mib} as single operations, {rate:.1} GB/s"),
    ]
}

fn print_kernels(times: &KernelTimes, each: bool) -> std::io::Result<()> {
    let mut out = output::stdout();
    let subject = &times.subject;
    let rows = grouped(subject.batch as u64);
    let what = match times.part {
        Part::Step => format!("a training step of {rows} rows"),
        Part::Sample => format!("{rows} samples"),
    };
    let (clock, unit) =
        if subject.device == "gpu" { ("the device's clock", "kernel") } else { ("our clock", "operation") };
    let heading = heading(subject);
    writeln!(out, "{}: {what}, {} by {clock}\n  {}", heading[0], time(times.ms), heading[1..].join("\n  "))?;
    writeln!(out, "  {:<11} {}", "whole", spread(&times.spread))?;
    // Bytes are counted on a GPU alone.
    let on_gpu = subject.device == "gpu";
    let bytes = |text: &str| if on_gpu { format!(" {text:>8}") } else { String::new() };
    let number = |value: Option<f64>, digits| value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"));
    let head = bytes("GB/s");
    writeln!(out, "  {unit:<26} {:>5} {:>11} {:>7} {:>9}{head}", "calls", "ms", "share", "GFLOP/s")?;
    for row in &times.kernels {
        let (gflops, moved) = (number(row.gflops, 1), bytes(&number(row.gb_per_s, 2)));
        let share = 100.0 * row.share;
        writeln!(out, "  {:<26} {:>5} {:>11.4} {share:>5.1} % {gflops:>9}{moved}", row.name, row.calls, row.ms)?;
    }
    if each {
        let grid = if subject.device == "gpu" { "workgroups" } else { "tiles" };
        writeln!(out, "  {:>3} {unit:<26} {:>11} {grid:>14}", "", "ms")?;
        for (i, dispatch) in times.each.iter().enumerate() {
            let [x, y] = dispatch.grid;
            let grid = if subject.device == "gpu" { format!("{x} x {y}") } else { x.to_string() };
            writeln!(out, "  {:>3} {:<26} {:>11.4} {grid:>14}", i + 1, dispatch.name, dispatch.ms)?;
        }
    }
    output::finish(out)
}

fn print_products(times: &[ProductTime]) -> std::io::Result<()> {
    let mut out = output::stdout();
    let rows = times.first().map_or(0, |time| time.rows);
    writeln!(out, "  matrix products of {rows} rows, one thread, GFLOP/s")?;
    let names = ["out x in", "layers", "forward", "data gradient", "weight gradient"];
    writeln!(out, "  {:<10} {:>7} {:>9} {:>14} {:>16}", names[0], names[1], names[2], names[3], names[4])?;
    for of_shape in times.chunks(3) {
        let [forward, data, weight] = of_shape else { continue };
        let shape = format!("{} x {}", forward.outputs, forward.inputs);
        let rates = [forward, data, weight].map(|time| time.gflops);
        let layers = forward.layers;
        writeln!(out, "  {shape:<10} {layers:>7} {:>9.1} {:>14.1} {:>16.1}", rates[0], rates[1], rates[2])?;
    }
    output::finish(out)
}

/// Milliseconds to four digits.
fn time(ms: f64) -> String {
    let digits = if ms < 1.0 { 4 } else { (3 - ms.log10().floor() as i32).max(0) as usize };
    format!("{ms:.digits$} ms")
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0.0123, 1.5, 43.21, 2418.3].map(time), ["0.0123 ms", "1.500 ms", "43.21 ms", "2418 ms"]);
    }
}
