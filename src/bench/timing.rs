//! Times of whole training steps and draws of samples.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::{Bench, Effort, Exchange, Part, Spread, Subject, cost};
use crate::engine::{Footprint, ProgramId, Session, StepJob};
use crate::error::{Error, Result};
use crate::flow::programs::{self, Name};
use crate::optim::Adam;
use crate::rng::{self, Stream};

/// Most steps that are sent in a row.
const IN_A_ROW: f64 = 50.0;

/// Time of one training step: gather, noise, forward, backward, clamp, Adam.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTiming {
    /// What was timed, and where.
    #[serde(flatten)]
    pub subject: Subject,
    /// Median, milliseconds, of a step that the host waits for.
    pub step_ms: f64,
    /// All of these steps, milliseconds.
    pub spread: Spread,
    /// What of it is messages, if several ranks share the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// Mean, milliseconds, of steps that are sent in a row, as in training; on a GPU.
    pub step_ms_in_a_row: Option<f64>,
    /// 6 P B floating-point operations over the median, 10^9 per second.
    pub gflops: f64,
    /// Tiles that the batch is cut into.
    pub tiles: usize,
    /// Dispatches of one step on one tile; on a GPU.
    pub dispatches: Option<usize>,
    /// Bytes that the operations of a step read and write one by one, which is more than they do where a dispatch runs
    /// several; on a GPU.
    pub bytes_moved: Option<u64>,
    /// The most bytes that the model had on the device at once. The CPU engine counts the arena of every thread whole,
    /// although the system gives no memory to pages that nobody writes.
    pub peak_bytes: usize,
    /// What they are for.
    pub memory: Footprint,
}

/// Time of drawing one batch of samples, with their copy to the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleTiming {
    /// What was timed, and where.
    #[serde(flatten)]
    pub subject: Subject,
    /// Median, milliseconds.
    pub sample_ms: f64,
    /// All draws, milliseconds.
    pub spread: Spread,
    /// 2 P B floating-point operations over the median, 10^9 per second.
    pub gflops: f64,
    /// Tiles that the batch is cut into.
    pub tiles: usize,
    /// Dispatches of one draw on one tile; on a GPU.
    pub dispatches: Option<usize>,
    /// Bytes that the operations of a draw read and write one by one; on a GPU.
    pub bytes_moved: Option<u64>,
    /// The most bytes that the model had on the device at once. The CPU engine counts the arena of every thread whole,
    /// although the system gives no memory to pages that nobody writes.
    pub peak_bytes: usize,
    /// What they are for.
    pub memory: Footprint,
}

impl Bench {
    /// Times training steps.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the model does not fit, [`Error::DeviceLost`] if the device fails,
    /// [`Error::Diverged`] if the loss becomes no number.
    pub fn step(&self, effort: &Effort) -> Result<StepTiming> {
        let id = self.prepare_step()?;
        let world = self.flow.engine().world();
        self.flow.with_session(|session| {
            let mut in_messages = Vec::new();
            let times = effort.times_on(&**world, |number| {
                let before = session.exchanged();
                self.one_step(session, id, number)?;
                in_messages.push((session.exchanged() - before).as_secs_f64() * 1e3);
                Ok(())
            })?;
            let in_messages = in_messages.split_off(in_messages.len() - times.len());
            let len = self.flow.plan().layout.gradient_len();
            let exchange = (world.size() > 1).then(|| Exchange::measure(world, len, in_messages)).transpose()?;
            let spread = Spread::of_times(&times);
            let step_ms_in_a_row = if self.on_gpu() {
                let most = effort.repeats.map_or(effort.seconds * 1e3 / spread.median, |repeats| repeats as f64);
                let count = most.clamp(1.0, IN_A_ROW) as u32;
                let start = Instant::now();
                for number in 0..count {
                    session.step(id, &self.step_job(number))?;
                }
                finite(session.loss()?, count)?;
                Some(start.elapsed().as_secs_f64() * 1e3 / f64::from(count))
            } else {
                None
            };
            Ok(StepTiming {
                exchange,
                subject: self.subject(Part::Step),
                step_ms: spread.median,
                spread,
                step_ms_in_a_row,
                gflops: self.gflops(6.0, spread.median),
                tiles: session.tiles(id, self.case.batch),
                dispatches: self.on_gpu().then(|| session.dispatches(id)),
                bytes_moved: self.bytes_moved(Name::Step(self.memory)),
                peak_bytes: session.footprint().total(),
                memory: session.footprint(),
            })
        })
    }

    /// Times the drawing of batches of samples.
    ///
    /// # Errors
    /// As [`Bench::step`].
    pub fn sample(&self, effort: &Effort) -> Result<SampleTiming> {
        let batch = self.case.batch;
        let times =
            effort.times(|number| self.flow.sample_from(batch, 1, u64::from(number) * batch as u64).map(drop))?;
        let spread = Spread::of_times(&times);
        let id = self.flow.sampler()?;
        let (tiles, dispatches, memory) = self
            .flow
            .with_session(|session| Ok((session.tiles(id, batch), session.dispatches(id), session.footprint())))?;
        Ok(SampleTiming {
            subject: self.subject(Part::Sample),
            sample_ms: spread.median,
            spread,
            gflops: self.gflops(2.0, spread.median),
            tiles,
            dispatches: self.on_gpu().then_some(dispatches),
            bytes_moved: self.bytes_moved(Name::Sample),
            peak_bytes: memory.total(),
            memory,
        })
    }

    /// Puts data on the device for training steps.
    pub(super) fn prepare_step(&self) -> Result<ProgramId> {
        let batch = self.case.batch;
        let mut data = vec![0.0; batch * self.case.dim as usize];
        rng::fill_normals(1, Stream::Data, 0, 0, &mut data);
        let id = self.flow.compiled(Name::Step(self.memory), batch)?;
        self.flow.with_session(|session| {
            session.set_data(Arc::from(data))?;
            session.set_order(&(0..batch as u32).collect::<Vec<_>>())
        })?;
        Ok(id)
    }

    fn step_job(&self, number: u32) -> StepJob {
        let adam = Adam::default().step(1e-3, u64::from(number) + 1);
        StepJob { first: 0, rows: self.case.batch, noise: 0.01, dropout: 0, seed: 1, step: number, adam }
    }

    /// Runs a step and waits for it.
    pub(super) fn one_step(&self, session: &mut dyn Session, id: ProgramId, number: u32) -> Result<()> {
        session.step(id, &self.step_job(number))?;
        finite(session.loss()?, number)
    }

    fn gflops(&self, per_parameter: f64, milliseconds: f64) -> f64 {
        per_parameter * self.flow.parameters() as f64 * self.case.batch as f64 / (milliseconds * 1e6)
    }

    /// On the CPU most of it stays in cache.
    fn bytes_moved(&self, name: Name) -> Option<u64> {
        let program = programs::record(name, self.flow.plan());
        let bytes = || cost::costs(&program, true).values().map(|cost| cost.bytes(self.case.batch)).sum();
        self.on_gpu().then(bytes)
    }
}

/// A step whose loss is no number is not worth its time.
fn finite(loss: f32, number: u32) -> Result<()> {
    let step = u64::from(number) + 1;
    if loss.is_finite() { Ok(()) } else { Err(Error::Diverged { step, loss, checkpoint: None }) }
}
