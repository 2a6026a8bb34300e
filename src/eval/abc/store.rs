//! Accepted draws as files, so that a pool is passed once for an observation.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Abc, Accepted, Distance, Simulator};
use crate::atomic::Overwrite;
use crate::counted::counted;
use crate::data::files::npy::read_npy;
use crate::data::write_npy;
use crate::error::{Error, Result};

impl Accepted {
    /// Writes the draws as `.npy`, float32, row-major (keep, 1 + N): the distance, then x.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file exists and `overwrite` is not set, [`Error::Io`] if it cannot be written.
    pub(crate) fn write(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let rows = self.distances.iter().zip(self.x.chunks_exact(self.dim));
        let values: Vec<f32> = rows.flat_map(|(distance, x)| std::iter::once(distance).chain(x)).copied().collect();
        write_npy(path, self.distances.len(), 1 + self.dim, &values, overwrite)
    }

    /// Reads draws of N = `dim` columns that [`Accepted::write`] wrote.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Format`] if it is damaged or holds something else.
    pub(crate) fn read(path: &Path, dim: usize) -> Result<Self> {
        let table = read_npy(path)?;
        if table.dim() != 1 + dim {
            let what = format!(
                "{} instead of 1 + {dim}; not accepted draws of this simulator",
                counted(table.dim(), "column")
            );
            return Err(Error::format(path, what));
        }
        let distances: Vec<f32> = table.iter_rows().map(|row| row[0]).collect();
        // A table has at least one row, and NaN is not sorted.
        if !distances.is_sorted() || distances[0] < 0.0 {
            return Err(Error::format(path, "the first column does not ascend from 0; not accepted draws"));
        }
        let x = table.iter_rows().flat_map(|row| &row[1..]).copied().collect();
        Ok(Self { dim, distances, x })
    }
}

impl Abc {
    /// Name of the file of an observation: it tells the pool, the settings and the observation.
    pub(crate) fn file_name(&self, pool: &dyn Simulator, observation: &[f32]) -> String {
        let distance = match self.distance {
            Distance::Euclidean => "",
            Distance::Scaled => "-scaled",
        };
        // The shortest digits that read back as the same number.
        let y: Vec<String> = observation.iter().map(|v| format!("{v:?}")).collect();
        format!("abc-{}-draws{}-keep{}{distance}-y{}.npy", pool.name(), self.draws, self.keep, y.join("_"))
    }

    /// As [`Abc::run`], with a folder that is made if need be: observations whose files are in it are read, the others
    /// passed over the pool together and written.
    ///
    /// # Errors
    /// Those of [`Abc::run`], [`Accepted::read`] and [`Accepted::write`]; [`Error::Format`] if a file has another
    /// number of draws.
    pub(crate) fn run_stored(
        &self,
        folder: &Path,
        pool: &dyn Simulator,
        observations: &[f32],
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Vec<Accepted>> {
        let columns = pool.observed_dim();
        self.check(columns, observations)?;
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
        let rows = || observations.chunks_exact(columns);
        let paths: Vec<PathBuf> = rows().map(|y| folder.join(self.file_name(pool, y))).collect();
        let mut all: Vec<Option<Accepted>> =
            paths.iter().map(|path| self.read_if_present(path, pool.dim())).collect::<Result<_>>()?;

        let missing: Vec<usize> = (0..all.len()).filter(|&i| all[i].is_none()).collect();
        if !missing.is_empty() {
            let wanted: Vec<f32> =
                missing.iter().flat_map(|i| &observations[i * columns..][..columns]).copied().collect();
            for (i, accepted) in missing.into_iter().zip(self.run(pool, &wanted, progress)?) {
                // An observation may be there twice.
                accepted.write(&paths[i], Overwrite::Yes)?;
                all[i] = Some(accepted);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    fn read_if_present(&self, path: &Path, dim: usize) -> Result<Option<Accepted>> {
        if !path.exists() {
            return Ok(None);
        }
        match Accepted::read(path, dim) {
            Ok(accepted) if accepted.distances.len() == self.keep => Ok(Some(accepted)),
            Ok(Accepted { distances, .. }) => {
                let what = format!(
                    "{} instead of {}; delete the file to draw again",
                    counted(distances.len(), "draw"),
                    self.keep
                );
                Err(Error::format(path, what))
            }
            Err(Error::Format { path, what }) => Err(Error::format(path, what + "; delete the file to draw again")),
            Err(Error::Cell { path, row, column, name, what }) => {
                Err(Error::Cell { path, row, column, name, what: what + "; delete the file to draw again" })
            }
            Err(other) => Err(other),
        }
    }
}
