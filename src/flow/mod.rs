//! Models on top of programs: encode, decode, density, samples, gradients.
//!
//! A [`Flow`] is a model on a device. It records its programs with the `tape` when they are first used
//! and speaks in the user's units: row-major `&[f32]` in, `Vec<f32>` out.

mod builder;
mod init;
mod model_file;
pub(crate) mod programs;

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use builder::FlowBuilder;
pub use model_file::ModelFile;

pub use crate::tape::Memory;

use crate::data::standardize::Standardizer;
use crate::engine::{Engine, Footprint, Job, ProgramId, Session, Values};
use crate::error::{Error, Result};
use crate::plan::{Plan, Spec};

/// An unconditional normalizing flow z = T(x) on a device (paper, eqs. 1 to 6).
///
/// All methods take and give rows one after the other (row-major) in the user's units; a standardisation that belongs
/// to the model is applied inside and its Jacobian is part of every log-determinant and density. A `Flow` is `Send` and
/// `Sync`; calls from several threads take turns.
pub struct Flow {
    plan: Arc<Plan>,
    engine: Engine,
    columns: Vec<String>,
    standardize: Option<Standardizer>,
    memory: Memory,
    loaded: Mutex<Loaded>,
}

/// The device side of a model: its session and the programs compiled so far.
struct Loaded {
    session: Box<dyn Session>,
    /// The programs and the number of samples each was compiled for.
    compiled: Vec<((programs::Name, usize), ProgramId)>,
}

/// Latent vectors of some rows, with their log-determinants.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// z, row-major (B, N).
    pub z: Vec<f32>,
    /// `log |det dz/dx|` of each row in nats, (B), with respect to x in the user's units.
    pub log_det: Vec<f32>,
}

/// Gradient of a scalar with respect to every trained tensor, and to x.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Name of the tensor as in the model file, and its gradient, row-major in the tensor's shape.
    pub tensors: Vec<(String, Vec<f32>)>,
    /// Gradient with respect to x in the user's units, row-major (B, N).
    pub x: Vec<f32>,
}

/// Samples that one compilation is sized for. Larger jobs run in tiles.
const TYPICAL_ROWS: usize = 10_000;

impl Flow {
    /// Starts a new model of `dim` columns.
    pub fn builder(dim: u32) -> FlowBuilder {
        FlowBuilder::new(dim)
    }

    /// Reads a model file (spec, section 7) and puts it on a device.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Format`] naming the file, [`Error::Device`] where the device cannot hold the model.
    pub fn load(path: &Path, engine: &Engine) -> Result<Self> {
        Self::from_file(ModelFile::read(path)?, engine)
    }

    /// Puts a model that is in memory on a device.
    ///
    /// # Errors
    /// [`Error::Shape`] where weights, names or standardisation do not fit the plan, [`Error::Device`] where the device
    /// cannot hold the model.
    pub fn from_file(file: ModelFile, engine: &Engine) -> Result<Self> {
        file.check()?;
        let ModelFile { plan, weights, columns, standardize } = file;
        let mut session = engine.load(plan.clone())?;
        session.write(Values::Weights, &weights)?;
        let loaded = Mutex::new(Loaded { session, compiled: Vec::new() });
        Ok(Self { plan, engine: engine.clone(), columns, standardize, memory: Memory::default(), loaded })
    }

