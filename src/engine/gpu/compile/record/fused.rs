//! Neighbouring operations in one dispatch, where none needs more of the others than the samples it works on itself. A
//! dispatch costs some 4 microseconds on a discrete GPU, and what passes from one to the next goes through its memory.
//!
//! No result depends on it: the kernels are made of the same parts in the same order, with barriers between them.
//!
//! Left apart, because it would gain nothing: gather and the first mixing (one dispatch of 12; a thread of the gather
//! has four columns of four samples, one of the mixing four columns of all), and a coupling with the networks that
//! follow, every workgroup of which would do all of it again: 5 to 10 % more operations for one dispatch less.

use super::{Extent, Head, Recorder, tile};
use crate::buffer::Buffer;
use crate::engine::gpu::compile::cost::Between;
use crate::engine::gpu::kernels::launch::{self, NONE};
use crate::engine::gpu::kernels::shader::Kernel;
use crate::error::Result;
use crate::program::{MixId, Op};

const PER_8_QUADS: [Extent; 2] = [Extent::Quads(8), Extent::Fixed(1)];

impl Recorder<'_> {
    /// Records the first operations of `ops` as one dispatch and returns how many they are; 0 if there is no kernel
    /// for them. `short` says which may take their short form.
    pub(super) fn fused(&mut self, ops: &[Op], short: &[bool]) -> Result<usize> {
        match ops[0] {
            Op::Couple { to, log_det, .. } => {
                let mixes = ops[1..].iter().map_while(|op| match *op {
                    Op::Mix { mix, transpose: false, from, to } => Some((mix, from, to)),
                    _ => None,
                });
                if let Some(mixings) = Mixings::of_all(mixes, to) {
                    self.couple_mix(&ops[0], short[0], &mixings)?;
                    return Ok(1 + mixings.ids.len());
                }
                match ops[1..] {
                    [Op::Loss { z, log_det: used, .. }, ref rest @ ..] if z == to && used == log_det => {
                        let backward = rest.first().filter(|next| is_backward_of(next, &ops[0], &ops[1]));
                        self.couple_loss(&ops[0], short[0], &ops[1], backward)?;
                        Ok(2 + usize::from(backward.is_some()))
                    }
                    _ => Ok(0),
                }
            }
            Op::NetworksBackward { d_x, .. } => self.fused_backward(ops, short, d_x),
            _ => Ok(0),
        }
    }

    /// The backward of networks whose gradient goes to `d_x`, of the mixings before them and of the coupling before
    /// these.
    fn fused_backward(&mut self, ops: &[Op], short: &[bool], d_x: Buffer) -> Result<usize> {
        let mixes = ops[1..].iter().map_while(|op| match *op {
            Op::MixBackward { mix, d_to, d_from, .. } => Some((mix, d_to, d_from)),
            _ => None,
        });
        let mixings = Mixings::of_all(mixes, d_x);
        let (mixed, arrived) = mixings.as_ref().map_or((0, d_x), |mixings| (mixings.ids.len(), mixings.to));
        let Some(couple @ &Op::CoupleBackward { d_to, d_x: written, d_st, .. }) = ops.get(1 + mixed) else {
            return Ok(0);
        };
        if d_to != arrived || short[..=mixed].contains(&true) {
            return Ok(0);
        }
        // The gradient of Q is made afterwards, of these.
        let read_later = |op: &Op| match *op {
            Op::MixBackward { from, d_to, .. } => [from, d_to].iter().any(|b| b.overlaps(written) || b.overlaps(d_st)),
            _ => false,
        };
        let mix_ops = &ops[1..=mixed];
        if mix_ops.iter().any(read_later) {
            return Ok(0);
        }
        self.networks_backward(&ops[0], false)?;
        self.between_backward(&ops[0], mixings.as_ref(), couple)?;
        for op in mix_ops {
            if let &Op::MixBackward { mix, from, d_to, .. } = op {
                self.mix_gradient(mix, from, d_to)?;
            }
        }
        Ok(2 + mixed)
    }

    fn couple_mix(&mut self, couple: &Op, short: bool, mixings: &Mixings) -> Result<()> {
        let &Op::Couple { stage: id, x, st, to, log_det } = couple else { unreachable!("called for couplings only") };
        let (stage, tables) = self.stage(id);
        let [panel0, panel1] = self.panels(mixings, false);
        let launch = launch::CoupleMix {
            tile: tile(),
            x: x.first,
            st: st.first,
            to: to.first,
            log_det: log_det.first,
            columns: stage.dim,
            chains: tables.chains,
            add: u32::from(!short),
            mixed: mixings.to.first,
            split: mixings.split,
            panel0,
            panel1,
        };
        self.push(Kernel::CoupleMix, Head::Tile, PER_8_QUADS, launch, stage)
    }

    fn couple_loss(&mut self, couple: &Op, short: bool, loss: &Op, backward: Option<&Op>) -> Result<()> {
        let (&Op::Couple { stage: id, x, st, .. }, &Op::Loss { z, log_det, loss, d_z, d_log_det }) = (couple, loss)
        else {
            unreachable!("called for couplings and losses only")
        };
        let (stage, tables) = self.stage(id);
        let (d_x, d_st) = match backward {
            Some(Op::CoupleBackward { d_x, d_st, .. }) => (d_x.first, d_st.first),
            _ => (NONE, NONE),
        };
        let launch = launch::CoupleLoss {
            tile: tile(),
            x: x.first,
            st: st.first,
            z: z.first,
            log_det: log_det.first,
            loss: loss.first,
            d_z: d_z.first,
            d_log_det: d_log_det.first,
            columns: stage.dim,
            chains: tables.chains,
            add: u32::from(!short),
            d_x,
            d_st,
        };
        self.push(Kernel::CoupleLoss, Head::Tile, PER_8_QUADS, launch, stage)
    }

    fn between_backward(&mut self, networks: &Op, mixings: Option<&Mixings>, couple: &Op) -> Result<()> {
        let (
            &Op::NetworksBackward { stage: later, slots, d_x: d_mixed, .. },
            &Op::CoupleBackward { stage: id, x, st, d_to, d_log_det, d_x, d_st },
        ) = (networks, couple)
        else {
            unreachable!("called for backward operations only")
        };
        let (stage, tables) = self.stage(id);
        let [panel0, panel1] = mixings.map_or([NONE; 2], |mixings| self.panels(mixings, true));
        let launch = launch::BetweenBackward {
            tile: tile(),
            slots: slots.first,
            lists: self.tables.stages[later].slots,
            d_mixed: d_mixed.first,
            d_to: d_to.first,
            split: mixings.map_or(stage.dim, |mixings| mixings.split),
            panel0,
            panel1,
            columns: stage.dim,
            x: x.first,
            st: st.first,
            d_log_det: d_log_det.first,
            d_x: d_x.first,
            d_st: d_st.first,
            chains: tables.chains,
        };
        let sizes = Between { later: &self.plan.stages[later], earlier: stage };
        self.push(Kernel::BetweenBackward, Head::Tile, PER_8_QUADS, launch, sizes)
    }

    /// Where the panels of the mixings of both lanes begin; of one lane, twice the same.
    fn panels(&self, mixings: &Mixings, transpose: bool) -> [u32; 2] {
        let panel = |mix: &MixId| self.tables.mixes[*mix].panels[usize::from(transpose)];
        [&mixings.ids[0], &mixings.ids[mixings.ids.len() - 1]].map(panel)
    }
}

