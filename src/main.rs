//! The `hintflow` command: see `hintflow --help`.

fn main() -> std::process::ExitCode {
    hintflow::cli::main()
}
