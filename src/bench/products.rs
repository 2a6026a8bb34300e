//! The matrix products of the CPU engine one by one, in the shapes of a case's layers: one thread, one tile of samples
//! that stays in cache.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use super::{Case, Spread};
use crate::buffer::{Arena, Buffer};
use crate::engine::cpu::tile_rows;
use crate::error::Result;
use crate::kernel::Tile;
use crate::kernel::product::{self, End, Matrix, Start};
use crate::plan::{ConditionOn, Layer, Node, Plan};
use crate::rng::{self, Stream};

/// Which of the three products of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductKind {
    /// `relu(w x + b)`
    Forward,
    /// `w^T d_out`, with the mask of a ReLU
    DataGradient,
    /// `d_out x^T`, and the sum of `d_out`
    WeightGradient,
}

/// A product with operands of its own, ready to run.
pub struct Product {
    /// Which one.
    pub kind: ProductKind,
    /// n_out of the layer.
    pub outputs: usize,
    /// n_in of the layer.
    pub inputs: usize,
    /// Samples of the tile.
    pub rows: usize,
    /// Layers of this shape in the model.
    pub layers: usize,
    tile: Tile,
    /// Inputs of the layer, outputs, activations that mask.
    buffers: [Buffer; 3],
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// What a product took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProductTime {
    /// Which one.
    pub kind: ProductKind,
    /// n_out of the layer.
    pub outputs: usize,
    /// n_in of the layer.
    pub inputs: usize,
    /// Samples of the tile.
    pub rows: usize,
    /// Layers of this shape in the model.
    pub layers: usize,
    /// Median, microseconds, of the product on one tile.
    pub us: f64,
    /// 10^9 floating-point operations per second.
    pub gflops: f64,
}

impl Product {
    /// The products of all layer shapes of a case, the largest first.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if the case is no model.
    pub fn all(case: &Case, condition_on: ConditionOn) -> Result<Vec<Self>> {
        let plan = Plan::new(&case.spec(condition_on))?;
        let mut shapes: BTreeMap<Layer, usize> = BTreeMap::new();
        for layer in plan.stages.iter().flat_map(|stage| &stage.nodes).flat_map(Node::layers) {
            *shapes.entry(layer).or_default() += 2;
        }
        let weights = |layer: &Layer| u64::from(layer.inputs) * u64::from(layer.outputs);
        let mut shapes: Vec<_> = shapes.into_iter().filter(|(layer, _)| weights(layer) > 0).collect();
        shapes.sort_by_key(|(layer, _)| std::cmp::Reverse(weights(layer)));
        let rows = tile_rows(&plan, case.batch);
        let kinds = [ProductKind::Forward, ProductKind::DataGradient, ProductKind::WeightGradient];
        let each = |(shape, layers)| kinds.map(|kind| Self::new(kind, shape, rows, layers));
        Ok(shapes.into_iter().flat_map(each).collect())
    }

    fn new(kind: ProductKind, layer: Layer, rows: usize, layers: usize) -> Self {
        let [inputs, outputs] = [layer.inputs, layer.outputs].map(|n| n as usize);
        let mut arena = Arena::default();
        let buffers = [inputs, outputs, inputs].map(|rows| arena.alloc(rows as u32));
        let mut tile = Tile::new(arena.rows(), rows);
        let normals = |step: u32, len: usize| {
            let mut values = vec![0.0; len];
            rng::fill_normals(1, Stream::Data, step, 0, &mut values);
            values
        };
        for (step, buffer) in (0..).zip(buffers) {
            tile.load(buffer, &normals(step, rows * buffer.rows as usize));
        }
        let (weights, bias) = (normals(3, outputs * inputs), normals(4, outputs));
        Self { kind, outputs, inputs, rows, layers, tile, buffers, weights, bias }
    }

    /// Runs it once.
    pub fn run(&mut self) {
        let (shape, sizes) = (self.tile.shape(), Matrix::whole(self.outputs, self.inputs));
        let [x, out, mask] = self.tile.split(self.buffers);
        let (w, b) = (&mut self.weights, &mut self.bias);
        match self.kind {
            ProductKind::Forward => product::forward(shape, sizes, w, x, out, Start::Bias(b), End::Relu),
            ProductKind::DataGradient => product::data_gradient(shape, sizes, w, out, x, Start::Zero, End::Mask(mask)),
            ProductKind::WeightGradient => product::weight_gradient(shape, sizes, out, x, w, Some(b), false),
        }
    }

    /// Floating-point operations of one run.
    pub fn flops(&self) -> u64 {
        2 * (self.outputs * self.inputs * self.rows) as u64
    }

    /// Times it.
    pub fn time(&mut self) -> ProductTime {
        /// Nanoseconds that a clock can tell well.
        const LONG_ENOUGH: u128 = 200_000;
        let mut runs = 1;
        let mut timed = |runs: u32| {
            let start = Instant::now();
            (0..runs).for_each(|_| self.run());
            start.elapsed()
        };
        while timed(runs).as_nanos() < LONG_ENOUGH {
            runs *= 2;
        }
        let each: Vec<f64> = (0..15).map(|_| timed(runs).as_secs_f64() * 1e6 / f64::from(runs)).collect();
        let us = Spread::of(each).median;
        let Self { kind, outputs, inputs, rows, layers, .. } = *self;
        ProductTime { kind, outputs, inputs, rows, layers, us, gflops: self.flops() as f64 / (us * 1e3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_has_its_three_products() {
        let case = Case::named("lens1").unwrap();
        let plan = Plan::new(&case.spec(ConditionOn::Input)).unwrap();
        let mut products = Product::all(&case, ConditionOn::Input).unwrap();
        let (mut forward, mut macs) = (0, 0);
        for product in products.iter().filter(|product| product.kind == ProductKind::Forward) {
            forward += 1;
            macs += product.outputs * product.inputs * product.layers;
        }
        assert_eq!(products.len(), 3 * forward);
        let biases: usize = plan.layout.tensors.iter().filter(|t| t.name.ends_with("bias")).map(|t| t.shape[0]).sum();
        assert_eq!(macs + biases, plan.layout.trained);
        let time = products[0].time();
        assert_eq!((time.outputs, time.inputs), (152, 152));
        assert!(time.us > 0.0 && time.gflops > 0.0 && time.rows > 0);
    }
}
