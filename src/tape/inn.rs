//! What only an `inn` records: an inverse that is differentiated, and its losses.

use std::ops::Range;

use super::{Map, Memory, Tape};
use crate::buffer::Buffer;
use crate::program::{Op, StageId};

/// The inverse of a stage, on the way there.
#[derive(Clone, Copy)]
pub(super) struct Uncouple {
    pub(super) stage: StageId,
    pub(super) from: Buffer,
    pub(super) st: Buffer,
    pub(super) hidden: [Buffer; 2],
    pub(super) x: Buffer,
}

impl Tape {
    /// A buffer of that many columns that operations are to fill: [`Tape::gather_to`], [`Tape::normal_to`].
    pub(crate) fn buffer(&mut self, columns: u32) -> Buffer {
        self.arena.alloc(columns)
    }

    /// Sets a buffer, or a part of one, to zero.
    pub(crate) fn zero(&mut self, to: Buffer) {
        if to.rows > 0 {
            self.ops.push(Op::Fill { to, value: 0.0 });
        }
    }

    /// Inverse of one stage, for a backward pass to come: of stages in which no networks see what others of them change,
    /// and of affine maps.
    pub(crate) fn uncouple_stored(&mut self, stage: StageId, from: Buffer) -> Buffer {
        assert!(self.memory == Some(Memory::Stored), "an inverse is differentiated with stored activations only");
        let (st, hidden) = self.networks(stage, from, Buffer::EMPTY, true);
        let x = self.after(from);
        self.ops.push(Op::Uncouple { stage, from, x, st });
        self.maps.push(Map::Uncouple(Uncouple { stage, from, st, hidden, x }));
        x
    }

    /// Records `weight |of - target|^2` of some columns of an activation, whose gradients all losses of it together must
    /// write; adds to the per-sample loss.
    pub(crate) fn squared_error(&mut self, of: Buffer, columns: Range<u32>, target: Buffer, weight: f32, loss: Buffer) {
        if columns.is_empty() {
            return;
        }
        let part = |buffer: Buffer| buffer.part(columns.start, columns.end - columns.start);
        let d_from = part(self.gradient_buffer(of));
        self.ops.push(Op::SquaredError { from: part(of), target: part(target), loss, d_from, weight });
    }

    /// Records `weight` times the squared discrepancy between some columns of an activation and of the target; the first
    /// `wanted` of them get gradients.
    pub(crate) fn discrepancy(
        &mut self,
        of: Buffer,
        columns: Range<u32>,
        wanted: u32,
        target: Buffer,
        weight: f32,
        loss: Buffer,
    ) {
        let count = columns.end - columns.start;
        let d_from = self.gradient_buffer(of).part(columns.start, wanted);
        let [from, target] = [of, target].map(|buffer| buffer.part(columns.start, count));
        self.ops.push(Op::Discrepancy { from, target, loss, d_from, weight });
    }

    /// Ends losses that were added up.
    pub(crate) fn total_loss(&mut self, loss: Buffer) {
        self.ops.push(Op::TotalLoss { loss });
    }

    /// Says that nothing depends on an activation but what is recorded as maps.
    pub(crate) fn no_gradient(&mut self, of: Buffer) {
        let gradient = self.gradient_buffer(of);
        self.zero(gradient);
    }
}
