//! The files of a run. Of several ranks that share a training the first writes them, and the others have none.

use std::path::{Path, PathBuf};

use crate::atomic::Overwrite;
use crate::comm::World;
use crate::config::{Config, Resolved};
use crate::error::Result;
use crate::train::dataset::Dataset;
use crate::train::epoch_report::EpochReport;
use crate::train::folder::RunFolder;
use crate::train::logs::LogFiles;
use crate::train::manifest::{self, Manifest};
use crate::train::metrics::Metrics;

/// The run folder, and what is appended to.
pub(super) struct Files {
    pub(super) folder: RunFolder,
    pub(super) metrics: Metrics,
}

/// Whether this rank writes the files.
pub(super) fn writes(world: &World) -> bool {
    world.rank() == 0
}

impl Files {
    /// Those of a new run in `out`, or in a folder that is named after the data. None if this rank writes none.
    ///
    /// # Errors
    /// Those of [`RunFolder::create`], [`crate::Error::Io`].
    pub(super) fn create(
        world: &World,
        out: Option<&Path>,
        overwrite: Overwrite,
        data: &Dataset,
        config: &Resolved,
    ) -> Result<Option<Self>> {
        if !writes(world) {
            return Ok(None);
        }
        let folder = match out {
            Some(out) => RunFolder::create(out, overwrite)?,
            None => RunFolder::create_default(&data.name, config.train.seed)?,
        };
        let logs = LogFiles::open(folder.path(), &config.train.log, 0)?;
        let metrics = Metrics::create(&folder.metrics())?.with(logs);
        Ok(Some(Self { folder, metrics }))
    }

    /// Those of a run that goes on after so many epochs, at `step`, and the reports of these epochs, as far as they are
    /// there.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub(super) fn reopen(
        folder: RunFolder,
        config: &Config,
        epochs: u64,
        step: u64,
    ) -> Result<(Self, Vec<EpochReport>)> {
        let (metrics, reports) = Metrics::reopen(&folder.metrics(), epochs)?;
        let metrics = metrics.with(LogFiles::open(folder.path(), &config.train.log, step)?);
        Ok((Self { folder, metrics }, reports))
    }

    /// What is known of the run from before.
    pub(super) fn earlier(files: Option<&Self>) -> manifest::Facts {
        files.and_then(|files| manifest::facts(&files.folder.manifest())).unwrap_or_default()
    }

    /// Where the run is; nowhere, if this rank writes nothing.
    pub(super) fn path(files: Option<&Self>) -> PathBuf {
        files.map(|files| files.folder.path().to_owned()).unwrap_or_default()
    }

    /// Writes the manifest, if there are files.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub(super) fn write_manifest(files: Option<&Self>, manifest: &Manifest) -> Result<()> {
        files.map_or(Ok(()), |files| manifest.write(&files.folder.manifest()))
    }
}
