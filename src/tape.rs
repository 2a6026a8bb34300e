//! The autodiff tape: records forward operations and appends their backward operations in reverse.
//!
//! Every activation has at most two readers, the networks of a stage and its coupling. The coupling is recorded last,
//! so going backwards it comes first and *writes* the gradient of its input; the networks then *add* theirs. A mixing
//! is the only reader of its input and writes. So no gradient needs to be cleared; [`Tape::backward`] checks the rule.
//!
//! # Memory
//!
//! With [`Memory::Stored`] every activation has a buffer of its own. Otherwise the maps of a flow write to two buffers in
//! turn, and all stages share one scratch for hidden activations and st, so the arena of a program has the same size for
//! any number of blocks. [`Memory::Reversible`] can be differentiated nevertheless, because every map is invertible: on
//! its way back the tape first records the inverse of the map, whose networks leave their hidden activations and st in
//! the scratch, and then the map's backward operations. The last map needs no inverse: what it read is still there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::buffer::{Arena, Buffer};
use crate::plan::{ConditionOn, Mixing, Plan, Stage};
use crate::program::{MixId, Op, Program, StageId, StepOp};

/// What is kept of the activations for the backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// All activations of all blocks.
    #[default]
    Stored,
    /// The output of the last block. The backward pass computes each block's input from its output again, so that memory
    /// does not grow with the number of blocks.
    ///
    /// All networks but those of the last stage run once more: a step of the CPU engine took 1.10 to 1.15 (2 blocks), 1.07
    /// to 1.10 (32 narrow blocks) and 0.93 (32 blocks of width 64, whose stored activations leave the cache) of the time.
    /// Gradients agree with stored ones up to the rounding of the inverse: 5e-7 of their length in trained models of 32
    /// blocks, a tenth of what separates either from `f64`. Where couplings shrink columns by much, the inverse loses digits, see
    /// [`crate::train::Trainer::inverse_error`]; and a ReLU whose input is within rounding of 0 may flip.
    Reversible,
}

/// Records one program.
pub(crate) struct Tape {
    plan: Arc<Plan>,
    arena: Arena,
    ops: Vec<Op>,
    /// What is kept for the backward pass; `None` where there will be none.
    memory: Option<Memory>,
    scratch: Option<[Buffer; 2]>,
    /// The buffer that the next map may overwrite, unless activations are stored.
    spare: Option<Buffer>,
    gradients: HashMap<Buffer, Buffer>,
    inputs: Vec<Buffer>,
}

impl Tape {
    /// A tape for inference: nothing is kept.
    pub(crate) fn inference(plan: Arc<Plan>) -> Self {
        Self::new(plan, None)
    }

    /// A tape whose operations can be differentiated.
    pub(crate) fn training(plan: Arc<Plan>, memory: Memory) -> Self {
        Self::new(plan, Some(memory))
    }

    fn new(plan: Arc<Plan>, memory: Option<Memory>) -> Self {
        Self {
            plan,
            arena: Arena::default(),
            ops: Vec::new(),
            memory,
            scratch: None,
            spare: None,
            gradients: HashMap::new(),
            inputs: Vec::new(),
        }
    }

