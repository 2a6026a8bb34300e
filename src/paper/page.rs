//! One page with all tables and figures that there are.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::lab::Lab;
use super::{figure, table};
use crate::data::write_atomic;
use crate::error::Result;

/// Writes OUT/README.md.
pub(super) fn write(lab: &Lab<'_>) -> Result<PathBuf> {
    let out = lab.request.out;
    let scale = lab.request.scale;
    let mut text = format!(
        "# The paper's tables and figures\n\nMade by `hintflow reproduce --scale {}` (hintflow {}): {}.\n",
        scale.name(),
        env!("CARGO_PKG_VERSION"),
        scale.in_words()
    );
    for table in table::all() {
        if out.join("tables").join(table.name).with_extension("md").is_file() {
            let name = table.name;
            let _ = write!(text, "\n## {}\n\n{}", table.title, table::markdown(lab, &table)?);
            let _ = writeln!(text, "Files: [{name}.md](tables/{name}.md), [{name}.csv](tables/{name}.csv)");
        }
    }
    for figure in figure::ALL {
        let name = figure.name;
        if out.join("figures").join(name).with_extension("png").is_file() {
            let _ = writeln!(text, "\n## {}\n\n{}\n\n![{name}](figures/{name}.png)", figure.title, figure.caption);
        }
    }
    let path = out.join("README.md");
    write_atomic(&path, true, |file| file.write_all(text.as_bytes()))?;
    Ok(path)
}
