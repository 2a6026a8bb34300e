//! `hintflow plot`: pictures of tables and runs.

mod corner;
mod losses;
mod tables;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::atomic::{Overwrite, check_output};
use crate::{Error, Result};

use super::{Done, output};

const AFTER_HELP: &str = "\
Every picture is written twice, as a PNG and as an SVG: `-o corner.png`, `-o corner.svg` and `-o corner` all give
corner.png and corner.svg.

Examples:
  hintflow plot corner posterior.npy -o corner.png
  hintflow plot corner hint.csv mcmc.csv --truth theta.csv --columns rate,dose -o both.png
  hintflow plot losses runs/a runs/b -o losses.png
  hintflow plot correlation data.csv samples.csv -o correlation.png
  hintflow plot outlines samples.npy -o curves.png";

/// Draw samples, losses, correlations or curves
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Plot {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Corner(corner::Corner),
    Losses(losses::Losses),
    Correlation(tables::Correlation),
    Outlines(tables::Outlines),
}

impl Plot {
    pub(super) fn run(self) -> Done {
        let path = match self.what {
            What::Corner(what) => what.draw(),
            What::Losses(what) => what.draw(),
            What::Correlation(what) => what.draw(),
            What::Outlines(what) => what.draw(),
        }?;
        for end in ENDS {
            tracing::info!("written: {}", with_end(&path, end).display());
        }
        Ok(0)
    }
}

/// Where a picture goes.
#[derive(Args)]
struct Picture {
    /// Picture to write, as .png and as .svg
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the files
    #[arg(long)]
    force: bool,
}

const ENDS: [&str; 2] = ["png", "svg"];

impl Picture {
    /// The name without its end, when both files may be written and none of them is read.
    fn path(&self, inputs: &[&Path]) -> Result<PathBuf> {
        let path = match self.output.extension().map(|end| end.to_string_lossy().to_lowercase()) {
            Some(end) if ENDS.contains(&end.as_str()) => self.output.with_extension(""),
            Some(end) if ["pdf", "eps", "jpg", "jpeg", "gif", "html"].contains(&end.as_str()) => {
                let what = format!("is a .{end}; pictures are written as .png and .svg: name one of these, or none");
                return Err(Error::config("-o", what));
            }
            // A dot in a name begins no end.
            _ => self.output.clone(),
        };
        for file in ENDS.map(|end| with_end(&path, end)) {
            check_output(&file, Overwrite::allowed_if(self.force))?;
            output::distinct(&[("-o", &file)], inputs)?;
        }
        Ok(path)
    }
}

/// `corner` with `.png`: appended, as the name may have dots.
fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}

/// What to call files in a picture: their names without folder and extension; the whole paths where those are alike.
fn titles(files: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let stems: Vec<String> = files.iter().map(stem).collect();
    let is_alike = stems.iter().enumerate().any(|(i, stem)| stem.is_empty() || stems[..i].contains(stem));
    if is_alike { files.iter().map(|path| path.display().to_string()).collect() } else { stems }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_tell_them_apart() {
        let of = |files: &[&str]| titles(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/x.npy", "b/y.csv"]), ["x", "y"]);
        assert_eq!(of(&["a/x.npy", "b/x.csv"]), ["a/x.npy", "b/x.csv"]);
        assert_eq!(of(&["."]), ["."]);
    }

    #[test]
    fn pictures_have_one_name_and_two_ends() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| Picture { output: folder.path().join(name), force: false }.path(&[]);
        for name in ["a.png", "a.SVG", "a"] {
            assert_eq!(of(name).unwrap(), folder.path().join("a"), "{name}");
        }
        assert_eq!(of("cross4.0").unwrap(), folder.path().join("cross4.0"));
        assert!(of("a.pdf").unwrap_err().to_string().contains(".png and .svg"));
        std::fs::write(folder.path().join("a.svg"), "").unwrap();
        assert!(matches!(of("a.png"), Err(Error::Exists { .. })));
    }
}
