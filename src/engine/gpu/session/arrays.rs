//! The arrays of a session on the device, and the bind groups that hand them to kernels.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::Footprint;
use crate::engine::gpu::compile::dispatch::Dispatch;
use crate::engine::gpu::device::commands::{Commands, Part};
use crate::engine::gpu::device::open::{Device, Failure, Pipeline};
use crate::engine::gpu::kernels::launch::{TileJob, Update};
use crate::engine::gpu::kernels::shader::{Role, Variant};
use crate::error::Result;

/// A kernel with the session's arrays.
struct Bound {
    pipeline: Arc<Pipeline>,
    group: wgpu::BindGroup,
}

/// Device arrays by role, and the commands that use them.
pub(crate) struct Arrays {
    device: Arc<Device>,
    pub(crate) commands: Commands,
    buffers: [Option<wgpu::Buffer>; Role::ALL.len()],
    /// The most bytes that each array has had.
    most: [u64; Role::ALL.len()],
    /// Kernels of the programs compiled so far.
    variants: Vec<Variant>,
    bound: HashMap<Variant, Bound>,
    /// Whether kernels wait for their bind groups: an array or a kernel is new.
    stale: bool,
}

impl Arrays {
    pub(crate) fn new(device: Arc<Device>) -> Result<Self, Failure> {
        let commands = Commands::new(device.clone())?;
        let (variants, bound) = (Vec::new(), HashMap::new());
        let (buffers, most) = Default::default();
        Ok(Self { device, commands, buffers, most, variants, bound, stale: false })
    }

