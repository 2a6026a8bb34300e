//! Evaluation: samples to the device, a program over them, its results back.

use bytemuck::Zeroable;

use super::GpuSession;
use crate::engine::gpu::device::transfer::{from_arena, to_arena};
use crate::engine::gpu::kernels::launch::{NONE, TileJob, Update};
use crate::engine::gpu::kernels::shader::Role;
use crate::engine::{Job, ProgramId};
use crate::error::Result;

/// Bytes of results that a run leaves on the device before it fetches them.
const RESULTS: u64 = 64 << 20;

impl GpuSession {
    /// Runs a program tile by tile and fetches what it leaves.
    pub(super) fn evaluate(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let compiled = &self.programs[program.0];
        let (fit, gradients) = (compiled.fit, compiled.program.has_gradients());
        let (inputs, outputs) = (compiled.program.inputs.clone(), compiled.program.outputs.clone());
        if gradients {
            self.last_slices = (job.rows > 0).then_some(fit.slices);
        }
        let mut results: Vec<Vec<f32>> =
            outputs.iter().map(|buffer| Vec::with_capacity(job.rows * buffer.rows as usize)).collect();
        let output_rows: u64 = outputs.iter().map(|buffer| u64::from(buffer.rows)).sum();
        let tile_bytes = output_rows * fit.capacity as u64 * 4;
        let fetch_every = (RESULTS / tile_bytes.max(1)).max(1) as usize;
        let all: Vec<TileJob> = fit.tiles(job.rows).collect();
        for together in all.chunks(fetch_every) {
            self.arrays.commands.reserve_staging(tile_bytes * together.len() as u64)?;
            for tile in together {
                let (first, rows, pitch) = (tile.first as usize, tile.rows as usize, tile.stride as usize * 4);
                for (buffer, values) in inputs.iter().zip(job.inputs) {
                    let features = buffer.rows as usize;
                    let samples = &values[first * features..(first + rows) * features];
                    to_arena(samples, features, pitch, &mut self.upload);
                    let offset = u64::from(buffer.first) * pitch as u64 * 4;
                    self.arrays.write(Role::Arena, offset, bytemuck::cast_slice(&self.upload))?;
                }
                let tile = TileJob {
                    seed_lo: job.seed as u32,
                    seed_hi: (job.seed >> 32) as u32,
                    start_lo: job.first_row as u32,
                    start_hi: (job.first_row >> 32) as u32,
                    step: job.groups.first,
                    group_rows: job.groups.rows,
                    loss_cell: NONE,
                    ..*tile
                };
                self.replay(program.0, tile, job.rows, &Update::zeroed(), 0)?;
                let pitch = pitch as u64;
                let parts: Vec<(u64, u64)> =
                    outputs.iter().map(|b| (u64::from(b.first) * pitch, u64::from(b.rows) * pitch)).collect();
                self.arrays.stage(Role::Arena, &parts)?;
            }
            let fetched = self.arrays.commands.fetch()?;
            let mut rest = fetched.as_slice();
            for tile in together {
                for (buffer, result) in outputs.iter().zip(&mut results) {
                    let (features, pitch) = (buffer.rows as usize, tile.stride as usize * 4);
                    let (now, later) = rest.split_at(features * pitch);
                    from_arena(now, features, pitch, tile.rows as usize, result);
                    rest = later;
                }
            }
        }
        Ok(results)
    }
}
