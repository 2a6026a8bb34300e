//! The paper in float64: forward, inverse, density, loss and exact gradients of all three model kinds.
//!
//! Written row by row from the equations, by recursion where the paper recurs, and with a reverse pass that computes
//! everything again instead of keeping it: right first, fast never. `x`, `y`, `z` and their gradients are row-major
//! slices of whole batches; `y` is empty for a flow.

mod adam;
mod coupling;
mod inn;
mod lane;
mod mixing;
mod network;
mod spec;
mod spline;

use std::f64::consts::PI;

pub(crate) use adam::{Adam, AdamSettings};
pub(crate) use spec::{ConditionOn, Kind, Mixing, Scale, Spec, SplineSettings, Tensor, Tensors, Transform, is_trained};

pub(crate) use inn::{InnLosses, mmd};

use coupling::{Coupling, Tree};
use lane::Lane;
use mixing::Mix;
use network::dot;

/// A model: what it is, and its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    pub(crate) spec: Spec,
    pub(crate) params: Tensors,
}

/// A batch in latent space.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    /// B x N; two lanes: B x (C + N), `[z_y, z_x]`.
    pub(crate) z: Vec<f64>,
    /// B; two lanes: B x 2, y lane before x lane.
    pub(crate) log_det: Vec<f64>,
    /// B: distance of the nearest ReLU input of the row from 0.
    pub(crate) relu_margin: Vec<f64>,
    /// B: distance of the nearest knot of the row from what its spline bends; infinite without splines.
    pub(crate) knot_margin: Vec<f64>,
}

/// Gradients of a scalar.
#[derive(Debug, Clone)]
pub(crate) struct Gradients {
    /// B x N.
    pub(crate) x: Vec<f64>,
    /// B x C.
    pub(crate) y: Vec<f64>,
    /// Of every trained tensor, by name.
    pub(crate) params: Tensors,
}

/// One row on its way through the blocks. The y of a conditional flow stays what it is.
#[derive(Clone)]
struct Row {
    x: Vec<f64>,
    y: Vec<f64>,
    log_det_x: f64,
    log_det_y: f64,
    relu_margin: f64,
    knot_margin: f64,
}

/// Gradients of a [`Row`].
struct RowGradient {
    x: Vec<f64>,
    y: Vec<f64>,
    log_det_x: f64,
    log_det_y: f64,
}

impl Model {
    /// Checks that `params` are the tensors of such a model; those with a zero dimension may be absent.
    pub(crate) fn new(spec: Spec, mut params: Tensors) -> Self {
        assert!(spec.kind != Kind::Flow || spec.cond_dim == 0, "a flow has no conditions");
        let shapes = spec.shapes();
        for name in params.keys() {
            assert!(shapes.contains_key(name), "the model has no tensor {name}");
        }
        for (name, shape) in &shapes {
            if shape.contains(&0) {
                params.entry(name.clone()).or_insert_with(|| Tensor::zeros(shape));
            }
            let tensor = params.get(name).unwrap_or_else(|| panic!("the tensor {name} is missing"));
            assert_eq!(&tensor.shape, shape, "shape of {name}");
            assert_eq!(tensor.data.len(), shape.iter().product::<usize>(), "elements of {name}");
        }
        Self { spec, params }
    }

    /// z and log|det J|.
    pub(crate) fn forward(&self, x: &[f64], y: &[f64]) -> Encoded {
        let mut encoded =
            Encoded { z: Vec::new(), log_det: Vec::new(), relu_margin: Vec::new(), knot_margin: Vec::new() };
        for (x, y) in self.rows(x, y) {
            let row = self.blocks_of_row(x, y).pop().expect("the input at least");
            if self.spec.kind == Kind::Hint {
                encoded.z.extend(&row.y);
                encoded.log_det.push(row.log_det_y);
            }
            encoded.z.extend(&row.x);
            encoded.log_det.push(row.log_det_x);
            encoded.relu_margin.push(row.relu_margin);
            encoded.knot_margin.push(row.knot_margin);
        }
        encoded
    }

    /// x for z (two lanes: z_x), given y.
    pub(crate) fn inverse(&self, z: &[f64], y: &[f64]) -> Vec<f64> {
        let mut rows = Vec::new();
        for (z, y) in self.rows(z, y) {
            // With two lanes, the y that each block sees; x plays no part in it.
            let y_before: Vec<Vec<f64>> = self.blocks_of_row(z, y).into_iter().map(|row| row.y).collect();
            let mut x = z.to_vec();
            for block in (0..self.spec.blocks).rev() {
                x = self.block_inverse_x(block, &x, &y_before[block]);
            }
            rows.extend(x);
        }
        rows
    }

    /// `[y, x]` for `[z_y, z_x]`, of a model with two lanes.
    pub(crate) fn inverse_joint(&self, z: &[f64]) -> Vec<f64> {
        assert_eq!(self.spec.kind, Kind::Hint);
        let c = self.spec.cond_dim;
        let mut rows = Vec::new();
        for z in z.chunks_exact(self.spec.latent_dim()) {
            let mut y = z[..c].to_vec();
            for block in (0..self.spec.blocks).rev() {
                y = self.mix(block, "y").inverse(&self.lane(block, "y", &[]).inverse(&y));
            }
            let x = self.inverse(&z[c..], &y);
            rows.extend(y);
            rows.extend(x);
        }
        rows
    }

