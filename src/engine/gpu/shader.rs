//! The kernels: WGSL text, what each binds, and the checks that host and shader agree.
//!
//! A shader is its own file plus the shared files it names, concatenated. The number of a binding says which array of a
//! session it is ([`Role`]), so a bind group layout follows from the shader alone.

use naga::{AddressSpace, StorageAccess};

#[cfg(test)]
use super::launch::{self, Launch};
use super::packs::PackShape;
use crate::error::{Error, Result};

/// Arrays that kernels bind, by binding number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Role {
    /// Activations, (rows, samples).
    Arena = 0,
    /// Weights in the layout of the plan.
    Weights = 1,
    /// Nodes, chains and weight tiles as u32.
    Tables = 2,
    /// Copies of the gradient, one per slice of the samples.
    Partials = 3,
    /// Adam's first moments.
    FirstMoments = 4,
    /// The training data, or the rows of one tile.
    Data = 5,
    /// Order of the data's rows.
    Order = 6,
    /// Room for the gradient of the reflections, then sums of the loss.
    Scratch = 7,
    /// Adam's second moments.
    SecondMoments = 8,
    /// Copies of the weights in the order in which networks read them.
    Panels = 9,
    /// Where in the panels the copies of each trained weight are.
    PackedOffsets = 10,
    /// What clipping leaves, then averages of the weights; see `record/clip.rs`.
    Extras = 11,
}

impl Role {
    /// All roles in the order of their numbers.
    pub(super) const ALL: [Self; 12] = [
        Self::Arena,
        Self::Weights,
        Self::Tables,
        Self::Partials,
        Self::FirstMoments,
        Self::Data,
        Self::Order,
        Self::Scratch,
        Self::SecondMoments,
        Self::Panels,
        Self::PackedOffsets,
        Self::Extras,
    ];

    /// The name of its variable in the shaders.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Arena => "arena",
            Self::Weights => "weights",
            Self::Tables => "tables",
            Self::Partials => "partials",
            Self::FirstMoments => "first_moments",
            Self::Data => "data",
            Self::Order => "order",
            Self::Scratch => "scratch",
            Self::SecondMoments => "second_moments",
            Self::Panels => "panels",
            Self::PackedOffsets => "packed_offsets",
            Self::Extras => "extras",
        }
    }
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $kernel:ident $file:literal [$($shared:literal)*] $launch:ident,)*) => {
        /// A kernel; one file in `shaders/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Kernel {
            $($(#[$doc])* $kernel,)*
        }

        impl Kernel {
            /// All kernels, in the order of their discriminants.
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$kernel,)*];

            /// Name of the shader file, without extension.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$kernel => $file,)* }
            }

            /// The whole WGSL text.
            fn text(self) -> &'static str {
                match self {
                    $(Self::$kernel => concat!(
                        include_str!(concat!("../../../shaders/", $file, ".wgsl")),
                        $("\n", include_str!(concat!("../../../shaders/shared/", $shared, ".wgsl")),)*
                    ),)*
                }
            }

            /// Fields and size of the host's mirror of `struct Launch`.
            #[cfg(test)]
            fn launch(self) -> (&'static [launch::Field], usize) {
                match self { $(Self::$kernel => (launch::$launch::FIELDS, size_of::<launch::$launch>()),)* }
            }
        }
    };
}

