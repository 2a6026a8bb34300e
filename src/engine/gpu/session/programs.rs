//! Programs of a session: recorded for the device, with room for them on it.

use super::{Compiled, GpuSession};
use crate::engine::ProgramId;
use crate::engine::gpu::compile::bounds::{Bounds, KernelVariants};
use crate::engine::gpu::compile::dispatch::Recorded;
use crate::engine::gpu::compile::recompute::{recomputed, wide_rows};
use crate::engine::gpu::compile::record::Recorder;
use crate::engine::gpu::compile::tiling::{Fit, TILE_STEP};
use crate::engine::gpu::compile::trim::trim;
use crate::engine::gpu::device::open::Failure;
use crate::engine::gpu::kernels::extras;
use crate::engine::gpu::kernels::shader::Role;
use crate::error::Result;
use crate::program::{Program, StepOp};

impl GpuSession {
    /// Makes a program ready to replay for batches of `rows` samples.
    pub(super) fn add_program(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        debug_assert_eq!(program.plan, self.plan, "a session runs programs of its own plan");
        let variants = self.tune(&program, rows)?;
        let recomputed = recomputed(&self.tables, &program, variants, rows, self.bounds.iterations);
        let program = self.trim(&program, &recomputed, variants);
        let fit = self.find_room(&program, rows)?;
        let recorded = self.record(&program, fit, variants, &recomputed)?;
        self.arrays.commands.reserve_launches(recorded.all().chain(&self.pack_weights).count())?;
        self.arrays.add_kernels(recorded.all().map(|dispatch| dispatch.variant));
        let clear = program.has_gradients() && !writes_every_gradient(&program);
        self.programs.push(Compiled { program, fit, recorded, clear, dropout: 0 });
        self.arrays.bind()?;
        Ok(ProgramId(self.programs.len() - 1))
    }

    /// Records a program for the device.
    pub(super) fn record(
        &self,
        program: &Program,
        fit: Fit,
        variants: KernelVariants,
        recomputed: &[usize],
    ) -> Result<Recorded> {
        let recorder = || self.recorder(fit, variants, recomputed);
        let trains = program.finish.iter().any(|op| matches!(op, StepOp::ReflectBackward { .. }));
        Ok(Recorded {
            prepare: recorder().steps(&program.prepare, trains)?,
            rows: recorder().rows(program)?,
            finish: recorder().steps(&program.finish, trains)?,
        })
    }

    fn recorder<'a>(&'a self, fit: Fit, variants: KernelVariants, recomputed: &'a [usize]) -> Recorder<'a> {
        Recorder::new(&self.plan, &self.tables, fit, Bounds { variants, ..self.bounds }, recomputed)
    }

    /// Makes the arrays large enough for a program and batches of `rows` samples.
    fn allocate(&mut self, program: &Program, rows: usize, fit: Fit) -> Result<(), Failure> {
        self.arrays.grow(Role::Arena, fit.arena_bytes(program.arena_rows))?;
        let (gradients, trained) = (self.plan.layout.gradient_len() as u64, self.plan.layout.trained as u64);
        if program.has_gradients() {
            self.arrays.grow(Role::Partials, gradients * 4 * fit.slices as u64)?;
        }
        if program.finish.contains(&StepOp::Adam) {
            self.grow_losses(rows)?;
            self.arrays.grow(Role::FirstMoments, trained * 4)?;
            self.arrays.grow(Role::SecondMoments, trained * 4)?;
            self.arrays.grow(Role::Extras, extras::AVERAGES * 4)?;
        }
        Ok(())
    }

    /// Makes the arrays large enough for a program, or the tiles small enough for the device.
    pub(super) fn find_room(&mut self, program: &Program, rows: usize) -> Result<Fit> {
        let mut most = self.options.most_samples;
        loop {
            let fit = self.room.fit(program, rows, most, &self.device.info.name)?;
            match self.allocate(program, rows, fit) {
                Ok(()) => return Ok(fit),
                Err(Failure::Memory(_)) if fit.capacity > TILE_STEP => {
                    most = (fit.capacity / 2).max(TILE_STEP);
                    tracing::debug!("{}: not enough memory, tiles of {most} samples now", program.name);
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// The program without rows of hidden activations that are computed again.
    fn trim(&self, program: &Program, recomputed: &[usize], variants: KernelVariants) -> Program {
        trim(program, |stage| {
            let tables = &self.tables.stages[stage];
            // Networks that run one by one go through these rows.
            let packed = variants.forward.is_some() && !tables.packs.is_empty();
            (packed && recomputed.contains(&stage)).then(|| wide_rows(&self.plan.stages[stage], tables))
        })
    }
}

/// Whether a program leaves the gradient of every weight.
fn writes_every_gradient(program: &Program) -> bool {
    let mut trained = program.plan.mixes().enumerate().filter(|(_, mix)| mix.reflections.is_some());
    program.writes_every_gradient() && trained.all(|(mix, _)| program.finish.contains(&StepOp::ReflectBackward { mix }))
}