    /// What [`Flow::loss_gradients`] and [`Flow::vjp`] keep for their backward pass; [`Memory::Stored`] unless this is
    /// called. A training has a setting of its own, [`crate::config::Train::memory`].
    #[must_use = "the flow is given back"]
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The model with its present weights, as it would be written to a file.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] where the weights cannot be read back.
    pub fn to_file(&self) -> Result<ModelFile> {
        let weights = self.loaded().session.read(Values::Weights)?;
        Ok(ModelFile {
            plan: self.plan.clone(),
            weights,
            columns: self.columns.clone(),
            standardize: self.standardize.clone(),
        })
    }

    /// Writes the model file atomically.
    ///
    /// # Errors
    /// [`Error::Exists`] where the file exists and `force` is not set, [`Error::Io`] where it cannot be written.
    pub fn save(&self, path: &Path, force: bool) -> Result<()> {
        self.to_file()?.write(path, force)
    }

    /// What the model is made of.
    pub fn spec(&self) -> &Spec {
        &self.plan.spec
    }

    /// Node tables and weight layout.
    pub fn plan(&self) -> &Arc<Plan> {
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
        &self.columns
    }

    /// The standardisation that belongs to the model.
    pub fn standardization(&self) -> Option<&Standardizer> {
        self.standardize.as_ref()
    }

    /// z and log-determinant of rows x, row-major (B, N).
    ///
    /// # Errors
    /// [`Error::Shape`] where the length of `x` is not a multiple of N.
    pub fn encode(&self, x: &[f32]) -> Result<Encoded> {
        let rows = self.rows("x", x)?;
        let Some(s) = &self.standardize else { return self.encode_inner(x, rows) };
        let mut encoded = self.encode_inner(&self.inner(x)?, rows)?;
        let jacobian = -s.ln_scale_sum();
        encoded.log_det.iter_mut().for_each(|l| *l = (f64::from(*l) + jacobian) as f32);
        Ok(encoded)
    }

    /// [`Flow::encode`] of rows that are standardised already, without the Jacobian of the standardisation.
    pub(crate) fn encode_inner(&self, x: &[f32], rows: usize) -> Result<Encoded> {
        let mut outputs = self.run(programs::Name::Encode, &[x], rows, 0, 0)?.into_iter();
        match (outputs.next(), outputs.next()) {
            (Some(z), Some(log_det)) => Ok(Encoded { z, log_det }),
            _ => unreachable!("the encode program has two outputs"),
        }
    }

    /// x of latent rows z, row-major (B, N): the inverse of [`Flow::encode`].
    ///
    /// # Errors
    /// [`Error::Shape`] where the length of `z` is not a multiple of N.
    pub fn decode(&self, z: &[f32]) -> Result<Vec<f32>> {
        let rows = self.rows("z", z)?;
        self.undo(self.decode_inner(z, rows)?)
    }

    /// [`Flow::decode`] to rows that are still standardised.
    pub(crate) fn decode_inner(&self, z: &[f32], rows: usize) -> Result<Vec<f32>> {
        Ok(self.run(programs::Name::Decode, &[z], rows, 0, 0)?.swap_remove(0))
    }

    /// Log-density of rows x in nats, in the user's units (spec, section 4):
    /// `-|z|^2 / 2 - (N / 2) ln(2 pi) + log |det dz/dx|`.
    ///
    /// # Errors
    /// [`Error::Shape`] where the length of `x` is not a multiple of N.
    pub fn log_prob(&self, x: &[f32]) -> Result<Vec<f32>> {
        let Encoded { z, log_det } = self.encode(x)?;
        let n = self.plan.spec.dim as usize;
        let constant = 0.5 * n as f64 * std::f64::consts::TAU.ln();
        let density = |z: &[f32], log_det: f32| (f64::from(log_det) - half_square(z) - constant) as f32;
        Ok(z.chunks_exact(n).zip(log_det).map(|(z, log_det)| density(z, log_det)).collect())
    }

    /// `n` samples, row-major (n, N). Sample i of a seed is the same whatever `n` is.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] where the device fails.
    pub fn sample(&self, n: usize, seed: u64) -> Result<Vec<f32>> {
        self.sample_from(n, seed, 0)
    }

    /// Samples number `first..first + n` of a seed, for drawing a large number in pieces.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] where the device fails.
    pub fn sample_from(&self, n: usize, seed: u64, first: u64) -> Result<Vec<f32>> {
        let x = self.run(programs::Name::Sample, &[], n, seed, first)?.swap_remove(0);
        self.undo(x)
    }

    /// Mean loss of rows x and its gradients (spec, section 5): mean of `|z|^2 / 2 - log |det dz/dx|`, not clamped,
    /// without L2. With a standardised model the loss is that of the standardised rows, as in training.
    ///
    /// # Errors
    /// [`Error::Shape`] where `x` has no rows or its length is not a multiple of N.
    pub fn loss_gradients(&self, x: &[f32]) -> Result<(f32, Gradients)> {
        let rows = self.rows("x", x)?;
        if rows == 0 {
            return Err(Error::Shape { what: "rows of x".into(), expected: 1, got: 0 });
        }
        let (mut outputs, gradients) =
            self.run_backward(programs::Name::LossGradients(self.memory), &[&self.inner(x)?], rows)?;
        let d_x = outputs.swap_remove(1);
        let loss = outputs.swap_remove(0).iter().map(|&l| f64::from(l)).sum::<f64>() / rows as f64;
        Ok((loss as f32, self.name_gradients(&gradients, d_x)))
    }

    /// Vector-Jacobian product: gradients of `sum(d_z * z) + sum(d_log_det * log_det)` over rows x, for any seeds
    /// `d_z` (B, N) and `d_log_det` (B). `d_z = -z` and `d_log_det = 1` give the gradient of the log-density in x.
    ///
    /// # Errors
    /// [`Error::Shape`] where the lengths do not agree.
    pub fn vjp(&self, x: &[f32], d_z: &[f32], d_log_det: &[f32]) -> Result<Gradients> {
        let rows = self.rows("x", x)?;
        let agree = |what: &str, expected, got| match expected == got {
            true => Ok(()),
            false => Err(Error::Shape { what: what.into(), expected, got }),
        };
        agree("d_z", x.len(), d_z.len())?;
        agree("d_log_det", rows, d_log_det.len())?;
        let inputs: [&[f32]; 3] = [&self.inner(x)?, d_z, d_log_det];
        let (mut outputs, gradients) = self.run_backward(programs::Name::Vjp(self.memory), &inputs, rows)?;
        Ok(self.name_gradients(&gradients, outputs.swap_remove(0)))
    }

    /// Runs a program and takes the gradients it leaves, before another thread can run one.
    fn run_backward(&self, name: programs::Name, inputs: &[&[f32]], rows: usize) -> Result<(Vec<Vec<f32>>, Vec<f32>)> {
        let mut loaded = self.loaded();
        let id = loaded.program(name, &self.plan, TYPICAL_ROWS)?;
        let outputs = loaded.session.run(id, &Job { rows, inputs, ..Job::default() })?;
        Ok((outputs, loaded.session.gradients()?))
    }

    fn name_gradients(&self, all: &[f32], mut d_x: Vec<f32>) -> Gradients {
        if let Some(s) = &self.standardize {
            let scales = s.scale.iter().cycle();
            d_x.iter_mut().zip(scales).for_each(|(d, scale)| *d = (f64::from(*d) / scale) as f32);
        }
        let trained = self.plan.layout.tensors.iter().filter(|t| t.range().end <= self.plan.layout.trained);
        let tensors = trained.map(|t| (t.name.clone(), all[t.range()].to_vec())).collect();
        Gradients { tensors, x: d_x }
    }

    /// Rows in the units of the networks: standardised where the model has a standardisation.
    pub(crate) fn inner<'a>(&self, x: &'a [f32]) -> Result<Cow<'a, [f32]>> {
        let Some(s) = &self.standardize else { return Ok(x.into()) };
        let mut inner = x.to_vec();
        s.apply(&mut inner)?;
        Ok(inner.into())
    }

    fn undo(&self, mut x: Vec<f32>) -> Result<Vec<f32>> {
        if let Some(s) = &self.standardize {
            s.undo(&mut x)?;
        }
        Ok(x)
    }

    fn rows(&self, what: &str, values: &[f32]) -> Result<usize> {
        let n = self.plan.spec.dim as usize;
        if !values.len().is_multiple_of(n) {
            let what = format!("{what} must hold whole rows of {n} values; values beyond the last whole row");
            return Err(Error::Shape { what, expected: 0, got: values.len() % n });
        }
        Ok(values.len() / n)
    }

    fn run(
        &self,
        name: programs::Name,
        inputs: &[&[f32]],
        rows: usize,
        seed: u64,
        first_row: u64,
    ) -> Result<Vec<Vec<f32>>> {
        let mut loaded = self.loaded();
        let id = loaded.program(name, &self.plan, TYPICAL_ROWS)?;
        loaded.session.run(id, &Job { rows, inputs, seed, first_row, ..Job::default() })
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        // A panic while the lock was held leaves device buffers in a defined state: every run writes what it reads.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the session to the trainer.
    pub(crate) fn with_session<R>(&self, f: impl FnOnce(&mut dyn Session) -> Result<R>) -> Result<R> {
        f(self.loaded().session.as_mut())
    }

    /// The program that draws samples.
    pub(crate) fn sampler(&self) -> Result<ProgramId> {
        self.compiled(programs::Name::Sample, TYPICAL_ROWS)
    }

    /// The program of that name, compiled for `rows` samples at a time when it is first asked for.
    pub(crate) fn compiled(&self, name: programs::Name, rows: usize) -> Result<ProgramId> {
        self.loaded().program(name, &self.plan, rows)
    }
}

impl Loaded {
    fn program(&mut self, name: programs::Name, plan: &Arc<Plan>, rows: usize) -> Result<ProgramId> {
        // How a batch is cut, and so the last bits of its sums, may depend on the number it was compiled for.
        if let Some((_, id)) = self.compiled.iter().find(|(key, _)| *key == (name, rows)) {
            return Ok(*id);
        }
        let id = self.session.compile(programs::record(name, plan), rows)?;
        self.compiled.push(((name, rows), id));
        Ok(id)
    }
}

/// `|z|^2 / 2` in f64.
pub(crate) fn half_square(z: &[f32]) -> f64 {
    0.5 * z.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>()
}
