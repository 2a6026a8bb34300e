//! Times of the parts of a training step or a draw: kernels of a GPU, operations of the CPU engine.

use serde::Serialize;

use super::{Bench, Effort, Spread, Subject, cost};
use crate::engine::{Job, KernelTime, Session};
use crate::error::Result;
use crate::flow::programs::{self, Name};

/// What is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A training step.
    Step,
    /// The drawing of a batch of samples.
    Sample,
}

/// Where the time of a step or a draw goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelTimes {
    /// What was timed, and where.
    #[serde(flatten)]
    pub subject: Subject,
    /// What was taken apart.
    pub part: Part,
    /// Sum of the medians of all dispatches, milliseconds; on the CPU of all threads together.
    pub ms: f64,
    /// Sums of all dispatches, repeat by repeat, milliseconds.
    pub spread: Spread,
    /// Every kernel, the longest first.
    pub kernels: Vec<KernelRow>,
    /// Every dispatch in the order they ran, tile by tile; on the CPU every operation.
    pub each: Vec<DispatchTime>,
}

/// All dispatches of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelRow {
    /// Its name.
    pub name: &'static str,
    /// Number of dispatches of all tiles; on the CPU of operations.
    pub calls: usize,
    /// Sum of their medians, milliseconds.
    pub ms: f64,
    /// Part of the whole time, 0 to 1.
    pub share: f64,
    /// Floating-point operations of its matrix products, 10^9 per second; none if it has none.
    pub gflops: Option<f64>,
    /// Bytes that it has to move, 10^9 per second; on a GPU, where they can be counted.
    pub gb_per_s: Option<f64>,
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DispatchTime {
    /// Name of its kernel.
    pub name: &'static str,
    /// Workgroups; on the CPU the number of tiles.
    pub grid: [u32; 2],
    /// Median, milliseconds.
    pub ms: f64,
}

impl Bench {
    /// Times the kernels of a training step or a draw.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device has no timestamps or the model does not fit,
    /// [`crate::Error::DeviceLost`] if the device fails.
    pub fn kernels(&self, part: Part, effort: &Effort) -> Result<KernelTimes> {
        let id = match part {
            Part::Step => self.prepare_step()?,
            Part::Sample => self.flow.sampler()?,
        };
        let rows = self.case.batch;
        let run = |session: &mut dyn Session, number: u32| match part {
            Part::Step => self.one_step(session, id, number),
            Part::Sample => {
                let first_row = u64::from(number) * rows as u64;
                session.run(id, &Job { rows, inputs: &[], seed: 1, first_row, ..Job::default() }).map(drop)
            }
        };
        let mut profiles = Vec::new();
        self.flow.with_session(|session| {
            let times = effort.times(|number| {
                session.begin_profile()?;
                let done = run(session, number);
                profiles.push(session.end_profile()?);
                done
            })?;
            // Without those that warmed up.
            profiles.drain(..profiles.len() - times.len());
            Ok(())
        })?;
        Ok(self.sum_up(part, &profiles))
    }

    fn sum_up(&self, part: Part, profiles: &[Vec<KernelTime>]) -> KernelTimes {
        let each: Vec<DispatchTime> = (0..profiles[0].len())
            .map(|i| {
                let each = profiles.iter().map(|profile| profile[i].nanoseconds * 1e-6);
                let KernelTime { name, grid, .. } = profiles[0][i];
                DispatchTime { name, grid, ms: Spread::of(each.collect()).median }
            })
            .collect();
        let ms: f64 = each.iter().map(|dispatch| dispatch.ms).sum();
        let whole = |profile: &Vec<KernelTime>| profile.iter().map(|part| part.nanoseconds * 1e-6).sum();
        let spread = Spread::of(profiles.iter().map(whole).collect());
        let program = match part {
            Part::Step => Name::Step(self.memory),
            Part::Sample => Name::Sample,
        };
        let gpu = self.on_gpu();
        let mut kernels: Vec<KernelRow> = Vec::new();
        for dispatch in &each {
            let known = kernels.iter().position(|row| row.name == dispatch.name).unwrap_or_else(|| {
                let (name, none) = (dispatch.name, None);
                kernels.push(KernelRow { name, calls: 0, ms: 0.0, share: 0.0, gflops: none, gb_per_s: none });
                kernels.len() - 1
            });
            kernels[known].calls += 1;
            kernels[known].ms += dispatch.ms;
        }
        let named: Vec<_> = kernels.iter().map(|row| (row.name, row.calls)).collect();
        let costs = cost::of_kernels(&programs::record(program, self.flow.plan()), gpu, &named);
        for (row, cost) in kernels.iter_mut().zip(costs) {
            let cost = cost.unwrap_or_default();
            let rate = |count: u64| (count > 0).then_some(count as f64 / (row.ms * 1e6));
            row.share = row.ms / ms;
            row.gflops = rate(cost.flops(self.case.batch));
            row.gb_per_s = rate(cost.bytes(self.case.batch)).filter(|_| gpu);
        }
        kernels.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        KernelTimes { subject: self.subject(part), part, ms, spread, kernels, each }
    }
}
