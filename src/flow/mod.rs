//! Models on top of programs: encode, decode, density, samples, gradients.
//!
//! A [`Flow`] is a model on a device. It records its programs with the `tape` when they are first used
//! and speaks in the user's units: row-major `&[f32]` in, `Vec<f32>` out. Of conditional models [`Flow::given`] takes
//! the conditions, and gives what an unconditional flow has itself; what a `hint` knows of x and y together are methods
//! of [`Joint`].

mod builder;
mod conditional;
pub(crate) mod density;
mod digest;
mod evidence;
mod gradients;
mod init;
mod inn;
mod inner;
mod jacobian;
mod joint;
#[cfg(feature = "cli")]
mod log_scales;
mod model_file;
pub(crate) mod programs;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use builder::FlowBuilder;
pub(crate) use builder::MAX_LOG_SCALE;
pub use conditional::Conditional;
pub use evidence::Evidence;
pub use gradients::Gradients;
pub use joint::{Joint, Lanes};
pub(crate) use model_file::{ModelFile, open_tensors};
pub(crate) use programs::Losses;

pub use crate::plan::{ConditionOn, Depth, Kind, Mixing, Scale, Spec, Spline, Transform};
pub use crate::tape::Memory;

use crate::atomic::Overwrite;
use crate::comm;
use crate::counted::counted;
use crate::data::columns::units::{Conditioned, Units};
use crate::engine::{Engine, Footprint, Job, ProgramId, Session, Values};
use crate::error::Result;
use crate::eval::density::TrainingRows;
use crate::memory;
use crate::plan::Plan;
use programs::Name;

/// A normalizing flow on a device (paper, eqs. 1 to 6): z = T(x), z = T(x | y), or [z_y, z_x] = T(y, x).
///
/// All methods take and give rows one after the other (row-major) in the user's units; a standardisation that belongs
/// to the model is applied inside and its Jacobian is part of every log-determinant and density. A `Flow` is `Send` and
/// `Sync`; calls from several threads take turns.
pub struct Flow {
    plan: Arc<Plan>,
    engine: Engine,
    x: Units,
    y: Units,
    memory: Memory,
    loaded: Mutex<Loaded>,
}

/// The device side of a model: its session and the programs compiled so far.
struct Loaded {
    session: Box<dyn Session>,
    /// The programs and the number of samples each was compiled for.
    compiled: Vec<((Name, usize), ProgramId)>,
    /// How usual observations are, of a trained `hint`.
    evidence: Option<Evidence>,
    /// The rows that it was trained on.
    training: Option<TrainingRows>,
}

/// Latent vectors of some rows, with their log-determinants.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// z, row-major (B, N).
    pub z: Vec<f32>,
    /// `log |det dz/dx|` of each row in nats, (B), with respect to x in the user's units.
    pub log_det: Vec<f32>,
}