    /// The plan this tape records for.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    fn columns(&self) -> u32 {
        self.plan.spec.dim
    }

    /// A buffer of N columns that the caller fills.
    pub(crate) fn input(&mut self) -> Buffer {
        let x = self.arena.alloc(self.columns());
        self.inputs.push(x);
        x
    }

    /// Rows of the current batch plus noise, (N, B).
    pub(crate) fn gather(&mut self) -> Buffer {
        let to = self.arena.alloc(self.columns());
        self.ops.push(Op::Gather { to });
        to
    }

    /// Standard normals, (N, B).
    pub(crate) fn normal(&mut self) -> Buffer {
        let to = self.arena.alloc(self.columns());
        self.ops.push(Op::Normal { to });
        to
    }

    /// A log-determinant that starts at zero, (1, B).
    pub(crate) fn log_det(&mut self) -> Buffer {
        let to = self.arena.alloc(1);
        self.ops.push(Op::Fill { to, value: 0.0 });
        to
    }

    /// Q x, or Q^T x. Unless activations are stored, a later map overwrites `from`.
    pub(crate) fn mix(&mut self, mix: MixId, transpose: bool, from: Buffer) -> Buffer {
        let to = self.after(from);
        self.ops.push(Op::Mix { mix, transpose, from, to });
        to
    }

    /// Networks and coupling of one stage. Unless activations are stored, a later map overwrites `x`.
    pub(crate) fn couple(&mut self, stage: StageId, x: Buffer, log_det: Buffer) -> Buffer {
        let st = self.networks(stage, x, self.memory == Some(Memory::Stored));
        let to = self.after(x);
        self.ops.push(Op::Couple { stage, x, st, to, log_det });
        to
    }

    /// Inverse of one stage, in place. For a backward pass to come, `keep` leaves st and the hidden activations in the
    /// scratch.
    pub(crate) fn uncouple(&mut self, stage: StageId, x: Buffer, keep: bool) {
        match self.plan.spec.condition_on {
            // The networks see the stage's input, which comes to light node by node.
            ConditionOn::Input => {
                let [st, hidden0, hidden1] = self.scratch(stage);
                self.ops.push(Op::Walk { stage, x, st, hidden: [hidden0, hidden1], keep });
            }
            // They see columns that the stage leaves as they are.
            ConditionOn::Output => {
                let st = self.networks(stage, x, keep);
                self.ops.push(Op::Uncouple { stage, x, st });
            }
        }
    }

    /// The networks of one stage; returns st.
    fn networks(&mut self, stage: StageId, x: Buffer, keep: bool) -> Buffer {
        let [st, hidden0, hidden1] = if self.memory == Some(Memory::Stored) {
            let plan = &self.plan.stages[stage];
            [plan.st_rows, plan.hidden_rows, plan.hidden_rows].map(|rows| self.arena.alloc(rows))
        } else {
            self.scratch(stage)
        };
        self.ops.push(Op::Networks { stage, x, st, hidden: [hidden0, hidden1], keep });
        st
    }

    /// The buffer for what a map makes of `from`.
    fn after(&mut self, from: Buffer) -> Buffer {
        let spare = match self.memory {
            Some(Memory::Stored) => None,
            _ => self.spare.replace(from),
        };
        spare.unwrap_or_else(|| self.arena.alloc(from.rows))
    }

    /// Scratch that all stages share: st, and hidden activations of two layers.
    fn scratch(&mut self, stage: StageId) -> [Buffer; 3] {
        let [st, hidden] = *self.scratch.get_or_insert_with(|| {
            let [st, hidden] = [most(&self.plan, |s| s.st_rows), most(&self.plan, |s| 2 * s.hidden_rows)];
            [self.arena.alloc(st), self.arena.alloc(hidden)]
        });
        let [hidden0, hidden1] = self.halves(stage, hidden);
        [Buffer { rows: self.plan.stages[stage].st_rows, ..st }, hidden0, hidden1]
    }

    /// Cuts a shared buffer into two hidden buffers of a stage.
    fn halves(&self, stage: StageId, shared: Buffer) -> [Buffer; 2] {
        let rows = self.plan.stages[stage].hidden_rows;
        [Buffer { first: shared.first, rows }, Buffer { first: shared.first + rows, rows }]
    }

    /// The gradient buffer of an activation; the same one each time.
    pub(crate) fn gradient(&mut self, of: Buffer) -> Buffer {
        let arena = &mut self.arena;
        *self.gradients.entry(of).or_insert_with(|| arena.alloc(of.rows))
    }

    /// Records the loss of spec section 5; returns the per-sample loss, (1, B).
    pub(crate) fn loss(&mut self, z: Buffer, log_det: Buffer) -> Buffer {
        let loss = self.arena.alloc(1);
        let (d_z, d_log_det) = (self.gradient(z), self.gradient(log_det));
        self.ops.push(Op::Loss { z, log_det, loss, d_z, d_log_det });
        loss
    }

    /// Appends the backward operations of everything recorded so far, last first.
    ///
    /// The gradients of the outputs must have been seeded: by [`Tape::loss`], or by the caller as program inputs
    /// through [`Tape::seed`]. Unless activations are stored, the outputs themselves are overwritten.
    pub(crate) fn backward(&mut self) {
        let Some(memory) = self.memory else { panic!("a tape for inference cannot be differentiated") };
        let plan = self.plan.clone();
        let shared = self.arena.alloc(most(&plan, |s| 2 * s.hidden_rows));
        let all_d_st = self.arena.alloc(most(&plan, |s| s.st_rows));
        let all_slots = self.arena.alloc(most(&plan, |s| s.slot_rows));
        let untouched = if memory == Memory::Reversible { self.keep_last() } else { None };
        // The activation that the way back has come to. It may lie elsewhere than on the way there; its gradient does not.
        let mut here: Option<Buffer> = None;
        let mut written = HashSet::new();
        for (i, op) in self.ops.clone().into_iter().enumerate().rev() {
            match op {
                Op::Couple { stage, x, st, to, log_det } => {
                    let input = match memory {
                        Memory::Stored => x,
                        Memory::Reversible if untouched == Some(i) => {
                            self.spare = Some(to);
                            x
                        }
                        Memory::Reversible => {
                            let output = here.unwrap_or(to);
                            self.uncouple(stage, output, true);
                            output
                        }
                    };
                    here = Some(input);
                    let d_st = Buffer { rows: st.rows, ..all_d_st };
                    let (d_to, d_log_det, d_x) = (self.gradient(to), self.gradient(log_det), self.gradient(x));
                    written.remove(&d_to);
                    assert!(written.insert(d_x), "the gradient of {x:?} would be overwritten");
                    self.ops.push(Op::CoupleBackward { stage, x: input, st, d_to, d_log_det, d_x, d_st });
                }
                Op::Networks { stage, x, st, hidden, keep: _ } => {
                    let d_st = Buffer { rows: st.rows, ..all_d_st };
                    let d_hidden = self.halves(stage, shared);
                    let slots = Buffer { rows: plan.stages[stage].slot_rows, ..all_slots };
                    let d_x = self.gradient(x);
                    assert!(written.contains(&d_x), "the networks of {x:?} add to a gradient that nothing wrote");
                    let x = here.unwrap_or(x);
                    self.ops.push(Op::NetworksBackward { stage, x, hidden, d_st, d_hidden, slots, d_x });
                }
                Op::Mix { mix, transpose, from, to } => {
                    assert!(!transpose, "the inverse is not differentiated");
                    let input = match memory {
                        Memory::Stored => from,
                        Memory::Reversible => self.mix(mix, true, here.unwrap_or(to)),
                    };
                    here = Some(input);
                    let (d_to, d_from) = (self.gradient(to), self.gradient(from));
                    written.remove(&d_to);
                    assert!(written.insert(d_from), "the gradient of {from:?} would be overwritten");
                    self.ops.push(Op::MixBackward { mix, from: input, d_to, d_from });
                }
                Op::Gather { .. } | Op::Normal { .. } | Op::Fill { .. } | Op::Loss { .. } => {}
                Op::Uncouple { .. } | Op::Walk { .. } => unreachable!("the inverse is not differentiated"),
                Op::CoupleBackward { .. } | Op::NetworksBackward { .. } | Op::MixBackward { .. } => {
                    unreachable!("backward is recorded once")
                }
            }
        }
    }

    /// Lets the networks of the last map, if it is a coupling, leave their hidden activations, since nothing that comes
    /// after it overwrites what it read. Returns where the coupling is recorded.
    fn keep_last(&mut self) -> Option<usize> {
        let last = self.ops.iter().rposition(|op| matches!(op, Op::Mix { .. } | Op::Couple { .. }))?;
        match self.ops[..=last].split_last_chunk_mut() {
            Some((_, [Op::Networks { keep, .. }, Op::Couple { .. }])) => {
                *keep = true;
                Some(last)
            }
            _ => None,
        }
    }

    /// Makes the gradient of an activation an input of the program, so that a caller can seed it.
    pub(crate) fn seed(&mut self, of: Buffer) -> Buffer {
        let gradient = self.gradient(of);
        self.inputs.push(gradient);
        gradient
    }

    /// Ends the recording.
    pub(crate) fn finish(self, name: &'static str, outputs: Vec<Buffer>, then: Then) -> Program {
        let trained = if self.plan.spec.mixing == Mixing::Householder { self.plan.mixes().count() } else { 0 };
        let prepare = (0..trained).map(|mix| StepOp::Reflect { mix }).collect();
        let mut finish = Vec::new();
        if then != Then::Nothing {
            finish.extend((0..trained).map(|mix| StepOp::ReflectBackward { mix }));
        }
        if then == Then::Step {
            finish.push(StepOp::Adam);
        }
        Program {
            name,
            arena_rows: self.arena.rows(),
            inputs: self.inputs,
            outputs,
            prepare,
            rows: self.ops,
            finish,
            plan: self.plan,
        }
    }
}

