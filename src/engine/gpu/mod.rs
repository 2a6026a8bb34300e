//! The GPU engine: programs as compute kernels through wgpu.
//!
//! Five folders, each of which uses those before it alone:
//!
//! - `kernels`: text of the shaders, what each of them is told (`launch`) and reads of a model (`records`), and the
//!   variants of which pipelines are made, with the part of a shader that belongs to a model's couplings (`transform`).
//! - `layout`: plain data. `tables` turns a plan into the array that kernels read, of `nodes`, weight tiles (`jobs`)
//!   and lists of nodes that share a workgroup (`packs`, `narrow`); `panels` puts its weights into the order in which
//!   they are read.
//! - `device`: wgpu. `adapter` finds devices, `open` opens one and makes pipelines, `commands`, `uploads` and
//!   `transfer` move commands and values there and back, `timer` times dispatches.
//! - `compile`: programs to lists of dispatches. `record` makes them (`program::shortcuts` finds those that need not
//!   be), `cost` counts their loops, `tiling` chooses how many samples lie on the device at a time, `recompute` which
//!   hidden activations are not kept, `trim` leaves out the rows that nobody touches. `work` counts what all of it comes
//!   to, for predictions of times.
//! - `session`: a model on a device, made with `options`. Its `arrays` and its `programs`, evaluation (`run`) and
//!   training (`step`); `tuning` measures variants of kernels, `tuner` remembers which are the fastest.
//!
//! # Kernels and operations
//!
//! Most kernels are an operation or part of its backward and bear its name, as in the native engine. These do not:
//! `couple_mix`, `couple_loss` and `between_backward` are several operations in one dispatch, `networks_packed` and its
//! backward are the networks in another shape, `narrow_backward` is their backward together with gradients of weights,
//! `pack_weights` only moves values. `gradient_norm` and `clip` are the two halves of one operation.
//!
//! # How a step's time comes about
//!
//! `hintflow bench model` predicts steps for several cards. Estimates for a H100 (67 TFLOP/s, 3.35 TB/s), none of them
//! measured yet; batches of 10,000. lens2 (2 blocks, 0.1 million parameters): 6 GFLOP, 8 with padding, 0.3 ms at 40 % of
//! the peak; 0.66 GB of activations, 0.2 ms; 12 dispatches, 0.05 ms. cross4 (4 blocks, 2 million): 120 GFLOP, 150 with
//! padding, 5.6 ms; 9 GB of activations, 3.2 ms, of which narrow networks that are computed again leave 2.5 GB for 13
//! GFLOP more; 26 dispatches, 0.1 ms. What decides which part of the peak is reached stands with the kernels:
//! `layout/packs` (networks), `layout/narrow`, `shaders/weight_gradient.wgsl`. So does what was left out or is estimated
//! to be of no help; for dispatches in `compile/record/fused`.

mod compile;
mod device;
mod kernels;
mod layout;
mod session;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use compile::work::work;
pub use device::adapter::adapters;

use super::{Backend, DeviceInfo, Engine, Session};
use crate::error::Result;
use crate::plan::Plan;
use device::adapter;
use device::open::Device;
use session::GpuSession;
use session::options::Options;
use session::tuner::Tuner;

/// A wgpu device as an engine.
struct Gpu {
    device: Arc<Device>,
    /// None: the variants of kernels are not measured.
    tuner: Option<Arc<Tuner>>,
}

impl Gpu {
    fn new(device: Device) -> Self {
        Self { device: Arc::new(device), tuner: Some(Arc::new(Tuner::new())) }
    }
}

impl Backend for Gpu {
    fn info(&self) -> DeviceInfo {
        self.device.info.clone()
    }

    fn load(&self, plan: Arc<Plan>) -> Result<Box<dyn Session>> {
        let options = Options { tuner: self.tuner.clone(), ..Options::default() };
        Ok(Box::new(GpuSession::new(self.device.clone(), plan, options)?))
    }

    fn untuned(&self) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(Self { device: self.device.clone(), tuner: None }))
    }
}

impl Engine {
    /// The best GPU of this machine; where there is none, a software adapter, with a warning.
    ///
    /// # Errors
    /// [`crate::Error::NoAdapter`] if there is neither.
    pub fn gpu() -> Result<Self> {
        Self::open(&adapter::best_or_software()?)
    }

    /// The best GPU of this machine, if it has one. Never a software adapter.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the GPU cannot be opened.
    pub fn real_gpu() -> Result<Option<Self>> {
        adapter::best().map(|adapter| Self::open(&adapter)).transpose()
    }

    /// The best GPU of this machine, else the native CPU engine. Never a software adapter.
    ///
    /// # Errors
    /// Those of [`Engine::cpu`].
    pub fn auto() -> Result<Self> {
        match Self::real_gpu() {
            Ok(Some(engine)) => Ok(engine),
            Ok(None) => Self::cpu(),
            Err(error) => {
                tracing::warn!("the GPU cannot be used, so the native CPU engine is: {error}");
                Self::cpu()
            }
        }
    }

    /// The adapter with this number in [`adapters`], or the one whose name contains the text in any case.
    ///
    /// # Errors
    /// [`crate::Error::NoAdapter`] if no adapter fits, or several do; it lists all there are.
    pub fn named(selector: &str) -> Result<Self> {
        Self::open(&adapter::named(selector)?)
    }

    /// A device that the caller has opened already. It needs no features; with `IMMEDIATES` and 128 bytes of
    /// `max_immediate_size` steps are a little faster. Its limits are respected.
    ///
    /// Errors of the device outside hintflow's own calls stay with the handlers that the caller has set.
    ///
    /// # Errors
    /// [`crate::Error::UnsupportedLimit`] naming the limit that is too low.
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        let device = Device::adopt(device, queue)?;
        Ok(Self::of(Arc::new(Gpu::new(device))))
    }

    fn open(adapter: &wgpu::Adapter) -> Result<Self> {
        let device = Device::open(adapter)?;
        Ok(Self::of(Arc::new(Gpu::new(device))))
    }
}
