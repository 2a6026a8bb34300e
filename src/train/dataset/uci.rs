//! Rows of a UCI data set: its training part, scored on its test part. They are normalised already.

use super::{Found, RowColumns, Rows, What};
use crate::config::{Config, Preset};
use crate::counted::counted;
use crate::data::uci::Parts;
use crate::error::{Error, Result};

/// The rows that the settings ask for; `data.rows` takes the first of the training part.
pub(super) fn rows(config: &Config, preset: Preset) -> Result<Rows> {
    let data = &config.data;
    let Some(set) = preset.uci() else {
        unreachable!("the data set {} is no file", preset.name());
    };
    let Some(path) = &data.path else { return Err(set.unnamed()) };
    let Parts { columns, mut train, test, notes, .. } = set.read(path, data.seed)?;
    let dim = columns.len();
    if let Some(wanted) = data.rows {
        let rows = train.len() / dim;
        let Some(wanted) = usize::try_from(wanted).ok().filter(|&wanted| wanted <= rows) else {
            let what = format!("is {wanted}, but {} has {}", preset.name(), counted(rows, "training row"));
            return Err(Error::config("data.rows", what));
        };
        train.truncate(wanted * dim);
    }
    let columns = RowColumns::simulated(Vec::new(), columns);
    let (name, train) = (preset.name().into(), train.into());
    let found = notes.into_iter().map(|says| Found::of_rows(What::LeftOut(says))).collect();
    Ok(Rows { name, columns, train, test, found, ..Rows::default() })
}
