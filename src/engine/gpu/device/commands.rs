//! Commands on their way to a device: those not yet submitted, those in flight, and reading back what they leave.

use std::collections::VecDeque;
use std::sync::Arc;

use super::open::{Device, Failure};
use super::timer::Timer;
use super::uploads::Uploads;
use crate::engine::KernelTime;
use crate::engine::gpu::kernels::launch::MAX_BYTES;
use crate::error::{Error, Result};

/// Submissions that may wait on the device before the host does.
const IN_FLIGHT: usize = 8;
/// Buffers that carry the rows of streamed data.
const UPLOADS: usize = 16;
/// Training steps that share a submission.
const STEPS_PER_SUBMISSION: usize = 4;
/// Distance of two launches in their buffer, on devices without immediates; every device can align to it.
const LAUNCH_PITCH: usize = 256;
/// Launches that a submission has room for at first, on devices without immediates.
const LAUNCHES: usize = 512;

/// A part of a buffer to read, in bytes.
pub(crate) struct Part<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Commands on their way to the device.
pub(crate) struct Commands {
    device: Arc<Device>,
    encoder: Option<wgpu::CommandEncoder>,
    /// Training steps that wait in the encoder.
    steps: usize,
    in_flight: VecDeque<wgpu::SubmissionIndex>,
    staging: Option<wgpu::Buffer>,
    /// Bytes of `staging` that wait to be fetched.
    staged: u64,
    /// Launch structs of the commands not yet submitted, and their buffer, on devices without immediates.
    launches: Vec<u8>,
    launch_buffer: Option<(wgpu::Buffer, wgpu::BindGroup)>,
    launch_uploads: Uploads,
    uploads: Uploads,
    /// Times the dispatches, while there is one.
    pub(crate) timer: Option<Timer>,
}

impl Commands {
    pub(crate) fn new(device: Arc<Device>) -> Result<Self, Failure> {
        let mut this = Self {
            launch_uploads: Uploads::new(device.clone(), IN_FLIGHT + 2),
            uploads: Uploads::new(device.clone(), UPLOADS),
            device,
            encoder: None,
            steps: 0,
            in_flight: VecDeque::new(),
            staging: None,
            staged: 0,
            launches: Vec::new(),
            launch_buffer: None,
            timer: None,
        };
        this.reserve_launches(LAUNCHES)?;
        Ok(this)
    }

    /// Makes room for passes of that many dispatches.
    pub(crate) fn reserve_launches(&mut self, dispatches: usize) -> Result<(), Failure> {
        let device = self.device.clone();
        let Some(layout) = &device.launch_layout else { return Ok(()) };
        if self.launch_room() < dispatches {
            self.submit()?;
            self.launch_buffer = Some(device.scoped(|| launch_buffer(&device, layout, dispatches))?);
        }
        Ok(())
    }

    /// Launches that one submission can hold.
    fn launch_room(&self) -> usize {
        self.launch_buffer.as_ref().map_or(0, |(buffer, _)| buffer.size() as usize / LAUNCH_PITCH)
    }

    /// Bytes held on the device.
    pub(crate) fn memory(&self) -> u64 {
        let launches = self.launch_buffer.as_ref().map_or(0, |(buffer, _)| buffer.size());
        let uploads = self.uploads.memory() + self.launch_uploads.memory();
        self.staging.as_ref().map_or(0, wgpu::Buffer::size) + launches + uploads
    }

    /// Number and bytes of the buffers that take turns carrying values to the device.
    #[cfg(test)]
    pub(crate) fn upload_buffers(&self) -> (u64, u64) {
        let made = self.uploads.made() + self.launch_uploads.made();
        (made as u64, self.uploads.memory() + self.launch_uploads.memory())
    }

