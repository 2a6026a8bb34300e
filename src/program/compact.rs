//! Rows of the arena that nobody touches, left out.

use super::{Op, Program, uses};
use crate::buffer::Buffer;

/// The program with changed operations, on an arena without the rows that none of them touches.
pub(crate) fn compact(program: &Program, change: impl Fn(&mut Op)) -> Program {
    let mut rows = program.rows.clone();
    rows.iter_mut().for_each(change);
    let mut used = vec![false; program.arena_rows as usize];
    let others = program.inputs.iter().chain(&program.outputs).copied();
    for buffer in rows.iter().flat_map(|op| uses(op).concat()).chain(others) {
        used[buffer.first as usize..(buffer.first + buffer.rows) as usize].fill(true);
    }
    // New numbers of the rows, and of the end.
    let mut numbers = Vec::with_capacity(used.len() + 1);
    let mut next = 0;
    for used in used {
        numbers.push(next);
        next += u32::from(used);
    }
    numbers.push(next);
    let place = |b: Buffer| Buffer { first: numbers[b.first as usize], ..b };
    Program {
        arena_rows: next,
        inputs: program.inputs.iter().copied().map(place).collect(),
        outputs: program.outputs.iter().copied().map(place).collect(),
        rows: rows.iter().map(|op| map(op, place)).collect(),
        ..program.clone()
    }
}

/// The operation with other buffers.
fn map(op: &Op, f: impl Fn(Buffer) -> Buffer) -> Op {
    let mut op = op.clone();
    let each = |buffers: &mut [&mut Buffer]| buffers.iter_mut().for_each(|b| **b = f(**b));
    match &mut op {
        Op::Gather { to, .. } | Op::Normal { to, .. } | Op::Fill { to, .. } => each(&mut [to]),
        Op::Mix { from, to, .. } => each(&mut [from, to]),
        Op::Networks { x, given, st, hidden: [h0, h1], .. } | Op::Walk { x, given, st, hidden: [h0, h1], .. } => {
            each(&mut [x, given, st, h0, h1]);
        }
        Op::Couple { x, st, to, log_det, .. } => each(&mut [x, st, to, log_det]),
        Op::Uncouple { from, x, st, .. } => each(&mut [from, x, st]),
        Op::SquaredError { from, target, loss, d_from, .. } | Op::Discrepancy { from, target, loss, d_from, .. } => {
            each(&mut [from, target, loss, d_from]);
        }
        Op::TotalLoss { loss } => each(&mut [loss]),
        Op::UncoupleBackward { x, st, d_x, d_from, d_st, .. } => each(&mut [x, st, d_x, d_from, d_st]),
        Op::Loss { z, log_det, loss, d_z, d_log_det } => each(&mut [z, log_det, loss, d_z, d_log_det]),
        Op::CoupleBackward { x, st, d_to, d_log_det, d_x, d_st, .. } => {
            each(&mut [x, st, d_to, d_log_det, d_x, d_st]);
        }
        Op::NetworksBackward { x, given, hidden: [h0, h1], d_st, d_hidden: [d0, d1], slots, d_x, .. } => {
            each(&mut [x, given, h0, h1, d_st, d0, d1, slots, d_x]);
        }
        Op::MixBackward { from, d_to, d_from, .. } => each(&mut [from, d_to, d_from]),
    }
    op
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Plan, Spec};
    use crate::tape::{Memory, Tape, Then};

    #[test]
    fn rows_in_use_stay_apart_and_together() {
        let plan = Arc::new(Plan::new(&Spec { dim: 7, width: 12, ..Spec::default() }).unwrap());
        let mut tape = Tape::training(plan.clone(), Memory::Stored);
        let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
        let mid = tape.couple(0, x, Buffer::EMPTY, log_det);
        let z = tape.couple(1, mid, Buffer::EMPTY, log_det);
        tape.loss(z, log_det);
        tape.backward();
        let d_x = tape.gradient(x);
        let program = tape.finish("test", vec![d_x], Then::Gradients);

        // Mixings, which this tape does not use, and so on, own no rows.
        let all = compact(&program, |_| ());
        assert_eq!(all.arena_rows, program.arena_rows);
        assert_eq!(all, program);

        let hidden = plan.stages[0].hidden_rows;
        let less = compact(&program, |op| match op {
            Op::Networks { stage: 0, hidden, .. } => hidden.iter_mut().for_each(|b| b.rows = 4),
            Op::NetworksBackward { stage: 0, hidden, d_hidden, .. } => {
                hidden.iter_mut().chain(d_hidden).for_each(|b| b.rows = 4);
            }
            _ => {}
        });
        // The gradients' buffers are shared with the other stage.
        assert_eq!(less.arena_rows, program.arena_rows - 2 * (hidden - 4));
        for (before, after) in program.rows.iter().zip(&less.rows) {
            for (before, after) in uses(before).concat().iter().zip(uses(after).concat()) {
                assert!(after.rows == before.rows || after.rows == 4);
                assert!(after.first + after.rows <= less.arena_rows);
            }
            let disjoint = |op: &Op| {
                let all = uses(op).concat();
                all.iter().map(|a| all.iter().map(|b| a.overlaps(*b)).collect::<Vec<_>>()).collect::<Vec<_>>()
            };
            assert_eq!(disjoint(before), disjoint(after));
        }
    }
}
