//! The invertible network of Ardizzone et al. 2018: its losses and their gradients against the oracle, on both engines.

use std::ops::ControlFlow;

use crate::rooms::common::compare::{Tolerance, assert_close};
use crate::rooms::common::oracle::{self, InnLosses, Model};
use crate::rooms::common::random::random_model;
use crate::rooms::common::{engines, random::Rng};
use hintflow::config::preset;
use hintflow::flow::{Losses, ModelFile};
use hintflow::plan::{ConditionOn, Depth, Kind, Mixing, Plan, Spec};
use hintflow::train::TrainingLoop;
use hintflow::{Dataset, Engine, Flow, TrainConfig, Trainer};

/// Columns of x, of y, and latent ones; the recursion; rows.
type Case = ([u32; 3], (ConditionOn, Depth), Mixing, usize);

/// Padding on the side of x, on the other, on none; tiles of awkward numbers of samples.
const CASES: [Case; 6] = [
    ([1, 1, 1], (ConditionOn::Input, Depth::Levels(0)), Mixing::Permutation, 37),
    ([5, 1, 2], (ConditionOn::Input, Depth::Levels(0)), Mixing::Fixed, 70),
    ([2, 2, 3], (ConditionOn::Input, Depth::Levels(0)), Mixing::None, 40),
    ([4, 1, 3], (ConditionOn::Output, Depth::Full), Mixing::Fixed, 17),
    ([3, 3, 5], (ConditionOn::Output, Depth::Full), Mixing::None, 20),
    ([2, 1, 1], (ConditionOn::Input, Depth::Levels(0)), Mixing::Reverse, 1),
];

struct Subject {
    flow: Flow,
    model: Model,
    losses: InnLosses,
    target: Vec<f64>,
    x: Vec<f64>,
}

/// The same random model for the engine and for the oracle, to which it is a flow of as many columns.
fn subject(case: Case, engine: &Engine) -> Subject {
    let ([dim, cond_dim, latent], (condition_on, depth), mixing, rows) = case;
    let kind = Kind::Inn;
    let spec =
        Spec { kind, dim, cond_dim, latent, blocks: 3, width: 9, condition_on, depth, mixing, ..Spec::default() };
    let plan = Plan::new(&spec).expect("a plan");
    let w = spec.latent_dim() as usize;
    let json = serde_json::json!({
        "kind": "flow", "dim": w, "blocks": 3, "depth": if depth == Depth::Full { 99 } else { 0 }, "width": 9,
        "condition_on": if condition_on == ConditionOn::Input { "input" } else { "output" },
        "mixing": format!("{mixing:?}").to_lowercase(),
    });
    let model = random_model(5, serde_json::from_value(json).expect("a spec"));
    let mut weights = vec![0.0; plan.layout.len()];
    for tensor in &plan.layout.tensors {
        let values = &model.params[&tensor.name].data;
        weights[tensor.range()].iter_mut().zip(values).for_each(|(weight, value)| *weight = *value as f32);
    }
    let [x, y] = Default::default();
    let file = ModelFile { plan: plan.into(), weights, x, y, evidence: None, training: None };
    let flow = Flow::from_file(file, engine).expect("a flow");
    let mut rng = Rng::new(8);
    let [target, x] = [(); 2].map(|()| rng.normals(rows * w, 1.0));
    let (dim, conditions, latent) = (dim as usize, cond_dim as usize, latent as usize);
    let losses = InnLosses { dim, conditions, latent, latent_factor: 3.0, inverse_factor: Some(5.0) };
    Subject { flow, model, losses, target, x }
}

fn to_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

impl Subject {
    fn run(&self, losses: &InnLosses) -> (f64, Vec<f32>) {
        let factors =
            Losses { latent: losses.latent_factor as f32, inverse: losses.inverse_factor.map(|factor| factor as f32) };
        let (target, x) = (to_f32(&self.target), to_f32(&self.x));
        let (loss, gradients) = self.flow.inn_gradients([&target, &x], factors).expect("gradients");
        (loss.iter().map(|&l| f64::from(l)).sum::<f64>() / loss.len() as f64, gradients)
    }

    /// The loss and, by central differences of the oracle, gradients of the first and the last weight of every tensor, with
    /// their places.
    fn expected(&self, losses: &InnLosses) -> (f64, Vec<usize>, Vec<f64>) {
        const STEP: f64 = 1e-6;
        let value = |model: &Model| losses.of(model, &self.model, &self.target, &self.x);
        let layout = &self.flow.plan().layout;
        let (mut places, mut gradients) = (Vec::new(), Vec::new());
        for tensor in layout.tensors.iter().filter(|tensor| tensor.offset < layout.trained) {
            let ends = [0, tensor.len().saturating_sub(1)];
            for i in ends.into_iter().filter(|_| !tensor.is_empty()) {
                let at = |offset: f64| {
                    let mut model = self.model.clone();
                    model.params.get_mut(&tensor.name).expect("a tensor").data[i] += offset;
                    value(&model)
                };
                places.push(tensor.offset + i);
                gradients.push((at(STEP) - at(-STEP)) / (2.0 * STEP));
            }
        }
        (value(&self.model), places, gradients)
    }
}

