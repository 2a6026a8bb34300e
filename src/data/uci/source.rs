//! Where a data set is: the names of its files, and where they come from.

use std::path::{Path, PathBuf};

use super::Uci;
use crate::error::{Error, Result};

/// The archive of Papamakarios et al.
const ARCHIVE: &str = "https://zenodo.org/records/1161203";

/// Files of a data set.
struct Files {
    /// The text of the UCI archive.
    raw: &'static str,
    /// Its page.
    url: &'static str,
    /// The preprocessed file in the folder `data` of the archive of Papamakarios et al.
    archived: &'static str,
    /// Other preprocessed files.
    converted: &'static [&'static str],
}

fn files(set: Uci) -> Files {
    match set {
        Uci::Power => Files {
            raw: "household_power_consumption.txt",
            url: "https://archive.ics.uci.edu/dataset/235/individual+household+electric+power+consumption",
            archived: "power/data.npy",
            converted: &[],
        },
        Uci::Gas => Files {
            raw: "ethylene_CO.txt",
            url: "https://archive.ics.uci.edu/dataset/322/gas+sensor+array+under+dynamic+gas+mixtures",
            archived: "gas/ethylene_CO.pickle",
            converted: &["gas/ethylene_CO.npy"],
        },
        Uci::Miniboone => Files {
            raw: "MiniBooNE_PID.txt",
            url: "https://archive.ics.uci.edu/dataset/199/miniboone+particle+identification",
            archived: "miniboone/data.npy",
            converted: &[],
        },
    }
}

/// Whether the file has the name of the text that the UCI archive has of the data set.
pub(super) fn is_text_of(set: Uci, path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == files(set).raw)
}

/// How a file holds a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The text of the UCI archive.
    Raw,
    /// An array of NumPy.
    Array,
    /// A table of pandas.
    Pickle,
}

impl Layout {
    /// That of a file, by its extension.
    pub(super) fn of(path: &Path, set: Uci) -> Result<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match (extension.as_deref(), set) {
            (Some("txt" | "csv" | "dat"), _) => Ok(Self::Raw),
            (Some("npy"), _) => Ok(Self::Array),
            (Some("pickle" | "pkl"), Uci::Gas) => Ok(Self::Pickle),
            (Some("zip" | "gz" | "tgz" | "tar"), _) => Err(Error::format(path, "is packed; unpack it first")),
            _ => Err(Error::format(path, format!("is no file of this data set: {}", wanted(set)))),
        }
    }
}

/// The file of a data set: `path` itself, or one in that folder. The preprocessed file of the archive goes first, since
/// its rows are those of the published results.
pub(super) fn find(set: Uci, path: &Path) -> Result<PathBuf> {
    if !path.exists() {
        return Err(missing(set, &format!("there is no {}", path.display())));
    }
    if !path.is_dir() {
        return Ok(path.into());
    }
    let Files { raw, archived, converted, .. } = files(set);
    let mut places = Vec::new();
    for name in [archived].iter().chain(converted).chain(&[raw]).copied() {
        let folder = set.name();
        let short = Path::new(name).file_name().map_or(name.into(), |n| n.to_string_lossy().into_owned());
        let near = [short.clone(), format!("{folder}/{short}"), format!("data/{folder}/{short}")];
        places.extend(near.into_iter().map(|place| path.join(place)));
    }
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let names: Vec<_> = [raw, archived].iter().chain(converted).copied().collect();
        missing(set, &format!("the folder {} has none of {}", path.display(), names.join(", ")))
    })
}

/// The names of the files that hold a data set, one of which is enough.
pub(super) fn names(set: Uci) -> String {
    let Files { raw, archived, .. } = files(set);
    format!("{raw} or {archived}")
}

/// The error for a data set whose file is not there, with where to get it and what to do then.
pub(super) fn missing(set: Uci, why: &str) -> Error {
    Error::config("data.path", format!("{why}; {}", wanted(set)))
}

/// Which file is wanted, where it is to be had, and the command line.
fn wanted(set: Uci) -> String {
    let Files { raw, url, archived, .. } = files(set);
    let name = set.name();
    format!(
        "{} is read from {raw} of the UCI archive ({url}), or from {archived} of the archive of the MAF paper ({ARCHIVE}, \
         data.tar.gz); then: hintflow train {name} --set data.path={raw} (or the folder that holds it)",
        name.to_uppercase()
    )
}
