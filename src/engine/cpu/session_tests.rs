//! Sessions of the CPU engine: the same bits on any number of threads, and memory that stays flat.

use super::*;
use crate::engine::Engine;
use crate::flow::programs::{Name, record};
use crate::optim::Adam;
use crate::plan::Spec;
use crate::tape::Memory;

/// Columns and rows of a batch: one whose mixings are matrices, and one that goes block by block of reflections.
const SIZES: [[u32; 2]; 2] = [[5, 1000], [150, 200]];

fn trained([dim, rows]: [u32; 2], threads: usize, steps: u64) -> (Vec<f32>, Vec<usize>) {
    let mixing = crate::plan::Mixing::Householder;
    let plan = Arc::new(Plan::new(&Spec { dim, width: 16, mixing, depth: 2.into(), ..Spec::default() }).unwrap());
    let mut session = Engine::cpu_with_threads(threads).unwrap().load(plan.clone()).unwrap();
    let mut weights = vec![0.0; plan.layout.len()];
    crate::rng::fill_normals(1, crate::rng::Stream::InitParameters, 0, 0, &mut weights);
    weights.iter_mut().for_each(|w| *w *= 0.1);
    session.write(Values::Weights, &weights).unwrap();
    let mut data = vec![0.0; (rows * dim) as usize];
    crate::rng::fill_normals(2, crate::rng::Stream::Data, 0, 0, &mut data);
    session.set_data(data.into()).unwrap();
    session.set_order(&(0..rows).collect::<Vec<_>>()).unwrap();
    let rows = rows as usize;
    let id = session.compile(record(Name::Step(Memory::Stored), &plan), rows).unwrap();
    let mut memory = Vec::new();
    for t in 1..=steps {
        let adam = Adam::default().step(1e-3, t);
        let job = StepJob { first: 0, rows, noise: 0.1, dropout: 0, seed: 3, step: t as u32, adam };
        session.step(id, &job).unwrap();
        memory.push(session.footprint().total());
    }
    assert!(session.loss().unwrap().is_finite());
    (session.read(Values::Weights).unwrap(), memory)
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    for size in SIZES {
        let (one, _) = trained(size, 1, 5);
        assert!(one == trained(size, 1, 5).0, "the same twice");
        assert!(one == trained(size, 2, 5).0 && one == trained(size, 3, 5).0, "2 and 3 threads");
    }
}

#[test]
fn memory_is_flat_over_many_steps() {
    for size in SIZES {
        let (_, memory) = trained(size, 1, 100);
        assert!(memory.iter().all(|bytes| *bytes == memory[0]), "{memory:?}");
        // A thread makes its arena when all others are busy for the first time.
        let (_, two) = trained(size, 2, 100);
        assert!(two.is_sorted() && two.iter().max() <= Some(&(2 * memory[0])), "{two:?}");
    }
}

/// A program whose operations leave some gradients out finds them zero, whatever ran before.
#[test]
fn gradients_that_no_operation_writes_are_zero() {
    let spec = Spec { dim: 3, width: 4, mixing: crate::plan::Mixing::Householder, mix_first: true, ..Spec::default() };
    let plan = Arc::new(Plan::new(&spec).unwrap());
    let mut session = Engine::cpu_with_threads(1).unwrap().load(plan.clone()).unwrap();
    let weights: Vec<f32> = (0..plan.layout.len()).map(|i| (i % 7) as f32 - 3.0).collect();
    session.write(Values::Weights, &weights).unwrap();
    let all = session.compile(record(Name::LossGradients(Memory::Stored), &plan), 5).unwrap();
    let x = [0.3; 15];
    session.run(all, &Job { rows: 5, inputs: &[&x], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    assert!(session.gradients().unwrap()[..plan.layout.trained].iter().any(|&g| g != 0.0));

    let mut tape = crate::tape::Tape::training(plan.clone(), Memory::Stored);
    let from = tape.input(3);
    let to = tape.mix(0..1, false, from);
    tape.seed(to);
    tape.backward();
    let program = tape.finish("one mixing", vec![], crate::tape::Then::Nothing);
    let one = session.compile(program, 5).unwrap();
    session.run(one, &Job { rows: 5, inputs: &[&x, &x], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    let gradients = session.gradients().unwrap();
    assert!(gradients[..plan.layout.trained].iter().all(|&g| g == 0.0));
    let mix = plan.mixes().next().unwrap();
    assert!(gradients[mix.q as usize..][..9].iter().all(|&g| (g - 5.0 * 0.09).abs() < 1e-6));
}

/// Gradients of columns that nobody reads are left out, and those of the weights keep their bits.
#[test]
fn unread_gradients_change_no_others() {
    for mixing in [crate::plan::Mixing::Fixed, crate::plan::Mixing::Householder] {
        let plan = Arc::new(Plan::new(&Spec { dim: 5, width: 50, mixing, ..Spec::default() }).unwrap());
        let whole = record(Name::LossGradients(Memory::Stored), &plan);
        let short = Program { outputs: vec![whole.outputs[0]], ..whole.clone() };
        let left_out = |program: &Program| shortcuts(program).iter().filter(|&&short| short).count();
        assert!(left_out(&short) > left_out(&whole));
        let x: Vec<f32> = (0..500).map(|i| (i as f32 * 0.7).sin()).collect();
        let weights: Vec<f32> = (0..plan.layout.len()).map(|i| (i as f32 * 1.3).sin() * 0.4).collect();
        let gradients = [whole, short].map(|program| {
            let mut session = Engine::cpu_with_threads(1).unwrap().load(plan.clone()).unwrap();
            session.write(Values::Weights, &weights).unwrap();
            let id = session.compile(program, 100).unwrap();
            session.run(id, &Job { rows: 100, inputs: &[&x], ..Job::default() }).unwrap();
            session.gradients().unwrap()
        });
        assert!(gradients[0] == gradients[1] && gradients[0].iter().any(|&g| g != 0.0));
    }
}
