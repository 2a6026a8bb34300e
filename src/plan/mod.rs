//! WHAT a model is: sizes, orders and settings. No weights, no devices.
//!
//! [`Spec`] is what a user chooses; [`Plan`] is what follows from it: the nodes of every recursive coupling block
//! ([`tree`]), grouped into stages ([`stage`]), and the name, shape and offset of every weight ([`params`]).
//! This is the only room that knows recursion. Everything after it sees tables of nodes.

pub(crate) mod budget;
mod depth;
mod lane;
pub(crate) mod params;
pub(crate) mod spec;
pub(crate) mod stage;
pub(crate) mod tree;

use std::ops::Range;

use crate::error::{Error, Result};
pub use depth::Depth;
pub(crate) use params::{Layout, Tensor};
pub(crate) use spec::MAX_SIZE;
pub use spec::{ConditionOn, Kind, Mixing, Scale, Spec, Spline, Transform};
pub(crate) use stage::{Layer, Link, Net, Node, Stage};

/// The orthogonal mixing of a lane at the head of a block (docs/model.md, Mixing).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mix {
    /// First of the columns that it mixes.
    pub first: u32,
    /// Number of columns it mixes.
    pub dim: u32,
    /// Offset of Q, row-major `[dim, dim]`, in the weight arena.
    pub q: u32,
    /// Offset of the trained reflection vectors `[dim, dim]` that Q is made of, for `mixing = householder`.
    pub reflections: Option<u32>,
    /// Whether Q is a permutation: one 1 in each row, else zeros.
    pub permutes: bool,
}

/// One block: mixing, then the stages of its couplings in forward order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Mixing of each lane before the couplings, in the order of the columns; none where the block has no mixing.
    pub mixes: Vec<Mix>,
    /// The stages that transform all columns together, as indices into [`Plan::stages`].
    pub stages: Range<usize>,
    /// With two lanes, the same couplings lane by lane.
    pub lanes: Option<Lanes>,
}

/// Stages of the two lanes of a block, apart: for what needs y alone, or x where y is known. They have the weights of
/// the stages of both together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Stages over the C columns of y, as indices into [`Plan::stages`].
    pub y: Range<usize>,
    /// Stages over the N columns of x, given the y that the block's couplings see.
    pub x: Range<usize>,
}

/// Everything that follows from a [`Spec`]: node tables and the layout of the weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The choices this plan was made from.
    pub spec: Spec,
    /// Blocks in forward order.
    pub blocks: Vec<Block>,
    /// All stages of all blocks.
    pub stages: Vec<Stage>,
    /// Where every weight lies.
    pub layout: Layout,
}

impl Plan {
    /// Works out the node tables and the weight layout of a model.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a field of the spec is out of range or the model would have 2^31 weights or more.
    pub(crate) fn new(spec: &Spec) -> Result<Self> {
        spec.validate()?;
        // Before anything is built: a header of a broken file may ask for billions of nodes.
        let total = budget::arena_len(spec);
        if total >= 1 << 31 {
            let what = format!("the model would have {total} weights, at most 2147483647 are possible");
            return Err(Error::config("model.width", format!("{what}; choose fewer or narrower blocks")));
        }
        let mut layout = params::Builder::default();
        let mut stages = Vec::new();
        let mut blocks = Vec::new();
        for b in 0..spec.blocks {
            let lanes = if spec.block_has_mixing(b) { lane::lanes(spec, b) } else { Vec::new() };
            let mixes = lanes.iter().map(|lane| layout.mix(lane, spec.mixing)).collect();
            let couplings: Vec<_> = lane::couplings(spec, b)
                .into_iter()
                .map(|coupling| {
                    let nets = layout.nets(&coupling, spec.coupling.networks());
                    (coupling, nets)
                })
                .collect();
            let mut add = |dim, couplings: &[_]| {
                let first = stages.len();
                stages.extend(stage::stages(spec, dim, couplings));
                first..stages.len()
            };
            blocks.push(Block {
                mixes,
                stages: add(spec.latent_dim(), &couplings),
                lanes: (spec.kind == Kind::Hint).then(|| {
                    let (y, x): (Vec<_>, Vec<_>) = couplings.into_iter().partition(|(c, _)| c.is_y());
                    let x: Vec<_> = x.into_iter().map(|(c, nets)| (c.given_y(spec.cond_dim), nets)).collect();
                    Lanes { y: add(spec.cond_dim, &y), x: add(spec.dim, &x) }
                }),
            });
        }
        let layout = layout.finish();
        for mix in blocks.iter_mut().flat_map(|block| &mut block.mixes) {
            layout.locate(mix);
        }
        Ok(Self { spec: spec.clone(), blocks, stages, layout })
    }

    /// Hidden rows of the stages before one, by which its units have numbers of their own.
    pub(crate) fn hidden_before(&self, stage: usize) -> u32 {
        self.stages[..stage].iter().map(|stage| stage.hidden_rows).sum()
    }

    /// Every mixing of the model, in block order.
    pub(crate) fn mixes(&self) -> impl Iterator<Item = &Mix> {
        self.blocks.iter().flat_map(|block| &block.mixes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_belongs_to_exactly_one_tensor() {
        for (dim, mixing) in [(1, Mixing::None), (5, Mixing::Fixed), (20, Mixing::Householder), (33, Mixing::Fixed)] {
            let spec = Spec { dim, mixing, blocks: 3, width: 10, ..Spec::default() };
            let plan = Plan::new(&spec).unwrap();
            let mut covered = vec![0u8; plan.layout.len()];
            for t in &plan.layout.tensors {
                covered[t.range()].iter_mut().for_each(|c| *c += 1);
            }
            let derived = plan.layout.trained..plan.layout.gradient_len();
            for (i, &c) in covered.iter().enumerate() {
                // Q of a Householder mixing is computed, so no tensor of the model file names it.
                assert_eq!(c, u8::from(!derived.contains(&i)), "weight {i} of N = {dim}");
            }
        }
    }

    #[test]
    fn parameter_counts_are_those_of_the_reference_trainings() {
        let count = |spec: &Spec| Plan::new(spec).unwrap().layout.trained;
        let one = Spec { dim: 20, blocks: 1, mixing: Mixing::None, ..Spec::default() };
        let lens1 = count(&Spec { width: 152, ..one.clone() });
        assert!((100_500..101_500).contains(&lens1), "{lens1}");
        let real_nvp = count(&Spec { width: 216, depth: 0.into(), ..one });
        assert!((102_000..103_000).contains(&real_nvp), "{real_nvp}");
    }
}
