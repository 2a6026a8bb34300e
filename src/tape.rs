//! The autodiff tape: records forward operations and appends their backward operations in reverse.
//!
//! A differentiated activation has one reader, a mixing or the networks and coupling of a stage. Going backwards the
//! coupling comes first and *writes* the gradient of its input; the networks then *add* theirs. A mixing writes. So no
//! gradient needs to be cleared; [`Tape::backward`] checks the rule. Conditions have no gradient.
//!
//! # Memory
//!
//! With [`Memory::Stored`] every activation has a buffer of its own. Otherwise the maps of a lane write to two buffers
//! in turn, and all stages share one scratch for hidden activations and st, so the arena of a program has the same size
//! for any number of blocks; only where x of a `hint` is decoded given y, what every block sees of y is held until its
//! turn comes ([`Tape::hold`]). [`Memory::Reversible`] can be differentiated nevertheless, because every map is
//! invertible: on its way back the tape first records the inverse of the map, whose networks leave their hidden
//! activations and st in the scratch, and then the map's backward operations. The last map needs no inverse: what it
//! read is still there.

mod inn;
mod inverse;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::buffer::{Arena, Buffer};
use crate::plan::{Mixing, Plan, Stage};
use crate::program::{MixId, Op, Program, StageId, StepOp};
use crate::rng::Stream;
use inn::Uncouple;

/// What is kept of the activations for the backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Memory {
    /// The activations of all blocks. An engine may compute some of those inside of networks again nevertheless, where
    /// that takes less time than to keep them.
    #[default]
    Stored,
    /// The output of the last block. The backward pass computes each block's input from its output again, so that
    /// memory does not grow with the number of blocks.
    ///
    /// All networks but those of the last stage run once more: a step of the CPU engine took 1.12 to 1.16 (2 blocks),
    /// 1.07 to 1.16 (4 blocks of 100 columns) and 1.14 to 1.23 (32 blocks of width 64) of the time. Gradients agree
    /// with stored ones up to the rounding of the inverse: 5e-7 of their length in trained models of 32 blocks, a tenth
    /// of what separates either from `f64`. Where couplings shrink columns by much, the inverse loses digits; and a ReLU whose input is within rounding of 0 may flip.
    Reversible,
}

/// Records one program.
pub(crate) struct Tape {
    plan: Arc<Plan>,
    arena: Arena,
    ops: Vec<Op>,
    /// The invertible maps that were recorded.
    maps: Vec<Map>,
    /// What is kept for the backward pass; `None` where there will be none.
    memory: Option<Memory>,
    scratch: Option<[Buffer; 2]>,
    /// Buffers that a later map may overwrite, unless activations are stored.
    spares: Vec<Buffer>,
    /// Buffers that no map may overwrite.
    held: HashSet<Buffer>,
    gradients: HashMap<Buffer, Buffer>,
    /// Released gradient buffers, the last one at the end.
    spare_gradients: Vec<Buffer>,
    inputs: Vec<Buffer>,
}

/// A map that the backward pass goes through in the other direction.
#[derive(Clone)]
enum Map {
    Mix { mixes: Range<MixId>, transpose: bool, from: Buffer, to: Buffer },
    Couple(Couple),
    Uncouple(Uncouple),
}

/// Networks and coupling of a stage.
#[derive(Clone, Copy)]
struct Couple {
    stage: StageId,
    x: Buffer,
    given: Buffer,
    st: Buffer,
    hidden: [Buffer; 2],
    to: Buffer,
    log_det: Buffer,
    /// Which operation runs the networks.
    networks: usize,
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
            maps: Vec::new(),
            memory,
            scratch: None,
            spares: Vec::new(),
            held: HashSet::new(),
            gradients: HashMap::new(),
            spare_gradients: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// The plan this tape records for.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    /// A buffer of that many columns that the caller fills.
    pub(crate) fn input(&mut self, columns: u32) -> Buffer {
        let x = self.arena.alloc(columns);
        self.input_to(x);
        x
    }

