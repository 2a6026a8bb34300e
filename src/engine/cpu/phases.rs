//! Programs with operations that see the whole batch: all tiles come to such an operation before any goes on, so every
//! tile has an arena of its own until the end.

use std::mem::take;
use std::ops::Range;
use std::sync::PoisonError;

use rayon::prelude::*;

use super::compiled::Source;
use super::execute::{Model, Place};
use super::profile::Clock;
use super::session::CpuSession;
use super::tiling::Tiling;
use crate::buffer::Buffer;
use crate::engine::ProgramId;
use crate::kernel::discrepancy::Sets;
use crate::kernel::{Gradients, LANES, Tile};
use crate::program::Op;

/// The tiles of a group, and what they leave.
struct Group<'a> {
    /// Number of the first tile.
    first: usize,
    tiles: &'a mut [Tile],
    partial: &'a mut [f32],
    loss: &'a mut f64,
}

impl CpuSession {
    /// Runs all tiles of a batch, phase by phase.
    pub(super) fn phases(&mut self, id: ProgramId, rows: usize, source: &Source<'_>, outputs: &mut [Vec<f32>]) {
        let compiled = &self.programs[id.0];
        let (program, model) = (&compiled.program, &self.model);
        let clock = self.profile.is_some().then(|| Clock::new(program));
        let tiling = Tiling::step(&model.plan, rows);
        let mut tiles = take(&mut *compiled.idle.lock().unwrap_or_else(PoisonError::into_inner));
        tiles.retain(|tile| tile.capacity() >= tiling.capacity());
        tiles.resize_with(tiling.tiles(), || Tile::new(program.arena_rows, tiling.capacity()));
        let place = |i: usize| Place { source, first: tiling.rows(i).start, batch: rows };
        for (i, tile) in tiles.iter_mut().enumerate() {
            tile.set_rows(tiling.rows(i).len());
            Model::load(program, tile, &place(i));
        }
        self.written = tiling.groups();
        let len = model.plan.layout.gradient_len();
        self.partials[..tiling.groups() * len].fill(0.0);
        self.losses[..tiling.groups()].fill(0.0);
        for phase in phases(&program.rows) {
            let op = &program.rows[phase.start];
            if is_whole(op) {
                let mut work = || whole(op, &mut tiles, tiling);
                match &clock {
                    Some(clock) => clock.time(phase.start, work),
                    None => work(),
                }
                continue;
            }
            let mut groups = Vec::with_capacity(tiling.groups());
            let mut rest = &mut tiles[..];
            let left = self.partials.chunks_exact_mut(len).zip(&mut self.losses).take(tiling.groups());
            for (g, (partial, loss)) in left.enumerate() {
                let own = tiling.group(g);
                let (tiles, after) = rest.split_at_mut(own.len());
                rest = after;
                groups.push(Group { first: own.start, tiles, partial, loss });
            }
            groups.into_par_iter().for_each(|group| {
                for (i, tile) in (group.first..).zip(group.tiles) {
                    let gradients = Gradients { values: &mut *group.partial, fresh: false };
                    *group.loss += model.run(compiled, phase.clone(), tile, &place(i), gradients, clock.as_ref());
                }
            });
        }
        self.loss = (self.losses[..tiling.groups()].iter().sum::<f64>() / rows as f64) as f32;
        for (buffer, output) in program.outputs.iter().zip(outputs) {
            for (i, tile) in tiles.iter().enumerate() {
                let (range, columns) = (tiling.rows(i), buffer.rows as usize);
                tile.store(*buffer, &mut output[range.start * columns..range.end * columns]);
            }
        }
        *compiled.idle.lock().unwrap_or_else(PoisonError::into_inner) = tiles;
        if let (Some(profile), Some(clock)) = (&mut self.profile, clock) {
            profile.extend(clock.read(program));
        }
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
