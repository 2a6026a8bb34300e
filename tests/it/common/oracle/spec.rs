//! What a model is: the JSON of a model file, and the names and shapes of the tensors that follow from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The three model kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// z = T(x).
    Flow,
    /// z = T(x | y): every network also sees the conditions y.
    Cinn,
    /// z = T(y, x): two lanes, the y lane feeding the x lane.
    Hint,
}

/// Which upper columns the networks of a node see: those before or after the upper child transformed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConditionOn {
    /// Untransformed: the paper's equation.
    #[default]
    Input,
    /// Transformed: the authors' code.
    Output,
}

/// How a block mixes its columns first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mixing {
    /// A given orthogonal matrix, not trained.
    Fixed,
    /// A product of trained reflections.
    Householder,
    /// The last column first: a fixed matrix with ones on the other diagonal.
    Reverse,
    /// A fixed matrix with a single one in every row and column.
    Permutation,
    /// Not at all.
    None,
}

/// The soft clamp sigma in `exp(sigma(s))`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Scale {
    /// `sigma(a) = slope * atan(a)`.
    Atan {
        /// Largest logarithm of a scale, over pi / 2.
        slope: f64,
    },
    /// `sigma(a) = a`.
    Exp,
}

impl Default for Scale {
    fn default() -> Self {
        Self::Atan { slope: 2.544 }
    }
}

impl Scale {
    /// sigma(a).
    pub(super) fn sigma(self, a: f64) -> f64 {
        match self {
            Self::Atan { slope } => slope * a.atan(),
            Self::Exp => a,
        }
    }

    /// The derivative of sigma at a.
    pub(super) fn slope_at(self, a: f64) -> f64 {
        match self {
            Self::Atan { slope } => slope / (1.0 + a * a),
            Self::Exp => 1.0,
        }
    }
}

/// What a coupling does to a column.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Transform {
    /// Rescales and shifts.
    #[default]
    Affine,
    /// Bends by a monotonic rational-quadratic spline.
    Spline(SplineSettings),
}

/// What all splines of a model have in common.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SplineSettings {
    pub(crate) bins: usize,
    /// b: a spline bends -b..b onto itself and leaves everything beyond alone.
    #[serde(rename = "box")]
    pub(crate) half_width: f64,
    /// The smallest slope at an inner knot.
    pub(crate) min_slope: f64,
}

impl Default for SplineSettings {
    fn default() -> Self {
        Self { bins: 8, half_width: 5.0, min_slope: 1e-3 }
    }
}

impl SplineSettings {
    /// Raw parameters of one column: a width and a height of every bin, a slope of every inner knot.
    pub(crate) fn parameters(self) -> usize {
        3 * self.bins - 1
    }
}

impl Transform {
    fn is_affine(&self) -> bool {
        *self == Self::Affine
    }
}

/// Everything about a model but its numbers; the fields are the keys of the model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// N, columns of x.
    pub(crate) dim: usize,
    /// C, columns of y.
    #[serde(default)]
    pub(crate) cond_dim: usize,
    /// K.
    pub(crate) blocks: usize,
    /// D; 99 or more is full, which the size of a node ends long before.
    pub(crate) depth: usize,
    /// H, the hidden width of the root and of cross couplings.
    pub(crate) width: usize,
    #[serde(default)]
    pub(crate) condition_on: ConditionOn,
    pub(crate) mixing: Mixing,
    /// Whether the first block is mixed too.
    #[serde(default = "yes")]
    pub(crate) mix_first: bool,
    /// The soft clamp of affine couplings.
    #[serde(default)]
    pub(crate) scale: Scale,
    #[serde(default, skip_serializing_if = "Transform::is_affine")]
    pub(crate) coupling: Transform,
}

fn yes() -> bool {
    true
}

/// Row-major numbers and their shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Tensor {
    /// All zeros.
    pub(crate) fn zeros(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] }
    }
}

/// Tensors by the names of the model file.
pub(crate) type Tensors = BTreeMap<String, Tensor>;

/// Whether training changes the tensor of this name: all but mixing matrices that are given.
pub(crate) fn is_trained(name: &str) -> bool {
    !name.ends_with(".mix.weight")
}

