//! Shaders without a device: they parse, translate, and have the names, numbers and constants of the host.

mod judges;

use super::*;
use naga::back::{hlsl, msl, pipeline_constants::process_overrides, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{ShaderStage, TypeInner};

use crate::engine::gpu::kernels::extras;
use crate::engine::gpu::layout::narrow;
use crate::rng::Stream;

use crate::plan::{Spec, Spline, Transform};

/// Every kernel for every transformation that it is for.
fn variants() -> Vec<Variant> {
    let splines = [2, 8, 64].map(|bins| Transform::Spline(Spline { bins, ..Spline::default() }));
    let couplings = [Transform::Affine].into_iter().chain(splines);
    let of = |coupling: Transform| {
        let maps = ColumnMaps::of(&Spec { coupling, ..Spec::default() });
        let networks = coupling.networks().len() as u32;
        let is_for = move |kernel: &&Kernel| coupling == Transform::Affine || **kernel != Kernel::UncoupleBackward;
        let kernels = Kernel::ALL.iter().filter(is_for);
        kernels.map(move |&kernel| Variant::from(kernel).of_model(maps, networks).with_dropout(13))
    };
    let mut variants: Vec<Variant> = Vec::new();
    for variant in couplings.flat_map(of) {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

/// A constant that no shader has would go unnoticed.
#[test]
fn every_constant_is_one_of_the_shaders() {
    let shape = PackShape { quads: 8, threads: 128, rows: 40 };
    let packed = [Kernel::NetworksPacked, Kernel::NetworksPackedBackward, Kernel::NarrowBackward];
    let mut open = 0;
    for variant in variants() {
        let shape = packed.contains(&variant.kernel).then_some(shape);
        let variant = Variant { shape, ..variant };
        let module = variant.parse(Passing::Immediate).unwrap();
        let mut names: Vec<&str> = module.overrides.iter().map(|(_, o)| o.name.as_deref().unwrap()).collect();
        let mut constants: Vec<&str> = variant.constants().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        constants.sort_unstable();
        assert_eq!(names, constants, "{variant:?}");
        open += names.len();
    }
    assert!(open > 40);
}

fn validate(module: &naga::Module, capabilities: Capabilities) -> ModuleInfo {
    Validator::new(ValidationFlags::all(), capabilities).validate(module).unwrap_or_else(|e| panic!("{e:?}"))
}

#[test]
fn every_shader_translates_to_every_backend_without_a_device() {
    for variant in variants() {
        let kernel = variant.kernel;
        let constants = variant.constants().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (passing, capabilities) in
            [(Passing::Immediate, Capabilities::IMMEDIATES), (Passing::Buffer, Capabilities::empty())]
        {
            let module = variant.parse(passing).unwrap();
            let info = validate(&module, capabilities);
            let (module, info) = process_overrides(&module, &info, None, &constants).unwrap();
            let words = spv::write_vec(&module, &info, &spv::Options::default(), None).unwrap();
            assert!(words.len() > 100, "{}", kernel.name());

            let options = msl::Options { fake_missing_bindings: true, lang_version: (2, 4), ..msl::Options::default() };
            let (text, _) = msl::write_string(&module, &info, &options, &Default::default()).unwrap();
            assert!(text.contains("kernel"), "{}", kernel.name());

            let mut text = String::new();
            let options = hlsl::Options {
                immediates_target: Some(hlsl::BindTarget { space: 9, ..Default::default() }),
                ..hlsl::Options::default()
            };
            let pipeline = hlsl::PipelineOptions::default();
            hlsl::Writer::new(&mut text, &options, &pipeline).write(&module, &info, None).unwrap();
            assert!(text.contains("numthreads"), "{}", kernel.name());
        }
    }
}

#[test]
fn every_file_in_shaders_is_a_kernel_or_shared() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let folder = std::path::Path::new(&root).join("shaders");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut kernels: Vec<&str> = Kernel::ALL.iter().map(|k| k.name()).collect();
    kernels.sort_unstable();
    assert_eq!(files, kernels);
}

#[test]
fn bindings_have_the_names_and_numbers_of_their_roles() {
    for variant in variants() {
        let kernel = variant.kernel;
        let module = variant.parse(Passing::Immediate).unwrap();
        assert_eq!(module.entry_points.len(), 1, "{}", kernel.name());
        assert_eq!(module.entry_points[0].name, "main");
        assert_eq!(module.entry_points[0].stage, ShaderStage::Compute);
        let mut bound = 0;
        for (_, variable) in module.global_variables.iter() {
            let Some(binding) = variable.binding else { continue };
            let name = variable.name.as_deref().unwrap();
            assert_eq!(binding.group, 0);
            assert_eq!(Role::ALL[binding.binding as usize].name(), name, "{}", kernel.name());
            bound += 1;
        }
        // 8 is what every device has, and one may be taken by the launch.
        assert!(bound <= 7);
        assert_eq!(variant.bindings().unwrap().len(), bound);
        for (i, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role as usize, i);
        }
    }
}

#[test]
fn launch_structs_mirror_the_shaders() {
    for variant in variants() {
        let kernel = variant.kernel;
        let module = variant.parse(Passing::Immediate).unwrap();
        let (_, variable) = module
            .global_variables
            .iter()
            .find(|(_, v)| v.space == AddressSpace::Immediate)
            .unwrap_or_else(|| panic!("{} has no launch", kernel.name()));
        let (fields, size) = kernel.launch();
        compare(&module, variable.ty, fields, size, kernel.name());
        assert!(size <= launch::MAX_BYTES, "{}: {size}", kernel.name());
    }
}

fn compare(module: &naga::Module, ty: naga::Handle<naga::Type>, fields: &[launch::Field], size: usize, what: &str) {
    let TypeInner::Struct { members, span } = &module.types[ty].inner else { panic!("{what}: not a struct") };
    assert_eq!(*span as usize, size, "{what}: size");
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).unwrap();
    let shader: Vec<(&str, usize, usize)> =
        members.iter().map(|m| (m.name.as_deref().unwrap(), m.offset as usize, layouter[m.ty].size as usize)).collect();
    assert_eq!(shader, fields, "{what}");
    for member in members {
        match module.types[member.ty].name.as_deref() {
            Some("TileJob") => {
                compare(module, member.ty, launch::TileJob::FIELDS, size_of::<launch::TileJob>(), "TileJob");
            }
            Some("Update") => {
                compare(module, member.ty, launch::Update::FIELDS, size_of::<launch::Update>(), "Update");
            }
            _ => {}
        }
    }
}

