//! What only the training of an `inn` needs: its losses, and the backward of an inverse.

use super::{Extent, Head, Recorder, tile};
use crate::engine::gpu::kernels::launch;
use crate::engine::gpu::kernels::shader::Kernel;
use crate::error::Result;
use crate::program::Op;

impl Recorder<'_> {
    pub(super) fn of_inn(&mut self, op: &Op) -> Result<()> {
        use Extent::{Fixed, Quads};
        let tile = tile();
        match *op {
            Op::SquaredError { from, target, loss, d_from, weight } => {
                let launch = launch::SquaredError {
                    tile,
                    input: from.first,
                    target_first: target.first,
                    loss: loss.first,
                    d_input: d_from.first,
                    columns: from.rows,
                    weight,
                };
                self.push(Kernel::SquaredError, Head::Tile, [Quads(64), Fixed(1)], launch, ())
            }
            Op::Discrepancy { from, target, loss, d_from, weight } => {
                let launch = launch::Discrepancy {
                    tile,
                    input: from.first,
                    target_first: target.first,
                    loss: loss.first,
                    d_input: d_from.first,
                    columns: from.rows,
                    wanted: d_from.rows,
                    weight,
                };
                // The first row of threads has the loss, the others a gradient each.
                let grid = [Quads(64), Fixed(1 + d_from.rows)];
                self.push(Kernel::Discrepancy, Head::Tile, grid, launch, self.fit.stride())
            }
            Op::TotalLoss { loss } => {
                let launch = launch::TotalLoss { tile, loss: loss.first };
                self.push(Kernel::TotalLoss, Head::Tile, [Quads(8), Fixed(1)], launch, ())
            }
            Op::UncoupleBackward { stage: id, x, st, d_x, d_from, d_st } => {
                let (stage, tables) = self.stage(id);
                assert!(stage.chains.iter().all(|chain| chain.len() <= 1), "a column has one map at most");
                let launch = launch::UncoupleBackward {
                    tile,
                    x: x.first,
                    st: st.first,
                    d_x: d_x.first,
                    d_input: d_from.first,
                    d_st: d_st.first,
                    chains: tables.chains,
                };
                self.push(Kernel::UncoupleBackward, Head::Tile, [Quads(64), Fixed(stage.dim)], launch, ())
            }
            _ => unreachable!("{op:?} is not of an inn alone"),
        }
    }
}