impl Spec {
    /// A recursive flow of full depth with the defaults, to be changed by struct update.
    pub(crate) fn flow(dim: usize) -> Self {
        Self {
            kind: Kind::Flow,
            dim,
            cond_dim: 0,
            blocks: 2,
            depth: 99,
            width: 8,
            condition_on: ConditionOn::Input,
            mixing: Mixing::Householder,
            mix_first: true,
            scale: Scale::default(),
            coupling: Transform::Affine,
        }
    }

    /// The same as a flow of x given y.
    pub(crate) fn cinn(dim: usize, cond_dim: usize) -> Self {
        Self { kind: Kind::Cinn, cond_dim, ..Self::flow(dim) }
    }

    /// The same with two lanes.
    pub(crate) fn hint(dim: usize, cond_dim: usize) -> Self {
        Self { kind: Kind::Hint, cond_dim, ..Self::flow(dim) }
    }

    /// Columns of z: N, and C + N with two lanes.
    pub(crate) fn latent_dim(&self) -> usize {
        if self.kind == Kind::Hint { self.cond_dim + self.dim } else { self.dim }
    }

    /// Log-determinants of a row: one, and two (y lane, x lane) with two lanes.
    pub(crate) fn lanes(&self) -> usize {
        if self.kind == Kind::Hint { 2 } else { 1 }
    }

    /// Whether block b begins with a Q.
    pub(crate) fn mixes(&self, block: usize) -> bool {
        self.mixing != Mixing::None && (block > 0 || self.mix_first)
    }

    /// Hidden width of the networks at a level.
    pub(crate) fn width_at(&self, level: usize) -> usize {
        (self.width >> level.min(3)).max(1)
    }

    /// Whether a node of `size` columns at `level` has children.
    pub(crate) fn divides(&self, level: usize, size: usize) -> bool {
        level < self.depth && size > 3
    }

    /// Names and shapes of all tensors, those with a zero dimension included.
    pub(crate) fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let mut shapes = BTreeMap::new();
        for block in 0..self.blocks {
            let name = format!("blocks.{block}");
            match self.kind {
                Kind::Flow => self.lane_shapes(&mut shapes, &name, block, self.dim, 0),
                Kind::Cinn => self.lane_shapes(&mut shapes, &name, block, self.dim, self.cond_dim),
                Kind::Hint => {
                    self.lane_shapes(&mut shapes, &format!("{name}.y"), block, self.cond_dim, 0);
                    self.lane_shapes(&mut shapes, &format!("{name}.x"), block, self.dim, 0);
                    self.coupling_shapes(&mut shapes, &format!("{name}.cross"), self.cond_dim, self.width, self.dim);
                }
            }
        }
        shapes
    }

    fn lane_shapes(
        &self,
        shapes: &mut BTreeMap<String, Vec<usize>>,
        lane: &str,
        block: usize,
        size: usize,
        conditions: usize,
    ) {
        if self.mixes(block) {
            let what = if self.mixing == Mixing::Householder { "reflections" } else { "weight" };
            shapes.insert(format!("{lane}.mix.{what}"), vec![size, size]);
        }
        // (heap number, level, columns) of the nodes that are still to be listed.
        let mut nodes = vec![(1_u64, 0, size)];
        while let Some((id, level, size)) = nodes.pop() {
            let (upper, lower) = (size / 2, size - size / 2);
            let name = format!("{lane}.tree.{id}");
            self.coupling_shapes(shapes, &name, upper + conditions, self.width_at(level), lower);
            if self.divides(level, size) {
                nodes.extend([(2 * id, level + 1, upper), (2 * id + 1, level + 1, lower)]);
            }
        }
    }

    fn coupling_shapes(
        &self,
        shapes: &mut BTreeMap<String, Vec<usize>>,
        name: &str,
        n_in: usize,
        hidden: usize,
        columns: usize,
    ) {
        let (networks, n_out): (&[&str], _) = match self.coupling {
            Transform::Affine => (&["s", "t"], columns),
            Transform::Spline(settings) => (&["spline"], columns * settings.parameters()),
        };
        for network in networks {
            for (layer, (from, to)) in [(n_in, hidden), (hidden, hidden), (hidden, n_out)].into_iter().enumerate() {
                shapes.insert(format!("{name}.{network}.{layer}.weight"), vec![to, from]);
                shapes.insert(format!("{name}.{network}.{layer}.bias"), vec![to]);
            }
        }
    }
}
