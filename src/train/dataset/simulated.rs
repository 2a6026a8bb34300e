//! Rows that are simulated: the paper's shapes, and what is observed of each where a model is conditional.

use std::sync::Arc;

use super::{RowColumns, Rows, shared_zeros};
use crate::config::{Config, Preset};
use crate::data::{Shapes, TEST_FIRST_ROW};
use crate::error::{Error, Result};
use crate::plan::Kind;

/// The rows that the settings ask for.
pub(super) fn rows(config: &Config, preset: Preset, shapes: Shapes) -> Result<Rows> {
    let data = &config.data;
    let observed = config.model.kind != Kind::Flow;
    let seen = if observed { shapes.observation_names() } else { Vec::new() };
    let columns = RowColumns::simulated(seen, shapes.column_names());
    let mut train = zeros("data.rows", data.rows.unwrap_or(1), columns.row())?;
    let mut test = zeros("data.test_rows", data.test_rows.unwrap_or(0), columns.row())?;
    let fill = |rows: &mut [f32], first| match observed {
        true => shapes.fill_observed(rows, data.seed, first),
        false => shapes.fill(rows, data.seed, first),
    };
    with_threads(config.run.threads, || {
        fill(Arc::make_mut(&mut train), 0);
        fill(Arc::make_mut(&mut test), TEST_FIRST_ROW);
    })?;
    Ok(Rows { name: preset.name().into(), columns, train, test: test.to_vec(), ..Rows::default() })
}

/// Room for `n` rows, or an error for a number that no machine holds.
pub(super) fn zeros(key: &str, n: u64, dim: usize) -> Result<Arc<[f32]>> {
    let Ok(rows) = u32::try_from(n) else {
        return Err(Error::config(key, format!("is {n}, must be less than 2^32")));
    };
    let count = rows as usize * dim;
    shared_zeros(count, String::new)
        .map_err(|_| Error::config(key, format!("is {n}: these rows do not fit in memory; choose fewer")))
}

/// Runs `f`, with as many threads for its parallel parts as the settings say; 0 is one per core.
fn with_threads<R: Send>(threads: u64, f: impl FnOnce() -> R + Send) -> Result<R> {
    if threads == 0 {
        return Ok(f());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::try_from(threads).unwrap_or(usize::MAX)).build();
    let pool = pool.map_err(|e| Error::config("run.threads", format!("cannot start {threads} threads: {e}")))?;
    Ok(pool.install(f))
}
