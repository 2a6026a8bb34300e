//! Timing the variants of a program's kernels, with its own shapes.

use std::time::Instant;

use bytemuck::Zeroable;

use super::GpuSession;
use crate::engine::gpu::compile::bounds::KernelVariants;
use crate::engine::gpu::compile::dispatch::Dispatch;
use crate::engine::gpu::compile::recompute::recomputed;
use crate::engine::gpu::compile::tiling::Fit;
use crate::engine::gpu::kernels::launch::Update;
use crate::engine::gpu::kernels::shader::{Kernel, Role};
use crate::error::Result;
use crate::program::{Op, Program};

/// Replays in one submission, so that handing it over weighs little.
const REPLAYS: usize = 4;
/// Timings of a variant, of which the fastest counts.
const TIMINGS: usize = 3;
/// Samples for which it pays to measure; estimated, no GPU measured yet.
const MIN_ROWS: usize = 500;
/// A variant takes the place of the first one where it is faster by that factor: less is noise.
const MIN_SPEEDUP: f64 = 1.03;

impl GpuSession {
    /// The variants to use for a program.
    pub(super) fn tune(&mut self, program: &Program, rows: usize) -> Result<KernelVariants> {
        let Some(tuner) = self.options.tuner.clone() else { return Ok(self.options.variants) };
        // Few samples are done before it has been found out how. Numbers of samples near each other share what was
        // found.
        if !tuner.always && (self.device.software || rows < MIN_ROWS) {
            return Ok(self.options.variants);
        }
        let stages = program.rows.iter().filter_map(|op| match op {
            Op::Networks { stage, .. } | Op::NetworksBackward { stage, .. } => Some(&self.tables.stages[*stage].packs),
            _ => None,
        });
        let mut shapes: Vec<_> = stages.collect();
        shapes.dedup_by(|a, b| a.iter().map(|p| p.shape).eq(b.iter().map(|p| p.shape)));
        let numbers = shapes.iter().map(|packs| packs.len()).max().unwrap_or(0);
        if numbers == 0 {
            return Ok(self.options.variants);
        }
        let shapes: Vec<Vec<_>> =
            shapes.iter().map(|packs| packs.iter().map(|p| (p.shape, p.count)).collect()).collect();
        let key = format!(
            "{}, hintflow {}, {}, {} of {} columns, up to {} samples, gradients: {}, {shapes:?}",
            self.device.info.arithmetic,
            env!("CARGO_PKG_VERSION"),
            self.plan.spec.coupling.name(),
            self.plan.spec.latent_dim(),
            self.plan.spec.row_columns(),
            rows.next_power_of_two(),
            program.has_gradients(),
        );
        let possible = |variants: KernelVariants| {
            [variants.forward, variants.backward].into_iter().flatten().all(|number| number < numbers)
        };
        // Few samples share the weights that are read; then the arena may be faster.
        let arena = shapes.iter().all(|shapes| shapes.iter().all(|(shape, _)| shape.quads < 8));
        let candidates: Vec<Option<usize>> = (0..numbers).map(Some).chain(arena.then_some(None)).collect();
        tuner.variants(&key, possible, || {
            let start = Instant::now();
            let fit = self.find_room(program, rows)?;
            let forward = self.fastest(program, fit, rows, &candidates, [Kernel::NetworksPacked, Kernel::Networks])?;
            let kernels = [Kernel::NetworksPackedBackward, Kernel::NetworksBackward];
            let backward = self.fastest(program, fit, rows, &candidates, kernels)?;
            let recompute =
                self.recompute_is_faster(program, fit, rows, KernelVariants { forward, backward, recompute: None })?;
            let variants = KernelVariants { forward, backward, recompute };
            if self.programs.is_empty() {
                // The program as it will be may need much less.
                self.arrays.release(Role::Arena)?;
            }
            tracing::debug!("{}: {variants:?} is the fastest, found in {:?}", program.name, start.elapsed());
            Ok(variants)
        })
    }

    /// The fastest of the shapes with these numbers for the dispatches of these kernels.
    fn fastest(
        &mut self,
        program: &Program,
        fit: Fit,
        rows: usize,
        candidates: &[Option<usize>],
        kernels: [Kernel; 2],
    ) -> Result<Option<usize>> {
        let mut best: (Option<usize>, f64) = (Some(0), f64::INFINITY);
        for &number in candidates {
            let variants = KernelVariants { forward: number, backward: number, recompute: Some(false) };
            let mut dispatches = self.record(program, fit, variants, &[])?.rows;
            dispatches.retain(|dispatch| kernels.contains(&dispatch.variant.kernel));
            if dispatches.is_empty() {
                return Ok(Some(0));
            }
            let time = self.time(&dispatches, fit, rows)?;
            if time * MIN_SPEEDUP < best.1 {
                best = (number, time);
            }
        }
        Ok(best.0)
    }

    /// Whether hidden activations of narrow nodes are better computed again than kept.
    fn recompute_is_faster(
        &mut self,
        program: &Program,
        fit: Fit,
        rows: usize,
        variants: KernelVariants,
    ) -> Result<Option<bool>> {
        let mut times = [0.0; 2];
        for (recompute, time) in [false, true].into_iter().zip(&mut times) {
            let variants = KernelVariants { recompute: Some(recompute), ..variants };
            let stages = recomputed(&self.tables, program, variants, rows, self.bounds.iterations);
            let mut dispatches = self.record(program, fit, variants, &stages)?.rows;
            dispatches.retain(|dispatch| {
                use Kernel::{
                    NarrowBackward, Networks, NetworksBackward, NetworksPacked, NetworksPackedBackward, WeightGradient,
                };
                [Networks, NetworksPacked, NetworksBackward, NetworksPackedBackward, WeightGradient, NarrowBackward]
                    .contains(&dispatch.variant.kernel)
            });
            *time = self.time(&dispatches, fit, rows)?;
        }
        Ok(Some(times[1] * MIN_SPEEDUP < times[0]))
    }

    /// Seconds of a list of dispatches.
    fn time(&mut self, dispatches: &[Dispatch], fit: Fit, rows: usize) -> Result<f64> {
        if dispatches.is_empty() {
            return Ok(0.0);
        }
        self.arrays.commands.reserve_launches(dispatches.len())?;
        self.arrays.add_kernels(dispatches.iter().map(|dispatch| dispatch.variant));
        self.arrays.bind()?;
        let Some(tile) = fit.tiles(rows.max(1)).next() else { unreachable!("a batch has a tile") };
        let mut best = f64::INFINITY;
        // Once more than is timed: the first run compiles.
        for timing in 0..=TIMINGS {
            self.arrays.commands.submit()?;
            self.device.wait(None)?;
            let start = Instant::now();
            for _ in 0..REPLAYS {
                self.arrays.replay(&[(dispatches, tile)], &Update::zeroed(), 0)?;
            }
            self.arrays.commands.submit()?;
            self.device.wait(None)?;
            if timing > 0 {
                best = best.min(start.elapsed().as_secs_f64());
            }
        }
        Ok(best)
    }
}
