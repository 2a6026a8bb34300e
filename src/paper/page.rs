//! One page with all tables and figures that there are.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Request, figure, table};
use crate::data::write_atomic;
use crate::error::{Error, Result};

/// Writes OUT/README.md from the tables and figures in their folders, with whichever settings each was made.
pub(super) fn write(request: &Request<'_>) -> Result<PathBuf> {
    let scale = request.scale;
    let but = match request.set {
        [] => String::new(),
        set => format!(", but {}", set.join(", ")),
    };
    let mut text = format!(
        "# The paper's tables and figures\n\nMade by `hintflow reproduce --scale {}` (hintflow {}): {}{but}.\n",
        scale.name(),
        env!("CARGO_PKG_VERSION"),
        scale.in_words()
    );
    for table in table::all() {
        let name = table.name;
        let path = request.out.join("tables").join(name).with_extension("md");
        match std::fs::read_to_string(&path) {
            Ok(own) => {
                // Its title is one of the page's.
                let _ =
                    writeln!(text, "\n#{own}\nFiles: [{name}.md](tables/{name}.md), [{name}.csv](tables/{name}.csv)");
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("read", path, e)),
        }
    }
    for figure in figure::ALL {
        let name = figure.name;
        if request.out.join("figures").join(name).with_extension("png").is_file() {
            let _ = writeln!(text, "\n## {}\n\n{}\n\n![{name}](figures/{name}.png)", figure.title, figure.caption);
        }
    }
    let path = request.out.join("README.md");
    write_atomic(&path, true, |file| file.write_all(text.as_bytes()))?;
    Ok(path)
}
