//! An open device: queue, limits, pipelines, and how its errors reach the caller.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::adapter;
use crate::engine::DeviceInfo;
use crate::engine::gpu::kernels::launch;
use crate::engine::gpu::kernels::shader::{Binding, Passing, Variant};
use crate::engine::gpu::layout::workgroup::Workgroup;
use crate::error::{Error, Result};

/// What times of dispatches need: a device is asked for it, if it has it.
pub(crate) const TIMESTAMPS: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);

/// A device and the pipelines made on it so far.
pub(crate) struct Device {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: DeviceInfo,
    pub(crate) limits: wgpu::Limits,
    /// Whether it computes on the CPU.
    pub(crate) software: bool,
    /// Fewest and most threads that run in step.
    subgroup: (u32, u32),
    /// How kernels get their `launch`.
    pub(crate) passing: Passing,
    /// Layout of bind group 1 where `launch` comes from a buffer.
    pub(crate) launch_layout: Option<wgpu::BindGroupLayout>,
    /// Whether kernels check their indices and loops.
    pub(crate) checked: bool,
    pipelines: Mutex<HashMap<Variant, Arc<Pipeline>>>,
    failure: Arc<Mutex<Option<Failure>>>,
    created: AtomicU64,
    submitted: AtomicU64,
}

/// A kernel ready to run.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    pub(crate) bindings: Vec<Binding>,
}

/// What went wrong on a device.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It has not enough memory.
    Memory(String),
    /// It is gone.
    Lost(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Memory(what) | Self::Lost(what) | Self::Other(what)) = self;
        f.write_str(what)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Memory(what) => {
                Self::OutOfMemory { what: format!("the device says {what}"), needed: None, available: None }
            }
            Failure::Lost(what) => Self::DeviceLost { what },
            Failure::Other(what) => Self::Device { what: format!("the device refused a command: {what}") },
        }
    }
}

/// What wgpu says in errors that follow from a lost device. It is the second best source: a device that we have opened
/// tells our callback, which [`Device::scoped`] asks first. One that the caller has opened tells the caller's.
const LOST: &str = "device is lost";

impl From<wgpu::Error> for Failure {
    fn from(error: wgpu::Error) -> Self {
        match error {
            wgpu::Error::OutOfMemory { source } => Self::Memory(source.to_string()),
            wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
                if description.contains(LOST) { Self::Lost(description) } else { Self::Other(description) }
            }
        }
    }
}