    /// log p(x), log p(x | y) of a conditional flow or of two lanes.
    pub(crate) fn log_prob(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        self.lane_log_probs(x, y).iter().map(|lanes| lanes[lanes.len() - 1]).collect()
    }

    /// log p(y, x) of two lanes.
    pub(crate) fn joint_log_prob(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        assert_eq!(self.spec.kind, Kind::Hint);
        self.lane_log_probs(x, y).iter().map(|lanes| lanes.iter().sum()).collect()
    }

    /// log p(y) of two lanes.
    pub(crate) fn evidence_log_prob(&self, y: &[f64]) -> Vec<f64> {
        assert_eq!(self.spec.kind, Kind::Hint);
        // The x lane never acts on the y lane, so any x will do.
        let x = vec![0.0; y.len() / self.spec.cond_dim * self.spec.dim];
        self.lane_log_probs(&x, y).iter().map(|lanes| lanes[0]).collect()
    }

    /// Mean over the batch of |z|^2 / 2 - log|det J|, all lanes.
    pub(crate) fn loss(&self, x: &[f64], y: &[f64]) -> f64 {
        let Encoded { z, log_det, relu_margin, .. } = self.forward(x, y);
        (dot(&z, &z) / 2.0 - log_det.iter().sum::<f64>()) / relu_margin.len() as f64
    }

    /// Gradients of the loss, not clamped.
    pub(crate) fn loss_gradients(&self, x: &[f64], y: &[f64]) -> Gradients {
        let encoded = self.forward(x, y);
        let share = 1.0 / encoded.relu_margin.len() as f64;
        let d_z: Vec<f64> = encoded.z.iter().map(|z| z * share).collect();
        self.vjp(x, y, &d_z, &vec![-share; encoded.log_det.len()])
    }

    /// Gradients of `sum(d_z * z) + sum(d_log_det * log_det)`, the coefficients laid out as in [`Encoded`].
    pub(crate) fn vjp(&self, x: &[f64], y: &[f64], d_z: &[f64], d_log_det: &[f64]) -> Gradients {
        let spec = &self.spec;
        let shapes = spec.shapes().into_iter().filter(|(name, _)| is_trained(name));
        let mut grads: Tensors = shapes.map(|(name, shape)| (name, Tensor::zeros(&shape))).collect();
        let (mut d_x, mut d_y) = (Vec::new(), Vec::new());

        let d_rows = d_z.chunks_exact(spec.latent_dim()).zip(d_log_det.chunks_exact(spec.lanes()));
        let rows = self.rows(x, y);
        assert_eq!(d_rows.len(), rows.len(), "rows of the coefficients");
        for ((x, y), (d_z, d_log_det)) in rows.into_iter().zip(d_rows) {
            let (d_z_y, d_z_x) = d_z.split_at(spec.latent_dim() - spec.dim);
            let mut d = RowGradient {
                x: d_z_x.to_vec(),
                y: if spec.kind == Kind::Hint { d_z_y.to_vec() } else { vec![0.0; spec.cond_dim] },
                log_det_x: d_log_det[spec.lanes() - 1],
                log_det_y: d_log_det[0],
            };
            let before = self.blocks_of_row(x, y);
            for block in (0..spec.blocks).rev() {
                self.block_backward(block, &before[block], &mut d, &mut grads);
            }
            d_x.extend(d.x);
            d_y.extend(d.y);
        }
        Gradients { x: d_x, y: d_y, params: grads }
    }

