//! The choices that make a model: dimension, blocks, recursion, mixing, scale. Also the JSON of the model file.

use serde::{Deserialize, Serialize};

use super::depth::{self, Depth};
use crate::error::{Error, Result};

/// Kind of model (docs/model.md, Lanes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Unconditional normalizing flow z = T(x).
    #[default]
    Flow,
    /// Conditional flow z = T(x | y): every network sees y beside its upper columns. With depth 0 it is the paper's
    /// baseline.
    Cinn,
    /// Two lanes, [z_y, z_x] = T(y, x): the y lane is a flow of its own and each block's cross coupling carries it to
    /// x.
    Hint,
    /// The invertible network of Ardizzone et al. 2018: a map of x onto [y, z], both padded to the same length, without a
    /// density (docs/model.md, INN).
    Inn,
}

impl Kind {
    /// Its name in settings and model files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Cinn => "cinn",
            Self::Hint => "hint",
            Self::Inn => "inn",
        }
    }

    /// Whether it has an exact density.
    pub(crate) fn has_density(self) -> bool {
        self != Self::Inn
    }
}

/// What the networks of a node see of its upper columns (docs/model.md, Recursion).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ConditionOn {
    /// The upper columns as they entered the block: the paper's equation. All networks of a block are independent.
    #[default]
    Input,
    /// The upper columns after the node's children transformed them: the authors' code. One pass per level.
    Output,
}

/// Orthogonal map at the head of a block (docs/model.md, Mixing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mixing {
    /// A random orthogonal matrix that is not trained.
    #[default]
    Fixed,
    /// A product of N trained Householder reflections.
    Householder,
    /// The columns in reverse order. Splines want columns as they are: an orthogonal map of another kind blends those
    /// with atoms or edges into all others.
    Reverse,
    /// The columns in a random order.
    Permutation,
    /// No mixing.
    None,
}

/// Log-scale of the affine coupling as a function of the network's output (docs/model.md, Couplings).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scale {
    /// `sigma(a) = slope * atan(a)`: bounded by `slope * pi / 2` in both directions.
    Atan {
        /// Slope at zero; 2.544 = 4 * 0.636 in the authors' code.
        #[serde(default = "default_slope")]
        slope: f32,
    },
    /// `sigma(a) = a`, as in the paper's text. Unbounded: training may diverge.
    Exp,
}

/// That of the authors' recursive couplings: 4 * 0.636, so that log-scales end at about 4.
pub(crate) const DEFAULT_SLOPE: f32 = 2.544;

fn default_slope() -> f32 {
    DEFAULT_SLOPE
}

impl Default for Scale {
    fn default() -> Self {
        Self::Atan { slope: DEFAULT_SLOPE }
    }
}

/// What a coupling does to each of its lower columns, by parameters that its networks compute of the upper ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Transform {
    /// `v exp(sigma(s)) + t`, the paper's.
    #[default]
    Affine,
    /// A monotone rational-quadratic spline.
    Spline(Spline),
}

/// A monotone rational-quadratic spline of [-b, b] onto itself, the identity beyond (Durkan, Bekasov, Murray,
/// Papamakarios, 2019).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spline {
    /// K, the number of bins.
    pub bins: u32,
    /// b, half the width of the box.
    #[serde(rename = "box")]
    pub half_width: f32,
    /// The smallest slope at a knot.
    pub min_slope: f32,
}

impl Spline {
    /// The smallest share of the box that a bin has, in width and in height.
    pub const MIN_BIN: f32 = 1e-3;
    /// The most bins: all of them could have ten times their smallest share.
    pub const MOST_BINS: u32 = 64;

    /// Parameters of a column: K widths, K heights, and the slopes at the K - 1 knots between bins.
    pub(crate) fn parameters(self) -> u32 {
        3 * self.bins - 1
    }
}

impl Spline {
    fn validate(self) -> Result<()> {
        let Self { bins, half_width, min_slope } = self;
        if !(2..=Self::MOST_BINS).contains(&bins) {
            return Err(Error::config("model.bins", format!("must be between 2 and {}, is {bins}", Self::MOST_BINS)));
        }
        if !(half_width.is_finite() && (1e-3..=1e6).contains(&half_width)) {
            return Err(Error::config("model.box", format!("must be between 0.001 and 1000000, is {half_width}")));
        }
        if !(1e-6..=0.5).contains(&min_slope) {
            return Err(Error::config("model.min_slope", format!("must be between 0.000001 and 0.5, is {min_slope}")));
        }
        Ok(())
    }
}

impl Default for Spline {
    fn default() -> Self {
        Self { bins: 16, half_width: 5.0, min_slope: 1e-3 }
    }
}

