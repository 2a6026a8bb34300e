//! The `hintflow` command: see `hintflow --help`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
