//! Training steps that several ranks share: which parts of a batch a rank computes, and the sum over all of them.
//!
//! A batch is cut into parts by the model and the batch alone, and their sum is that of [`crate::kernel::tree`]. A rank
//! computes neighbouring parts and adds up the whole nodes of the tree that they are. Then every rank receives one slice of
//! the weights from all, adds it up in the order of the tree, and gives the sum to all: two rounds of messages, in which a
//! rank sends and receives less than twice the gradient, whatever their number. Every rank then updates all weights, to the
//! same bits.

use std::ops::Range;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::comm::{Incoming, Outgoing, World, alone, share};
use crate::error::Result;
use crate::kernel::tree::{BLOCK, Node, Sums, nodes};

/// Values that a thread adds up at a time.
const PIECE: usize = 128 * BLOCK;

/// The ranks that share the steps of a session.
pub(crate) struct Ranks {
    world: World,
    /// Nodes of the tree that this rank's parts are, one after the other.
    outgoing: Vec<f32>,
    /// The other ranks' nodes in this rank's slice.
    incoming: Vec<f32>,
    /// Time spent with messages, and waiting for them.
    exchanged: Duration,
}

impl Ranks {
    /// A rank that shares its steps with nobody.
    pub(super) fn alone() -> Self {
        Self::new(alone())
    }

    pub(crate) fn new(world: World) -> Self {
        Self { world, outgoing: Vec::new(), incoming: Vec::new(), exchanged: Duration::ZERO }
    }

    pub(super) fn are_several(&self) -> bool {
        self.world.size() > 1
    }

    /// Time spent with messages since this began.
    pub(crate) fn exchanged(&self) -> Duration {
        self.exchanged
    }

    /// Bytes of all that it keeps.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.outgoing) + size_of_val(&*self.incoming)
    }

    /// The parts of a batch, of `count`, that this rank computes.
    pub(super) fn own(&self, count: usize) -> Range<usize> {
        self.parts_of(self.world.rank(), count)
    }

    fn parts_of(&self, rank: usize, count: usize) -> Range<usize> {
        share(count, rank, self.world.size())
    }

    /// The weights whose gradients a rank adds up, of `len`.
    fn slice_of(&self, rank: usize, len: usize) -> Range<usize> {
        let blocks = self.parts_of(rank, len.div_ceil(BLOCK));
        (blocks.start * BLOCK).min(len)..(blocks.end * BLOCK).min(len)
    }

    /// Adds up the partial gradients of all ranks. `partials` are gradients of `len` values one after the other, of which
    /// this rank has written its own; the sum is left in the first. `losses` has a value for each part, of which this rank
    /// has written its own; it gets those of the others.
    ///
    /// # Errors
    /// [`crate::Error::Ranks`] if a rank is gone.
    pub(crate) fn add_up(&mut self, partials: &mut [f32], len: usize, losses: &mut [f64]) -> Result<()> {
        let (rank, size, parts) = (self.world.rank(), self.world.size(), losses.len());
        let of_ranks: Vec<Vec<Node>> = (0..size).map(|rank| nodes(self.parts_of(rank, parts)).collect()).collect();
        let slices: Vec<Range<usize>> = (0..size).map(|rank| self.slice_of(rank, len)).collect();
        let (own, slice) = (&of_ranks[rank], slices[rank].clone());
        let others = || (0..size).filter(|&other| other != rank);

        self.outgoing.resize(own.len() * len, 0.0);
        for (node, sum) in own.iter().zip(self.outgoing.chunks_exact_mut(len)) {
            let parts = node.parts().map(|part| (0, &partials[part * len..][..len]));
            add(sum, &parts);
        }
        let theirs: usize = others().map(|other| of_ranks[other].len()).sum();
        self.incoming.resize(theirs * slice.len(), 0.0);

        let began = Instant::now();
        let mut send = Vec::new();
        for to in others() {
            let nodes = self.outgoing.chunks_exact(len);
            send.extend(nodes.map(|node| Outgoing { to, bytes: bytemuck::cast_slice(&node[slices[to].clone()]) }));
        }
        let from = others().flat_map(|other| std::iter::repeat_n(other, of_ranks[other].len()));
        let into = self.incoming.chunks_exact_mut(slice.len().max(1));
        let mut receive: Vec<_> =
            from.zip(into).map(|(from, into)| Incoming { from, bytes: bytemuck::cast_slice_mut(into) }).collect();
        send.retain(|message| !message.bytes.is_empty());
        self.world.exchange(&send, &mut receive)?;
        self.exchanged += began.elapsed();

        // In the order of the parts, which is that of the ranks.
        let mut all: Vec<(u32, &[f32])> = Vec::new();
        let mut received = self.incoming.chunks_exact(slice.len().max(1));
        for (other, nodes) in of_ranks.iter().enumerate() {
            for (i, node) in nodes.iter().enumerate() {
                let own = || Some(&self.outgoing[i * len..][slice.clone()]);
                all.extend(if other == rank { own() } else { received.next() }.map(|values| (node.level, values)));
            }
        }
        add(&mut partials[slice.clone()], &all.iter().copied());

        let began = Instant::now();
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        let (mut gradient, mut losses) = (&mut partials[..len], losses);
        for (other, slice) in slices.iter().enumerate() {
            let (sums, rest) = gradient.split_at_mut(slice.len());
            let (own, later) = losses.split_at_mut(self.parts_of(other, parts).len());
            (gradient, losses) = (rest, later);
            let (sums, own): (&mut [u8], &mut [u8]) = (bytemuck::cast_slice_mut(sums), bytemuck::cast_slice_mut(own));
            if other == rank {
                let (sums, own): (&[u8], &[u8]) = (sums, own);
                send.extend(others().flat_map(|to| [sums, own].map(|bytes| Outgoing { to, bytes })));
            } else {
                receive.extend([sums, own].map(|bytes| Incoming { from: other, bytes }));
            }
        }
        send.retain(|message| !message.bytes.is_empty());
        receive.retain(|message| !message.bytes.is_empty());
        self.world.exchange(&send, &mut receive)?;
        self.exchanged += began.elapsed();
        Ok(())
    }
}