    /// Lets the caller fill a buffer, or a part of one.
    pub(crate) fn input_to(&mut self, to: Buffer) {
        self.inputs.push(to);
    }

    /// Rows of the current batch, conditions y before x, plus noise on x.
    pub(crate) fn gather(&mut self) -> Buffer {
        let to = self.arena.alloc(self.plan.spec.row_columns());
        self.gather_to(to);
        to
    }

    /// The same in a buffer, or a part of one.
    pub(crate) fn gather_to(&mut self, to: Buffer) {
        self.ops.push(Op::Gather { to, conditions: self.plan.spec.cond_dim });
    }

    /// Standard normals in that many columns, latent vectors of samples.
    pub(crate) fn normal(&mut self, columns: u32) -> Buffer {
        let to = self.arena.alloc(columns);
        self.normal_to(to, Stream::Latent, 1.0);
        to
    }

    /// Normals in a buffer, or a part of one.
    pub(crate) fn normal_to(&mut self, to: Buffer, stream: Stream, deviation: f32) {
        if to.rows > 0 {
            self.ops.push(Op::Normal { to, stream, deviation });
        }
    }

    /// A log-determinant that starts at zero, (1, B).
    pub(crate) fn log_det(&mut self) -> Buffer {
        let to = self.arena.alloc(1);
        self.ops.push(Op::Fill { to, value: 0.0 });
        to
    }

    /// Q x of some mixings, or Q^T x, each in columns of its own that lie side by side; nothing where there is none.
    /// Unless activations are stored, a later map overwrites `from`.
    pub(crate) fn mix(&mut self, mixes: Range<MixId>, transpose: bool, from: Buffer) -> Buffer {
        if mixes.is_empty() {
            return from;
        }
        let to = self.after(from);
        for (mix, from, to) in self.mixed(mixes.clone(), from, to) {
            self.ops.push(Op::Mix { mix, transpose, from, to });
        }
        self.maps.push(Map::Mix { mixes, transpose, from, to });
        to
    }

    /// The columns of each mixing in two buffers of which the first mixing has the first.
    fn mixed(&self, mixes: Range<MixId>, from: Buffer, to: Buffer) -> Vec<(MixId, Buffer, Buffer)> {
        let mut first = 0;
        let all = self.plan.mixes().enumerate().skip(mixes.start).take(mixes.len());
        let parts: Vec<_> = all
            .map(|(id, mix)| {
                let at = first;
                first += mix.dim;
                (id, from.part(at, mix.dim), to.part(at, mix.dim))
            })
            .collect();
        assert!(first == from.rows && first == to.rows, "mixings of {first} columns for {from:?} and {to:?}");
        parts
    }

    /// Networks and coupling of one stage, `given` some conditions or nothing. Unless activations are stored, a later
    /// map overwrites `x`.
    pub(crate) fn couple(&mut self, stage: StageId, x: Buffer, given: Buffer, log_det: Buffer) -> Buffer {
        let networks = self.ops.len();
        let (st, hidden) = self.networks(stage, x, given, self.memory == Some(Memory::Stored));
        let to = self.after(x);
        self.ops.push(Op::Couple { stage, x, st, to, log_det });
        self.maps.push(Map::Couple(Couple { stage, x, given, st, hidden, to, log_det, networks }));
        to
    }

    /// The networks of one stage; returns st and the hidden activations.
    fn networks(&mut self, stage: StageId, x: Buffer, given: Buffer, keep: bool) -> (Buffer, [Buffer; 2]) {
        let (st, hidden) = if self.memory == Some(Memory::Stored) {
            let plan = &self.plan.stages[stage];
            let [st, hidden0, hidden1] =
                [plan.st_rows, plan.hidden_rows, plan.hidden_rows].map(|rows| self.arena.alloc(rows));
            (st, [hidden0, hidden1])
        } else {
            self.scratch(stage)
        };
        self.ops.push(Op::Networks { stage, x, given, st, hidden, keep });
        (st, hidden)
    }