/// Samples that one compilation is sized for. Larger jobs run in tiles.
const TYPICAL_ROWS: usize = 10_000;

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("spec", self.spec()).field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Flow {
    /// Starts a new unconditional flow z = T(x) of `dim` columns.
    pub fn builder(dim: u32) -> FlowBuilder {
        FlowBuilder::new(dim)
    }

    /// Starts a new conditional flow z = T(x | y) of `dim` columns x and so many conditions y (docs/model.md, Lanes).
    pub fn cinn_builder(dim: u32, conditions: u32) -> FlowBuilder {
        FlowBuilder::from_spec(Spec { kind: Kind::Cinn, dim, cond_dim: conditions, ..Spec::default() })
    }

    /// Starts a new flow of `dim` columns x and so many conditions y in two lanes, [z_y, z_x] = T(y, x), which knows the joint
    /// density, the evidence and the posterior (docs/model.md, Lanes).
    pub fn hint_builder(dim: u32, conditions: u32) -> FlowBuilder {
        FlowBuilder::from_spec(Spec { kind: Kind::Hint, dim, cond_dim: conditions, ..Spec::default() })
    }

    /// Starts a new `inn`: a map of `dim` columns x onto so many conditions y and latent columns z, which draws samples of x
    /// given y and has no density (docs/model.md, INN). Its couplings are plain.
    pub fn inn_builder(dim: u32, conditions: u32, latent: u32) -> FlowBuilder {
        let spec = Spec { kind: Kind::Inn, dim, cond_dim: conditions, latent, ..Spec::default() };
        FlowBuilder::from_spec(Spec { depth: Depth::Levels(0), ..spec }).init_by_inputs()
    }

    /// All but the weights, as a model file has it.
    pub(crate) fn description(&self) -> ModelFile {
        let (plan, x, y) = (self.plan.clone(), self.x.clone(), self.y.clone());
        ModelFile { plan, weights: Vec::new(), x, y, evidence: None, training: None }
    }

    /// Reads a model file (docs/model.md, Model file) and puts it on a device.
    ///
    /// # Errors
    /// [`crate::Error::Io`] or [`crate::Error::Format`] naming the file, [`crate::Error::OutOfMemory`] if the device
    /// cannot hold the model.
    pub fn load(path: impl AsRef<Path>, engine: &Engine) -> Result<Self> {
        Self::from_file(ModelFile::read(path.as_ref())?, engine)
    }

    /// Puts a model that is in memory on a device.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if weights, names or standardisation do not fit the plan, [`crate::Error::OutOfMemory`]
    /// where the device cannot hold the model.
    pub(crate) fn from_file(file: ModelFile, engine: &Engine) -> Result<Self> {
        file.check()?;
        let ModelFile { plan, weights, x, y, evidence, training } = file;
        let mut session = engine.load(plan.clone())?;
        session.write(Values::Weights, &weights)?;
        let loaded = Mutex::new(Loaded { session, compiled: Vec::new(), evidence, training });
        Ok(Self { plan, engine: engine.clone(), x, y, memory: Memory::default(), loaded })
    }

    /// What [`Flow::loss_gradients`] and [`Flow::vjp`] keep for their backward pass; [`Memory::Stored`] unless this is
    /// called. A training has a setting of its own, [`crate::TrainConfig::memory`].
    #[must_use = "the flow is given back"]
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The model with its present weights, as it would be written to a file.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`] if the weights cannot be read back.
    pub(crate) fn to_file(&self) -> Result<ModelFile> {
        let mut loaded = self.loaded();
        Ok(ModelFile {
            plan: self.plan.clone(),
            weights: loaded.session.read(Values::Weights)?,
            x: self.x.clone(),
            y: self.y.clone(),
            evidence: loaded.evidence.clone(),
            training: loaded.training.clone(),
        })
    }

    /// Writes the model file atomically.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if the file exists and `overwrite` is [`Overwrite::No`], [`crate::Error::Io`] if it cannot be
    /// written.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<()> {
        self.to_file()?.write(path.as_ref(), overwrite)
    }

    /// What the model is made of.
    pub fn spec(&self) -> &Spec {
        &self.plan.spec
    }

    /// Node tables and weight layout.
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Number of trained parameters, P.
    pub fn parameters(&self) -> usize {
        self.plan.layout.trained
    }

    /// The device.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Bytes that the model holds on its device by now.
    pub fn footprint(&self) -> Footprint {
        self.loaded().session.footprint()
    }

    /// Names of the columns of x, empty where they are not known.
    pub fn columns(&self) -> &[String] {
        &self.x.columns
    }

    /// Names of the conditions y, empty where they are not known.
    pub fn conditions(&self) -> &[String] {
        &self.y.columns
    }

    /// Names, bounds and standardisation of the columns of x.
    pub(crate) fn units(&self) -> &Units {
        &self.x
    }

    /// The same of the conditions y.
    pub(crate) fn units_of_conditions(&self) -> &Units {
        &self.y
    }

    /// Rows of numbers, row-major (B, N), as this flow takes them: of columns that 32-bit floats do not hold as they are, less
    /// an offset and divided by a power of ten. Only flows that the program trained on a file have such columns; of others
    /// this rounds. All densities are of the numbers.
    pub fn pack(&self, x: &[f64]) -> Vec<f32> {
        pack(&self.x, self.spec().dim, x)
    }

    /// Conditions, row-major (B, C), as this flow takes them, see [`Flow::pack`].
    pub fn pack_conditions(&self, y: &[f64]) -> Vec<f32> {
        pack(&self.y, self.spec().cond_dim, y)
    }

    /// The numbers that rows of this flow, row-major (B, N), stand for: the inverse of [`Flow::pack`].
    pub fn unpack(&self, x: &[f32]) -> Vec<f64> {
        crate::data::packing::unpacked(x, &self.x.packing).collect()
    }

    /// Of a trained `hint`: `log p(y)` of the observations it was trained on.
    pub fn evidence(&self) -> Option<Evidence> {
        self.loaded().evidence.clone()
    }

    /// The rows that the model was trained on, where its file knows them.
    pub(crate) fn training(&self) -> Option<TrainingRows> {
        self.loaded().training.clone()
    }

    /// Remembers what a training leaves beside weights.
    pub(crate) fn remember(&self, training: TrainingRows, evidence: Option<Evidence>) {
        let mut loaded = self.loaded();
        (loaded.training, loaded.evidence) = (Some(training), evidence);
    }

    /// z and log-determinant of rows x, row-major (B, N), of an unconditional flow; of others see [`Flow::given`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the length of `x` is not a multiple of N, [`crate::Error::WrongKind`] if the model
    /// has conditions, [`crate::Error::NotFinite`] naming a value that is no number, [`crate::Error::Config`] naming a
    /// row outside of the bounds of a column.
    pub fn encode(&self, x: &[f32]) -> Result<Encoded> {
        self.unconditional()?.encode(x)
    }

    /// x of latent rows z, row-major (B, N): the inverse of [`Flow::encode`].
    ///
    /// # Errors
    /// As those of [`Flow::encode`].
    pub fn decode(&self, z: &[f32]) -> Result<Vec<f32>> {
        self.unconditional()?.decode(z)
    }

    /// Log-density of rows x in nats, in the user's units (docs/model.md, Densities):
    /// `-|z|^2 / 2 - (N / 2) ln(2 pi) + log |det dz/dx|`; minus infinity outside of the bounds of a column.
    ///
    /// # Errors
    /// [`crate::Error::Shape`], [`crate::Error::WrongKind`] and [`crate::Error::NotFinite`], as those of [`Flow::encode`].
    pub fn log_prob(&self, x: &[f32]) -> Result<Vec<f32>> {
        self.unconditional()?.log_prob(x)
    }

    /// `n` samples, row-major (n, N). Sample i of a seed is the same whatever `n` is.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if the model has conditions, [`crate::Error::OutOfMemory`] if memory cannot hold so
    /// many, [`crate::Error::DeviceLost`] if the device fails.
    pub fn sample(&self, n: usize, seed: u64) -> Result<Vec<f32>> {
        self.sample_from(n, seed, 0)
    }

    /// Samples number `first..first + n` of a seed, for drawing a large number in pieces.
    ///
    /// # Errors
    /// As those of [`Flow::sample`].
    pub fn sample_from(&self, n: usize, seed: u64, first: u64) -> Result<Vec<f32>> {
        self.unconditional()?;
        self.room_for(n)?;
        let job = Job { rows: n, seed, first_row: first, ..Job::default() };
        Ok(self.x.outer(self.run(Name::Sample, &job)?.swap_remove(0)))
    }

    /// Mean loss of rows x of an unconditional flow and its gradients (docs/model.md, Loss): mean of
    /// `|z|^2 / 2 - log |det dz/dx|`, not clamped, without L2. With a standardised model the loss is that of the
    /// standardised rows, as in training.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if `x` has no rows or its length is not a multiple of N, [`crate::Error::WrongKind`]
    /// if the model has conditions.
    pub fn loss_gradients(&self, x: &[f32]) -> Result<(f32, Gradients)> {
        self.unconditional()?.loss_gradients(x)
    }

    /// Vector-Jacobian product: gradients of `sum(d_z * z) + sum(d_log_det * log_det)` over rows x, for any seeds
    /// `d_z` (B, N) and `d_log_det` (B). `d_z = -z` and `d_log_det = 1` give the gradient of the log-density in x.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the lengths do not agree, [`crate::Error::WrongKind`] if the model has conditions.
    pub fn vjp(&self, x: &[f32], d_z: &[f32], d_log_det: &[f32]) -> Result<Gradients> {
        self.unconditional()?.vjp(x, d_z, d_log_det)
    }

    /// Whether memory can hold that many samples with their conditions: an allocation that fails would end the process.
    fn room_for(&self, rows: usize) -> Result<()> {
        let columns = self.plan.spec.row_columns() as usize;
        let what = || {
            let (samples, columns) = (counted(rows, "sample"), counted(columns, "column"));
            format!("{samples} of {columns}, if they are drawn at once,")
        };
        memory::reserved::<f32>(rows.saturating_mul(columns), what).map(drop)
    }

    /// Runs a program.
    fn run(&self, name: Name, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let mut loaded = self.loaded();
        let id = loaded.program(name, &self.plan, TYPICAL_ROWS)?;
        loaded.session.run(id, job)
    }

    /// Runs a program and takes the gradients it leaves, before another thread can run one.
    fn run_backward(&self, name: Name, job: &Job<'_>) -> Result<(Vec<Vec<f32>>, Vec<f32>)> {
        let mut loaded = self.loaded();
        let id = loaded.program(name, &self.plan, TYPICAL_ROWS)?;
        let outputs = loaded.session.run(id, job)?;
        Ok((outputs, loaded.session.gradients()?))
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        // A panic while the lock was held leaves device buffers in a defined state: every run writes what it reads.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the session to the trainer.
    pub(crate) fn with_session<R>(&self, f: impl FnOnce(&mut dyn Session) -> Result<R>) -> Result<R> {
        f(self.loaded().session.as_mut())
    }

    /// Runs something that is no business of the other ranks.
    pub(crate) fn alone<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        let world = self.engine.world();
        if world.size() == 1 {
            return run();
        }
        self.with_session(|session| session.share(comm::alone()))?;
        let result = run();
        self.with_session(|session| session.share(world.clone()))?;
        result
    }

    /// The program that draws samples.
    pub(crate) fn sampler(&self) -> Result<ProgramId> {
        self.compiled(Name::Sample, TYPICAL_ROWS)
    }

    /// The program of that name, compiled for `rows` samples at a time when it is first asked for.
    pub(crate) fn compiled(&self, name: Name, rows: usize) -> Result<ProgramId> {
        self.loaded().program(name, &self.plan, rows)
    }
}

impl Loaded {
    fn program(&mut self, name: Name, plan: &Arc<Plan>, rows: usize) -> Result<ProgramId> {
        // How a batch is cut, and so the last bits of its sums, may depend on the number it was compiled for.
        if let Some((_, id)) = self.compiled.iter().find(|(key, _)| *key == (name, rows)) {
            return Ok(*id);
        }
        let id = self.session.compile(programs::record(name, plan), rows)?;
        self.compiled.push(((name, rows), id));
        Ok(id)
    }
}

fn pack(units: &Units, dim: u32, rows: &[f64]) -> Vec<f32> {
    let columns = (0..dim as usize).cycle();
    rows.iter().zip(columns).map(|(&number, c)| units.packing(c).pack(number) as f32).collect()
}

/// `|z|^2 / 2` in f64.
pub(crate) fn half_square(z: &[f32]) -> f64 {
    0.5 * z.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>()
}

/// Log-densities of rows in nats (docs/model.md, Densities): `-|z|^2 / 2 - (N / 2) ln(2 pi) + log |det dz/dx|`.
fn log_density(encoded: &Encoded) -> Vec<f64> {
    let Encoded { z, log_det } = encoded;
    if log_det.is_empty() {
        return Vec::new();
    }
    let n = z.len() / log_det.len();
    let constant = 0.5 * n as f64 * std::f64::consts::TAU.ln();
    z.chunks_exact(n).zip(log_det).map(|(z, &log_det)| f64::from(log_det) - half_square(z) - constant).collect()
}

/// Adds the log-determinant of the way from the user's units, of rows of `dim` columns, to that of the networks.
fn add_jacobian(lane: &Conditioned<'_>, rows: &[f32], dim: u32, log_det: &mut [f32]) {
    for (log_det, jacobian) in log_det.iter_mut().zip(lane.log_jacobian(rows, dim as usize)) {
        *log_det = (f64::from(*log_det) + jacobian) as f32;
    }
}
