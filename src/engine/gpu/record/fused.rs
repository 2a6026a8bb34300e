//! Neighbouring operations in one dispatch, where none needs more of the others than the samples it works on itself. A
//! dispatch costs some 4 microseconds on a discrete GPU, and what passes from one to the next goes through its memory.
//!
//! No result depends on it: the kernels are made of the same parts in the same order, with barriers between them.
//!
//! Left apart, because it would gain nothing: gather and the first mixing (one dispatch of 12; a thread of the gather has
//! four columns of four samples, one of the mixing four columns of all), and a coupling with the networks that follow,
//! every workgroup of which would do all of it again: 5 to 10 % more operations for one dispatch less.

use super::networks::longest;
use super::{Extent, Head, Recorder, dense_iterations, slope, tile};
use crate::buffer::Buffer;
use crate::engine::gpu::launch::{self, NONE};
use crate::engine::gpu::shader::Kernel;
use crate::error::Result;
use crate::program::{MixId, Op};

const PER_8_QUADS: [Extent; 2] = [Extent::Quads(8), Extent::Fixed(1)];

impl Recorder<'_> {
    /// Records the first operations of `ops` as one dispatch and returns how many they are; 0 where there is no kernel for
    /// them. `short` says which may take their short form.
    pub(super) fn fused(&mut self, ops: &[Op], short: &[bool]) -> Result<usize> {
        match *ops {
            [Op::Couple { to, .. }, Op::Mix { mix, transpose: false, from, to: mixed }, ..] if from == to => {
                self.couple_mix(&ops[0], short[0], mix, mixed)?;
                Ok(2)
            }
            [Op::Couple { to, log_det, .. }, Op::Loss { z, log_det: used, .. }, ref rest @ ..]
                if z == to && used == log_det =>
            {
                let backward = rest.first().filter(|next| is_backward_of(next, &ops[0], &ops[1]));
                self.couple_loss(&ops[0], short[0], &ops[1], backward)?;
                Ok(2 + usize::from(backward.is_some()))
            }
            [
                Op::NetworksBackward { d_x, .. },
                Op::MixBackward { mix, from, d_to: d_mixed, d_from },
                Op::CoupleBackward { d_to, d_x: written, d_st, .. },
                ..,
            ] if d_mixed == d_x && d_to == d_from && !short[0] && !short[1] => {
                // The gradient of Q is made afterwards, of these.
                if [written, d_st].iter().any(|b| b.overlaps(from) || b.overlaps(d_mixed)) {
                    return Ok(0);
                }
                self.networks_backward(&ops[0], false)?;
                self.between_backward(&ops[0], Some(mix), &ops[2])?;
                self.mix_gradient(mix, from, d_mixed)?;
                Ok(3)
            }
            [Op::NetworksBackward { d_x, .. }, Op::CoupleBackward { d_to, .. }, ..] if d_to == d_x && !short[0] => {
                self.networks_backward(&ops[0], false)?;
                self.between_backward(&ops[0], None, &ops[1])?;
                Ok(2)
            }
            _ => Ok(0),
        }
    }

    fn couple_mix(&mut self, couple: &Op, short: bool, mix: MixId, mixed: Buffer) -> Result<()> {
        let &Op::Couple { stage: id, x, st, to, log_det } = couple else { unreachable!("called for couplings only") };
        let (stage, tables) = self.stage(id);
        let launch = launch::CoupleMix {
            tile: tile(),
            x: x.first,
            st: st.first,
            to: to.first,
            log_det: log_det.first,
            columns: stage.dim,
            chains: tables.chains,
            slope: slope(self.plan),
            add: u32::from(!short),
            mixed: mixed.first,
            panel: self.tables.mixes[mix].panels[0],
        };
        let iterations = self.couple_iterations(id) + mixing_iterations(stage.dim, 16);
        self.push(Kernel::CoupleMix, Head::Tile, PER_8_QUADS, iterations, launch)
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
            slope: slope(self.plan),
            add: u32::from(!short),
            d_x,
            d_st,
        };
        let iterations = 4 * self.couple_iterations(id);
        self.push(Kernel::CoupleLoss, Head::Tile, PER_8_QUADS, iterations, launch)
    }

    fn between_backward(&mut self, networks: &Op, mix: Option<MixId>, couple: &Op) -> Result<()> {
        let (
            &Op::NetworksBackward { stage: later, slots, d_x: d_mixed, .. },
            &Op::CoupleBackward { stage: id, x, st, d_to, d_log_det, d_x, d_st },
        ) = (networks, couple)
        else {
            unreachable!("called for backward operations only")
        };
        let (stage, tables) = self.stage(id);
        let launch = launch::BetweenBackward {
            tile: tile(),
            slots: slots.first,
            lists: self.tables.stages[later].slots,
            d_mixed: d_mixed.first,
            d_to: d_to.first,
            panel: mix.map_or(NONE, |mix| self.tables.mixes[mix].panels[1]),
            columns: stage.dim,
            x: x.first,
            st: st.first,
            d_log_det: d_log_det.first,
            d_x: d_x.first,
            d_st: d_st.first,
            chains: tables.chains,
            slope: slope(self.plan),
        };
        let columns = u64::from(stage.dim.div_ceil(32));
        let lists = longest(&self.plan.stages[later].slots) + 2 * longest(&stage.chains) + 3;
        let iterations = columns * lists + mixing_iterations(stage.dim, 32);
        self.push(Kernel::BetweenBackward, Head::Tile, PER_8_QUADS, iterations, launch)
    }
}

/// Loop iterations of a mixing whose outputs are shared out among `groups`, four for each at a time.
fn mixing_iterations(columns: u32, groups: u32) -> u64 {
    u64::from(columns.div_ceil(4 * groups)) * (1 + dense_iterations(columns))
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