/// Adds up neighbouring nodes, each with its level.
fn add<'p>(into: &mut [f32], nodes: &(impl Iterator<Item = (u32, &'p [f32])> + Clone + Sync)) {
    into.par_chunks_mut(PIECE).enumerate().for_each(|(piece, into)| {
        let mut sums = Sums::new();
        for (b, block) in into.chunks_mut(BLOCK).enumerate() {
            let first = piece * PIECE + b * BLOCK;
            let sum = sums.of_nodes(&(first..first + block.len()), nodes.clone());
            block.copy_from_slice(&sum[..block.len()]);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::comm::Threads;

    /// Gradients and losses of so many parts, added up by so many ranks.
    fn added_up(len: usize, parts: usize, size: usize) -> Vec<(Vec<f32>, Vec<f64>)> {
        let one = |rank: Threads| {
            let mut ranks = Ranks::new(Arc::new(rank));
            let (mut partials, mut losses) = (vec![f32::NAN; len * parts], vec![f64::NAN; parts]);
            for part in ranks.own(parts) {
                let value = |i: usize| ((i + part * 7) as f32).sin() * 10f32.powi((i + part) as i32 % 7);
                partials[part * len..][..len].iter_mut().enumerate().for_each(|(i, v)| *v = value(i));
                losses[part] = part as f64;
            }
            ranks.add_up(&mut partials, len, &mut losses).unwrap();
            partials.truncate(len);
            (partials, losses)
        };
        std::thread::scope(|scope| {
            let ranks: Vec<_> = Threads::world(size).into_iter().map(|rank| scope.spawn(|| one(rank))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn every_number_of_ranks_gives_every_rank_the_same_bits() {
        for (len, parts) in [(1, 1), (200, 16), (5000, 16), (200, 7), (65, 2)] {
            let alone = added_up(len, parts, 1).remove(0);
            assert!(alone.0.iter().all(|value| value.is_finite()));
            for size in [2, 3, 4, 5, 8, 16, 19] {
                let all = added_up(len, parts, size);
                assert!(all.iter().all(|one| *one == alone), "{len} values, {parts} parts, {size} ranks");
            }
        }
    }
}
