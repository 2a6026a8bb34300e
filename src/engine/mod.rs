//! WHERE programs run: `cpu` natively, `gpu` through wgpu. The only room that names wgpu or naga.
//!
//! An [`Engine`] is a device. `Engine::load` puts the weights of one model on it and gives a `Session`, which runs
//! the programs of that model. Both engines run the same programs on the same arenas.

mod checked;
pub(crate) mod cpu;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
mod no_gpu;
pub(crate) mod ranks;
mod shared;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "gpu")]
pub use gpu::adapters;
#[cfg(feature = "gpu")]
pub(crate) use gpu::work;
#[cfg(not(feature = "gpu"))]
pub use no_gpu::adapters;
#[cfg(not(feature = "gpu"))]
pub(crate) use no_gpu::work;

use crate::comm::{self, Communicator, World};
use crate::error::Result;
use crate::optim::AdamStep;
use crate::plan::Plan;
use crate::program::Program;

/// A device that runs models. Cheap to clone: clones share the device.
#[derive(Clone)]
pub struct Engine {
    backend: Arc<dyn Backend>,
    world: World,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.info()).finish()
    }
}

/// Work of one kernel of the GPU engine in a whole program, counted without a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Work {
    /// Its name.
    pub(crate) kernel: &'static str,
    /// Floating-point operations of matrix products, as its lanes do them.
    pub(crate) flops: f64,
    /// Bytes read and written.
    pub(crate) bytes: f64,
}

/// What a device is, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// "cpu" for the native engine, "gpu" for everything behind wgpu.
    pub engine: &'static str,
    /// Name of the adapter, or of the instruction set of the native engine.
    pub name: String,
    /// Graphics interface: "vulkan", "metal", "dx12"; "native" for the native engine.
    pub backend: String,
    /// Driver and its version.
    pub driver: String,
    /// What decides the bits of results: the instruction set of the native engine; adapter, interface and driver of a
    /// GPU.
    pub arithmetic: String,
    /// "discrete", "integrated", "virtual", "software", "other" or "native".
    pub kind: &'static str,
}

/// An adapter of this machine, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// Number of the adapter, for [`crate::engine::Engine::named`].
    pub index: usize,
    /// What it would be as an engine.
    #[serde(flatten)]
    pub device: DeviceInfo,
    /// Largest array a kernel can use, in bytes.
    pub max_array_bytes: u64,
    /// Memory that a workgroup shares, in bytes.
    pub workgroup_bytes: u32,
    /// Most workgroups per dimension of a dispatch.
    pub max_workgroups: u32,
    /// Whether values can be passed to kernels without a buffer.
    pub immediates: bool,
    /// Limits that decide what kernels can do, by their names in WebGPU.
    pub limits: BTreeMap<&'static str, u64>,
    /// Names of everything optional that it can do.
    pub features: Vec<&'static str>,
}

impl Engine {
    /// Facts about the device.
    pub fn info(&self) -> DeviceInfo {
        self.backend.info()
    }

    /// The same device without tuning. A GPU otherwise times a few variants of its kernels when it meets a model and a
    /// batch size for the first time, which takes a moment, and remembers the fastest in the user's cache folder.
    /// No result depends on it.
    #[must_use]
    pub fn untuned(self) -> Self {
        match self.backend.untuned() {
            Some(backend) => Self { backend, ..self },
            None => self,
        }
    }

    /// The same device, sharing its work with other ranks: every training step and every call that takes or gives many
    /// rows. All ranks must make the same models and call the same methods in the same order; each then has the results
    /// that one process alone would have, bit for bit.
    #[must_use]
    pub fn with_ranks(self, world: Arc<dyn Communicator>) -> Self {
        Self { world, ..self }
    }

    /// Those that share its work.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// A device that shares its work with nobody.
    fn of(backend: Arc<dyn Backend>) -> Self {
        Self { backend, world: comm::alone() }
    }

    /// Puts a model on the device.
    pub(crate) fn load(&self, plan: Arc<Plan>) -> Result<Box<dyn Session>> {
        let session = self.backend.load(plan.clone())?;
        let session = shared::Shared::new(session, self.world.clone())?;
        Ok(Box::new(checked::Checked::new(Box::new(session), plan)))
    }
}

/// The most bytes that a model has held on its device, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Footprint {
    /// Weights, and the tables that say where they are.
    pub weights: usize,
    /// Adam's moments.
    pub optimizer: usize,
    /// Partial sums of the gradient of the weights, and what else is needed to add them up.
    pub gradients: usize,
    /// Activations and their gradients, of all programs and threads.
    pub activations: usize,
    /// Training rows and their order.
    pub data: usize,
    /// Results on their way to the host, and what kernels are told.
    pub transfer: usize,
}

impl Footprint {
    /// All bytes.
    pub fn total(&self) -> usize {
        let Self { weights, optimizer, gradients, activations, data, transfer } = self;
        weights + optimizer + gradients + activations + data + transfer
    }

    /// The part that is proportional to the number of weights: they, the optimizer's state and partial gradients.
    pub fn of_weights(&self) -> usize {
        self.weights + self.optimizer + self.gradients
    }
}

/// Time of one part of a program: of a dispatch on a GPU, of an operation over all tiles on the CPU.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct KernelTime {
    /// Name of the kernel, or of the operation.
    pub name: &'static str,
    /// Nanoseconds; on the CPU of all threads together.
    pub nanoseconds: f64,
    /// Workgroups of the dispatch; on the CPU the number of tiles.
    pub grid: [u32; 2],
}

