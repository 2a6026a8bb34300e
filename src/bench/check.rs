//! Whether a device computes a case right: nothing is timed before that.
//!
//! Every device runs what is timed, on fewer rows and with other weights: with those of a new model the networks hardly show
//! in z. A GPU is held to the CPU engine; the CPU engine to the definition in f64, to its own inverse and to the slope of
//! the loss.

use std::sync::Arc;

use serde::Serialize;

use super::{Case, definition};
use crate::engine::{Engine, StepJob, Values};
use crate::error::{Error, Result};
use crate::flow::{Encoded, Flow, Memory, half_square, programs};
use crate::optim::Adam;
use crate::plan::{ConditionOn, Plan, Stage};
use crate::rng::{self, Stream};

/// Rows that are looked at, at most: no round number.
const ROWS: usize = 257;
/// Rows of the definition, which is slow.
const DEFINITION_ROWS: usize = 17;
/// Largest good deviation of values, relative to the largest value.
const VALUES: f64 = 1e-4;
/// Of gradients, and of what an update makes of them.
const GRADIENTS: f64 = 1e-3;
/// Of a slope by finite differences.
const SLOPE: f64 = 5e-3;
/// Seeds of samples and noise.
const SEED: u64 = 3;

/// How far a device's results are from what they should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// What they were compared with.
    pub against: &'static str,
    /// Rows that were looked at.
    pub rows: usize,
    /// Every kind of result; all are within their bounds.
    pub values: Vec<Deviation>,
}

/// Deviation of one kind of result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Which results.
    pub what: &'static str,
    /// The largest deviation, relative to the largest expected value.
    pub worst: f64,
    /// The largest good one.
    pub bound: f64,
}

impl Deviation {
    fn of(what: &'static str, got: &[f32], want: &[f32], bound: f64) -> Self {
        let largest = want.iter().fold(f64::MIN_POSITIVE, |most, &w| most.max(f64::from(w).abs()));
        let each = got.iter().zip(want).map(|(&g, &w)| (f64::from(g) - f64::from(w)).abs() / largest);
        // Not `f64::max`, which drops what is not a number.
        let most = |a: f64, b: f64| if b <= a || a.is_nan() { a } else { b };
        let worst = if got.len() == want.len() { each.fold(0.0, most) } else { f64::INFINITY };
        Self { what, worst, bound }
    }

    fn is_good(&self) -> bool {
        self.worst <= self.bound
    }
}

/// Checks a device on a case.
///
/// # Errors
/// [`Error::Wrong`] naming the first results that are too far from what they should be.
pub(super) fn check(case: &Case, condition_on: ConditionOn, memory: Memory, engine: &Engine) -> Result<Agreement> {
    let flow = |engine: &Engine| model(case, condition_on, 1, engine);
    let rows = case.batch.min(ROWS);
    let mut x = vec![0.0; rows * case.dim as usize];
    rng::fill_normals(2, Stream::Data, 0, 0, &mut x);
    let info = engine.info();
    let (against, values) = if info.engine == "cpu" {
        ("the definition in f64", against_definition(&flow(engine)?, memory, &x, rows)?)
    } else {
        ("the CPU engine", against_cpu(&flow(engine)?, &flow(&Engine::cpu()?)?, memory, &x, rows)?)
    };
    let Some(Deviation { what, worst, bound }) = values.iter().find(|deviation| !deviation.is_good()) else {
        return Ok(Agreement { against, rows, values });
    };
    let remedy = match info.engine {
        "cpu" => "this is a mistake in hintflow",
        _ => "look for a newer driver, or choose another --device",
    };
    Err(Error::Wrong {
        what: format!(
            "`{}` computes {} wrong, so it is not timed: {what} deviate from {against} by {worst:.1e} of the largest, \
             {bound:.0e} is allowed; {remedy}",
            info.name, case.name
        ),
    })
}

