//! The autodiff tape: records forward operations and appends their backward operations in reverse.
//!
//! Every activation has at most two readers, the networks of a stage and its coupling. The coupling is recorded last,
//! so going backwards it comes first and *writes* the gradient of its input; the networks then *add* theirs. A mixing
//! is the only reader of its input and writes. So no gradient needs to be cleared; [`Tape::backward`] checks the rule.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::buffer::{Arena, Buffer};
use crate::plan::{Mixing, Plan};
use crate::program::{MixId, Op, Program, StageId, StepOp};

/// Records one program.
pub(crate) struct Tape {
    plan: Arc<Plan>,
    arena: Arena,
    ops: Vec<Op>,
    keep: bool,
    scratch: Option<[Buffer; 2]>,
    gradients: HashMap<Buffer, Buffer>,
    inputs: Vec<Buffer>,
}

impl Tape {
    /// A tape for inference: hidden activations are scratch.
    pub(crate) fn inference(plan: Arc<Plan>) -> Self {
        Self::new(plan, false)
    }

    /// A tape whose operations can be differentiated: hidden activations are kept.
    pub(crate) fn training(plan: Arc<Plan>) -> Self {
        Self::new(plan, true)
    }

    fn new(plan: Arc<Plan>, keep: bool) -> Self {
        Self {
            plan,
            arena: Arena::default(),
            ops: Vec::new(),
            keep,
            scratch: None,
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

    /// Q x, or Q^T x.
    pub(crate) fn mix(&mut self, mix: MixId, transpose: bool, from: Buffer) -> Buffer {
        let to = self.arena.alloc(from.rows);
        self.ops.push(Op::Mix { mix, transpose, from, to });
        to
    }

    /// Networks and coupling of one stage.
    pub(crate) fn couple(&mut self, stage: StageId, x: Buffer, log_det: Buffer) -> Buffer {
        let st = self.networks(stage, x);
        let to = self.arena.alloc(x.rows);
        self.ops.push(Op::Couple { stage, x, st, to, log_det });
        to
    }

    /// Inverse of one stage whose networks see its own output's upper columns (`condition_on = output`), in place.
    pub(crate) fn uncouple(&mut self, stage: StageId, x: Buffer) {
        let st = self.networks(stage, x);
        self.ops.push(Op::Uncouple { stage, x, st });
    }

    /// Inverse of one stage whose networks see the block's input (`condition_on = input`), in place.
    pub(crate) fn walk(&mut self, stage: StageId, x: Buffer) {
        let [hidden, st] = self.shared();
        self.ops.push(Op::Walk { stage, x, st, hidden: self.halves(stage, hidden) });
    }

    fn networks(&mut self, stage: StageId, x: Buffer) -> Buffer {
        let plan = self.plan.stages[stage].clone();
        let (st, hidden) = if self.keep {
            let hidden = [self.arena.alloc(plan.hidden_rows), self.arena.alloc(plan.hidden_rows)];
            (self.arena.alloc(plan.st_rows), hidden)
        } else {
            let [hidden, st] = self.shared();
            (Buffer { rows: plan.st_rows, ..st }, self.halves(stage, hidden))
        };
        self.ops.push(Op::Networks { stage, x, st, hidden, keep: self.keep });
        st
    }

    /// Scratch that all stages of an inference share: hidden activations of two layers, and st.
    fn shared(&mut self) -> [Buffer; 2] {
        let rows = |f: &dyn Fn(&crate::plan::Stage) -> u32| self.plan.stages.iter().map(f).max().unwrap_or(0);
        let (hidden, st) = (2 * rows(&|s| s.hidden_rows), rows(&|s| s.st_rows));
        let arena = &mut self.arena;
        *self.scratch.get_or_insert_with(|| [arena.alloc(hidden), arena.alloc(st)])
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
    /// through [`Tape::seed`].
    pub(crate) fn backward(&mut self) {
        let stages = self.plan.stages.clone();
        let most = |f: &dyn Fn(&crate::plan::Stage) -> u32| stages.iter().map(f).max().unwrap_or(0);
        let shared = self.arena.alloc(2 * most(&|s| s.hidden_rows));
        let all_slots = self.arena.alloc(most(&|s| s.slot_rows));
        let all_d_st = self.arena.alloc(most(&|s| s.st_rows));
        let mut written = HashSet::new();
        for op in self.ops.clone().into_iter().rev() {
            match op {
                Op::Couple { stage, x, st, to, log_det } => {
                    let d_st = Buffer { rows: st.rows, ..all_d_st };
                    let (d_to, d_log_det, d_x) = (self.gradient(to), self.gradient(log_det), self.gradient(x));
                    assert!(written.insert(d_x), "the gradient of {x:?} would be overwritten");
                    self.ops.push(Op::CoupleBackward { stage, x, st, d_to, d_log_det, d_x, d_st });
                }
                Op::Networks { stage, x, st, hidden, keep } => {
                    assert!(keep, "only a training tape can be differentiated");
                    let d_st = Buffer { rows: st.rows, ..all_d_st };
                    let d_hidden = self.halves(stage, shared);
                    let slots = Buffer { rows: stages[stage].slot_rows, ..all_slots };
                    let d_x = self.gradient(x);
                    assert!(written.contains(&d_x), "the networks of {x:?} add to a gradient that nothing wrote");
                    self.ops.push(Op::NetworksBackward { stage, x, hidden, d_st, d_hidden, slots, d_x });
                }
                Op::Mix { mix, transpose, from, to } => {
                    assert!(!transpose, "the inverse is not differentiated");
                    let (d_to, d_from) = (self.gradient(to), self.gradient(from));
                    assert!(written.insert(d_from), "the gradient of {from:?} would be overwritten");
                    self.ops.push(Op::MixBackward { mix, from, d_to, d_from });
                }
                Op::Gather { .. } | Op::Normal { .. } | Op::Fill { .. } | Op::Loss { .. } => {}
                Op::Uncouple { .. } | Op::Walk { .. } => unreachable!("the inverse is not differentiated"),
                Op::CoupleBackward { .. } | Op::NetworksBackward { .. } | Op::MixBackward { .. } => {
                    unreachable!("backward is recorded once")
                }
            }
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