    /// The buffer for what a map makes of `from`.
    fn after(&mut self, from: Buffer) -> Buffer {
        if self.memory == Some(Memory::Stored) {
            return self.arena.alloc(from.rows);
        }
        let spare = self.spares.iter().position(|spare| spare.rows == from.rows);
        let to = spare.map(|i| self.spares.swap_remove(i));
        if !self.held.contains(&from) {
            self.spares.push(from);
        }
        to.unwrap_or_else(|| self.arena.alloc(from.rows))
    }

    /// Lets no map overwrite a buffer: to be called before a map is made of it.
    pub(crate) fn hold(&mut self, buffer: Buffer) {
        self.held.insert(buffer);
    }

    /// Scratch that all stages share: st, and hidden activations of two layers.
    fn scratch(&mut self, stage: StageId) -> (Buffer, [Buffer; 2]) {
        let [st, hidden] = *self.scratch.get_or_insert_with(|| {
            let [st, hidden] = [most(&self.plan, |s| s.st_rows), most(&self.plan, |s| 2 * s.hidden_rows)];
            [self.arena.alloc(st), self.arena.alloc(hidden)]
        });
        (st.part(0, self.plan.stages[stage].st_rows), self.halves(stage, hidden))
    }

    /// Cuts a shared buffer into two hidden buffers of a stage.
    fn halves(&self, stage: StageId, shared: Buffer) -> [Buffer; 2] {
        let rows = self.plan.stages[stage].hidden_rows;
        [shared.part(0, rows), shared.part(rows, rows)]
    }

    /// The gradient of an activation that no operation has gone past: after [`Tape::backward`], that of its input.
    pub(crate) fn gradient(&self, of: Buffer) -> Buffer {
        let Some(gradient) = self.gradients.get(&of) else { panic!("no gradient of {of:?} is kept") };
        *gradient
    }

    /// The gradient buffer of an activation; the same one each time, until it is released.
    fn gradient_buffer(&mut self, of: Buffer) -> Buffer {
        let Self { arena, spare_gradients, .. } = self;
        *self.gradients.entry(of).or_insert_with(|| {
            let mut spares = (0..spare_gradients.len()).filter(|&i| spare_gradients[i].rows == of.rows);
            // Not the last one: an engine may run the operation that read it and the one that writes this at once.
            match (spares.next(), spares.next()) {
                (Some(first), Some(_)) => spare_gradients.remove(first),
                _ => arena.alloc(of.rows),
            }
        })
    }

    /// Leaves the gradient buffer of an activation to the next one, which so finds it in cache.
    fn release_gradient(&mut self, of: Buffer) {
        self.spare_gradients.extend(self.gradients.remove(&of));
    }

