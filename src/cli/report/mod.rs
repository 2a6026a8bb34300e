//! `hintflow report`: what a run folder holds, on one page.

mod data;
mod diagnosis;
mod facts;
mod settings;
mod training;
mod verdict;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::atomic::{Overwrite, check_output, write_atomic};
use crate::report::html::Html;
use crate::train::clock;
use crate::train::folder::{RunFolder, report_of};
use crate::{Error, Result};

use self::facts::Facts;
use super::{Done, output};

const AFTER_HELP: &str = "\
One file that needs nothing else: whether the model can be trusted, if `hintflow diagnose` has looked; what was trained
on what; what is wrong with the data; losses; samples beside data; all tests; settings; how to get the same run again.

`train` and `diagnose` write it at their end (--no-report: they do not). Written again after other changes, or of a run
that was killed, it says what there is.

Examples:
  hintflow report runs/first
  hintflow report runs/first -o first.html";

/// Write what a run folder holds as one page of HTML
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Report {
    /// Run folder
    run: PathBuf,
    /// File to write [default: RUN/report.html, which is replaced]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
}

impl Report {
    pub(super) fn run(self) -> Done {
        if self.run.is_file() {
            let what =
                "is a file; a report is that of a run folder, which holds the settings and the course of a training";
            return Err(Error::format(&self.run, what).into());
        }
        RunFolder::is_run(&self.run)?;
        let path = match &self.output {
            Some(path) => {
                check_output(path, Overwrite::allowed_if(self.force))?;
                path.clone()
            }
            None => report_of(&self.run),
        };
        let overwrite = Overwrite::allowed_if(self.force || self.output.is_none());
        write(&self.run, &path, overwrite)?;
        output::line(&path.display().to_string())?;
        Ok(0)
    }
}

/// Writes the report of a run into its folder. It is an extra: if it fails, the command does not.
pub(super) fn write_beside(run: &Path) {
    let path = report_of(run);
    match write(run, &path, Overwrite::Yes) {
        Ok(()) => tracing::info!("report: {}", path.display()),
        Err(error) => {
            tracing::warn!("no report could be written: {error}; to try again: hintflow report {}", run.display())
        }
    }
}

fn write(run: &Path, path: &Path, overwrite: Overwrite) -> Result<()> {
    let facts = Facts::of(run)?;
    facts.damage.iter().for_each(|damage| tracing::warn!("{}", damage.says));
    let page = page(&facts);
    write_atomic(path, overwrite, |file| file.write_all(page.as_bytes()))
}

/// The page, the most important things first.
fn page(facts: &Facts) -> String {
    let title = facts.title();
    let below = format!(
        "Run {}, report of {} by hintflow {}",
        facts.run.display(),
        clock::now().replace('T', " ").replace('Z', " UTC"),
        env!("CARGO_PKG_VERSION")
    );
    let mut html = Html::titled(&title, &below);
    verdict::write(facts, &mut html);
    if !facts.damage.is_empty() {
        html.part("Damaged files");
        html.list(&facts.damage.iter().map(|damage| verdict::sentence(&damage.says)).collect::<Vec<_>>());
    }
    training::write(facts, &mut html);
    data::write(facts, &mut html);
    training::warnings(facts, &mut html);
    training::course(facts, &mut html);
    training::samples(facts, &mut html);
    diagnosis::write(facts, &mut html);
    settings::write(facts, &mut html);
    settings::again(facts, &mut html);
    html.finish(&title)
}