impl Transform {
    /// What its networks are called in the model file.
    pub(crate) fn networks(self) -> &'static [&'static str] {
        match self {
            Self::Affine => &["s", "t"],
            Self::Spline(_) => &["spline"],
        }
    }

    /// Outputs of each network for a column.
    pub(crate) fn outputs(self) -> u32 {
        match self {
            Self::Affine => 1,
            Self::Spline(spline) => spline.parameters(),
        }
    }

    /// Whether a column goes through one map in a stage, whose parameters are the sums of those of all nodes that
    /// transform it; else through the map of every node in turn.
    ///
    /// Of splines the sum is half the work of a chain and about as good: within 0.3 nats on four real tables, in either
    /// direction. Affine maps of a sum would be another model than the paper's.
    pub(crate) fn sums(self) -> bool {
        matches!(self, Self::Spline(_))
    }

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affine => "affine",
            Self::Spline(_) => "spline",
        }
    }

    fn is_affine(&self) -> bool {
        *self == Self::Affine
    }
}

/// A model, before any weight exists. Serialises to the JSON of the model file (docs/model.md, Model file).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spec {
    /// Kind of model.
    pub kind: Kind,
    /// N, the dimension of x.
    pub dim: u32,
    /// C, the dimension of the condition y; 0 for `flow`.
    #[serde(default)]
    pub cond_dim: u32,
    /// L, the number of latent columns z of an `inn`; 0 for all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub latent: u32,
    /// K, the number of blocks.
    pub blocks: u32,
    /// D, the recursion depth.
    #[serde(with = "depth::number")]
    pub depth: Depth,
    /// H, the hidden width of the root's networks.
    pub width: u32,
    /// What the networks see.
    #[serde(default)]
    pub condition_on: ConditionOn,
    /// Orthogonal map of each block.
    #[serde(default)]
    pub mixing: Mixing,
    /// Whether the first block has a mixing too.
    #[serde(default = "default_true")]
    pub mix_first: bool,
    /// Log-scale function of affine couplings.
    #[serde(default)]
    pub scale: Scale,
    /// What couplings do to their columns.
    #[serde(default, skip_serializing_if = "Transform::is_affine")]
    pub coupling: Transform,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn default_true() -> bool {
    true
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            kind: Kind::Flow,
            dim: 2,
            cond_dim: 0,
            latent: 0,
            blocks: 2,
            depth: Depth::Full,
            width: 64,
            condition_on: ConditionOn::Input,
            mixing: Mixing::Fixed,
            mix_first: true,
            scale: Scale::default(),
            coupling: Transform::default(),
        }
    }
}

/// Largest N, H and K: far above any use, low enough that no offset computation can overflow.
pub(crate) const MAX_SIZE: u32 = 1 << 16;

impl Spec {
    /// Hidden width of the networks at recursion level `level` (root: 0): halved per level down to an eighth.
    pub(crate) fn width_at(&self, level: u32) -> u32 {
        (self.width >> level.min(3)).max(1)
    }

    /// Columns of a training row: the conditions y, then x.
    pub(crate) fn row_columns(&self) -> u32 {
        self.cond_dim + self.dim
    }

    /// Columns that the model transforms together: x, with two lanes [y, x]. As many has z. Of an `inn` x with its padding.
    pub(crate) fn latent_dim(&self) -> u32 {
        match self.kind {
            Kind::Flow | Kind::Cinn => self.dim,
            Kind::Hint => self.cond_dim + self.dim,
            Kind::Inn => self.dim.max(self.cond_dim + self.latent),
        }
    }

    /// Conditions that the networks see beside their columns.
    pub(crate) fn given(&self) -> u32 {
        match self.kind {
            Kind::Flow | Kind::Hint | Kind::Inn => 0,
            Kind::Cinn => self.cond_dim,
        }
    }

    /// Whether block `b` begins with a mixing.
    pub(crate) fn block_has_mixing(&self, b: u32) -> bool {
        self.mixing != Mixing::None && (b > 0 || self.mix_first)
    }