    /// Records the loss (docs/model.md, Loss); returns the per-sample loss, (1, B).
    pub(crate) fn loss(&mut self, z: Buffer, log_det: Buffer) -> Buffer {
        let loss = self.arena.alloc(1);
        let (d_z, d_log_det) = (self.gradient_buffer(z), self.gradient_buffer(log_det));
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
        let all_d_st = self.arena.alloc(most(&plan, |s| s.sum_rows));
        let all_slots = self.arena.alloc(most(&plan, |s| s.slot_rows));
        let maps = std::mem::take(&mut self.maps);
        // Nothing that comes after the last map overwrites what it read.
        let untouched = maps.len().checked_sub(1).filter(|_| memory == Memory::Reversible);
        if let Some(Map::Couple(last)) = untouched.map(|last| &maps[last])
            && let Op::Networks { keep, .. } = &mut self.ops[last.networks]
        {
            *keep = true;
        }
        // The activation that the way back has come to. It may lie elsewhere than on the way there; its gradient does
        // not.
        let mut here: Option<Buffer> = None;
        let mut written = HashSet::new();
        for (i, map) in maps.into_iter().enumerate().rev() {
            match map {
                Map::Couple(Couple { stage, x, given, st, hidden, to, log_det, networks: _ }) => {
                    let input = match memory {
                        Memory::Stored => x,
                        Memory::Reversible if untouched == Some(i) => {
                            self.spares.retain(|&spare| spare != x);
                            self.spares.push(to);
                            x
                        }
                        Memory::Reversible => {
                            let output = here.unwrap_or(to);
                            self.uncouple(stage, output, given, true);
                            output
                        }
                    };
                    here = Some(input);
                    let d_st = all_d_st.part(0, plan.stages[stage].sum_rows);
                    let (d_to, d_log_det, d_x) =
                        (self.gradient_buffer(to), self.gradient_buffer(log_det), self.gradient_buffer(x));
                    written.remove(&d_to);
                    assert!(written.insert(d_x), "the gradient of {x:?} would be overwritten");
                    self.ops.push(Op::CoupleBackward { stage, x: input, st, d_to, d_log_det, d_x, d_st });
                    let d_hidden = self.halves(stage, shared);
                    let slots = all_slots.part(0, plan.stages[stage].slot_rows);
                    self.ops.push(Op::NetworksBackward { stage, x: input, given, hidden, d_st, d_hidden, slots, d_x });
                    self.release_gradient(to);
                }
                Map::Uncouple(Uncouple { stage, from, st, hidden, x }) => {
                    let d_st = all_d_st.part(0, plan.stages[stage].sum_rows);
                    let [d_x, d_from] = [x, from].map(|of| self.gradient_buffer(of));
                    written.remove(&d_x);
                    assert!(written.insert(d_from), "the gradient of {from:?} would be overwritten");
                    self.ops.push(Op::UncoupleBackward { stage, x, st, d_x, d_from, d_st });
                    let d_hidden = self.halves(stage, shared);
                    let slots = all_slots.part(0, plan.stages[stage].slot_rows);
                    let given = Buffer::EMPTY;
                    self.ops.push(Op::NetworksBackward { stage, x, given, hidden, d_st, d_hidden, slots, d_x: d_from });
                    self.release_gradient(x);
                }
                Map::Mix { mixes, transpose: true, from, to } => {
                    let [d_to, d_from] = [to, from].map(|of| self.gradient_buffer(of));
                    written.remove(&d_to);
                    assert!(written.insert(d_from), "the gradient of {from:?} would be overwritten");
                    assert!(plan.mixes().all(|mix| mix.reflections.is_none()), "the inverse of a trained mixing");
                    for (mix, from, to) in self.mixed(mixes, d_to, d_from) {
                        self.ops.push(Op::Mix { mix, transpose: false, from, to });
                    }
                    self.release_gradient(to);
                }
                Map::Mix { mixes, transpose: false, from, to } => {
                    let input = match memory {
                        Memory::Stored => from,
                        Memory::Reversible => self.mix(mixes.clone(), true, here.unwrap_or(to)),
                    };
                    here = Some(input);
                    let (d_to, d_from) = (self.gradient_buffer(to), self.gradient_buffer(from));
                    written.remove(&d_to);
                    assert!(written.insert(d_from), "the gradient of {from:?} would be overwritten");
                    let inputs = self.mixed(mixes.clone(), input, input);
                    for ((mix, from, _), (_, d_to, d_from)) in inputs.into_iter().zip(self.mixed(mixes, d_to, d_from)) {
                        self.ops.push(Op::MixBackward { mix, from, d_to, d_from });
                    }
                    self.release_gradient(to);
                }
            }
        }
        self.maps.clear();
    }

    /// Makes the gradient of an activation an input of the program, so that a caller can seed it. The
    /// backward pass overwrites it.
    pub(crate) fn seed(&mut self, of: Buffer) -> Buffer {
        let gradient = self.gradient_buffer(of);
        self.inputs.push(gradient);
        gradient
    }

    /// Where the networks of each coupling so far leave what they have, (st_rows, B) each. Activations must be stored:
    /// otherwise all have one buffer.
    pub(crate) fn network_outputs(&self) -> Vec<Buffer> {
        assert!(self.memory == Some(Memory::Stored), "network outputs are overwritten");
        let of = |map: &Map| if let Map::Couple(Couple { st, .. }) = map { Some(*st) } else { None };
        self.maps.iter().filter_map(of).collect()
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
    use crate::plan::{ConditionOn, Spec};

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
