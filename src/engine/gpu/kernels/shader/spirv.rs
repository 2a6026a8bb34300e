//! Kernels as SPIR-V, for compilers and checks outside this crate.

use naga::back::pipeline_constants::process_overrides;
use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};

use super::{Passing, Variant};

/// SPIR-V as wgpu hands it to a driver of Vulkan 1.3, with immediates and without checks.
pub(crate) fn spirv(variant: Variant) -> Vec<u8> {
    let module = variant.parse(Passing::Immediate).unwrap();
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES).validate(&module).unwrap();
    let constants = variant.constants().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let entry = (naga::ShaderStage::Compute, "main");
    let (module, info) = process_overrides(&module, &info, Some(entry), &constants).unwrap();
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 6),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions { shader_stage: entry.0, entry_point: entry.1.into() };
    let words = spv::write_vec(&module, &info, &options, Some(&pipeline)).unwrap();
    bytemuck::cast_slice(&words).to_vec()
}