/// A device, behind [`Engine`].
pub(crate) trait Backend: Send + Sync {
    /// Facts about the device.
    fn info(&self) -> DeviceInfo;
    /// Allocates the weight arena of a model (all zero).
    fn load(&self, plan: Arc<Plan>) -> Result<Box<dyn Session>>;
    /// The device without tuning, where it has any.
    fn untuned(&self) -> Option<Arc<dyn Backend>> {
        None
    }
}

/// A compiled program of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramId(pub(crate) usize);

/// Arrays of a session that the host may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// The weight arena, `Layout::len()` values. Derived weights are recomputed by the programs.
    Weights,
    /// Adam's first moments, `Layout::trained` values.
    FirstMoments,
    /// Adam's second moments, `Layout::trained` values.
    SecondMoments,
    /// Moving averages of the weights, `Layout::trained` values; zero until they are written. Steps whose update has
    /// any ([`AdamStep::follow`]) need them to be written before.
    Averages,
}

/// Updates that were left out, since their gradient was not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skips {
    /// All of them.
    pub total: u32,
    /// Those since the last update that was done.
    pub in_a_row: u32,
}

/// One evaluation of a program without an update.
#[derive(Clone, Copy, Default)]
pub(crate) struct Job<'a> {
    /// Number of samples B; any number, the engine cuts it into tiles.
    pub(crate) rows: usize,
    /// For each input of the program its values, row-major (B, rows of the buffer).
    pub(crate) inputs: &'a [&'a [f32]],
    /// Seed of [`crate::program::Op::Normal`].
    pub(crate) seed: u64,
    /// Number of the first sample within its group, for [`crate::program::Op::Normal`].
    pub(crate) first_row: u64,
    /// How samples are counted.
    pub(crate) groups: Groups,
}

/// Samples counted within groups of one size, so that the normals of a group are the same in any company: those of each
/// observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Samples of a group, less than 2^31; 0 where all samples are one group.
    pub(crate) rows: u32,
    /// Number of the group of the first sample.
    pub(crate) first: u32,
}

/// One training step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepJob {
    /// Position of the batch's first row in the order given by [`Session::set_order`].
    pub(crate) first: usize,
    /// Number of samples B.
    pub(crate) rows: usize,
    /// Deviation of the noise added to x.
    pub(crate) noise: f32,
    /// Probability of a hidden unit to be dropped, in parts of 256.
    pub(crate) dropout: u8,
    /// Seed of the noise and of what is dropped.
    pub(crate) seed: u64,
    /// Number of this step, for the counters of both.
    pub(crate) step: u32,
    /// The update.
    pub(crate) adam: AdamStep,
}

/// The weights of one model on a device, and the programs that use them.
pub(crate) trait Session: Send {
    /// Makes a program ready to run on about `rows` samples at a time. All allocation and pipeline creation is here.
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId>;

    /// Runs a program; returns its outputs, row-major (B, rows of the buffer).
    ///
    /// Gradients of the weights are those of this job alone, see [`Session::gradients`].
    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>>;

    /// The training data, row-major (rows, N). Stays on the device where it fits, else batches are streamed to it.
    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()>;

    /// The order in which steps take the rows of the data: a permutation, or any list of row numbers.
    fn set_order(&mut self, order: &[u32]) -> Result<()>;

    /// Shares steps and runs with other ranks from now on: all have the same weights, data and order and call the same
    /// operations, and each computes a part of every batch. Results have the same bits for any number of ranks.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the engine does not share steps.
    fn share(&mut self, world: World) -> Result<()>;

    /// Time spent with messages since work is shared, and with waiting for other ranks.
    fn exchanged(&self) -> Duration;

    /// Runs one training step. May return before the device is done.
    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()>;

    /// Mean loss of the last step. Waits for the device.
    fn loss(&mut self) -> Result<f32>;

    /// The updates left out by steps that clip. Waits for the device.
    fn skips(&mut self) -> Result<Skips>;

    /// Counts on from there.
    fn set_skips(&mut self, skips: Skips) -> Result<()>;

    /// Gradients after the last run or step of a program with backward operations, summed over all samples,
    /// `Layout::gradient_len()` values: unclamped, without L2.
    fn gradients(&mut self) -> Result<Vec<f32>>;

    /// Copies values from the device. Waits for it.
    fn read(&mut self, values: Values) -> Result<Vec<f32>>;

    /// Copies values to the device.
    fn write(&mut self, values: Values, data: &[f32]) -> Result<()>;

    /// Number of dispatches of one run or step of the program on one tile; 0 on the native engine.
    fn dispatches(&self, program: ProgramId) -> usize;

    /// Number of tiles that the program cuts a batch of that many rows into.
    fn tiles(&self, program: ProgramId, rows: usize) -> usize;

    /// Times every part of the runs and steps from now on, which slows them down.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device has no clock.
    fn begin_profile(&mut self) -> Result<()>;

    /// What was timed since [`Session::begin_profile`], in the order it ran. Waits for the device.
    fn end_profile(&mut self) -> Result<Vec<KernelTime>>;

    /// The most that the session has held on the device, by purpose; what it has given back since counts.
    fn footprint(&self) -> Footprint;
}
