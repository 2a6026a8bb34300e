//! Runs the command and reads what it leaves.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A folder of its own, where commands run.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a command left behind.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect(name);
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let name = name.as_ref();
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{}: {e}", name.display()))
    }

    pub(crate) fn text(&self, name: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect(folder);
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A table of correlated columns `a`, `b`, ... with some structure.
    pub(crate) fn table(&self, name: &str, rows: usize, dim: usize) {
        let names: Vec<_> = ('a'..).take(dim).map(String::from).collect();
        let mut text = names.join(",") + "\n";
        for i in 0..rows {
            let t = i as f64 / rows as f64;
            let value =
                |j: usize| (17.0 * t * (j + 1) as f64).sin() + 0.3 * ((i * (j + 3) * 7919) % 101) as f64 / 101.0;
            let row: Vec<_> = (0..dim).map(|j| format!("{:.5}", value(j))).collect();
            writeln!(text, "{}", row.join(",")).expect("to a text");
        }
        self.write(name, text);
    }

    /// The command, on the native engine unless the arguments choose another device.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("hintflow"));
        command.current_dir(self.folder.path()).args(args).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HINTFLOW_")) {
            command.env_remove(name);
        }
        command.env_remove("RUST_LOG");
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Done {
        self.command(args).output().expect("hintflow runs").into()
    }

    /// Runs words of a line that are separated by spaces.
    pub(crate) fn line(&self, line: &str) -> Done {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a line whose messages cannot be written.
    #[cfg(target_os = "linux")]
    pub(crate) fn unheard(&self, line: &str) -> Done {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let mut command = self.command(&line.split_whitespace().collect::<Vec<_>>());
        command.stderr(full).output().expect("hintflow runs").into()
    }

    pub(crate) fn spawn(&self, line: &str) -> Child {
        let mut command = self.command(&line.split_whitespace().collect::<Vec<_>>());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hintflow runs")
    }

    /// Trains a small model of `table.csv` (3 columns) into `run`.
    pub(crate) fn trained(&self) {
        self.trained_as("spline");
    }

    /// Such a model of affine couplings: without bounds on what they do to far values.
    pub(crate) fn trained_affine(&self) {
        self.trained_as("affine");
    }

    fn trained_as(&self, coupling: &str) {
        self.table("table.csv", 120, 3);
        let small = "--epochs 2 --set model.width=8 --set model.blocks=2";
        self.line(&format!("train table.csv --device cpu --out run --set model.coupling={coupling} {small}")).good();
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Done {
    /// Panics unless the command went well.
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Panics unless the command ended with this code and a message that holds all these words.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "", "stdout is for results");
    }
}

/// A generator of its own whose seed is printed, so that a failure tells which moments it was.
#[cfg(unix)]
pub(crate) struct Moments(u32);

#[cfg(unix)]
impl Moments {
    pub(crate) fn new() -> Self {
        // Moments differ from run to run: this test is to find what a fixed choice would not.
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
        eprintln!("seed of the moments: {seed}");
        Self(seed)
    }

    /// The next number from 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 24)
    }
}
