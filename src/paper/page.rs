//! One page with all tables and figures that there are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{figure, filtering, table};
use crate::atomic::{Overwrite, write_atomic};
use crate::error::{Error, Result};

/// Writes OUT/README.md from the files of tables and figures. Each says with which settings it was made.
pub(super) fn write(out: &Path) -> Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("# The paper's tables and figures\n\nMade by `hintflow reproduce` (hintflow {version}).\n");
    for table in table::all() {
        if let Some(own) = read(&out.join("tables").join(table.name).with_extension("md"))? {
            // Its title is one of the page's.
            let _ = write!(text, "\n#{own}\nFiles: [{0}.md](tables/{0}.md), [{0}.csv](tables/{0}.csv)\n", table.name);
        }
    }
    for name in figure::ALL.iter().map(|figure| figure.name).chain([filtering::NAME]) {
        if let Some(own) = read(&out.join("figures").join(name).with_extension("md"))? {
            let _ = write!(text, "\n#{}", own.replace("](", "](figures/"));
        }
    }
    let path = out.join("README.md");
    write_atomic(&path, Overwrite::Yes, |file| file.write_all(text.as_bytes()))?;
    Ok(path)
}

/// A text file, if it is there.
fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path, e)),
    }
}