kernels! {
    /// Rows of the data set plus noise.
    Gather "gather" ["tile" "philox" "elementary"] Gather,
    /// Standard normals.
    Normal "normal" ["tile" "philox" "elementary"] Normal,
    /// A constant.
    Fill "fill" ["tile"] Fill,
    /// Q x or Q^T x.
    Mix "mix" ["tile" "relu" "eight" "four" "product_arena" "mixing"] Mix,
    /// The networks of a stage, in packs.
    NetworksPacked "networks_packed"
        ["tile" "net" "relu" "eight" "four" "product_arena" "packs" "product_workgroup"] NetworksPacked,
    /// The networks of a stage too wide for packs.
    Networks "networks" ["tile" "net" "relu" "eight" "four" "product_arena" "layer"] Networks,
    /// The affine maps of a stage.
    Couple "couple" ["tile" "chain" "groups" "coupling" "scale" "elementary"] Couple,
    /// The affine maps of a stage, then the mixing of the next block.
    CoupleMix "couple_mix"
        ["tile" "chain" "groups" "coupling" "relu" "eight" "four" "product_arena" "mixing" "scale" "elementary"] CoupleMix,
    /// The affine maps of the last stage, the loss, and the backward of both.
    CoupleLoss "couple_loss" ["none" "tile" "chain" "groups" "coupling" "losses" "scale" "elementary"] CoupleLoss,
    /// Their inverse.
    Uncouple "uncouple" ["tile" "scale" "elementary"] Uncouple,
    /// Inverse of a stage whose networks see its input.
    Walk "walk" ["tile" "net" "relu" "eight" "four" "product_arena" "layer" "scale" "elementary"] Walk,
    /// Loss per sample, its gradients, and its sums over a few samples each.
    Loss "loss" ["none" "tile" "groups" "losses"] Loss,
    /// Backward of the affine maps.
    CoupleBackward "couple_backward" ["tile" "chain" "scale" "elementary"] CoupleBackward,
    /// Backward of what lies between the networks of two stages.
    BetweenBackward "between_backward"
        ["none" "tile" "slots" "relu" "eight" "four" "product_arena" "mixing" "chain" "scale" "elementary"] BetweenBackward,
    /// Gradients of the networks' activations, in packs.
    NetworksPackedBackward "networks_packed_backward"
        ["none" "tile" "net" "relu" "eight" "four" "product_arena" "packs" "product_workgroup"] NetworksPackedBackward,
    /// Gradients of the activations of networks too wide for packs.
    NetworksBackward "networks_backward" ["none" "tile" "net" "relu" "eight" "four" "product_arena"] NetworksBackward,
    /// Backward of narrow networks, gradients of weights included.
    NarrowBackward "narrow_backward"
        ["none" "tile" "net" "narrow" "outer" "relu" "eight" "four" "product_arena" "product_workgroup"] NarrowBackward,
    /// Gradients of weights.
    WeightGradient "weight_gradient" ["none" "tile" "outer"] WeightGradient,
    /// Gradients that the networks send to the columns.
    SlotSum "slot_sum" ["tile" "slots"] SlotSum,
    /// Q of the reflections.
    Reflect "reflect" ["none" "packed_offsets"] Reflect,
    /// Gradient of Q, summed over slices.
    ReflectReduce "reflect_reduce" [] ReflectReduce,
    /// The skew part of that gradient.
    ReflectSkew "reflect_skew" [] ReflectSkew,
    /// Gradient of the reflections.
    ReflectBackward "reflect_backward" [] ReflectBackward,
    /// Weights to panels.
    PackWeights "pack_weights" ["none" "packed_offsets"] PackWeights,
    /// Squares of the gradient.
    GradientNorm "gradient_norm" ["extras" "group_sum"] GradientNorm,
    /// What the gradient is multiplied with to clip it.
    Clip "clip" ["extras" "group_sum"] Clip,
    /// The update.
    Adam "adam" ["none" "packed_offsets" "extras"] Adam,
}

/// A kernel as a pipeline is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Variant {
    pub(super) kernel: Kernel,
    /// The constants that kernels of packs leave open; none for all others.
    pub(super) shape: Option<PackShape>,
}

impl From<Kernel> for Variant {
    fn from(kernel: Kernel) -> Self {
        Self { kernel, shape: None }
    }
}

impl Variant {
    /// The constants by name.
    pub(super) fn constants(self) -> Vec<(&'static str, f64)> {
        let Some(PackShape { quads, threads, rows }) = self.shape else { return vec![] };
        let mut constants = vec![("THREADS", threads.into()), ("ROWS", rows.into())];
        // Narrow networks have one number of quads.
        if self.kernel != Kernel::NarrowBackward {
            constants.push(("QUADS", quads.into()));
        }
        constants
    }
}

/// A storage buffer that a kernel binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// Which array, also the binding's number.
    pub(super) role: Role,
    /// Whether the kernel only reads it.
    pub(super) read_only: bool,
}

/// How a shader gets its `launch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// As immediates.
    Immediate,
    /// From a storage buffer in bind group 1, on devices without immediates. (Not a uniform buffer: Mesa's llvmpipe
    /// compiles a kernel anew for every value of a loop bound that comes from one.)
    Buffer,
}

impl Kernel {
    /// The WGSL text for a way of passing `launch`.
    pub(super) fn source(self, passing: Passing) -> String {
        match passing {
            Passing::Immediate => self.text().to_owned(),
            Passing::Buffer => {
                self.text().replace("var<immediate> launch", "@group(1) @binding(0) var<storage, read> launch")
            }
        }
    }

