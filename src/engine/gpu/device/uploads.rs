//! Values on their way to the device within a submission: buffers that the host can write, used again when the device
//! has read them, so that a training step allocates nothing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::open::{Device, Failure};

/// A few buffers that take turns.
pub(crate) struct Uploads {
    device: Arc<Device>,
    /// Buffers at most.
    most: usize,
    /// Buffers that exist.
    made: usize,
    bytes: u64,
    /// Mapped, so the host may write.
    free: Vec<wgpu::Buffer>,
    /// Written, and read by commands not yet submitted.
    used: Vec<wgpu::Buffer>,
    back: Receiver<wgpu::Buffer>,
    sender: Sender<wgpu::Buffer>,
}

impl Uploads {
    pub(crate) fn new(device: Arc<Device>, most: usize) -> Self {
        let (sender, back) = channel();
        Self { device, most, made: 0, bytes: 0, free: Vec::new(), used: Vec::new(), back, sender }
    }

    /// Bytes of all buffers.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes
    }

    /// Buffers that exist. How many there come to be depends on how far the device lags behind.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Records a write of `bytes` to `target`. False: all buffers wait for the device; submit and wait, then try again.
    pub(crate) fn put(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::Buffer,
        offset: u64,
        bytes: &[u8],
    ) -> Result<bool, Failure> {
        let Some(buffer) = self.take(bytes.len() as u64)? else { return Ok(false) };
        let device = self.device.clone();
        let mapped = device.scoped(|| {
            let view = buffer.get_mapped_range_mut(0..bytes.len() as u64);
            view.map(|mut view| view.copy_from_slice(bytes))
        })?;
        mapped.map_err(|error| Failure::Other(error.to_string()))?;
        device.scoped(|| {
            buffer.unmap();
            encoder.copy_buffer_to_buffer(&buffer, 0, target, offset, bytes.len() as u64);
        })?;
        self.used.push(buffer);
        Ok(true)
    }

    /// To be called after the commands have been submitted: their buffers come back when the device is done.
    pub(crate) fn submitted(&mut self) -> Result<(), Failure> {
        for buffer in self.used.drain(..) {
            let (sender, again) = (self.sender.clone(), buffer.clone());
            self.device.scoped(|| {
                // One that cannot be mapped fails when it is written.
                buffer.map_async(wgpu::MapMode::Write, .., move |_| {
                    let _ = sender.send(again);
                });
            })?;
        }
        Ok(())
    }

    /// A buffer of at least that many bytes that the host may write, unless the device has all of them.
    fn take(&mut self, bytes: u64) -> Result<Option<wgpu::Buffer>, Failure> {
        self.free.extend(self.back.try_iter());
        if let Some(i) = self.free.iter().position(|buffer| buffer.size() >= bytes) {
            return Ok(Some(self.free.swap_remove(i)));
        }
        if self.made == self.most {
            // One that is too small makes place for a larger one.
            let Some(small) = self.free.pop() else { return Ok(None) };
            self.bytes -= small.size();
            self.made -= 1;
        }
        let size = bytes.next_power_of_two().max(256);
        let descriptor = wgpu::BufferDescriptor {
            label: Some("upload"),
            size,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        };
        let buffer = self.device.scoped(|| self.device.create_buffer(&descriptor))?;
        self.made += 1;
        self.bytes += size;
        Ok(Some(buffer))
    }
}
