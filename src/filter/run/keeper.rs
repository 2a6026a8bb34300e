//! What is kept of a step while it is being trained.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::{Options, Watcher};
use crate::atomic::Overwrite;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::filter::update::Keeper;
use crate::flow::Flow;
use crate::train::Dataset;
use crate::train::checkpoint::{About, Checkpoint, Device};
use crate::train::{EpochReport, Progress, State};

/// Checkpoints are this far apart, if nothing else is asked for: at the end of an epoch, and within one.
const AT_EPOCH_END: Duration = Duration::from_secs(10);
const WITHIN_EPOCH: Duration = Duration::from_secs(60);

/// A keeper with files.
pub(super) struct Files<'a> {
    folder: &'a Folder,
    step: u32,
    options: &'a Options<'a>,
    engine: &'a Engine,
    watcher: &'a mut dyn Watcher,
    saved: Instant,
}

impl<'a> Files<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        step: u32,
        options: &'a Options<'a>,
        engine: &'a Engine,
        watcher: &'a mut dyn Watcher,
    ) -> Self {
        Self { folder, step, options, engine, watcher, saved: Instant::now() }
    }
}

impl Keeper for Files<'_> {
    fn rows(&mut self, shape: (usize, usize)) -> Result<Option<Vec<f32>>> {
        self.folder.kept_rows(self.step, shape)
    }

    fn keep_rows(&mut self, rows: &[f32], columns: usize) -> Result<()> {
        self.folder.keep_rows(self.step, rows, columns)
    }

    fn state(&mut self, flow: &Flow, data: &Dataset) -> Result<Option<State>> {
        let Some((checkpoint, file, passed_over)) = self.folder.checkpoints().latest()? else { return Ok(None) };
        passed_over.iter().for_each(|error| self.watcher.warning(&format!("{error}; going on from the one before it")));
        // That of the step before may have been left by a process that was killed.
        if checkpoint.about.data != data.fingerprint {
            self.folder.checkpoints().clear()?;
            return Ok(None);
        }
        if checkpoint.about.spec != *flow.spec() {
            return Err(Error::format(
                file,
                "is a checkpoint of another model than filter.toml asks for; remove it, so that the step is trained anew",
            ));
        }
        let device = Device::from(&self.engine.info());
        if checkpoint.about.device != device {
            self.watcher.warning("this step was begun on another device: the result will differ in the last bits");
        }
        Ok(Some(checkpoint.state))
    }

    fn wants_state(&mut self, epoch_ended: bool, step: u64) -> bool {
        match self.options.checkpoint_every {
            Some(every) => step.is_multiple_of(every),
            None => self.saved.elapsed() >= if epoch_ended { AT_EPOCH_END } else { WITHIN_EPOCH },
        }
    }

    fn keep_state(&mut self, flow: &Flow, data: &Dataset, state: State) -> Result<()> {
        let about = About {
            spec: flow.spec().clone(),
            // Those of the run are in its folder.
            config: String::new(),
            data: data.fingerprint.clone(),
            device: Device::from(&self.engine.info()),
            x: flow.units().clone(),
            y: flow.units_of_conditions().clone(),
        };
        self.folder.checkpoints().write(&Checkpoint { about, state })?;
        self.saved = Instant::now();
        Ok(())
    }

    fn keep_flow(&mut self, flow: &Flow) -> Result<()> {
        flow.save(self.folder.model(self.step), Overwrite::Yes)
    }

    fn progress(&mut self, progress: &Progress) {
        self.watcher.progress(progress);
    }

    fn epoch(&mut self, report: &EpochReport, progress: &Progress) {
        self.watcher.epoch(report, progress);
    }

    fn warning(&mut self, text: &str) {
        self.watcher.warning(&format!("step {}: {text}", self.step));
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }
}