fn losses_and_gradients_are_those_of_the_oracle(engine: &Engine) {
    for case in CASES {
        let subject = subject(case, engine);
        for inverse_factor in [Some(5.0), None] {
            let losses = InnLosses { inverse_factor, ..subject.losses };
            let (want, places, want_gradients) = subject.expected(&losses);
            let (loss, gradients) = subject.run(&losses);
            let what = format!("{case:?}, {inverse_factor:?}");
            assert_close(&what, &[loss], &[want], Tolerance::relative(1e-5));
            let gradients: Vec<f32> = places.iter().map(|&place| gradients[place]).collect();
            assert_close(&what, &gradients, &want_gradients, Tolerance::relative(5e-4));
        }
    }
}

#[test]
fn losses_and_gradients_on_the_native_engine() {
    losses_and_gradients_are_those_of_the_oracle(&engines::cpu());
}

#[cfg(feature = "gpu")]
#[test]
fn losses_and_gradients_on_the_gpu() {
    losses_and_gradients_are_those_of_the_oracle(&engines::gpu());
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let case = ([5, 1, 2], (ConditionOn::Input, Depth::Levels(0)), Mixing::Fixed, 1000);
    let bits = |threads| {
        let subject = subject(case, &Engine::cpu_with_threads(threads).expect("threads"));
        let (loss, gradients) = subject.run(&subject.losses);
        (loss.to_bits(), gradients.into_iter().map(f32::to_bits).collect::<Vec<_>>())
    };
    let one = bits(1);
    assert!(one == bits(2) && one == bits(3));
}

/// The discrepancy of the oracle against the mean over independent samples that is known: two points far apart.
#[test]
fn the_oracle_knows_simple_discrepancies() {
    assert!(oracle::mmd(&[0.0, 1.0], &[1.0, 0.0], 1).abs() < 1e-15);
    assert!((oracle::mmd(&[0.0], &[1e9], 1) - 6.0).abs() < 1e-9);
}

/// x is standard normal in two columns, and y = |x1| with a bit of noise: given y, x1 has two modes.
fn two_modes(rows: usize) -> [Vec<f32>; 2] {
    let mut rng = Rng::new(4);
    let x: Vec<f32> = to_f32(&rng.normals(2 * rows, 1.0));
    let noise = rng.normals(rows, 0.05);
    let y = x.chunks_exact(2).zip(noise).map(|(x, noise)| x[0].abs() + noise as f32).collect();
    [x, y]
}

/// Ardizzone's INN finds both modes, with equal shares, and leaves x2 as it is.
#[test]
fn both_modes_of_a_posterior_are_found() {
    let [x, y] = two_modes(6000);
    let data = Dataset::from_rows(&x, 2).conditions(&y, 1).regression(false).build().expect("data");
    let mut flow = data.inn().width(32).seed(1).build(&engines::cpu()).expect("a flow");
    let config = TrainConfig::default().epochs(40).batch(250);
    Trainer::new(&mut flow, &data, config).expect("a trainer").fit(|_| ControlFlow::Continue(())).expect("a training");
    for y in [0.5, 1.0] {
        let x = flow.given(&[y]).expect("a posterior").sample(4000, 1).expect("samples");
        let first: Vec<f64> = x.chunks_exact(2).map(|x| x[0].into()).collect();
        let share = |is: &dyn Fn(f64) -> bool| first.iter().filter(|&&v| is(v)).count() as f64 / 4000.0;
        let (right, near) = (share(&|v| v > 0.0), share(&|v| (v.abs() - f64::from(y)).abs() < 0.25));
        let second = x.chunks_exact(2).map(|x| f64::from(x[1]).powi(2)).sum::<f64>() / 4000.0;
        println!("y = {y}: {right:.3} right, {near:.3} near a mode, variance of x2 {second:.3}");
        // Of a normal x1, a third is as near.
        assert!((0.3..0.7).contains(&right) && near > 0.6 && (0.4..2.0).contains(&second));
    }
}

/// From the middle of an epoch, and across the epoch in which the way back begins.
#[test]
fn a_training_goes_on_to_the_same_bits() {
    let [x, y] = two_modes(400);
    let mut config = preset::for_inn_tables();
    (config.train.epochs, config.train.batch, config.train.inverse_from) = (4, Some(100), Some(0.5));
    let data = Dataset::from_rows(&x, 2).conditions(&y, 1).regression(false).build().expect("data");
    let flow = || data.inn().blocks(2).width(8).build(&engines::cpu()).expect("a flow");
    let run = |steps: &mut TrainingLoop<'_>, until: u64| {
        while !steps.is_done() && steps.position().step < until {
            steps.step().expect("a step");
            if steps.at_epoch_end() {
                steps.finish_epoch().expect("an epoch");
            }
        }
    };
    let whole = flow();

    let mut all = crate::rooms::begin(&whole, &config, &data).expect("a trainer");
    run(&mut all, u64::MAX);
    for stop in [2, 7] {
        let first = flow();
        let mut before = crate::rooms::begin(&first, &config, &data).expect("a trainer");
        run(&mut before, stop);
        let second = flow();
        let mut after = crate::rooms::begin(&second, &config, &data).expect("a trainer");
        after.restore(&before.state().expect("a state")).expect("a state of the same training");
        run(&mut after, u64::MAX);
        let weights = |steps: &TrainingLoop<'_>| steps.state().expect("a state").weights;
        assert!(weights(&after) == weights(&all), "stopped after step {stop}");
    }
}
