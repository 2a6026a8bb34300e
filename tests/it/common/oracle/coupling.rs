//! Couplings, the affine one, and the recursive block f_R made of them, on one row.

use super::network::{Network, add};
use super::spec::{ConditionOn, Scale, Spec, Tensors, Transform};
use super::spline::SplineCoupling;

/// What a transformation makes of a row.
pub(super) struct Image {
    pub(super) value: Vec<f64>,
    pub(super) log_det: f64,
    /// How near the nearest ReLU on the way is to its kink.
    pub(super) relu_margin: f64,
    /// How near the nearest knot is to what its spline bends.
    pub(super) knot_margin: f64,
}

/// Transforms lower columns u, given v.
pub(super) enum Coupling<'a> {
    Affine(AffineCoupling<'a>),
    Spline(SplineCoupling<'a>),
}

impl<'a> Coupling<'a> {
    /// The coupling whose networks are called `{name}.s` and `{name}.t`, or `{name}.spline`.
    pub(super) fn new(spec: &Spec, params: &'a Tensors, name: &str) -> Self {
        match spec.coupling {
            Transform::Affine => Self::Affine(AffineCoupling::new(spec, params, name)),
            Transform::Spline(settings) => Self::Spline(SplineCoupling::new(settings, params, name)),
        }
    }

    pub(super) fn forward(&self, u: &[f64], v: &[f64]) -> Image {
        match self {
            Self::Affine(affine) => affine.forward(u, v),
            Self::Spline(spline) => spline.forward(u, v),
        }
    }

    pub(super) fn inverse(&self, u: &[f64], v: &[f64]) -> Vec<f64> {
        match self {
            Self::Affine(affine) => affine.inverse(u, v),
            Self::Spline(spline) => spline.inverse(u, v),
        }
    }

    /// Gradients of (u, v) for those of u' and of the log-det.
    pub(super) fn backward(
        &self,
        u: &[f64],
        v: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
    ) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Affine(affine) => affine.backward(u, v, d_value, d_log_det, grads),
            Self::Spline(spline) => spline.backward(u, v, d_value, d_log_det, grads),
        }
    }
}

/// `u' = u * exp(sigma(s(v))) + t(v)`.
pub(super) struct AffineCoupling<'a> {
    scale: Scale,
    s: Network<'a>,
    t: Network<'a>,
}

impl<'a> AffineCoupling<'a> {
    fn new(spec: &Spec, params: &'a Tensors, name: &str) -> Self {
        Self {
            scale: spec.scale,
            s: Network::new(params, format!("{name}.s")),
            t: Network::new(params, format!("{name}.t")),
        }
    }

    fn forward(&self, u: &[f64], v: &[f64]) -> Image {
        let (s, t) = (self.s.forward(v), self.t.forward(v));
        let relu_margin = s.relu_margin().min(t.relu_margin());
        let sigma: Vec<f64> = s.output.iter().map(|&a| self.scale.sigma(a)).collect();
        let value = (0..u.len()).map(|i| u[i] * sigma[i].exp() + t.output[i]).collect();
        Image { value, log_det: sigma.iter().sum(), relu_margin, knot_margin: f64::INFINITY }
    }

    /// `u = (u' - t(v)) * exp(-sigma(s(v)))`.
    fn inverse(&self, u: &[f64], v: &[f64]) -> Vec<f64> {
        let (s, t) = (self.s.forward(v).output, self.t.forward(v).output);
        (0..u.len()).map(|i| (u[i] - t[i]) * (-self.scale.sigma(s[i])).exp()).collect()
    }

    /// Gradients of (u, v) for those of u' and of the log-det.
    fn backward(
        &self,
        u: &[f64],
        v: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
    ) -> (Vec<f64>, Vec<f64>) {
        let (s, t) = (self.s.forward(v), self.t.forward(v));
        let mut d_u = Vec::new();
        let mut d_s = Vec::new();
        for i in 0..u.len() {
            let a = s.output[i];
            let factor = self.scale.sigma(a).exp();
            d_u.push(d_value[i] * factor);
            d_s.push((d_value[i] * u[i] * factor + d_log_det) * self.scale.slope_at(a));
        }
        let mut d_v = self.s.backward(&s, &d_s, grads);
        add(&mut d_v, &self.t.backward(&t, d_value, grads));
        (d_u, d_v)
    }
}

/// A place in the recursion: heap number (root 1, children 2i and 2i + 1) and level (root 0).
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) level: usize,
}

impl Node {
    pub(super) const ROOT: Self = Self { id: 1, level: 0 };