    /// The encoder of the next submission.
    pub(crate) fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        let device = &self.device.device;
        self.encoder.get_or_insert_with(|| device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default()))
    }

    /// Records `dispatches` dispatches, one per item, in one compute pass; in one each where a timer needs that.
    pub(crate) fn pass<T>(
        &mut self,
        dispatches: usize,
        items: impl Iterator<Item = T>,
        each: impl Fn(&mut Pass<'_>, T),
    ) -> Result<(), Failure> {
        let launches = self.launches.len() / LAUNCH_PITCH;
        if self.launch_buffer.is_some() && launches + dispatches > self.launch_room() {
            self.submit()?;
            self.reserve_launches(dispatches)?;
        }
        let device = self.device.clone();
        let encoder = self.encoder.get_or_insert_with(|| device.device.create_command_encoder(&Default::default()));
        let per_pass = self.timer.as_ref().map_or(usize::MAX, Timer::per_pass);
        let mut items = items.peekable();
        device.scoped(|| {
            while items.peek().is_some() {
                let timestamp_writes = self.timer.as_mut().and_then(|timer| timer.around_pass(&device.device));
                let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
                let pass = encoder.begin_compute_pass(&descriptor);
                let buffered = self.launch_buffer.as_ref().map(|(_, group)| (group, &mut self.launches));
                let timer = self.timer.as_mut().map(|timer| (timer, &device.device));
                let mut pass = Pass { pass, buffered, timer };
                items.by_ref().take(per_pass).for_each(|item| each(&mut pass, item));
            }
        })
    }

    /// Ends the timing of dispatches, if there is any, and reads the times. Waits for the device.
    pub(crate) fn end_timer(&mut self) -> Result<Vec<KernelTime>> {
        let Some(timer) = self.timer.take() else { return Ok(Vec::new()) };
        let device = self.device.clone();
        timer.read(&device, |set| {
            self.reserve_staging(set.bytes())?;
            let buffer = device.scoped(|| set.resolve(&device.device, self.encoder()))?;
            self.stage(&[Part { buffer: &buffer, offset: 0, bytes: set.bytes() }])?;
            Ok(bytemuck::pod_collect_to_vec(&self.fetch()?))
        })
    }

    /// Fills a buffer with zeros, after all commands recorded so far.
    pub(crate) fn clear(&mut self, buffer: &wgpu::Buffer) -> Result<(), Failure> {
        let device = self.device.clone();
        device.scoped(|| self.encoder().clear_buffer(buffer, 0, None))
    }

    /// Marks the end of a training step; now and then submits.
    pub(crate) fn step_recorded(&mut self) -> Result<(), Failure> {
        self.steps += 1;
        if self.steps >= STEPS_PER_SUBMISSION { self.submit() } else { Ok(()) }
    }

    /// Hands everything recorded so far to the device.
    pub(crate) fn submit(&mut self) -> Result<(), Failure> {
        self.steps = 0;
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        let device = self.device.clone();
        let mut before = None;
        if let Some((buffer, _)) = &self.launch_buffer
            && !self.launches.is_empty()
        {
            let mut first = device.scoped(|| device.device.create_command_encoder(&Default::default()))?;
            while !self.launch_uploads.put(&mut first, buffer, 0, &self.launches)? {
                device.wait(self.in_flight.pop_front())?;
            }
            before = Some(first);
        }
        self.launches.clear();
        let commands = before.into_iter().chain([encoder]).map(wgpu::CommandEncoder::finish);
        let index = device.scoped(|| device.submit(commands))?;
        self.launch_uploads.submitted()?;
        self.uploads.submitted()?;
        self.in_flight.push_back(index);
        if self.in_flight.len() > IN_FLIGHT {
            device.wait(self.in_flight.pop_front())?;
        }
        Ok(())
    }

    /// Writes to a buffer, after all commands recorded so far.
    pub(crate) fn write(&mut self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.submit()?;
        let device = &self.device;
        device.scoped(|| device.write_buffer(buffer, offset, bytes))
    }

    /// Writes to the beginning of a buffer as one of the commands.
    pub(crate) fn upload(&mut self, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<(), Failure> {
        let device = self.device.clone();
        loop {
            let encoder = self.encoder.get_or_insert_with(|| device.device.create_command_encoder(&Default::default()));
            if self.uploads.put(encoder, buffer, 0, bytes)? {
                return Ok(());
            }
            self.submit()?;
            device.wait(self.in_flight.pop_front())?;
        }
    }

    /// Makes room for that many bytes to be staged. Nothing must be staged at the moment.
    pub(crate) fn reserve_staging(&mut self, bytes: u64) -> Result<(), Failure> {
        self.staged = 0;
        if self.staging.as_ref().is_some_and(|staging| staging.size() >= bytes) {
            return Ok(());
        }
        // The old one goes first, so that not both are there at once.
        self.staging = None;
        let device = &self.device;
        let size = bytes.next_power_of_two().min(device.limits.max_buffer_size).max(bytes);
        self.staging = Some(device.scoped(|| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("staging"),
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })?);
        Ok(())
    }

    /// Sets parts of buffers aside as they are after all commands recorded so far, behind those set aside before.
    pub(crate) fn stage(&mut self, parts: &[Part<'_>]) -> Result<(), Failure> {
        let Some(staging) = self.staging.clone() else { return Ok(()) };
        let device = self.device.clone();
        device.scoped(|| {
            for part in parts.iter().filter(|part| part.bytes > 0) {
                let at = self.staged;
                self.encoder().copy_buffer_to_buffer(part.buffer, part.offset, &staging, at, part.bytes);
                self.staged += part.bytes;
            }
        })
    }

    /// Everything that was set aside. Waits for the device.
    pub(crate) fn fetch(&mut self) -> Result<Vec<f32>> {
        let bytes = std::mem::take(&mut self.staged);
        self.submit()?;
        let Some(staging) = self.staging.clone().filter(|_| bytes > 0) else { return Ok(Vec::new()) };
        let device = self.device.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        device.scoped(|| {
            staging.map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
                // The receiver is gone only where waiting failed; then there is nobody to tell.
                let _ = sender.send(result);
            });
        })?;
        device.wait(self.in_flight.back().cloned())?;
        self.in_flight.clear();
        match receiver.try_recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(lost(&format!("reading results back failed: {error}"))),
            Err(_) => return Err(lost("reading results back never ended")),
        }
        let values = staging
            .get_mapped_range(0..bytes)
            .map(|view| bytemuck::pod_collect_to_vec::<u8, f32>(&view))
            .map_err(|error| lost(&error.to_string()))?;
        staging.unmap();
        Ok(values)
    }
}

