//! The kernels: WGSL text, what each binds, and the checks that host and shader agree.
//!
//! A shader is its own file plus the shared files it names, concatenated, and where it deals with couplings those of
//! the model's transformation. The number of a binding says which array of a session it is ([`Role`]), so a bind group
//! layout follows from the shader alone.

use naga::{AddressSpace, StorageAccess};

#[cfg(test)]
use super::launch::{self, Launch};
use super::packs::PackShape;
use super::transform::ColumnMaps;
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

            /// The WGSL text but for the transformation's.
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
        ["tile" "net" "relu" "eight" "four" "dropout" "product_arena" "packs" "product_workgroup"] NetworksPacked,
    /// The networks of a stage too wide for packs.
    Networks "networks" ["none" "tile" "net" "relu" "eight" "four" "dropout" "product_arena" "layer"] Networks,
    /// The maps of a stage.
    Couple "couple" ["tile" "chain" "groups" "coupling" "elementary"] Couple,
    /// The maps of a stage, then the mixing of the next block.
    CoupleMix "couple_mix"
        ["tile" "chain" "groups" "coupling" "relu" "eight" "four" "product_arena" "mixing" "elementary"] CoupleMix,
    /// The maps of the last stage, the loss, and the backward of both.
    CoupleLoss "couple_loss" ["none" "tile" "chain" "groups" "coupling" "losses" "elementary"] CoupleLoss,
    /// Their inverse.
    Uncouple "uncouple" ["tile" "chain" "elementary"] Uncouple,
    /// Inverse of a stage whose networks see its input.
    Walk "walk"
        ["none" "tile" "net" "relu" "eight" "four" "dropout" "product_arena" "layer" "chain" "elementary"] Walk,
    /// Loss per sample, its gradients, and its sums over a few samples each.
    Loss "loss" ["none" "tile" "groups" "losses"] Loss,
    /// Backward of the maps of a stage.
    CoupleBackward "couple_backward" ["tile" "chain" "elementary"] CoupleBackward,
    /// Backward of what lies between the networks of two stages.
    BetweenBackward "between_backward"
        ["none" "tile" "slots" "relu" "eight" "four" "product_arena" "mixing" "chain" "elementary"] BetweenBackward,
    /// Gradients of the networks' activations, in packs.
    NetworksPackedBackward "networks_packed_backward"
        ["none" "tile" "net" "relu" "eight" "four" "dropout" "product_arena" "packs" "product_workgroup"] NetworksPackedBackward,
    /// Gradients of the activations of networks too wide for packs.
    NetworksBackward "networks_backward"
        ["none" "tile" "net" "relu" "eight" "four" "dropout" "product_arena"] NetworksBackward,
    /// Backward of narrow networks, gradients of weights included.
    NarrowBackward "narrow_backward"
        ["none" "tile" "net" "narrow" "outer" "relu" "eight" "four" "dropout" "product_arena" "product_workgroup"]
        NarrowBackward,
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
    /// The transformation of the columns, of kernels that deal with couplings.
    maps: Option<ColumnMaps>,
    /// Networks of a node, of kernels that deal with them.
    networks: Option<u32>,
    /// Probability of a hidden unit to be dropped, in parts of 256.
    dropout: u8,
}

impl From<Kernel> for Variant {
    fn from(kernel: Kernel) -> Self {
        Self { kernel, shape: None, maps: None, networks: None, dropout: 0 }
    }
}

impl Variant {
    /// A kernel of packs.
    pub(super) fn packed(kernel: Kernel, shape: PackShape) -> Self {
        Self { shape: Some(shape), ..kernel.into() }
    }

    /// The same for a model whose columns go through these maps, with so many networks in a node.
    pub(super) fn of_model(self, maps: ColumnMaps, networks: u32) -> Self {
        let kernel = self.kernel;
        Self { maps: kernel.transforms().then_some(maps), networks: kernel.has_networks().then_some(networks), ..self }
    }

    /// The same for a step that drops hidden units.
    pub(super) fn with_dropout(self, dropout: u8) -> Self {
        if self.kernel.has_networks() { Self { dropout, ..self } } else { self }
    }

    /// The constants by name.
    pub(super) fn constants(self) -> Vec<(&'static str, f64)> {
        let mut constants = self.maps.map(ColumnMaps::constants).unwrap_or_default();
        if let Some(networks) = self.networks {
            constants.extend([("NETWORKS", networks.into()), ("DROPOUT", self.dropout.into())]);
        }
        if let Some(PackShape { quads, threads, rows }) = self.shape {
            constants.push(("THREADS", threads.into()));
            // Narrow networks have one number of quads, and a row takes one more.
            if self.kernel == Kernel::NarrowBackward {
                constants.push(("SIZE", (rows * (quads + 1)).into()));
            } else {
                constants.extend([("QUADS", quads.into()), ("SIZE", (rows * quads).into())]);
            }
        }
        constants
    }

    /// The whole WGSL text for a way of passing `launch`.
    pub(super) fn source(self, passing: Passing) -> String {
        let mut text = self.kernel.text().to_owned();
        if let Some(maps) = self.maps {
            text.push('\n');
            text.push_str(maps.text());
        }
        match passing {
            Passing::Immediate => text,
            Passing::Buffer => text.replace("var<immediate> launch", "@group(1) @binding(0) var<storage, read> launch"),
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
            what: format!("shader `{}` does not compile: {}", self.kernel.name(), e.emit_to_string(&source)),
        })
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
    /// Whether it deals with what couplings do to columns, and gets the transformation's shaders.
    fn transforms(self) -> bool {
        use Kernel::{BetweenBackward, Couple, CoupleBackward, CoupleLoss, CoupleMix, Uncouple, Walk};
        [Couple, CoupleMix, CoupleLoss, Uncouple, Walk, CoupleBackward, BetweenBackward].contains(&self)
    }

    /// Whether it deals with the networks of nodes.
    fn has_networks(self) -> bool {
        use Kernel::{NarrowBackward, Networks, NetworksBackward, NetworksPacked, NetworksPackedBackward, Walk};
        [NetworksPacked, Networks, Walk, NetworksPackedBackward, NetworksBackward, NarrowBackward].contains(&self)
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

    use crate::plan::{Spec, Spline, Transform};

    /// Every kernel for every transformation.
    fn variants() -> Vec<Variant> {
        let splines = [2, 8, 64].map(|bins| Transform::Spline(Spline { bins, ..Spline::default() }));
        let couplings = [Transform::Affine].into_iter().chain(splines);
        let of = |coupling: Transform| {
            let maps = ColumnMaps::of(&Spec { coupling, ..Spec::default() });
            let networks = coupling.networks().len() as u32;
            Kernel::ALL.iter().map(move |&kernel| Variant::from(kernel).of_model(maps, networks).with_dropout(13))
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
            let module =
                variants().into_iter().find(|v| v.kernel == kernel).unwrap().parse(Passing::Immediate).unwrap();
            let (_, c) = module.constants.iter().find(|(_, c)| c.name.as_deref() == Some(name)).unwrap();
            match module.global_expressions[c.init] {
                naga::Expression::Literal(naga::Literal::U32(value)) => value as usize,
                ref other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(constant(Kernel::Networks, "NODE_WORDS"), super::super::tables::NODE);
        assert_eq!(constant(Kernel::Gather, "STREAM_NOISE"), Stream::Noise as usize);
        assert_eq!(constant(Kernel::Normal, "STREAM_LATENT"), Stream::Latent as usize);
        assert_eq!(constant(Kernel::Networks, "STREAM_DROPOUT"), Stream::Dropout as usize);
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