    pub(super) fn upper(self) -> Self {
        Self { id: 2 * self.id, level: self.level + 1 }
    }

    pub(super) fn lower(self) -> Self {
        Self { id: 2 * self.id + 1, level: self.level + 1 }
    }
}

/// The recursive coupling f_R of one lane of one block, given conditions that every network sees.
pub(super) struct Tree<'a> {
    pub(super) spec: &'a Spec,
    pub(super) params: &'a Tensors,
    /// `blocks.0.tree`, `blocks.0.x.tree`.
    pub(super) name: String,
    /// y of a conditional flow, else nothing.
    pub(super) conditions: &'a [f64],
}

impl<'a> Tree<'a> {
    /// f_R(x) = [f_R(x_1), C(f_R(x_2) | x_1)].
    pub(super) fn forward(&self, node: Node, x: &[f64]) -> Image {
        let (upper, lower) = x.split_at(x.len() / 2);
        let new_upper = self.child(node, x.len(), node.upper(), upper);
        let new_lower = self.child(node, x.len(), node.lower(), lower);
        let coupled = self.coupling(node).forward(&new_lower.value, &self.seen(upper, &new_upper.value));
        Image {
            value: [new_upper.value, coupled.value].concat(),
            log_det: new_upper.log_det + new_lower.log_det + coupled.log_det,
            relu_margin: new_upper.relu_margin.min(new_lower.relu_margin).min(coupled.relu_margin),
            knot_margin: new_upper.knot_margin.min(new_lower.knot_margin).min(coupled.knot_margin),
        }
    }

    /// The inverse of `forward`: the upper part first, as the coupling needs it.
    pub(super) fn inverse(&self, node: Node, x: &[f64]) -> Vec<f64> {
        let (new_upper, coupled) = x.split_at(x.len() / 2);
        let divides = self.spec.divides(node.level, x.len());
        let undo = |child, x: &[f64]| if divides { self.inverse(child, x) } else { x.to_vec() };
        let upper = undo(node.upper(), new_upper);
        let new_lower = self.coupling(node).inverse(coupled, &self.seen(&upper, new_upper));
        [upper, undo(node.lower(), &new_lower)].concat()
    }

    /// The gradient of x for those of f_R(x) and of the log-det; adds to those of weights and conditions.
    pub(super) fn backward(
        &self,
        node: Node,
        x: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
        d_conditions: &mut [f64],
    ) -> Vec<f64> {
        let (upper, lower) = x.split_at(x.len() / 2);
        let new_upper = self.child(node, x.len(), node.upper(), upper).value;
        let new_lower = self.child(node, x.len(), node.lower(), lower).value;
        let (d_upper, d_coupled) = d_value.split_at(upper.len());

        let seen = self.seen(upper, &new_upper);
        let (d_lower, d_seen) = self.coupling(node).backward(&new_lower, &seen, d_coupled, d_log_det, grads);
        let (d_seen, d_given) = d_seen.split_at(upper.len());
        add(d_conditions, d_given);

        let mut d_upper = d_upper.to_vec();
        if self.spec.condition_on == ConditionOn::Output {
            add(&mut d_upper, d_seen);
        }
        let (mut d_upper, d_lower) = if self.spec.divides(node.level, x.len()) {
            (
                self.backward(node.upper(), upper, &d_upper, d_log_det, grads, d_conditions),
                self.backward(node.lower(), lower, &d_lower, d_log_det, grads, d_conditions),
            )
        } else {
            (d_upper, d_lower)
        };
        if self.spec.condition_on == ConditionOn::Input {
            add(&mut d_upper, d_seen);
        }
        [d_upper, d_lower].concat()
    }

    /// What the child of a node of `size` columns makes of its part; the identity if there is no child.
    fn child(&self, node: Node, size: usize, child: Node, part: &[f64]) -> Image {
        if self.spec.divides(node.level, size) {
            self.forward(child, part)
        } else {
            Image { value: part.to_vec(), log_det: 0.0, relu_margin: f64::INFINITY, knot_margin: f64::INFINITY }
        }
    }

    /// What the networks of a node see: `[upper columns, conditions]`.
    fn seen(&self, upper: &[f64], new_upper: &[f64]) -> Vec<f64> {
        let upper = match self.spec.condition_on {
            ConditionOn::Input => upper,
            ConditionOn::Output => new_upper,
        };
        [upper, self.conditions].concat()
    }

    fn coupling(&self, node: Node) -> Coupling<'a> {
        Coupling::new(self.spec, self.params, &format!("{}.{}", self.name, node.id))
    }
}
