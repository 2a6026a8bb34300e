//! Tables that are read for a model that is there already: its columns, and whether their numbers are such as it takes.

use std::path::Path;

use crate::data::Table;
use crate::data::columns::units::{Bounds, Units};
use crate::data::files::Limits;
use crate::data::packing::{Packed, Packing};
use crate::error::{Error, Result};
use crate::flow::ModelFile;

/// Whether the numbers of a table are such as a model to start from can tell apart, packed as it has them. `file_of` says
/// which file a column comes from.
pub(super) fn fits_the_model<'a>(rows: &Table, file_of: impl Fn(usize) -> &'a Path) -> Result<()> {
    const INIT: &str = "--init";
    let takes = |column: usize| {
        format!("the model to start from takes {} {}", rows.column_label(column), rows.packing(column).how())
    };
    let remedy = "bring the column to the units and the offset of the table that the model was trained on, or train without --init";
    if let Some(far) = rows.far().first() {
        let what = format!(
            "{}, where {:e} (row {} of {}) is beyond what 32-bit floats hold; leave the row out, {remedy}",
            takes(far.column),
            far.number,
            far.row + 1,
            file_of(far.column).display()
        );
        return Err(Error::config(INIT, what));
    }
    // What vanishes in most rows is no code for a missing value.
    let vanished = rows.vanished().iter().find(|of| 2 * of.count > rows.rows).map(|of| of.column);
    let Some(column) = rows.coarse().first().copied().or(vanished) else { return Ok(()) };
    let what = format!(
        "{}, where 32-bit floats cannot tell the numbers of {} apart: they are other numbers than those that it was trained \
         on; {remedy}",
        takes(column),
        file_of(column).display()
    );
    Err(Error::config(INIT, what))
}

/// Names, packing and bounds of the columns of a model, [y, x].
pub(super) struct Like {
    cond_dim: usize,
    names: Vec<String>,
    packing: Vec<Packing>,
    bounds: Vec<Bounds>,
}

impl Like {
    pub(super) fn of(file: &ModelFile) -> Result<Self> {
        let spec = &file.plan.spec;
        let (cond_dim, dim) = (spec.cond_dim as usize, spec.dim as usize);
        let packing = (0..cond_dim).map(|c| file.y.packing(c)).chain((0..dim).map(|c| file.x.packing(c))).collect();
        let of = |units: &Units, dim: usize| -> Vec<Bounds> {
            (0..dim).map(|c| units.bounds.get(c).copied().unwrap_or_default()).collect()
        };
        let bounds = [of(&file.y, cond_dim), of(&file.x, dim)].concat();
        // Where a lane has no names, columns are found by their places.
        let named = (cond_dim == 0 || !file.y.columns.is_empty()) && !file.x.columns.is_empty();
        let names = if named { [&file.y.columns[..], &file.x.columns].concat() } else { Vec::new() };
        Ok(Self { cond_dim, names, packing, bounds })
    }

    pub(super) fn both(&self) -> (Packed<'_>, Limits<'_>) {
        (Packed::As(&self.names, &self.packing), Limits::As(&self.names, &self.bounds))
    }

    pub(super) fn y(&self) -> (Packed<'_>, Limits<'_>) {
        let c = self.cond_dim;
        let names = self.names.get(..c).unwrap_or_default();
        (Packed::As(names, &self.packing[..c]), Limits::As(names, &self.bounds[..c]))
    }

    pub(super) fn x(&self) -> (Packed<'_>, Limits<'_>) {
        let c = self.cond_dim;
        let names = self.names.get(c..).unwrap_or_default();
        (Packed::As(names, &self.packing[c..]), Limits::As(names, &self.bounds[c..]))
    }
}
