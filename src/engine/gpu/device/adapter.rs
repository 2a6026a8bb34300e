//! Finding adapters: what the machine has, and which one a user means.

use std::collections::BTreeMap;

use wgpu::{Adapter, DeviceType};

use crate::engine::{AdapterInfo, DeviceInfo};
use crate::error::{Error, Result};

/// Every adapter of this machine, in the order in which [`crate::engine::Engine::named`] counts them.
pub fn adapters() -> Vec<AdapterInfo> {
    enumerate().iter().enumerate().map(|(index, adapter)| describe(index, adapter)).collect()
}

fn describe(index: usize, adapter: &Adapter) -> AdapterInfo {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    AdapterInfo {
        index,
        max_array_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_workgroups: limits.max_compute_workgroups_per_dimension,
        immediates: adapter.features().contains(wgpu::Features::IMMEDIATES),
        limits: BTreeMap::from([
            ("max_buffer_size", limits.max_buffer_size),
            ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
            ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
            ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment.into()),
            ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into()),
            ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
            ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into()),
            ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
            ("max_immediate_size", limits.max_immediate_size.into()),
            ("subgroup_min_size", info.subgroup_min_size.into()),
            ("subgroup_max_size", info.subgroup_max_size.into()),
        ]),
        features: adapter.features().iter_names().map(|(name, _)| name).collect(),
        device: device_info(info),
    }
}

/// What wgpu says of an adapter, in our words.
pub(crate) fn device_info(info: wgpu::AdapterInfo) -> DeviceInfo {
    let driver = [info.driver.as_str(), info.driver_info.as_str()].join(" ").trim().to_owned();
    DeviceInfo {
        engine: "gpu",
        backend: info.backend.to_str().to_owned(),
        arithmetic: format!("{}, {}, {driver}", info.name, info.backend),
        driver,
        kind: kind(info.device_type),
        name: info.name,
    }
}

/// Kind of an adapter in the words of [`DeviceInfo::kind`]; "other" where its driver does not say.
fn kind(device_type: DeviceType) -> &'static str {
    match device_type {
        DeviceType::DiscreteGpu => "discrete",
        DeviceType::IntegratedGpu => "integrated",
        DeviceType::VirtualGpu => "virtual",
        DeviceType::Cpu => "software",
        DeviceType::Other => "other",
    }
}

fn enumerate() -> Vec<Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    // OpenGL would list every adapter a second time.
    descriptor.backends = wgpu::Backends::PRIMARY;
    // Indirect dispatches are never used; checking them costs a dispatch and caps the size of buffers.
    descriptor.flags.remove(wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL);
    let descriptor = descriptor.with_env();
    let backends = descriptor.backends;
    pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends))
}

/// The best real GPU: discrete before integrated before virtual, then in the order of [`adapters`].
pub(crate) fn best() -> Option<Adapter> {
    let rank = |adapter: &Adapter| match adapter.get_info().device_type {
        DeviceType::DiscreteGpu => Some(0),
        DeviceType::IntegratedGpu => Some(1),
        DeviceType::VirtualGpu => Some(2),
        DeviceType::Cpu | DeviceType::Other => None,
    };
    enumerate().into_iter().filter(|a| rank(a).is_some()).min_by_key(rank)
}

/// The best real GPU, else any other adapter with a warning.
pub(crate) fn best_or_software() -> Result<Adapter> {
    if let Some(adapter) = best() {
        return Ok(adapter);
    }
    let adapter = enumerate().into_iter().next().ok_or_else(no_adapter)?;
    let info = adapter.get_info();
    tracing::warn!(
        "no GPU found; using the {} adapter `{}`, which is slow: prefer the native CPU engine",
        kind(info.device_type),
        info.name
    );
    Ok(adapter)
}

/// Of a machine without any adapter.
fn no_adapter() -> Error {
    Error::NoAdapter { what: "this machine has no adapter for GPU computing".into(), found: Vec::new() }
}

/// The adapter a user names by number or by part of its name.
pub(crate) fn named(selector: &str) -> Result<Adapter> {
    let mut all = enumerate();
    let names: Vec<String> = all.iter().map(|a| a.get_info().name).collect();
    match pick(selector, &names) {
        Ok(index) => Ok(all.swap_remove(index)),
        Err(why) => {
            let list: Vec<String> = all
                .iter()
                .enumerate()
                .map(|(i, a)| describe(i, a))
                .map(|a| format!("\n  {}: {} ({}, {})", a.index, a.device.name, a.device.backend, a.device.kind))
                .collect();
            Err(Error::NoAdapter { what: why, found: list })
        }
    }
}

/// Which of `names` a selector means.
fn pick(selector: &str, names: &[String]) -> Result<usize, String> {
    let wanted = selector.trim();
    if let Ok(index) = wanted.parse::<usize>() {
        return if index < names.len() { Ok(index) } else { Err(format!("there is no adapter number {index}")) };
    }
    let lower = wanted.to_lowercase();
    if let Some(exact) = names.iter().position(|n| n.to_lowercase() == lower) {
        return Ok(exact);
    }
    let found: Vec<usize> = (0..names.len()).filter(|&i| names[i].to_lowercase().contains(&lower)).collect();
    match found.as_slice() {
        [] => Err(format!("no adapter's name contains `{wanted}`")),
        // One GPU may be there once per graphics interface; the first will do.
        [first, rest @ ..] if rest.iter().all(|&i| names[i] == names[*first]) => Ok(*first),
        _ => Err(format!("the names of several adapters contain `{wanted}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let names = ["NVIDIA A", "NVIDIA B", "llvmpipe (LLVM 15)", "llvmpipe (LLVM 15)"].map(str::to_owned);
        assert_eq!(pick("1", &names), Ok(1));
        assert_eq!(pick(" nvidia b", &names), Ok(1));
        assert_eq!(pick("LLVM", &names), Ok(2));
        assert!(pick("nvidia", &names).unwrap_err().contains("several"));
        assert!(pick("4", &names).unwrap_err().contains("number 4"));
        assert!(pick("radeon", &names).unwrap_err().contains("radeon"));
    }
}