/// The model of a case with weights that make every network count: activations of about 1, and outputs so large that all
/// the affine maps a column goes through together stretch it moderately.
fn model(case: &Case, condition_on: ConditionOn, seed: u64, engine: &Engine) -> Result<Flow> {
    let flow = case.builder(condition_on).init_sigma(1.0).seed(seed).build(&Engine::cpu_with_threads(1)?)?;
    let mut file = flow.to_file()?;
    let plan = file.plan.clone();
    let maps = |stage: &Stage| stage.chains.iter().map(Vec::len).max().unwrap_or(0);
    let outputs = 0.1 / (plan.stages.iter().map(maps).sum::<usize>() as f32).sqrt();
    for node in plan.stages.iter().flat_map(|stage| &stage.nodes) {
        for net in [node.s, node.t] {
            let layers = [(node.upper, node.hidden), (node.hidden, node.hidden), (node.hidden, node.lower)];
            for (layer, (n_in, n_out)) in layers.into_iter().enumerate() {
                let size = if layer == 2 { outputs } else { 1.0 };
                let mut scale = |first: u32, len: u32, by: f32| {
                    file.weights[first as usize..][..len as usize].iter_mut().for_each(|w| *w *= by);
                };
                scale(net.weight[layer], n_in * n_out, size * (2.0 / n_in.max(1) as f32).sqrt());
                scale(net.bias[layer], n_out, 0.1 * size);
            }
        }
    }
    Flow::from_file(file, engine)
}

/// A training step and what it leaves.
struct Stepped {
    loss: f32,
    gradients: Vec<f32>,
    weights: Vec<f32>,
}

/// One training step on x, last row first, with an update that grows with the gradient.
fn step(flow: &Flow, memory: Memory, x: &[f32], rows: usize, noise: f32) -> Result<Stepped> {
    let id = flow.compiled(programs::Name::Step(memory), rows)?;
    flow.with_session(|session| {
        session.set_data(Arc::from(x))?;
        session.set_order(&(0..rows as u32).rev().collect::<Vec<_>>())?;
        session.step(id, &StepJob { first: 0, rows, noise, seed: SEED, step: 1, adam: update().step(RATE, 1) })?;
        Ok(Stepped { loss: session.loss()?, gradients: session.gradients()?, weights: session.read(Values::Weights)? })
    })
}

const RATE: f64 = 0.1;

fn update() -> Adam {
    Adam { eps: 1.0, ..Adam::default() }
}

/// All results of a device beside those of the CPU engine.
fn against_cpu(device: &Flow, cpu: &Flow, memory: Memory, x: &[f32], rows: usize) -> Result<Vec<Deviation>> {
    let z = device.encode(x)?;
    let want = cpu.encode(x)?;
    let mut values = vec![
        Deviation::of("latents z", &z.z, &want.z, VALUES),
        Deviation::of("log-determinants", &z.log_det, &want.log_det, VALUES),
        Deviation::of("rows decoded from z", &device.decode(&want.z)?, &cpu.decode(&want.z)?, VALUES),
        Deviation::of("samples", &device.sample(rows, SEED)?, &cpu.sample(rows, SEED)?, VALUES),
    ];
    let before = cpu.to_file()?.weights;
    let (got, want) = (step(device, memory, x, rows, 0.01)?, step(cpu, memory, x, rows, 0.01)?);
    values.extend([
        Deviation::of("losses", &[got.loss], &[want.loss], VALUES),
        Deviation::of("gradients", &got.gradients, &want.gradients, GRADIENTS),
        Deviation::of("updates", &moved(&before, &got.weights), &moved(&before, &want.weights), GRADIENTS),
    ]);
    Ok(values)
}

