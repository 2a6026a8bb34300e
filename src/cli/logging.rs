//! Messages on stderr, above a progress bar where there is one.
//!
//! A message that cannot be written (a full disk, a reader or a terminal that is gone) is lost and nothing else: work
//! goes on. Everything on stderr therefore goes through this file; the macros of the standard library would panic.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::printable::printable;
use indicatif::MultiProgress;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// The bars of this process: messages are written above them.
pub(super) static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Starts logging. Of several ranks, those that are not the first tell only what concerns messages between them.
pub(super) fn start(quiet: bool, verbose: u8, is_first: bool) {
    let level = match (quiet, verbose) {
        _ if !is_first => "off,hintflow::comm=warn",
        (true, _) => "warn",
        // The graphics libraries tell much that only their authors need.
        (_, 0) => "info,wgpu_core=warn,wgpu_hal=off,naga=warn",
        (_, 1) => "debug,wgpu_core=warn,wgpu_hal=warn,naga=warn",
        _ => "debug",
    };
    let chosen = EnvFilter::try_from_default_env().ok().filter(|_| is_first);
    let filter = chosen.unwrap_or_else(|| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter).event_format(Plain);
    let subscriber = subscriber.with_writer(AboveBars);
    // Fails only where there is one already.
    let _ = subscriber.try_init();
}

/// Writes the message that ends the program.
pub(super) fn error(text: &str) {
    let _ = AboveBars.write_all(format!("{} {}\n", colored("error:", 31), printable(text)).as_bytes());
}

fn colored(text: &str, color: u8) -> String {
    let colors = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if colors { format!("\u{1b}[1;{color}m{text}\u{1b}[0m") } else { text.into() }
}

/// `text` or `warning: text`.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        match *event.metadata().level() {
            Level::ERROR => write!(writer, "{} ", colored("error:", 31))?,
            Level::WARN => write!(writer, "{} ", colored("warning:", 33))?,
            Level::INFO => {}
            _ => write!(writer, "{}: ", event.metadata().target())?,
        }
        let mut text = String::new();
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        writeln!(writer, "{}", printable(&text))
    }
}

/// stderr, with the bars out of the way. Never fails.
#[derive(Clone, Copy)]
struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = || drop(io::stderr().write_all(bytes));
        if io::stderr().is_terminal() && is_there() {
            BARS.suspend(write)
        } else {
            write()
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the terminal still takes what is written. Taking the bars away from one that was hung up would panic.
fn is_there() -> bool {
    static GONE: AtomicBool = AtomicBool::new(false);
    if io::stderr().write_all(b"\r").is_err() {
        GONE.store(true, Ordering::Relaxed);
    }
    !GONE.load(Ordering::Relaxed)
}

impl MakeWriter<'_> for AboveBars {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}
