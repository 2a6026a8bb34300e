//! The options that choose a device.

use std::env::VarError;

use crate::config::MOST_THREADS;
use crate::engine::Engine;
use crate::{Error, Result};
use clap::Args;

use super::ranks;

/// Options of every command that computes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Device")]
pub(super) struct DeviceArgs {
    /// auto, cpu, gpu, or number or name of an adapter
    ///
    /// auto takes a real GPU where there is one, else the native CPU engine. `hintflow devices` lists the adapters.
    /// HINTFLOW_RUN__DEVICE and HINTFLOW_RUN__THREADS in the environment do the same as the options.
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<String>,
    /// Threads of the native CPU engine [default: all cores]
    ///
    /// HINTFLOW_SIMD=avx512, avx2 or portable in the environment asks it for a lower instruction set than the best of
    /// the processor, so that results of another machine can be had bit for bit.
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Do not time variants of a GPU's kernels when it meets a model for the first time
    #[arg(long)]
    pub(super) no_tune: bool,
}

impl DeviceArgs {
    /// Takes so many threads where neither flag nor environment says how many.
    pub(super) fn default_to_threads(&mut self, threads: usize) -> Result<()> {
        if self.threads.is_none() && variable(THREADS)?.is_none() {
            self.threads = Some(threads);
        }
        Ok(())
    }

    /// Opens the device that the flags name, else the one that the environment does, as for `train`.
    pub(super) fn open(&self) -> Result<Engine> {
        let named = |flag, setting, given: bool| if given { flag } else { setting };
        let key = named("--device", DEVICE, self.device.is_some());
        let device = match &self.device {
            Some(device) => Some(device.clone()),
            None => variable(DEVICE)?,
        };
        if device.as_deref().is_some_and(|device| device.trim().is_empty()) {
            return Err(Error::config(key, "names no device; give auto, cpu, gpu or an adapter"));
        }
        let key = named("--threads", THREADS, self.threads.is_some());
        let threads = match (self.threads, variable(THREADS)) {
            (Some(threads), _) => threads,
            (None, text) => match text? {
                None => 0,
                Some(text) => text
                    .trim()
                    .parse()
                    .map_err(|_| Error::config(THREADS, format!("must be a number of threads, is `{text}`")))?,
            },
        };
        if threads as u64 > MOST_THREADS {
            let what = format!("must be at most {MOST_THREADS}, is {threads}; 0 takes one per core");
            return Err(Error::config(key, what));
        }
        let tune = match variable(TUNE)?.as_deref().map(str::trim) {
            _ if self.no_tune => false,
            None | Some("true") => true,
            Some("false") => false,
            Some(other) => return Err(Error::config(TUNE, format!("must be true or false, is `{other}`"))),
        };
        open(device.as_deref().unwrap_or("auto"), threads, tune)
    }
}

/// A setting from the environment.
///
/// # Errors
/// [`Error::Config`] if it is not Unicode.
pub(super) fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => {
            Err(Error::config(name, format!("{} is not Unicode, which settings must be", text.display())))
        }
    }
}

/// The settings run.device, run.threads and run.tune in the environment.
const DEVICE: &str = "HINTFLOW_RUN__DEVICE";
const THREADS: &str = "HINTFLOW_RUN__THREADS";
const TUNE: &str = "HINTFLOW_RUN__TUNE";

/// Opens a device by the word of a setting; `threads` is for the native CPU engine, 0 means one per core, `tune` for a
/// GPU.
pub(super) fn open(device: &str, threads: usize, tune: bool) -> Result<Engine> {
    let threads = if threads == 0 { ranks::threads() } else { threads };
    let engine = tunable(device, threads)?;
    Ok(ranks::shared(if tune { engine } else { engine.untuned() }))
}

fn tunable(device: &str, threads: usize) -> Result<Engine> {
    let cpu = || {
        let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        if threads > cores {
            tracing::warn!("{threads} threads are more than the {cores} cores of this machine, which is slower");
        }
        Engine::cpu_with_threads(threads)
    };
    match device.trim().to_lowercase().as_str() {
        "cpu" => cpu(),
        "gpu" => Engine::gpu(),
        // As `Engine::auto`, whose CPU engine has a thread per core.
        "auto" => match Engine::real_gpu() {
            Ok(Some(engine)) => Ok(engine),
            Ok(None) => cpu(),
            Err(error) => {
                tracing::warn!("the GPU cannot be used, so the native CPU engine is: {error}");
                cpu()
            }
        },
        _ => {
            let engine = Engine::named(device)?;
            let info = engine.info();
            if info.kind == "software" {
                tracing::warn!("`{}` is a software adapter and slow; the native CPU engine is --device cpu", info.name);
            }
            Ok(engine)
        }
    }
}

/// Fails as [`open`] would; opens a device only where its name alone says too little.
pub(super) fn check(device: &str) -> Result<()> {
    match device.trim().to_lowercase().as_str() {
        "auto" | "cpu" => Ok(()),
        _ => open(device, 1, false).map(drop),
    }
}