/// All results of the CPU engine by other ways.
fn against_definition(flow: &Flow, memory: Memory, x: &[f32], rows: usize) -> Result<Vec<Deviation>> {
    let (plan, weights) = (flow.plan().clone(), flow.to_file()?.weights);
    let Encoded { z, log_det } = flow.encode(x)?;
    let few = &x[..rows.min(DEFINITION_ROWS) * plan.spec.dim as usize];
    let (want_z, want_log_det) = definition::forward(&plan, &weights, few);
    let mut values = vec![
        Deviation::of("latents z", &z[..want_z.len()], &want_z, VALUES),
        Deviation::of("log-determinants", &log_det[..want_log_det.len()], &want_log_det, VALUES),
        Deviation::of("rows decoded from z", &flow.decode(&z)?, x, VALUES),
        Deviation::of("samples", &flow.encode(&flow.sample(rows, SEED)?)?.z, &normals(&plan, rows), VALUES),
    ];

    let Stepped { loss, gradients, weights: stepped } = step(flow, memory, x, rows, 0.0)?;
    let trained = plan.layout.trained;
    let square: f64 = gradients[..trained].iter().map(|&g| f64::from(g) * f64::from(g)).sum();
    // The loss as a function of the distance along its gradient.
    let loss_at = |distance: f64| -> Result<f64> {
        let mut moved = weights.clone();
        let along = distance / square.sqrt();
        moved
            .iter_mut()
            .zip(&gradients[..trained])
            .for_each(|(w, &g)| *w = (f64::from(*w) + along * f64::from(g)) as f32);
        flow.with_session(|session| session.write(Values::Weights, &moved))?;
        let Encoded { z, log_det } = flow.encode(x)?;
        let each = z.chunks_exact(plan.spec.dim as usize).zip(&log_det);
        Ok(each.map(|(z, &log_det)| half_square(z) - f64::from(log_det)).sum::<f64>() / rows as f64)
    };
    // Far enough for the loss to change by a hundredth of a nat, which stands out from rounding.
    let distance = 0.01 / square.sqrt();
    let slope = (loss_at(distance)? - loss_at(-distance)?) / (2.0 * distance);
    let expected: Vec<f32> = weights.iter().zip(&gradients[..trained]).map(|(&w, &g)| updated(w, g)).collect();
    values.extend([
        Deviation::of("losses", &[loss], &[loss_at(0.0)? as f32], VALUES),
        Deviation::of("gradients", &[square.sqrt() as f32], &[slope as f32], SLOPE),
        Deviation::of("updates", &moved(&weights[..trained], &stepped), &moved(&weights, &expected), GRADIENTS),
    ]);
    Ok(values)
}

fn moved(before: &[f32], after: &[f32]) -> Vec<f32> {
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

/// What the first update makes of a weight (spec, section 5).
fn updated(weight: f32, gradient: f32) -> f32 {
    let Adam { eps, l2, grad_clamp, .. } = update();
    let g = f64::from(gradient.clamp(-grad_clamp, grad_clamp)) + f64::from(l2) * f64::from(weight);
    (f64::from(weight) - RATE * g / (g.abs() + f64::from(eps))) as f32
}

/// The latents of the samples: every row has whole groups of four to itself.
fn normals(plan: &Plan, rows: usize) -> Vec<f32> {
    let n = plan.spec.dim as usize;
    let pitch = n.next_multiple_of(4);
    let mut padded = vec![0.0; rows * pitch];
    rng::fill_normals(SEED, Stream::Latent, 0, 0, &mut padded);
    padded.chunks_exact(pitch).flat_map(|row| &row[..n]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Case = Case { name: "tiny", dim: 5, width: 12, blocks: 2, depth: 9, batch: 40 };

    #[test]
    fn a_deviation_is_seen_wherever_it_is() {
        let good = |got: &[f32]| Deviation::of("numbers", got, &[1.0, -2.0, 0.0], 1e-3).is_good();
        assert!(good(&[1.0, -2.0, 0.001]));
        for wrong in [&[1.0, -2.0, 0.01][..], &[1.0, -2.0], &[f32::NAN, -2.0, 0.0], &[1.0, -2.0, f32::NAN]] {
            assert!(!good(wrong), "{wrong:?}");
        }
        assert!(!good(&[1.0, f32::INFINITY, 0.0]));
        assert!(!Deviation::of("numbers", &[0.1], &[0.0], 1e-3).is_good());
    }

    #[test]
    fn the_engines_pass() {
        for (condition_on, memory) in [
            (ConditionOn::Input, Memory::Stored),
            (ConditionOn::Output, Memory::Stored),
            (ConditionOn::Input, Memory::Reversible),
        ] {
            let agreement = check(&TINY, condition_on, memory, &Engine::cpu_with_threads(2).unwrap()).unwrap();
            assert_eq!((agreement.rows, agreement.values.len()), (40, 7));
            let agreement = check(&TINY, condition_on, memory, &Engine::gpu().unwrap()).unwrap();
            assert_eq!((agreement.against, agreement.values.len()), ("the CPU engine", 7));
        }
    }

    #[test]
    fn other_weights_do_not_pass() {
        let cpu = Engine::cpu_with_threads(1).unwrap();
        let flow = |seed| model(&TINY, ConditionOn::Input, seed, &cpu).unwrap();
        let x: Vec<f32> = normals(flow(1).plan(), 40);
        let values = against_cpu(&flow(2), &flow(1), Memory::Stored, &x, 40).unwrap();
        assert!(values.iter().all(|deviation| !deviation.is_good()), "{values:?}");
    }
}
