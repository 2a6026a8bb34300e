//! All couplings of one lane of one block, on one row: f_R, and what another lane adds.
//!
//! Affine couplings follow each other. So do splines that see transformed columns; those that see the untransformed
//! ones are a single spline for each column, whose raw parameters are the sum of what all couplings say about it.

use super::coupling::{Coupling, Image, Node, Tree};
use super::network::{Trace, add};
use super::spec::{ConditionOn, SplineSettings, Tensors, Transform};
use super::spline::{Spline, SplineCoupling};

/// The couplings of a lane.
pub(super) struct Lane<'a> {
    pub(super) tree: Tree<'a>,
    /// The coupling of all columns given those of another lane, and these columns.
    pub(super) cross: Option<(Coupling<'a>, &'a [f64])>,
}

impl Lane<'_> {
    pub(super) fn forward(&self, x: &[f64]) -> Image {
        if let Some(settings) = self.sums() {
            return self.sum_forward(settings, x);
        }
        let own = self.tree.forward(Node::ROOT, x);
        let Some((cross, given)) = &self.cross else { return own };
        let crossed = cross.forward(&own.value, given);
        Image {
            value: crossed.value,
            log_det: own.log_det + crossed.log_det,
            relu_margin: own.relu_margin.min(crossed.relu_margin),
            knot_margin: own.knot_margin.min(crossed.knot_margin),
        }
    }

    pub(super) fn inverse(&self, x: &[f64]) -> Vec<f64> {
        if let Some(settings) = self.sums() {
            return self.sum_inverse(settings, x);
        }
        let own = self.cross.as_ref().map(|(cross, given)| cross.inverse(x, given));
        self.tree.inverse(Node::ROOT, own.as_deref().unwrap_or(x))
    }

    /// The gradient of x for those of the image; adds to those of weights and of what is given, be it the conditions
    /// of the tree or another lane.
    pub(super) fn backward(
        &self,
        x: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
        d_given: &mut [f64],
    ) -> Vec<f64> {
        if let Some(settings) = self.sums() {
            return self.sum_backward(settings, x, d_value, d_log_det, grads, d_given);
        }
        let Some((cross, given)) = &self.cross else {
            return self.tree.backward(Node::ROOT, x, d_value, d_log_det, grads, d_given);
        };
        let own = self.tree.forward(Node::ROOT, x).value;
        let (d_own, d_seen) = cross.backward(&own, given, d_value, d_log_det, grads);
        add(d_given, &d_seen);
        self.tree.backward(Node::ROOT, x, &d_own, d_log_det, grads, &mut [])
    }

    /// The settings of splines whose parameters are summed; none if couplings follow each other.
    fn sums(&self) -> Option<SplineSettings> {
        match (self.tree.spec.coupling, self.tree.spec.condition_on) {
            (Transform::Spline(settings), ConditionOn::Input) => Some(settings),
            _ => None,
        }
    }

    fn sum_forward(&self, settings: SplineSettings, x: &[f64]) -> Image {
        let mut sums = self.cross_sums(settings, x.len());
        for part in self.parts(settings, x.len()) {
            sums.add(part.middle, &part.trace(x, self.tree.conditions));
        }
        let mut image =
            Image { value: vec![], log_det: 0.0, relu_margin: sums.relu_margin, knot_margin: f64::INFINITY };
        for (&x, raw) in x.iter().zip(&sums.raw) {
            match raw {
                Some(raw) => image.push(&Spline::new(settings, raw), x),
                None => image.value.push(x),
            }
        }
        image
    }

    /// The upper part first, then the node that sees it, then the lower part.
    fn sum_inverse(&self, settings: SplineSettings, x: &[f64]) -> Vec<f64> {
        let mut sums = self.cross_sums(settings, x.len());
        let mut before = x.to_vec();
        let undo = |sums: &Sums, before: &mut [f64], columns: std::ops::Range<usize>| {
            for column in columns {
                if let Some(raw) = &sums.raw[column] {
                    before[column] = Spline::new(settings, raw).inverse(x[column]);
                }
            }
        };
        // Whatever transforms the columns before a node's middle comes before the node.
        let mut done = 0;
        for part in self.parts(settings, x.len()) {
            undo(&sums, &mut before, done..part.middle);
            done = part.middle;
            sums.add(part.middle, &part.trace(&before, self.tree.conditions));
        }
        undo(&sums, &mut before, done..x.len());
        before
    }

    fn sum_backward(
        &self,
        settings: SplineSettings,
        x: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
        d_given: &mut [f64],
    ) -> Vec<f64> {
        let mut sums = self.cross_sums(settings, x.len());
        let parts = self.parts(settings, x.len());
        let traces: Vec<Trace> = parts.iter().map(|part| part.trace(x, self.tree.conditions)).collect();
        for (part, trace) in parts.iter().zip(&traces) {
            sums.add(part.middle, trace);
        }

        let mut d_x = d_value.to_vec();
        let mut d_raw = vec![Vec::new(); x.len()];
        for column in 0..x.len() {
            if let Some(raw) = &sums.raw[column] {
                (d_x[column], d_raw[column]) =
                    Spline::new(settings, raw).backward(x[column], d_value[column], d_log_det);
            }
        }
        // A sum hands its gradient to every summand.
        for (part, trace) in parts.iter().zip(&traces) {
            let d_output = d_raw[part.middle..part.to].concat();
            let d_seen = part.coupling.network.backward(trace, &d_output, grads);
            let (d_upper, d_conditions) = d_seen.split_at(part.middle - part.from);
            add(&mut d_x[part.from..part.middle], d_upper);
            add(&mut d_given[..d_conditions.len()], d_conditions);
        }
        if let Some((cross, given)) = self.cross_spline() {
            let trace = cross.network.forward(given);
            add(d_given, &cross.network.backward(&trace, &d_raw.concat(), grads));
        }
        d_x
    }

    /// What the other lane says about `columns` columns.
    fn cross_sums(&self, settings: SplineSettings, columns: usize) -> Sums {
        let mut sums = Sums { settings, raw: vec![None; columns], relu_margin: f64::INFINITY };
        if let Some((cross, given)) = self.cross_spline() {
            sums.add(0, &cross.network.forward(given));
        }
        sums
    }

    fn cross_spline(&self) -> Option<(&SplineCoupling<'_>, &[f64])> {
        match &self.cross {
            Some((Coupling::Spline(cross), given)) => Some((cross, given)),
            _ => None,
        }
    }

    /// The nodes of the tree over `columns` columns, each between those of its upper and of its lower part.
    fn parts(&self, settings: SplineSettings, columns: usize) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        self.collect(settings, Node::ROOT, 0, columns, &mut parts);
        parts
    }

    fn collect<'a>(&'a self, settings: SplineSettings, node: Node, from: usize, to: usize, parts: &mut Vec<Part<'a>>) {
        let middle = from + (to - from) / 2;
        let divides = self.tree.spec.divides(node.level, to - from);
        if divides {
            self.collect(settings, node.upper(), from, middle, parts);
        }
        let name = format!("{}.{}", self.tree.name, node.id);
        let coupling = SplineCoupling::new(settings, self.tree.params, &name);
        parts.push(Part { coupling, from, middle, to });
        if divides {
            self.collect(settings, node.lower(), middle, to, parts);
        }
    }
}

/// A node of the tree: its upper columns are `from..middle`, its lower ones `middle..to`.
struct Part<'a> {
    coupling: SplineCoupling<'a>,
    from: usize,
    middle: usize,
    to: usize,
}

impl Part<'_> {
    /// The network of the node, for all columns of the lane.
    fn trace(&self, x: &[f64], conditions: &[f64]) -> Trace {
        self.coupling.network.forward(&[&x[self.from..self.middle], conditions].concat())
    }
}

/// Raw parameters of splines, summed so far.
struct Sums {
    settings: SplineSettings,
    /// By column; none for one that nothing transforms.
    raw: Vec<Option<Vec<f64>>>,
    relu_margin: f64,
}

impl Sums {
    /// Adds the output of a network to the columns from `first` on: as many as it is long.
    fn add(&mut self, first: usize, trace: &Trace) {
        self.relu_margin = self.relu_margin.min(trace.relu_margin());
        for (sum, raw) in self.raw[first..].iter_mut().zip(trace.output.chunks_exact(self.settings.parameters())) {
            match sum {
                Some(sum) => add(sum, raw),
                None => *sum = Some(raw.to_vec()),
            }
        }
    }
}