/// The mixing of all columns, or those of two lanes side by side.
struct Mixings {
    ids: Vec<MixId>,
    /// What they read.
    from: Buffer,
    /// What they write, or the gradient of what they read.
    to: Buffer,
    /// Columns of the first.
    split: u32,
}

impl Mixings {
    /// The first of `parts` if it mixes all of a buffer, or the first two if they do together. A part is the number of
    /// a mixing, what it reads and what it writes.
    fn of_all(parts: impl Iterator<Item = (MixId, Buffer, Buffer)>, buffer: Buffer) -> Option<Self> {
        let joined = |a: Buffer, b: Buffer| {
            (a.first + a.rows == b.first).then_some(Buffer { first: a.first, rows: a.rows + b.rows })
        };
        let mut all: Option<Self> = None;
        for (mix, from, to) in parts.take(2) {
            let next = match all {
                None => Self { ids: vec![mix], from, to, split: from.rows },
                Some(Self { mut ids, from: first_from, to: first_to, split }) => {
                    ids.push(mix);
                    Self { ids, from: joined(first_from, from)?, to: joined(first_to, to)?, split }
                }
            };
            if next.from == buffer {
                return Some(next);
            }
            all = Some(next);
        }
        None
    }
}

/// Whether `op` is the backward of a coupling whose result goes to that loss and nowhere else.
fn is_backward_of(op: &Op, couple: &Op, loss: &Op) -> bool {
    let (
        &Op::CoupleBackward { stage, x, st, d_to, d_log_det, .. },
        &Op::Couple { stage: of, x: of_x, st: of_st, .. },
        &Op::Loss { d_z, d_log_det: seeded, .. },
    ) = (op, couple, loss)
    else {
        return false;
    };
    (stage, x, st, d_to, d_log_det) == (of, of_x, of_st, d_z, seeded)
}
