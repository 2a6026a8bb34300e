//! Which operations of a program an engine may shorten, because of what comes before or after them.

use super::{Op, Program};
use crate::buffer::Buffer;
use crate::plan::Plan;

/// For each operation of a program whether it may take its short form. [`Op::Fill`]: nothing, since the coupling that
/// follows writes; [`Op::Couple`]: writes the log-determinant instead of adding to it; [`Op::NetworksBackward`] and
/// [`Op::MixBackward`]: gradients of weights only, since nobody reads those of the columns.
pub(crate) fn shortcuts(program: &Program) -> Vec<bool> {
    let ops = &program.rows;
    let mut short = vec![false; ops.len()];
    for (i, op) in ops.iter().enumerate() {
        let Op::Fill { to, value: 0.0 } = *op else { continue };
        let next = (i + 1..ops.len()).find(|&j| uses(&ops[j]).concat().iter().any(|&b| b.overlaps(to)));
        if let Some(j) = next
            && let Op::Couple { x, st, to: result, log_det, .. } = ops[j]
            && log_det == to
            && ![x, st, result].iter().any(|&b| b.overlaps(to))
        {
            (short[i], short[j]) = (true, true);
        }
    }
    // What later operations or the caller read.
    let mut read = program.outputs.clone();
    for (i, op) in ops.iter().enumerate().rev() {
        let wanted = |buffer: Buffer| read.iter().any(|&b| b.overlaps(buffer));
        match *op {
            Op::NetworksBackward { x, given, hidden, d_st, d_x, .. } => {
                short[i] = !wanted(d_x);
                read.extend([x, given, hidden[0], hidden[1], d_st]);
            }
            Op::MixBackward { mix, from, d_to, d_from } => {
                short[i] = !wanted(d_from);
                if !short[i] || trained(&program.plan, mix) {
                    read.extend([from, d_to]);
                }
            }
            _ => read.extend(&uses(op)[0]),
        }
    }
    short
}

fn trained(plan: &Plan, mix: usize) -> bool {
    plan.mixes().nth(mix).is_some_and(|mix| mix.reflections.is_some())
}

/// Buffers that an operation reads, and those that it writes or adds to. Hidden activations that an engine computes
/// again in the backward operation count as read: nobody reads them after it.
pub(crate) fn uses(op: &Op) -> [Vec<Buffer>; 2] {
    match *op {
        Op::Gather { to, .. } | Op::Normal { to, .. } | Op::Fill { to, .. } => [vec![], vec![to]],
        Op::Mix { from, to, .. } => [vec![from], vec![to]],
        Op::Networks { x, given, st, hidden: [h0, h1], .. } => [vec![x, given], vec![st, h0, h1]],
        Op::Couple { x, st, to, log_det, .. } => [vec![x, st, log_det], vec![to, log_det]],
        Op::Uncouple { from, x, st, .. } => [vec![from, st], vec![x]],
        Op::SquaredError { from, target, loss, d_from, .. } | Op::Discrepancy { from, target, loss, d_from, .. } => {
            [vec![from, target, loss], vec![loss, d_from]]
        }
        Op::TotalLoss { loss } => [vec![loss], vec![]],
        Op::UncoupleBackward { x, st, d_x, d_from, d_st, .. } => [vec![x, st, d_x], vec![d_from, d_st]],
        Op::Walk { x, given, st, hidden: [h0, h1], .. } => [vec![x, given], vec![x, st, h0, h1]],
        Op::Loss { z, log_det, loss, d_z, d_log_det } => [vec![z, log_det], vec![loss, d_z, d_log_det]],
        Op::CoupleBackward { x, st, d_to, d_log_det, d_x, d_st, .. } => [vec![x, st, d_to, d_log_det], vec![d_x, d_st]],
        Op::NetworksBackward { x, given, hidden: [h0, h1], d_st, d_hidden: [d0, d1], slots, d_x, .. } => {
            [vec![x, given, h0, h1, d_st, d_x], vec![d0, d1, slots, d_x]]
        }
        Op::MixBackward { from, d_to, d_from, .. } => [vec![from, d_to], vec![d_from]],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Mixing, Spec};
    use crate::tape::{Memory, Tape, Then};

    /// Numbers of the operations that are short: of a model of two blocks with mixings.
    fn short(mixing: Mixing, wants_d_x: bool, fill: f32) -> Vec<usize> {
        let spec = Spec { dim: 5, blocks: 2, width: 8, mixing, mix_first: true, ..Spec::default() };
        let mut tape = Tape::training(Arc::new(Plan::new(&spec).unwrap()), Memory::Stored);
        let (x, log_det) = (tape.input(5), tape.log_det());
        let mut z = x;
        for block in 0..2 {
            z = tape.mix(block..block + 1, false, z);
            z = tape.couple(block, z, Buffer::EMPTY, log_det);
        }
        tape.loss(z, log_det);
        tape.backward();
        let outputs = if wants_d_x { vec![tape.gradient(x)] } else { vec![] };
        let mut program = tape.finish("test", outputs, Then::Gradients);
        let Op::Fill { value, .. } = &mut program.rows[0] else { panic!("the first operation fills") };
        *value = fill;
        let short = shortcuts(&program);
        (0..short.len()).filter(|&i| short[i]).collect()
    }

    // Fill, 2 x (mix, networks, couple), loss, 2 x (couple, networks, mix).
    #[test]
    fn the_first_coupling_writes_and_the_last_gradients_are_left_out() {
        assert_eq!(short(Mixing::Fixed, false, 0.0), [0, 3, 12, 13]);
        assert_eq!(short(Mixing::Fixed, true, 0.0), [0, 3]);
        // Trained reflections need the gradient of what they put out.
        assert_eq!(short(Mixing::Householder, false, 0.0), [0, 3, 13]);
        assert_eq!(short(Mixing::Fixed, true, 1.0), [0; 0]);
    }
}
