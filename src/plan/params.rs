//! Name, shape and offset of every weight in the one weight arena.
//!
//! The arena is `[trained | derived | fixed]`: what Adam updates, the mixing matrices computed from reflection vectors,
//! and the mixing matrices that are never trained. A gradient arena has the length of the first two.

use std::ops::Range;

use super::Mix;
use super::lane::{Coupling, Lane};
use super::spec::Mixing;
use super::stage::{Net, Nets};

/// A named weight tensor of the model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// Name in the model file (docs/model.md, Model file).
    pub name: String,
    /// Shape, row-major.
    pub shape: Vec<usize>,
    /// Offset of its first element in the weight arena.
    pub offset: usize,
}

impl Tensor {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the tensor has no elements (a network of a node without upper columns).
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its place in the weight arena.
    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// The weight arena of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// All tensors of the model file: the trained ones, then the fixed mixing matrices.
    pub tensors: Vec<Tensor>,
    /// P, the number of trained parameters; they come first.
    pub trained: usize,
    /// Elements of mixing matrices that are computed from trained reflections.
    pub derived: usize,
    /// Elements of mixing matrices that are not trained.
    pub fixed: usize,
}

impl Layout {
    /// Length of the weight arena.
    pub(crate) fn len(&self) -> usize {
        self.trained + self.derived + self.fixed
    }

    /// Length of a gradient arena: trained and derived weights.
    pub(crate) fn gradient_len(&self) -> usize {
        self.trained + self.derived
    }

    /// Where the trained weight matrices of networks lie, in order: what weight decay takes. Neither biases nor
    /// reflections, whose lengths mean nothing.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = Range<usize>> {
        let matrices = self.tensors.iter().filter(|t| t.offset < self.trained && t.name.ends_with(".weight"));
        matrices.map(Tensor::range).filter(|range| !range.is_empty())
    }

    /// Turns the offset of a Q that counts within its class into an offset in the arena.
    pub(super) fn locate(&self, mix: &mut Mix) {
        mix.q += match mix.reflections {
            Some(_) => self.trained,
            None => self.trained + self.derived,
        } as u32;
    }
}

/// Collects tensors while the plan is made.
#[derive(Default)]
pub(super) struct Builder {
    trained: Vec<Tensor>,
    fixed: Vec<Tensor>,
    trained_len: u64,
    derived_len: u64,
    fixed_len: u64,
}

impl Builder {
    fn push_trained(&mut self, name: String, shape: Vec<usize>) -> u32 {
        let offset = self.trained_len;
        self.trained_len += shape.iter().map(|&n| n as u64).product::<u64>();
        self.trained.push(Tensor { name, shape, offset: offset as usize });
        offset as u32 // `Plan::new` has refused arenas that do not fit
    }

    /// The networks of a coupling node, by their names.
    pub(super) fn nets(&mut self, coupling: &Coupling, names: &[&str]) -> Nets {
        let Coupling { name, upper, given, hidden, outputs, .. } = coupling;
        Nets::new(names.iter().map(|which| self.net(&format!("{name}.{which}"), upper + given, *hidden, *outputs)))
    }

    fn net(&mut self, prefix: &str, n_in: u32, hidden: u32, n_out: u32) -> Net {
        let sizes = [n_in, hidden, hidden, n_out].map(|n| n as usize);
        let mut net = Net { weight: [0; 3], bias: [0; 3] };
        for layer in 0..3 {
            let (k, n) = (sizes[layer], sizes[layer + 1]);
            net.weight[layer] = self.push_trained(format!("{prefix}.{layer}.weight"), vec![n, k]);
            net.bias[layer] = self.push_trained(format!("{prefix}.{layer}.bias"), vec![n]);
        }
        net
    }

    /// The offset `q` counts within the derived or the fixed weights until [`Layout::locate`].
    pub(super) fn mix(&mut self, lane: &Lane, mixing: Mixing) -> Mix {
        let &Lane { first, dim, ref prefix } = lane;
        let prefix = format!("{prefix}.mix");
        let n = dim as usize;
        if mixing == Mixing::Householder {
            let reflections = Some(self.push_trained(format!("{prefix}.reflections"), vec![n, n]));
            let q = self.derived_len;
            self.derived_len += (n * n) as u64;
            Mix { first, dim, q: q as u32, reflections, permutes: false }
        } else {
            let q = self.fixed_len;
            self.fixed.push(Tensor { name: format!("{prefix}.weight"), shape: vec![n, n], offset: q as usize });
            self.fixed_len += (n * n) as u64;
            let permutes = matches!(mixing, Mixing::Reverse | Mixing::Permutation);
            Mix { first, dim, q: q as u32, reflections: None, permutes }
        }
    }

    pub(super) fn finish(self) -> Layout {
        let fixed_from = (self.trained_len + self.derived_len) as usize;
        let mut tensors = self.trained;
        tensors.extend(self.fixed.into_iter().map(|t| Tensor { offset: t.offset + fixed_from, ..t }));
        Layout {
            tensors,
            trained: self.trained_len as usize,
            derived: self.derived_len as usize,
            fixed: self.fixed_len as usize,
        }
    }
}
