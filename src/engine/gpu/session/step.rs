//! Training: the data, its order, and steps over them.

use std::sync::Arc;

use super::{Data, GpuSession};
use crate::engine::gpu::compile::record::reflect::reflection_scratch;
use crate::engine::gpu::compile::tiling::TILE_STEP;
use crate::engine::gpu::device::open::Failure;
use crate::engine::gpu::kernels::launch::{TileJob, Update};
use crate::engine::gpu::kernels::shader::Role;
use crate::engine::{ProgramId, StepJob};
use crate::error::{Error, Result};

impl GpuSession {
    /// Takes the training data, to the device if there is room.
    pub(super) fn take_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        let bytes = data.len() as u64 * 4;
        let resident = bytes <= self.device.max_array().min(self.options.most_data)
            && match self.arrays.grow(Role::Data, bytes) {
                Ok(()) => true,
                Err(Failure::Memory(_)) => false,
                Err(failure) => return Err(failure.into()),
            };
        if resident {
            self.arrays.write(Role::Data, 0, bytemuck::cast_slice(&data))?;
        } else {
            tracing::info!("the training data does not fit on the device and is streamed to it");
        }
        self.data = Some(Data { values: data, resident });
        // An order is one of the data it was given for.
        self.order.clear();
        self.arrays.bind()
    }

    /// Takes the order of its rows.
    pub(super) fn take_order(&mut self, order: &[u32]) -> Result<()> {
        self.order.clear();
        self.order.extend_from_slice(order);
        if self.data.as_ref().is_some_and(|data| data.resident) {
            self.arrays.grow(Role::Order, order.len() as u64 * 4)?;
            self.arrays.write(Role::Order, 0, bytemuck::cast_slice(order))?;
            self.arrays.bind()?;
        }
        Ok(())
    }

    /// One training step.
    pub(super) fn train(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        if self.shared {
            let what = format!(
                "`{}` does not share training steps with other ranks: train with --device cpu, or without MPI",
                self.device.info.name
            );
            return Err(Error::Device { what });
        }
        let compiled = &self.programs[program.0];
        let (fit, gradients) = (compiled.fit, compiled.program.has_gradients());
        self.grow_losses(job.rows)?;
        self.prepare_dropout(program, job.dropout);
        let loss_cell = reflection_scratch(&self.plan) as u32;
        let resident = self.data.as_ref().is_some_and(|data| data.resident);
        let adam = job.adam.adam;
        let update = Update {
            rate: job.adam.rate,
            root: job.adam.root,
            beta1: adam.beta1,
            beta2: adam.beta2,
            eps: adam.eps,
            l2: adam.l2,
            grad_clamp: adam.grad_clamp,
            clip_norm: adam.clip_norm,
            shrink: job.adam.shrink,
            follow: job.adam.follow,
        };
        for tile in fit.tiles(job.rows) {
            if !resident {
                self.stream(job.first + tile.first as usize, tile.rows as usize)?;
            }
            let tile = TileJob {
                resident: u32::from(resident),
                seed_lo: job.seed as u32,
                seed_hi: (job.seed >> 32) as u32,
                step: job.step,
                start_lo: job.first as u32,
                noise: job.noise,
                loss_cell,
                ..tile
            };
            self.replay(program.0, tile, job.rows, &update, job.dropout)?;
        }
        self.last_rows = Some(job.rows);
        if gradients {
            self.last_slices = Some(fit.slices);
        }
        self.arrays.commands.step_recorded()?;
        Ok(())
    }

    /// The mean loss of the last step; NaN before the first.
    pub(super) fn mean_loss(&mut self) -> Result<f32> {
        let Some(rows) = self.last_rows else { return Ok(f32::NAN) };
        let (first, sums) = (reflection_scratch(&self.plan) as u64, rows.div_ceil(TILE_STEP) as u64);
        let sum: f64 = self.arrays.read(Role::Scratch, first, sums)?.into_iter().map(f64::from).sum();
        Ok((sum / rows as f64) as f32)
    }

    /// Makes room for the sums of the loss of a batch.
    pub(super) fn grow_losses(&mut self, batch: usize) -> Result<(), Failure> {
        let floats = reflection_scratch(&self.plan) + batch.div_ceil(TILE_STEP);
        self.arrays.grow(Role::Scratch, floats as u64 * 4)
    }

    /// Puts the rows of a tile in order on the device, where the data set as a whole is not.
    fn stream(&mut self, first: usize, rows: usize) -> Result<()> {
        let (Some(data), columns) = (&self.data, self.plan.spec.row_columns() as usize) else { return Ok(()) };
        self.upload.clear();
        for &row in &self.order[first..first + rows] {
            self.upload.extend_from_slice(&data.values[row as usize * columns..][..columns]);
        }
        self.arrays.grow(Role::Data, (self.upload.len() * 4) as u64)?;
        self.arrays.upload(Role::Data, bytemuck::cast_slice(&self.upload))?;
        Ok(())
    }

    /// Adds the kernels of a program that drop hidden units, if it has not had them.
    fn prepare_dropout(&mut self, program: ProgramId, dropout: u8) {
        let compiled = &mut self.programs[program.0];
        if dropout != 0 && compiled.dropout != dropout {
            self.arrays.add_kernels(compiled.recorded.all().map(|dispatch| dispatch.variant.with_dropout(dropout)));
            compiled.dropout = dropout;
        }
    }
}