    /// Whether the array is there.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.buffers[role as usize].is_some()
    }

    /// Bytes of the array; 0 if it is not there.
    pub(crate) fn bytes(&self, role: Role) -> u64 {
        self.buffers[role as usize].as_ref().map_or(0, |buffer| buffer.size())
    }

    /// The most bytes that have been held on the device, array by array; one that was given back counts.
    pub(crate) fn footprint(&self) -> Footprint {
        let mut footprint = Footprint { transfer: self.commands.memory() as usize, ..Footprint::default() };
        for role in Role::ALL {
            let part = match role {
                Role::Weights | Role::Tables | Role::Panels | Role::PackedOffsets => &mut footprint.weights,
                Role::FirstMoments | Role::SecondMoments | Role::Extras => &mut footprint.optimizer,
                Role::Partials | Role::Scratch => &mut footprint.gradients,
                Role::Arena => &mut footprint.activations,
                Role::Data | Role::Order => &mut footprint.data,
            };
            *part += self.most[role as usize] as usize;
        }
        footprint
    }

    /// Makes an array at least that large, all zero; one that is large enough stays as it is. Where there is not enough
    /// memory, it keeps its size and loses its values.
    pub(crate) fn grow(&mut self, role: Role, bytes: u64) -> Result<(), Failure> {
        let slot = &mut self.buffers[role as usize];
        if slot.as_ref().is_some_and(|buffer| buffer.size() >= bytes) {
            return Ok(());
        }
        // The bind groups hold on to the old array.
        self.commands.submit()?;
        self.bound.clear();
        self.stale = true;
        // The old array goes first, so that not both are there at once.
        let before = slot.take().map(|buffer| buffer.size());
        let device = &self.device;
        let make = |bytes: u64| {
            device.scoped(|| {
                device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some(role.name()),
                    size: bytes.max(16).next_multiple_of(16),
                    usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            })
        };
        match make(bytes) {
            Ok(buffer) => {
                let most = &mut self.most[role as usize];
                *most = buffer.size().max(*most);
                *slot = Some(buffer);
            }
            Err(failure) => {
                *slot = before.and_then(|bytes| make(bytes).ok());
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Gives an array back; it is made anew when it is next needed.
    pub(crate) fn release(&mut self, role: Role) -> Result<(), Failure> {
        self.commands.submit()?;
        self.bound.clear();
        self.stale = true;
        self.buffers[role as usize] = None;
        Ok(())
    }

    /// Writes to an array, after all commands recorded so far.
    pub(crate) fn write(&mut self, role: Role, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        match &self.buffers[role as usize] {
            Some(buffer) if !bytes.is_empty() => self.commands.write(buffer, offset, bytes),
            _ => Ok(()),
        }
    }

    /// Writes to an array as one of the commands; for training steps, since it allocates nothing in the long run.
    pub(crate) fn upload(&mut self, role: Role, bytes: &[u8]) -> Result<(), Failure> {
        match &self.buffers[role as usize] {
            Some(buffer) if !bytes.is_empty() => self.commands.upload(buffer, bytes),
            _ => Ok(()),
        }
    }

    /// Fills an array with zeros, after all commands recorded so far.
    pub(crate) fn clear(&mut self, role: Role) -> Result<(), Failure> {
        match &self.buffers[role as usize] {
            Some(buffer) => self.commands.clear(buffer),
            None => Ok(()),
        }
    }

    /// Sets parts of an array aside, `(offset, length)` in floats, to be fetched later.
    pub(crate) fn stage(&mut self, role: Role, parts: &[(u64, u64)]) -> Result<(), Failure> {
        let Some(buffer) = &self.buffers[role as usize] else { return Ok(()) };
        let parts: Vec<Part<'_>> =
            parts.iter().map(|&(offset, len)| Part { buffer, offset: offset * 4, bytes: len * 4 }).collect();
        self.commands.stage(&parts)
    }

    /// Reads `length` floats of an array from `offset` on. Waits for the device.
    pub(crate) fn read(&mut self, role: Role, offset: u64, length: u64) -> Result<Vec<f32>> {
        self.commands.reserve_staging(length * 4)?;
        self.stage(role, &[(offset, length)])?;
        self.commands.fetch()
    }

    /// Adds kernels to those that [`Arrays::bind`] makes ready.
    pub(crate) fn add_kernels(&mut self, variants: impl Iterator<Item = Variant>) {
        for variant in variants {
            if !self.variants.contains(&variant) {
                self.variants.push(variant);
                self.stale = true;
            }
        }
    }

    /// Makes pipelines and bind groups of kernels that have none; does nothing if arrays and kernels are those of
    /// the last call.
    pub(crate) fn bind(&mut self) -> Result<()> {
        if !self.stale {
            return Ok(());
        }
        let missing = self.variants.iter().filter(|variant| !self.bound.contains_key(variant));
        let pipelines = missing.map(|&variant| Ok((variant, self.device.pipeline(variant)?)));
        let pipelines: Vec<(Variant, Arc<Pipeline>)> = pipelines.collect::<Result<_>>()?;
        for binding in pipelines.iter().flat_map(|(_, pipeline)| &pipeline.bindings) {
            if !self.has(binding.role) {
                // Arrays that get their size later, such as the data, begin as a placeholder.
                self.grow(binding.role, 16)?;
            }
        }
        for (variant, pipeline) in pipelines {
            let group = self.device.scoped(|| self.group(variant, &pipeline))?;
            self.bound.insert(variant, Bound { pipeline, group });
        }
        self.stale = false;
        Ok(())
    }

    fn group(&self, variant: Variant, pipeline: &Pipeline) -> wgpu::BindGroup {
        let entries: Vec<wgpu::BindGroupEntry<'_>> = pipeline
            .bindings
            .iter()
            .filter_map(|binding| {
                let buffer = self.buffers[binding.role as usize].as_ref()?;
                Some(wgpu::BindGroupEntry { binding: binding.role as u32, resource: buffer.as_entire_binding() })
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(variant.kernel.name()),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }

    /// Records lists of dispatches as one compute pass. Every kernel must be bound, with `dropout` where it is not 0.
    pub(crate) fn replay(
        &mut self,
        lists: &[(&[Dispatch], TileJob)],
        update: &Update,
        dropout: u8,
    ) -> Result<(), Failure> {
        let bound = &self.bound;
        let count = lists.iter().map(|(dispatches, _)| dispatches.len()).sum();
        let all = lists.iter().flat_map(|(dispatches, tile)| dispatches.iter().map(move |dispatch| (dispatch, tile)));
        self.commands.pass(count, all, |pass, (dispatch, tile)| {
            let Some(bound) = bound.get(&dispatch.variant.with_dropout(dropout)) else {
                unreachable!("{} is not bound", dispatch.variant.kernel.name())
            };
            pass.pass.set_pipeline(&bound.pipeline.pipeline);
            pass.pass.set_bind_group(0, &bound.group, &[]);
            pass.launch(&dispatch.bytes(tile, update)[..dispatch.len]);
            let grid = dispatch.grid.map(|extent| extent.workgroups(tile.quads, tile.slices));
            pass.dispatch(dispatch.variant.kernel.name(), grid);
        })
    }
}
