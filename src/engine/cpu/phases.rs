//! Programs with operations that see the whole batch: all tiles come to such an operation before any goes on, so every
//! tile has an arena of its own until the end.

use std::mem::take;
use std::ops::Range;
use std::sync::PoisonError;

use rayon::prelude::*;

use super::compiled::{Compiled, Source};
use super::execute::{Model, Place};
use super::profile::Clock;
use super::tiling::Tiling;
use crate::buffer::Buffer;
use crate::kernel::discrepancy::Sets;
use crate::kernel::{Gradients, LANES, Tile};
use crate::program::Op;

/// A program on a batch.
pub(super) struct Phases<'a> {
    pub(super) model: &'a Model,
    pub(super) compiled: &'a Compiled,
    pub(super) source: &'a Source<'a>,
    /// Samples of the batch, and how they are cut.
    pub(super) rows: usize,
    pub(super) tiling: Tiling,
    pub(super) clock: Option<&'a Clock>,
}

/// The tiles of a group, and what they leave.
struct Group<'a> {
    /// Number of the first tile.
    first: usize,
    tiles: &'a mut [Tile],
    partial: &'a mut [f32],
    loss: &'a mut f64,
}

impl Phases<'_> {
    /// Runs all tiles, phase by phase: leaves a partial gradient and a sum of the loss for each group, and the outputs.
    pub(super) fn run(&self, partials: &mut [f32], losses: &mut [f64], outputs: &mut [Vec<f32>]) {
        let &Self { model, compiled, source, rows, tiling, clock } = self;
        let program = &compiled.program;
        let mut tiles = take(&mut *compiled.idle.lock().unwrap_or_else(PoisonError::into_inner));
        tiles.retain(|tile| tile.capacity() >= tiling.capacity());
        tiles.resize_with(tiling.tiles(), || Tile::new(program.arena_rows, tiling.capacity()));
        let place = |i: usize| Place { source, first: tiling.rows(i).start, batch: rows };
        for (i, tile) in tiles.iter_mut().enumerate() {
            tile.set_rows(tiling.rows(i).len());
            Model::load(program, tile, &place(i));
        }
        let len = model.plan.layout.gradient_len();
        partials[..tiling.groups() * len].fill(0.0);
        losses[..tiling.groups()].fill(0.0);
        for phase in phases(&program.rows) {
            let op = &program.rows[phase.start];
            if is_whole(op) {
                let mut work = || whole(op, &mut tiles, tiling);
                match clock {
                    Some(clock) => clock.time(phase.start, work),
                    None => work(),
                }
                continue;
            }
            let mut groups = Vec::with_capacity(tiling.groups());
            let mut rest = &mut tiles[..];
            let left = partials.chunks_exact_mut(len).zip(losses.iter_mut()).take(tiling.groups());
            for (g, (partial, loss)) in left.enumerate() {
                let own = tiling.group(g);
                let (tiles, after) = rest.split_at_mut(own.len());
                rest = after;
                groups.push(Group { first: own.start, tiles, partial, loss });
            }
            groups.into_par_iter().for_each(|group| {
                for (i, tile) in (group.first..).zip(group.tiles) {
                    let gradients = Gradients { values: &mut *group.partial, fresh: false };
                    *group.loss += model.run(compiled, phase.clone(), tile, &place(i), gradients, clock);
                }
            });
        }
        for (buffer, output) in program.outputs.iter().zip(outputs) {
            for (i, tile) in tiles.iter().enumerate() {
                let (range, columns) = (tiling.rows(i), buffer.rows as usize);
                tile.store(*buffer, &mut output[range.start * columns..range.end * columns]);
            }
        }
        *compiled.idle.lock().unwrap_or_else(PoisonError::into_inner) = tiles;
    }
}

fn is_whole(op: &Op) -> bool {
    matches!(op, Op::Discrepancy { .. })
}

/// Runs of operations between those that see the whole batch, and each of these by itself.
fn phases(ops: &[Op]) -> Vec<Range<usize>> {
    let mut phases = Vec::new();
    let mut start = 0;
    for (i, _) in ops.iter().enumerate().filter(|(_, op)| is_whole(op)) {
        phases.extend([start..i, i..i + 1]);
        start = i + 1;
    }
    phases.push(start..ops.len());
    phases.retain(|phase| !phase.is_empty());
    phases
}

/// An operation on all tiles.
fn whole(op: &Op, tiles: &mut [Tile], tiling: Tiling) {
    let &Op::Discrepancy { from, target, loss, d_from, weight } = op else { unreachable!("{op:?} works tile by tile") };
    let samples = tiling.rows(tiles.len() - 1).end;
    let together = |buffer: Buffer| {
        let stride = Sets::stride(samples);
        let mut all = vec![0.0; buffer.rows as usize * stride];
        for (i, tile) in tiles.iter().enumerate() {
            let (shape, at) = (tile.shape(), tiling.rows(i));
            for (c, column) in all.chunks_exact_mut(stride).enumerate() {
                column[at.clone()].copy_from_slice(&shape.row(tile.get(buffer), c)[..at.len()]);
            }
        }
        all
    };
    let [all_from, all_target] = [from, target].map(together);
    let sets = Sets { from: &all_from, target: &all_target, columns: from.rows as usize, samples };
    let parts = sets.discrepancy(d_from.rows as usize, weight);
    for (i, tile) in tiles.iter_mut().enumerate() {
        let (shape, first) = (tile.shape(), tiling.rows(i).start);
        let [loss, d_from] = tile.split([loss, d_from]);
        // Tiles begin at whole groups of lanes.
        let own = &parts[first / LANES..][..shape.width / LANES];
        for (part, at) in own.iter().zip((0..).step_by(LANES)) {
            let loss = &mut loss[at..at + LANES];
            loss.iter_mut().zip(&part[0]).for_each(|(loss, share)| *loss += share);
            for (c, gradient) in part[1..].iter().enumerate() {
                d_from[c * shape.stride + at..][..LANES].copy_from_slice(gradient);
            }
        }
    }
}
