//! The kernels: WGSL text, what each binds, and the checks that host and shader agree.
//!
//! A shader is its own file plus the shared files it names, concatenated, and where it deals with couplings those of
//! the model's transformation. The number of a binding says which array of a session it is ([`Role`]), so a bind group
//! layout follows from the shader alone.

use naga::{AddressSpace, StorageAccess};

#[cfg(test)]
use super::launch::{self, Launch};
use super::records;
use super::transform::ColumnMaps;
use crate::error::{Error, Result};

/// Arrays that kernels bind, by binding number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Role {
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
    /// What clipping leaves, then averages of the weights; see [`super::extras`].
    Extras = 11,
}

impl Role {
    /// All roles in the order of their numbers.
    pub(crate) const ALL: [Self; 12] = [
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
    pub(crate) fn name(self) -> &'static str {
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

/// Shape of the workgroups that run packs: the constants that `shaders/shared/packs.wgsl` and `narrow.wgsl` leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PackShape {
    /// Quads of samples.
    pub(crate) quads: u32,
    /// Threads.
    pub(crate) threads: u32,
    /// Hidden rows in workgroup memory.
    pub(crate) rows: u32,
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $kernel:ident $file:literal [$($shared:literal)*] $launch:ident,)*) => {
        /// A kernel; one file in `shaders/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Kernel {
            $($(#[$doc])* $kernel,)*
        }

        impl Kernel {
            /// All kernels, in the order of their discriminants.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$kernel,)*];

            /// Name of the shader file, without extension.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$kernel => $file,)* }
            }

            /// The WGSL text but for the transformation's.
            fn text(self) -> &'static str {
                match self {
                    $(Self::$kernel => concat!(
                        include_str!(concat!("../../../../shaders/", $file, ".wgsl")),
                        $("\n", include_str!(concat!("../../../../shaders/shared/", $shared, ".wgsl")),)*
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
    /// Normals.
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
    /// A squared error and its gradients.
    SquaredError "squared_error" ["tile"] SquaredError,
    /// The discrepancy of two sets of samples and its gradient.
    Discrepancy "discrepancy" ["tile"] Discrepancy,
    /// Sums of the loss over a few samples each.
    TotalLoss "total_loss" ["none" "tile" "groups" "losses"] TotalLoss,
    /// Backward of the inverse of the maps of a stage.
    UncoupleBackward "uncouple_backward" ["tile" "chain" "elementary"] UncoupleBackward,
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
        ["none" "tile" "net" "narrow" "outer" "partials" "relu" "eight" "four" "dropout" "product_arena" "product_workgroup"]
        NarrowBackward,
    /// Gradients of weights.
    WeightGradient "weight_gradient" ["none" "tile" "outer" "partials"] WeightGradient,
    /// Gradients that the networks send to the columns.
    SlotSum "slot_sum" ["tile" "slots"] SlotSum,
    /// Q of few reflections, and the vectors as either side of it needs them.
    ReflectFew "reflect_few" ["none" "packed_offsets" "reflections" "pairs" "pair_products"] Reflections,
    /// What the reflections have in common, two by two.
    ReflectGram "reflect_gram" ["reflections" "product_tile" "pairs" "outer"] Reflections,
    /// The vectors as either side of Q needs them.
    ReflectSolve "reflect_solve" ["reflections" "product_tile" "pairs" "outer"] Reflections,
    /// Q of the reflections.
    Reflect "reflect" ["none" "packed_offsets" "reflections" "product_tile" "pairs" "outer"] Reflections,
    /// Gradient of Q, summed over slices.
    ReflectReduce "reflect_reduce" ["copies"] ReflectReduce,
    /// What either side of Q has of that gradient.
    ReflectSides "reflect_sides" ["reflections" "product_tile" "pairs" "outer"] Reflections,
    /// Gradient of what the reflections have in common.
    ReflectInner "reflect_inner" ["reflections" "product_tile" "pairs" "outer"] Reflections,
    /// Gradient of the reflections.
    ReflectBackward "reflect_backward" ["reflections" "product_tile" "pairs" "outer"] Reflections,
    /// Weights to panels.
    PackWeights "pack_weights" ["none" "packed_offsets"] PackWeights,
    /// Squares of the gradient.
    GradientNorm "gradient_norm" ["extras" "copies" "group_sum"] GradientNorm,
    /// What the gradient is multiplied with to clip it.
    Clip "clip" ["extras" "group_sum"] Clip,
    /// The update.
    Adam "adam" ["none" "copies" "packed_offsets" "extras"] Adam,
}

/// A kernel as a pipeline is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) kernel: Kernel,
    /// The constants that kernels of packs leave open; none for all others.
    pub(crate) shape: Option<PackShape>,
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
    pub(crate) fn packed(kernel: Kernel, shape: PackShape) -> Self {
        Self { shape: Some(shape), ..kernel.into() }
    }

    /// The same for a model whose columns go through these maps, with so many networks in a node.
    pub(crate) fn of_model(self, maps: ColumnMaps, networks: u32) -> Self {
        let kernel = self.kernel;
        Self { maps: kernel.transforms().then_some(maps), networks: kernel.has_networks().then_some(networks), ..self }
    }

    /// The same for a step that drops hidden units.
    pub(crate) fn with_dropout(self, dropout: u8) -> Self {
        if self.kernel.has_networks() { Self { dropout, ..self } } else { self }
    }

    /// The constants by name.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
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
    pub(crate) fn source(self, passing: Passing) -> String {
        let mut text = self.kernel.text().to_owned();
        if let Some(maps) = self.maps {
            text.push('\n');
            text.push_str(maps.text());
        }
        text.push_str(&records::accessors(&text));
        match passing {
            Passing::Immediate => text,
            Passing::Buffer => text.replace("var<immediate> launch", "@group(1) @binding(0) var<storage, read> launch"),
        }
    }

    /// The storage buffers it binds, by number.
    pub(crate) fn bindings(self) -> Result<Vec<Binding>> {
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
    pub(crate) fn parse(self, passing: Passing) -> Result<naga::Module> {
        let source = self.source(passing);
        naga::front::wgsl::parse_str(&source).map_err(|e| Error::Device {
            what: format!("shader `{}` does not compile: {}", self.kernel.name(), e.emit_to_string(&source)),
        })
    }
}

/// A storage buffer that a kernel binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Which array, also the binding's number.
    pub(crate) role: Role,
    /// Whether the kernel only reads it.
    pub(crate) read_only: bool,
}

/// How a shader gets its `launch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// As immediates.
    Immediate,
    /// From a storage buffer in bind group 1, on devices without immediates. (Not a uniform buffer: Mesa's llvmpipe
    /// compiles a kernel anew for every value of a loop bound that comes from one.)
    Buffer,
}

impl Kernel {
    /// Whether it deals with what couplings do to columns, and gets the transformation's shaders.
    fn transforms(self) -> bool {
        use Kernel::{
            BetweenBackward, Couple, CoupleBackward, CoupleLoss, CoupleMix, Uncouple, UncoupleBackward, Walk,
        };
        [Couple, CoupleMix, CoupleLoss, Uncouple, UncoupleBackward, Walk, CoupleBackward, BetweenBackward]
            .contains(&self)
    }

    /// Whether it deals with the networks of nodes.
    fn has_networks(self) -> bool {
        use Kernel::{NarrowBackward, Networks, NetworksBackward, NetworksPacked, NetworksPackedBackward, Walk};
        [NetworksPacked, Networks, Walk, NetworksPackedBackward, NetworksBackward, NarrowBackward].contains(&self)
    }
}

#[cfg(test)]
pub(crate) mod spirv;
#[cfg(test)]
mod tests;