impl Device {
    /// Opens an adapter with all its limits.
    pub(crate) fn open(adapter: &wgpu::Adapter) -> Result<Self> {
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("hintflow"),
            required_features: (wgpu::Features::IMMEDIATES | TIMESTAMPS) & adapter.features(),
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).map_err(|e| Error::Device {
            what: format!("the adapter `{}` cannot be opened: {e}", adapter.get_info().name),
        })?;
        let this = Self::adopt(device, queue)?;
        // wgpu's own handler of stray errors panics.
        let failure = this.failure.clone();
        this.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| note(&failure, error.into())));
        let failure = this.failure.clone();
        this.device.set_device_lost_callback(move |reason, message| {
            note(&failure, Failure::Lost(if message.is_empty() { format!("{reason:?}") } else { message }));
        });
        Ok(this)
    }

    /// Takes a device that is open already; leaves its handlers alone.
    pub(crate) fn adopt(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        let (info, limits) = (device.adapter_info(), device.limits());
        let needed = [
            ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage, 8),
            ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup, 256),
            ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x, 256),
            ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size, 16_384),
        ];
        for (name, available, needed) in needed {
            if available < needed {
                let what = format!("hintflow on `{}`", info.name);
                return Err(Error::UnsupportedLimit { name, what, needed: needed.into(), available: available.into() });
            }
        }
        let immediates = device.features().contains(wgpu::Features::IMMEDIATES)
            && limits.max_immediate_size as usize >= launch::MAX_BYTES;
        let (passing, launch_layout) =
            if immediates { (Passing::Immediate, None) } else { (Passing::Buffer, Some(launch_layout(&device))) };
        Ok(Self {
            software: info.device_type == wgpu::DeviceType::Cpu,
            subgroup: (info.subgroup_min_size, info.subgroup_max_size),
            info: adapter::device_info(info),
            passing,
            launch_layout,
            checked: cfg!(debug_assertions),
            limits,
            device,
            queue,
            pipelines: Mutex::default(),
            failure: Arc::default(),
            created: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
        })
    }

    /// Buffers, bind groups and pipelines made on it so far.
    #[cfg(test)]
    pub(crate) fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    /// Submissions so far.
    #[cfg(test)]
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Relaxed)
    }

    pub(crate) fn create_buffer(&self, descriptor: &wgpu::BufferDescriptor<'_>) -> wgpu::Buffer {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.device.create_buffer(descriptor)
    }

    pub(crate) fn create_bind_group(&self, descriptor: &wgpu::BindGroupDescriptor<'_>) -> wgpu::BindGroup {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.device.create_bind_group(descriptor)
    }

    /// Writes to a buffer before whatever is submitted next. Allocates, so it is not for training steps.
    pub(crate) fn write_buffer(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.queue.write_buffer(buffer, offset, bytes);
    }

    pub(crate) fn submit(&self, commands: impl IntoIterator<Item = wgpu::CommandBuffer>) -> wgpu::SubmissionIndex {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        self.queue.submit(commands)
    }

    /// Largest storage buffer that can be made and bound, in bytes.
    pub(crate) fn max_array(&self) -> u64 {
        self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size)
    }

    /// What a workgroup may have.
    pub(crate) fn workgroup(&self) -> Workgroup {
        let limits = &self.limits;
        let threads = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
        let most = Workgroup::MOST;
        let (few, many) = self.subgroup;
        Workgroup {
            bytes: limits.max_compute_workgroup_storage_size.min(most.bytes),
            threads: threads.min(most.threads),
            step: Workgroup::step(few, many),
        }
    }

    /// The pipeline of a kernel, made when first asked for.
    pub(crate) fn pipeline(&self, variant: Variant) -> Result<Arc<Pipeline>> {
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = pipelines.get(&variant) {
            return Ok(pipeline.clone());
        }
        let bindings = variant.bindings()?;
        let pipeline = Arc::new(self.scoped(|| self.build(variant, bindings))?);
        pipelines.insert(variant, pipeline.clone());
        Ok(pipeline)
    }

    fn build(&self, variant: Variant, bindings: Vec<Binding>) -> Pipeline {
        self.created.fetch_add(1, Ordering::Relaxed);
        let kernel = variant.kernel;
        let entries: Vec<wgpu::BindGroupLayoutEntry> =
            bindings.iter().map(|b| storage_entry(b.role as u32, b.read_only)).collect();
        let label = Some(kernel.name());
        let layout =
            self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let groups = match &self.launch_layout {
            None => vec![Some(&layout)],
            Some(launch) => vec![Some(&layout), Some(launch)],
        };
        let immediate_size = if self.passing == Passing::Immediate { launch::MAX_BYTES as u32 } else { 0 };
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &groups,
            immediate_size,
        });
        let descriptor = wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(variant.source(self.passing).into()),
        };
        let checks =
            if self.checked { wgpu::ShaderRuntimeChecks::checked() } else { wgpu::ShaderRuntimeChecks::unchecked() };
        // SAFETY: the kernels are our own. Their loops end: each counts towards a bound that it does not change. Their
        // indices stay inside the arrays: those come from a plan's tables and from launch structs made for arrays of
        // this size, and threads past the end of a grid return or store nothing. Divisors are constants or counts that
        // are at least 1. The tests run with all checks on, and debug builds do.
        let module = unsafe { self.device.create_shader_module_trusted(descriptor, checks) };
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes its workgroup memory before it reads it.
                zero_initialize_workgroup_memory: false,
                constants: &variant.constants(),
            },
            cache: None,
        });
        Pipeline { pipeline, layout, bindings }
    }

    /// Runs commands and returns the first error that they cause.
    pub(crate) fn scoped<T>(&self, commands: impl FnOnce() -> T) -> Result<T, Failure> {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let scopes = [OutOfMemory, Internal, Validation].map(|filter| self.device.push_error_scope(filter));
        let value = commands();
        let mut failure = None;
        for scope in scopes.into_iter().rev() {
            if let Some(error) = pollster::block_on(scope.pop()) {
                failure = Some(error.into());
            }
        }
        if failure.is_some() {
            // A lost device is the cause of whatever else went wrong; polling delivers the news to our callback. Its
            // own error is no news after the first.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
        match self.failed().or(failure) {
            None => Ok(value),
            Some(failure) => Err(failure),
        }
    }

    /// What has gone wrong since the device was opened, outside of [`Device::scoped`].
    pub(crate) fn failed(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a submission is done, or all of them.
    pub(crate) fn wait(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<(), Failure> {
        let waited = self.device.poll(wgpu::PollType::Wait { submission_index: submission, timeout: None });
        match (self.failed(), waited) {
            (Some(failure), _) => Err(failure),
            (None, Ok(_)) => Ok(()),
            (None, Err(error)) => Err(Failure::Lost(error.to_string())),
        }
    }
}

/// Remembers a failure; a lost device outranks what follows from it.
fn note(failure: &Mutex<Option<Failure>>, new: Failure) {
    let mut slot = failure.lock().unwrap_or_else(PoisonError::into_inner);
    if slot.is_none() || matches!(new, Failure::Lost(_)) {
        *slot = Some(new);
    }
}

fn storage_entry(binding: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

fn launch_layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("launch"),
        entries: &[wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: true },
                has_dynamic_offset: true,
                min_binding_size: None,
            },
            count: None,
        }],
    })
}
