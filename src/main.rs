//! The `hintflow` command: see `hintflow --help`.

#[global_allocator]
static ALLOCATOR: hintflow::cli::Allocator = hintflow::cli::Allocator;

fn main() -> std::process::ExitCode {
    hintflow::cli::main()
}