/// The most rows that any stage of a plan needs.
fn most(plan: &Plan, rows: impl Fn(&Stage) -> u32) -> u32 {
    plan.stages.iter().map(rows).max().unwrap_or(0)
}

/// What a program does after its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: the program has no backward operations.
    Nothing,
    /// Completes the gradients of all trained weights.
    Gradients,
    /// Completes the gradients and updates the weights.
    Step,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::programs::{Name, record};
    use crate::plan::Spec;

    fn plan(blocks: u32, condition_on: ConditionOn, mixing: Mixing) -> Arc<Plan> {
        let spec = Spec { dim: 9, blocks, condition_on, mixing, mix_first: false, ..Spec::default() };
        Arc::new(Plan::new(&spec).unwrap())
    }

    #[test]
    fn unless_activations_are_stored_blocks_cost_no_memory() {
        use Memory::{Reversible, Stored};
        for condition_on in [ConditionOn::Input, ConditionOn::Output] {
            for mixing in [Mixing::None, Mixing::Fixed, Mixing::Householder] {
                let rows = |name, blocks| record(name, &plan(blocks, condition_on, mixing)).arena_rows;
                let step = [Name::Step(Reversible), Name::LossGradients(Reversible), Name::Vjp(Reversible)];
                for name in [Name::Encode, Name::Decode, Name::Sample].into_iter().chain(step) {
                    // Two blocks have all maps that there are: the first has no mixing.
                    assert_eq!(rows(name, 2), rows(name, 99), "{name:?}, {condition_on:?}, {mixing:?}");
                }
                assert!(rows(Name::Step(Stored), 99) > 20 * rows(Name::Step(Stored), 2));
            }
        }
    }

    /// The inverse of the last coupling is left out, and no network runs more than twice.
    #[test]
    fn the_way_back_begins_with_what_is_there() {
        for (condition_on, mixing) in [
            (ConditionOn::Input, Mixing::None),
            (ConditionOn::Output, Mixing::Fixed),
            (ConditionOn::Input, Mixing::Fixed),
        ] {
            for blocks in [1, 2, 5] {
                let plan = plan(blocks, condition_on, mixing);
                let program = record(Name::Step(Memory::Reversible), &plan);
                let runs = |stage| {
                    let runs = |op: &&Op| matches!(**op, Op::Networks { stage: s, .. } | Op::Walk { stage: s, .. } if s == stage);
                    program.rows.iter().filter(runs).count()
                };
                let stages = plan.stages.len();
                assert_eq!((0..stages).map(runs).sum::<usize>(), 2 * stages - 1);
                assert_eq!(runs(stages - 1), 1);
            }
        }
    }
}
