//! Times of dispatches by timestamp queries.
//!
//! A timestamp is written when everything before it is done. Dispatches of a program wait for each other, so the time
//! between the two around a dispatch is its own. Where a device has timestamps at the ends of a pass only (Apple's
//! GPUs), every dispatch gets a pass. Query sets are made while a session profiles, and only then.

use wgpu::Features;

use super::open::{Device, TIMESTAMPS};
use crate::engine::KernelTime;
use crate::error::{Error, Result};

/// Dispatches of a query set; each has two timestamps.
const DISPATCHES: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// The timestamps of a session.
pub(crate) struct Timer {
    /// Whether timestamps may be written in the middle of a pass.
    inside: bool,
    sets: Vec<Timestamps>,
}

/// A query set and the dispatches that it times, whose timestamps stand in it two by two.
pub(crate) struct Timestamps {
    queries: wgpu::QuerySet,
    dispatches: Vec<(&'static str, [u32; 2])>,
}

impl Timer {
    /// `by_pass`: gives every dispatch a pass, whatever the device can do.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has no timestamps.
    pub(crate) fn new(device: &Device, by_pass: bool) -> Result<Self> {
        let features = device.device.features();
        if !features.contains(Features::TIMESTAMP_QUERY) {
            let what = format!("`{}` has no timestamps, so the times of its kernels cannot be told", device.info.name);
            return Err(Error::Device { what });
        }
        Ok(Self { inside: !by_pass && features.contains(TIMESTAMPS), sets: Vec::new() })
    }

    /// Dispatches that may share a pass.
    pub(crate) fn per_pass(&self) -> usize {
        if self.inside { usize::MAX } else { 1 }
    }

    /// What the next pass writes at its ends.
    pub(crate) fn around_pass(&mut self, device: &wgpu::Device) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        if self.inside {
            return None;
        }
        let set = self.set(device);
        let first = set.next();
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &set.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        })
    }

    /// Dispatches the kernel that is set, between two timestamps.
    pub(crate) fn dispatch(
        &mut self,
        device: &wgpu::Device,
        pass: &mut wgpu::ComputePass<'_>,
        kernel: &'static str,
        [x, y]: [u32; 2],
    ) {
        let inside = self.inside;
        let set = self.set(device);
        let first = set.next();
        if inside {
            pass.write_timestamp(&set.queries, first);
        }
        pass.dispatch_workgroups(x, y, 1);
        if inside {
            pass.write_timestamp(&set.queries, first + 1);
        }
        set.dispatches.push((kernel, [x, y]));
    }

    /// A set with room for a dispatch.
    fn set(&mut self, device: &wgpu::Device) -> &mut Timestamps {
        if self.sets.last().is_none_or(|set| set.dispatches.len() == DISPATCHES) {
            let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("times of dispatches"),
                ty: wgpu::QueryType::Timestamp,
                count: 2 * DISPATCHES as u32,
            });
            self.sets.push(Timestamps { queries, dispatches: Vec::new() });
        }
        let last = self.sets.len() - 1;
        &mut self.sets[last]
    }

    /// The times; `ticks` reads the timestamps of a set.
    pub(crate) fn read(
        self,
        device: &Device,
        mut ticks: impl FnMut(&Timestamps) -> Result<Vec<u64>>,
    ) -> Result<Vec<KernelTime>> {
        let period = f64::from(device.queue.get_timestamp_period());
        let mut times = Vec::new();
        for set in self.sets {
            let ticks = ticks(&set)?;
            for (&(name, grid), ticks) in set.dispatches.iter().zip(ticks.chunks_exact(2)) {
                let Some(passed) = ticks[1].checked_sub(ticks[0]) else {
                    let what = format!("the timestamps of `{}` run backwards", device.info.name);
                    return Err(Error::Device { what });
                };
                times.push(KernelTime { name, nanoseconds: passed as f64 * period, grid });
            }
        }
        Ok(times)
    }
}

impl Timestamps {
    /// Number of the next dispatch's first timestamp.
    fn next(&self) -> u32 {
        2 * self.dispatches.len() as u32
    }

    /// Bytes of the timestamps written.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.next()) * 8
    }

    /// Records a copy of the timestamps to a new buffer.
    pub(crate) fn resolve(&self, device: &wgpu::Device, encoder: &mut wgpu::CommandEncoder) -> wgpu::Buffer {
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("timestamps"),
            size: self.bytes(),
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        encoder.resolve_query_set(&self.queries, 0..self.next(), &buffer, 0);
        buffer
    }
}