    /// Whether the gradient of the inverse is known, which the training of an `inn` needs.
    fn has_differentiable_inverse(&self) -> Result<()> {
        if !self.coupling.is_affine() {
            return Err(Error::config("model.coupling", "must be affine: an `inn` has no other couplings"));
        }
        if self.mixing == Mixing::Householder {
            let what = "must not be householder: an `inn` has mixings that are not trained, such as fixed";
            return Err(Error::config("model.mixing", what));
        }
        if self.depth != Depth::Levels(0) && self.condition_on == ConditionOn::Input {
            let what = "must be 0 in an `inn`, which has plain couplings; with model.condition_on=output any depth is possible";
            return Err(Error::config("model.depth", what));
        }
        Ok(())
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Config`] naming the key that is out of range.
    pub(crate) fn validate(&self) -> Result<()> {
        let range = |key: &str, value: u32| {
            if value == 0 || value > MAX_SIZE {
                return Err(Error::config(key, format!("must be between 1 and {MAX_SIZE}, is {value}")));
            }
            Ok(())
        };
        range("model.dim", self.dim)?;
        range("model.blocks", self.blocks)?;
        range("model.width", self.width)?;
        match self.kind {
            Kind::Flow if self.cond_dim != 0 => {
                return Err(Error::config("model.cond_dim", "must be 0: a `flow` has no conditions"));
            }
            Kind::Flow => {}
            Kind::Cinn | Kind::Hint => range("model.cond_dim", self.cond_dim)?,
            Kind::Inn => {
                range("model.cond_dim", self.cond_dim)?;
                range("model.latent", self.latent)?;
                self.has_differentiable_inverse()?;
            }
        }
        if self.kind != Kind::Inn && self.latent != 0 {
            return Err(Error::config("model.latent", "is for an `inn` only; leave it out"));
        }
        if let Scale::Atan { slope } = self.scale
            && !(slope.is_finite() && slope > 0.0)
        {
            return Err(Error::config("model.slope", format!("must be a positive number, is {slope}")));
        }
        if let Transform::Spline(spline) = self.coupling {
            spline.validate()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_model_files() {
        let json = r#"{"format":1,"kind":"flow","dim":20,"cond_dim":0,"blocks":1,"depth":99,"width":24,"condition_on":"output",
            "mixing":"householder","mix_first":false,"scale":{"kind":"exp"}}"#;
        let spec: Spec = serde_json::from_str(json).unwrap();
        assert_eq!((spec.dim, spec.condition_on, spec.mixing), (20, ConditionOn::Output, Mixing::Householder));
        assert_eq!(spec.scale, Scale::Exp);
        assert!(!spec.mix_first);
        let short: Spec = serde_json::from_str(r#"{"kind":"flow","dim":3,"blocks":1,"depth":0,"width":4}"#).unwrap();
        assert_eq!(short.scale, Scale::Atan { slope: 2.544 });
        assert!(short.mix_first && short.mixing == Mixing::Fixed);
    }

    #[test]
    fn splines_have_their_place_in_the_json() {
        let json = r#"{"kind":"flow","dim":3,"blocks":1,"depth":0,"width":4,"mixing":"reverse",
            "coupling":{"kind":"spline","bins":6,"box":4.0,"min_slope":0.01}}"#;
        let spec: Spec = serde_json::from_str(json).unwrap();
        let spline = Spline { bins: 6, half_width: 4.0, min_slope: 0.01 };
        assert_eq!((spec.coupling, spec.mixing), (Transform::Spline(spline), Mixing::Reverse));
        assert_eq!(serde_json::from_str::<Spec>(&serde_json::to_string(&spec).unwrap()).unwrap(), spec);
        let affine = Spec { coupling: Transform::Affine, ..spec };
        assert!(
            !serde_json::to_string(&affine).unwrap().contains("coupling"),
            "files of affine models stay as they are"
        );
    }

    #[test]
    fn widths_halve_down_to_an_eighth() {
        let spec = Spec { width: 139, ..Spec::default() };
        assert_eq!((0..6).map(|l| spec.width_at(l)).collect::<Vec<_>>(), [139, 69, 34, 17, 17, 17]);
        assert_eq!(Spec { width: 3, ..Spec::default() }.width_at(4), 1);
    }

    #[test]
    fn out_of_range_fields_are_named() {
        let message = |spec: Spec| spec.validate().unwrap_err().to_string();
        assert!(message(Spec { dim: 0, ..Spec::default() }).contains("model.dim"));
        assert!(message(Spec { width: 1 << 20, ..Spec::default() }).contains("model.width"));
        let spline = |spline| Spec { coupling: Transform::Spline(spline), ..Spec::default() };
        assert!(message(spline(Spline { bins: 1, ..Spline::default() })).contains("model.bins"));
        assert!(message(spline(Spline { half_width: f32::NAN, ..Spline::default() })).contains("model.box"));
        assert!(message(spline(Spline { min_slope: 0.0, ..Spline::default() })).contains("model.min_slope"));
        assert!(message(Spec { scale: Scale::Atan { slope: f32::NAN }, ..Spec::default() }).contains("model.slope"));
    }
}