    /// The storage buffers it binds, by number.
    pub(super) fn bindings(self) -> Result<Vec<Binding>> {
        let module = self.parse(Passing::Immediate)?;
        let mut bindings: Vec<Binding> = module
            .global_variables
            .iter()
            .filter_map(|(_, variable)| {
                let AddressSpace::Storage { access } = variable.space else { return None };
                let number = variable.binding?.binding as usize;
                let read_only = !access.contains(StorageAccess::STORE);
                Some(Binding { role: *Role::ALL.get(number)?, read_only })
            })
            .collect();
        bindings.sort_by_key(|b| b.role as u32);
        Ok(bindings)
    }

    /// The shader as naga sees it.
    pub(super) fn parse(self, passing: Passing) -> Result<naga::Module> {
        let source = self.source(passing);
        naga::front::wgsl::parse_str(&source).map_err(|e| Error::Device {
            what: format!("shader `{}` does not compile: {}", self.name(), e.emit_to_string(&source)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use naga::back::{hlsl, msl, pipeline_constants::process_overrides, spv};
    use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
    use naga::{ShaderStage, TypeInner};

    use super::super::record::clip;
    use crate::rng::Stream;

    fn validate(module: &naga::Module, capabilities: Capabilities) -> ModuleInfo {
        Validator::new(ValidationFlags::all(), capabilities).validate(module).unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn every_shader_translates_to_every_backend_without_a_device() {
        for &kernel in Kernel::ALL {
            for (passing, capabilities) in
                [(Passing::Immediate, Capabilities::IMMEDIATES), (Passing::Buffer, Capabilities::empty())]
            {
                let module = kernel.parse(passing).unwrap();
                let info = validate(&module, capabilities);
                let (module, info) = process_overrides(&module, &info, None, &Default::default()).unwrap();
                let words = spv::write_vec(&module, &info, &spv::Options::default(), None).unwrap();
                assert!(words.len() > 100, "{}", kernel.name());

                let options =
                    msl::Options { fake_missing_bindings: true, lang_version: (2, 4), ..msl::Options::default() };
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
        for &kernel in Kernel::ALL {
            let module = kernel.parse(Passing::Immediate).unwrap();
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
            assert_eq!(kernel.bindings().unwrap().len(), bound);
            for (i, role) in Role::ALL.into_iter().enumerate() {
                assert_eq!(role as usize, i);
            }
        }
    }

    #[test]
    fn launch_structs_mirror_the_shaders() {
        for &kernel in Kernel::ALL {
            let module = kernel.parse(Passing::Immediate).unwrap();
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
        let shader: Vec<(&str, usize, usize)> = members
            .iter()
            .map(|m| (m.name.as_deref().unwrap(), m.offset as usize, layouter[m.ty].size as usize))
            .collect();
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
            let module = kernel.parse(Passing::Immediate).unwrap();
            let (_, c) = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some(name)).unwrap();
            match module.global_expressions[c.init] {
                naga::Expression::Literal(naga::Literal::U32(value)) => value as usize,
                ref other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(constant(Kernel::Networks, "NODE_WORDS"), super::super::tables::NODE);
        assert_eq!(constant(Kernel::Gather, "STREAM_NOISE"), Stream::Noise as usize);
        assert_eq!(constant(Kernel::Normal, "STREAM_LATENT"), Stream::Latent as usize);
        assert_eq!(constant(Kernel::WeightGradient, "JOB_WORDS"), super::super::tables::JOB);
        assert_eq!(constant(Kernel::NetworksPacked, "PACK_WORDS"), super::super::packs::PACK);
        assert_eq!(constant(Kernel::NetworksPacked, "ITEM_WORDS"), super::super::packs::ITEM);
        assert_eq!(constant(Kernel::NarrowBackward, "NARROW_WORDS"), super::super::narrow::NARROW);
        assert_eq!(constant(Kernel::NarrowBackward, "SOURCE_WORDS"), super::super::narrow::SOURCE);
        assert_eq!(constant(Kernel::Adam, "NONE"), launch::NONE as usize);
        assert_eq!(constant(Kernel::Adam, "EXTRA_AVERAGES"), clip::AVERAGES as usize);
        let status = ["EXTRA_SCALE", "EXTRA_SKIPPED", "EXTRA_IN_A_ROW"].map(|name| constant(Kernel::Clip, name));
        assert_eq!(status, [0, clip::SKIPPED as usize, clip::SKIPPED as usize + 1]);
        assert_eq!(constant(Kernel::Clip, "EXTRA_SUMS") + clip::MOST_SUMS as usize, clip::AVERAGES as usize);
        assert_eq!(constant(Kernel::NarrowBackward, "QUADS"), super::super::narrow::QUADS as usize);
    }
}