fn lost(what: &str) -> Error {
    Error::DeviceLost { what: what.to_owned() }
}

/// A compute pass that knows how launch structs are passed.
pub(crate) struct Pass<'a> {
    pub(crate) pass: wgpu::ComputePass<'a>,
    buffered: Option<(&'a wgpu::BindGroup, &'a mut Vec<u8>)>,
    timer: Option<(&'a mut Timer, &'a wgpu::Device)>,
}

impl Pass<'_> {
    /// Dispatches the kernel that is set.
    pub(crate) fn dispatch(&mut self, kernel: &'static str, [x, y]: [u32; 2]) {
        let pass = &mut self.pass;
        match &mut self.timer {
            None => pass.dispatch_workgroups(x, y, 1),
            Some((timer, device)) => timer.dispatch(device, pass, kernel, [x, y]),
        }
    }

    /// Sets the launch struct of the next dispatch.
    pub(crate) fn launch(&mut self, bytes: &[u8]) {
        match &mut self.buffered {
            None => self.pass.set_immediates(0, bytes),
            Some((group, launches)) => {
                let offset = launches.len();
                launches.extend_from_slice(bytes);
                launches.resize(offset + LAUNCH_PITCH, 0);
                self.pass.set_bind_group(1, *group, &[offset as u32]);
            }
        }
    }
}

fn launch_buffer(device: &Device, layout: &wgpu::BindGroupLayout, launches: usize) -> (wgpu::Buffer, wgpu::BindGroup) {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("launch"),
        size: (launches * LAUNCH_PITCH) as u64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer: &buffer,
        offset: 0,
        size: wgpu::BufferSize::new(MAX_BYTES as u64),
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("launch"),
        layout,
        entries: &[wgpu::BindGroupEntry { binding: 0, resource }],
    });
    (buffer, group)
}
