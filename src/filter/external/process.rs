//! A command that is run with bytes on its standard input, and watched.

use std::io::{Read, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What is run.
pub(super) struct Call<'a> {
    /// For the shell.
    pub command: &'a str,
    pub variables: [(&'a str, u64); 3],
    pub input: Vec<u8>,
    /// Most bytes of its standard output.
    pub longest: u64,
    pub timeout: Duration,
    pub stop: &'a AtomicBool,
}

/// What it wrote.
pub(super) struct Output {
    pub bytes: Vec<u8>,
    /// The end of its standard error.
    pub said: String,
}

/// Why it wrote nothing that counts.
pub(super) enum Failure {
    Stopped,
    Failed {
        /// After the command's name.
        what: String,
        said: String,
    },
}

/// Bytes of standard error that are kept.
const SAID: usize = 4000;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);

impl Call<'_> {
    /// Runs the command to its end, or ends it.
    pub(super) fn run(&self) -> Result<Output, Failure> {
        let failed = |what: String, said: String| Failure::Failed { what, said };
        let mut child = self.spawn().map_err(|e| failed(format!("cannot be started: {e}"), String::new()))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (ended, bytes, said) = thread::scope(|scope| {
            scope.spawn(move || {
                // A command that does not read to the end is judged by what it writes.
                if let Some(mut stdin) = stdin {
                    let _ = stdin.write_all(&self.input);
                }
            });
            let bytes = scope.spawn(move || {
                let mut bytes = Vec::new();
                let read = stdout.map(|stdout| stdout.take(self.longest + 1).read_to_end(&mut bytes));
                read.transpose().map(|_| bytes)
            });
            let said = scope.spawn(move || stderr.map(end_of).unwrap_or_default());
            let ended = self.wait(&mut child);
            // What it may have left running holds the pipes open.
            end(&mut child);
            let bytes = bytes.join().unwrap_or_else(|_| Ok(Vec::new()));
            (ended, bytes, said.join().unwrap_or_default())
        });
        match (ended, bytes) {
            (Ended::Stopped, _) => Err(Failure::Stopped),
            (Ended::Late, _) => {
                Err(failed(format!("took longer than {} s and was ended", self.timeout.as_secs_f64()), said))
            }
            (Ended::Lost(error), _) => Err(failed(format!("cannot be waited for: {error}"), said)),
            // Its reader ends before it does.
            (Ended::By(_), Ok(bytes)) if bytes.len() as u64 > self.longest => {
                Err(failed(format!("wrote more than {} bytes", self.longest), said))
            }
            (Ended::By(status), _) if !status.success() => Err(failed(format!("ended with {status}"), said)),
            (Ended::By(_), Err(error)) => Err(failed(format!("cannot be read from: {error}"), said)),
            (Ended::By(_), Ok(bytes)) => Ok(Output { bytes, said }),
        }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut shell = if cfg!(windows) {
            let mut shell = std::process::Command::new("cmd");
            shell.arg("/C");
            shell
        } else {
            let mut shell = std::process::Command::new("sh");
            shell.arg("-c");
            shell
        };
        shell.arg(self.command).envs(self.variables.map(|(name, value)| (name, value.to_string())));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that all that it starts can be ended with it, and Ctrl-C is for us alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        shell.spawn()
    }

    fn wait(&self, child: &mut Child) -> Ended {
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ended::By(status),
                Err(error) => return Ended::Lost(error),
                Ok(None) if self.stop.load(Ordering::Relaxed) => return Ended::Stopped,
                Ok(None) if begun.elapsed() >= self.timeout => return Ended::Late,
                Ok(None) => thread::sleep(LOOK),
            }
        }
    }
}

enum Ended {
    By(ExitStatus),
    Late,
    Stopped,
    Lost(std::io::Error),
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    #[cfg(target_os = "linux")]
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: sends a signal, and touches no memory. The group has the number of the shell. Where the shell has ended
        // by itself, the number stays the group's as long as a process of it lives, and is not given anew so soon if
        // none does.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// The end of what is read.
fn end_of(mut from: impl Read) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * SAID {
            kept.drain(..kept.len() - SAID);
        }
    }
    let from = kept.len().saturating_sub(SAID);
    String::from_utf8_lossy(&kept[from..]).into_owned()
}
