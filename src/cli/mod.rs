//! The command line: one file per subcommand. stdout carries results, stderr logs and progress.

mod bench;
mod check;
mod correct;
mod decode;
mod density;
mod device;
mod devices;
mod diagnose;
mod encode;
mod evaluate;
mod filter;
mod filter_progress;
mod help;
mod interrupt;
mod judged_rows;
mod layout;
mod log_prob;
mod logging;
mod model;
mod out_of_memory;
mod output;
mod plot;
mod predictions;
mod progress;
mod proposal;
mod ranks;
mod remedy;
mod report;
mod reproduce;
mod sample;
mod simulate;
mod train;
mod trust;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use out_of_memory::Allocator;

/// What a command returns: an exit code, 0 where all went well.
type Done = anyhow::Result<u8>;

const AFTER_HELP: &str = "\
First steps:
  hintflow train lens                      train on the Lens shapes with the paper's settings
  hintflow train table.csv                 train on a table of numbers (.csv or .npy)
  hintflow sample runs/RUN -n 1000         draw samples from a trained model
  hintflow log-prob runs/RUN table.csv     score rows
  hintflow reproduce all                   the paper's tables and figures, in small

Exit codes: 0 ok, 1 error, 2 wrong usage or setting, 3 training diverged,
4 no device, device lost or out of memory, 5 a check failed, 130 stopped by Ctrl-C.";

/// Normalizing flows with recursive coupling: train, sample, score.
#[derive(Parser)]
#[command(name = "hintflow", version, after_help = AFTER_HELP, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    log: Log,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Args)]
#[command(next_help_heading = "Messages")]
struct Log {
    /// Only warnings and errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// More messages on stderr (twice: all); the variable RUST_LOG chooses by module
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    Train(Box<train::Train>),
    Sample(sample::Sample),
    LogProb(log_prob::LogProb),
    Encode(encode::Encode),
    Decode(decode::Decode),
    Simulate(simulate::Simulate),
    Filter(Box<filter::Filter>),
    Check(check::Check),
    Diagnose(diagnose::Diagnose),
    Correct(correct::Correct),
    Report(report::Report),
    Plot(plot::Plot),
    Evaluate(evaluate::Evaluate),
    Reproduce(reproduce::Reproduce),
    Devices(devices::Devices),
    Bench(bench::Bench),
}

impl Command {
    /// Whether ranks that an MPI launcher started share its work; otherwise the first does it.
    fn is_shared(&self) -> bool {
        match self {
            Self::Train(_) | Self::Sample(_) | Self::LogProb(_) | Self::Encode(_) | Self::Decode(_) => true,
            Self::Bench(bench) => bench.is_shared(),
            _ => false,
        }
    }
}

/// Exit code where threads cannot be started: that of memory that is too little.
const NO_THREADS: u8 = 4;

/// The whole program.
pub fn main() -> ExitCode {
    quiet_mesa();
    run()
}

/// Keeps Mesa's Vulkan layer that sorts devices by the display they drive from looking for a display: without a session
/// it prints an error of its own on every look at the adapters.
#[cfg(target_os = "linux")]
fn quiet_mesa() {
    let set = |name| std::env::var_os(name).is_some();
    if !set("XDG_RUNTIME_DIR") && !set("MESA_VK_DEVICE_SELECT") {
        // SAFETY: no other thread runs yet that could read the environment.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

#[cfg(not(target_os = "linux"))]
fn quiet_mesa() {}

/// Parses the command line and runs it.
fn run() -> ExitCode {
    let parsed = help::flowing(Cli::command()).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(told) if told.use_stderr() => told.exit(),
        // Help and version, which are what was asked for.
        Err(told) => return if told.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE },
    };
    interrupt::fail_to_write_at_limit();
    interrupt::begin();
    let joined = ranks::join();
    logging::start(cli.log.quiet, cli.log.verbose, ranks::is_first());
    if let Err(error) = joined {
        logging::error(&error.to_string());
        return ExitCode::from(remedy::exit_code(&error));
    }
    ranks::describe();
    let quiet = cli.log.quiet;
    // Here and not at its first use, which would panic.
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(ranks::threads()).build_global() {
        logging::error(&format!(
            "cannot start threads: {error}; there is too little memory, or there are too many processes"
        ));
        return ExitCode::from(NO_THREADS);
    }
    if !cli.command.is_shared() {
        if !ranks::is_first() {
            ranks::leave();
            return ExitCode::SUCCESS;
        }
        ranks::do_not_share();
    }
    let done = match cli.command {
        Command::Train(command) => command.run(quiet),
        Command::Sample(command) => command.run(),
        Command::LogProb(command) => command.run(),
        Command::Encode(command) => command.run(),
        Command::Decode(command) => command.run(),
        Command::Simulate(command) => command.run(),
        Command::Filter(command) => command.run(quiet),
        Command::Check(command) => command.run(),
        Command::Diagnose(command) => command.run(quiet),
        Command::Correct(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Plot(command) => command.run(),
        Command::Evaluate(command) => command.run(quiet),
        Command::Reproduce(command) => command.run(quiet),
        Command::Devices(command) => command.run(),
        Command::Bench(command) => command.run(),
    };
    match done {
        Ok(code) => {
            ranks::leave();
            ExitCode::from(code)
        }
        // Whoever read our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => {
            ranks::leave();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let of_library = error.downcast_ref::<crate::Error>();
            let code = of_library.map_or(1, remedy::exit_code);
            // Without the chain: the messages of the library hold their causes.
            let text = match of_library {
                _ if output::is_of_stdout(&error) => format!("cannot write to stdout: {error}"),
                Some(error) => remedy::in_words(error),
                None => error.to_string(),
            };
            ranks::fail(&text, code);
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_training_has_all_settings() {
        let mut cli = super::Cli::command();
        let train = cli.find_subcommand_mut("train").unwrap();
        let text = train.render_long_help().to_string();
        for key in crate::config::keys::KEYS {
            assert!(text.contains(key.name), "{}", key.name);
        }
    }
}
