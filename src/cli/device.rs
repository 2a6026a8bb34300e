//! The options that choose a device.

use clap::Args;
use hintflow::Result;
use hintflow::engine::Engine;

/// Options of every command that computes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Device")]
pub(super) struct DeviceArgs {
    /// auto, cpu, gpu, or number or name of an adapter
    ///
    /// auto takes a real GPU where there is one, else the native CPU engine. `hintflow devices` lists the adapters.
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<String>,
    /// Threads of the native CPU engine [default: all cores]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
}

impl DeviceArgs {
    /// Opens the device.
    pub(super) fn open(&self) -> Result<Engine> {
        open(self.device.as_deref().unwrap_or("auto"), self.threads.unwrap_or(0))
    }
}

/// Opens a device by the word of a setting; `threads` is for the native CPU engine, 0 means one per core.
pub(super) fn open(device: &str, threads: usize) -> Result<Engine> {
    let cpu = || if threads == 0 { Engine::cpu() } else { Engine::cpu_with_threads(threads) };
    match device.trim().to_lowercase().as_str() {
        "cpu" => cpu(),
        "gpu" => Engine::gpu(),
        "auto" => {
            let engine = Engine::auto()?;
            if engine.info().engine == "cpu" { cpu() } else { Ok(engine) }
        }
        selector => {
            let engine = Engine::named(selector)?;
            let info = engine.info();
            if info.kind == "software" {
                tracing::warn!("`{}` is a software adapter and slow; the native CPU engine is --device cpu", info.name);
            }
            Ok(engine)
        }
    }
}