#[test]
fn constants_mirror_the_host() {
    let constant = |kernel: Kernel, name: &str| {
        let module = variants().into_iter().find(|v| v.kernel == kernel).unwrap().parse(Passing::Immediate).unwrap();
        let (_, c) = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some(name)).unwrap();
        match module.global_expressions[c.init] {
            naga::Expression::Literal(naga::Literal::U32(value)) => value as usize,
            ref other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(constant(Kernel::Gather, "STREAM_NOISE"), Stream::Noise as usize);
    assert_eq!(constant(Kernel::Normal, "STREAM_LATENT"), Stream::Latent as usize);
    assert_eq!(constant(Kernel::Networks, "STREAM_DROPOUT"), Stream::Dropout as usize);
    assert_eq!(constant(Kernel::NarrowBackward, "OF_D_ST"), narrow::OF_D_ST as usize);
    assert_eq!(constant(Kernel::NarrowBackward, "OF_GIVEN"), narrow::OF_GIVEN as usize);
    assert_eq!(constant(Kernel::Adam, "NONE"), launch::NONE as usize);
    assert_eq!(constant(Kernel::ReflectFew, "MOST"), launch::FEW_COLUMNS as usize);
    assert_eq!(constant(Kernel::Adam, "EXTRA_AVERAGES"), extras::AVERAGES as usize);
    let status = ["EXTRA_SCALE", "EXTRA_SKIPPED", "EXTRA_IN_A_ROW"].map(|name| constant(Kernel::Clip, name));
    assert_eq!(status, [0, extras::SKIPPED as usize, extras::SKIPPED as usize + 1]);
    assert_eq!(constant(Kernel::Clip, "EXTRA_SUMS") + extras::MOST_SUMS as usize, extras::AVERAGES as usize);
    assert_eq!(constant(Kernel::NarrowBackward, "QUADS"), narrow::QUADS as usize);
}