    /// How near any ReLU input of the batch is to 0, where gradients jump and rounding decides between two values.
    pub(crate) fn min_relu_margin(&self, x: &[f64], y: &[f64]) -> f64 {
        self.forward(x, y).relu_margin.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// The same of ReLU inputs and knots alike, where the second derivatives of splines jump.
    pub(crate) fn min_kink_margin(&self, x: &[f64], y: &[f64]) -> f64 {
        let Encoded { relu_margin, knot_margin, .. } = self.forward(x, y);
        relu_margin.into_iter().chain(knot_margin).fold(f64::INFINITY, f64::min)
    }

    /// The rows before every block, and after the last.
    fn blocks_of_row(&self, x: &[f64], y: &[f64]) -> Vec<Row> {
        let start = Row {
            x: x.to_vec(),
            y: y.to_vec(),
            log_det_x: 0.0,
            log_det_y: 0.0,
            relu_margin: f64::INFINITY,
            knot_margin: f64::INFINITY,
        };
        let mut rows = vec![start];
        for block in 0..self.spec.blocks {
            let mut row = rows[block].clone();
            self.block_forward(block, &mut row);
            rows.push(row);
        }
        rows
    }

    fn block_forward(&self, block: usize, row: &mut Row) {
        let x = self.mix(block, "x").forward(&row.x);
        let image = match self.spec.kind {
            Kind::Flow | Kind::Cinn => self.lane(block, "x", &row.y).forward(&x),
            Kind::Hint => {
                let y = self.mix(block, "y").forward(&row.y);
                let image_x = self.lane(block, "x", &y).forward(&x);
                let image_y = self.lane(block, "y", &[]).forward(&y);
                row.y = image_y.value;
                row.log_det_y += image_y.log_det;
                row.relu_margin = row.relu_margin.min(image_y.relu_margin);
                row.knot_margin = row.knot_margin.min(image_y.knot_margin);
                image_x
            }
        };
        row.x = image.value;
        row.log_det_x += image.log_det;
        row.relu_margin = row.relu_margin.min(image.relu_margin);
        row.knot_margin = row.knot_margin.min(image.knot_margin);
    }

    /// The x before a block for the x after it, given the y before it.
    fn block_inverse_x(&self, block: usize, x: &[f64], y: &[f64]) -> Vec<f64> {
        let x = match self.spec.kind {
            Kind::Flow | Kind::Cinn => self.lane(block, "x", y).inverse(x),
            Kind::Hint => self.lane(block, "x", &self.mix(block, "y").forward(y)).inverse(x),
        };
        self.mix(block, "x").inverse(&x)
    }

    /// Turns the gradient of the row after a block into that of the row before it.
    fn block_backward(&self, block: usize, before: &Row, d: &mut RowGradient, grads: &mut Tensors) {
        let mix_x = self.mix(block, "x");
        let x = mix_x.forward(&before.x);
        let d_x = match self.spec.kind {
            Kind::Flow | Kind::Cinn => {
                let lane = self.lane(block, "x", &before.y);
                lane.backward(&x, &d.x, d.log_det_x, grads, &mut d.y)
            }
            Kind::Hint => {
                let mix_y = self.mix(block, "y");
                let y = mix_y.forward(&before.y);
                let mut d_y = self.lane(block, "y", &[]).backward(&y, &d.y, d.log_det_y, grads, &mut []);
                let d_x = self.lane(block, "x", &y).backward(&x, &d.x, d.log_det_x, grads, &mut d_y);
                d.y = mix_y.backward(&before.y, &d_y, grads);
                d_x
            }
        };
        d.x = mix_x.backward(&before.x, &d_x, grads);
    }

    /// log N(z; 0, I) + log|det J| of every lane, by row.
    fn lane_log_probs(&self, x: &[f64], y: &[f64]) -> Vec<Vec<f64>> {
        let Encoded { z, log_det, .. } = self.forward(x, y);
        let density = |z: &[f64], log_det: f64| log_det - dot(z, z) / 2.0 - z.len() as f64 / 2.0 * (2.0 * PI).ln();
        let rows = z.chunks_exact(self.spec.latent_dim()).zip(log_det.chunks_exact(self.spec.lanes()));
        rows.map(|(z, log_det)| match log_det {
            [y_lane, x_lane] => {
                let (z_y, z_x) = z.split_at(self.spec.cond_dim);
                vec![density(z_y, *y_lane), density(z_x, *x_lane)]
            }
            _ => vec![density(z, log_det[0])],
        })
        .collect()
    }

    fn rows<'a>(&self, x: &'a [f64], y: &'a [f64]) -> Vec<(&'a [f64], &'a [f64])> {
        let (n, c) = (self.spec.dim, self.spec.cond_dim);
        let rows = x.len() / n;
        assert_eq!(x.len(), rows * n, "x is not rows of {n} columns");
        assert_eq!(y.len(), rows * c, "y is not {rows} rows of {c} columns");
        (0..rows).map(|b| (&x[b * n..(b + 1) * n], &y[b * c..(b + 1) * c])).collect()
    }

    /// `blocks.0`; with two lanes `blocks.0.x`.
    fn lane_name(&self, block: usize, lane: &str) -> String {
        match self.spec.kind {
            Kind::Flow | Kind::Cinn => format!("blocks.{block}"),
            Kind::Hint => format!("blocks.{block}.{lane}"),
        }
    }

    fn mix(&self, block: usize, lane: &str) -> Mix<'_> {
        Mix::new(&self.spec, &self.params, &self.lane_name(block, lane), block)
    }

    /// The couplings of a lane. `given`: y, as all networks of a conditional flow see it; with two lanes, what the
    /// cross coupling of the x lane sees, and nothing for the y lane.
    fn lane<'a>(&'a self, block: usize, lane: &str, given: &'a [f64]) -> Lane<'a> {
        let crosses = self.spec.kind == Kind::Hint && lane == "x";
        let tree = Tree {
            spec: &self.spec,
            params: &self.params,
            name: format!("{}.tree", self.lane_name(block, lane)),
            conditions: if crosses { &[] } else { given },
        };
        let cross = || Coupling::new(&self.spec, &self.params, &format!("blocks.{block}.cross"));
        Lane { tree, cross: crosses.then(|| (cross(), given)) }
    }
}
