//! Whether a device computes a case right: nothing is timed before that.
//!
//! Every device runs the programs that are timed, compiled for the case's batch, with other weights: with those of a
//! new model the networks hardly show in z. The CPU engine is held to the definition in f64 and to its own inverse; a
//! GPU to the CPU engine, and its gradients to the definition, too.

use std::sync::Arc;

use serde::Serialize;

use super::{Case, definition::Definition};
use crate::engine::{Engine, StepJob, Values};
use crate::error::{Error, Result};
use crate::flow::{Encoded, Flow, Memory, programs};
use crate::optim::Adam;
use crate::plan::{ConditionOn, Plan, Stage};
use crate::rng::{self, Stream};

/// Rows on the CPU engine, at most: so many that each of its partial gradients adds up two tiles, and one more, so that
/// the last tile does not end where its registers do.
const CPU_ROWS: usize = 16 * 304 * 3 / 2 + 1;
/// Rows on a software adapter, at most: no round number. On a real GPU they are the whole batch.
const SOFTWARE_ROWS: usize = 257;
/// Different rows that the definition, which is slow, computes.
const DEFINITION_ROWS: usize = 17;
/// Largest good deviation of values, relative to the largest value.
const VALUES: f64 = 1e-4;
/// Of gradients, and of what an update makes of them.
const GRADIENTS: f64 = 1e-3;
/// Part of the largest gradient of all that counts as the largest of a tensor whose gradients are smaller.
const SMALLEST: f64 = 1e-5;
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
        let worst = if got.len() == want.len() { each.fold(0.0, worse) } else { f64::INFINITY };
        Self { what, worst, bound }
    }

    /// The worst tensor's deviation, relative to the tensor's largest gradient. What matters little is computed, too.
    fn of_tensors(plan: &Plan, got: &[f32], want: &[f64]) -> Self {
        let what = "gradients of the weights";
        let largest = |values: &[f64]| values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let least = SMALLEST * largest(want);
        let mut all = Self { what, worst: if got.len() < want.len() { f64::INFINITY } else { 0.0 }, bound: GRADIENTS };
        for tensor in plan.layout.tensors.iter().filter(|tensor| tensor.range().end <= plan.layout.trained) {
            let (Some(got), want) = (got.get(tensor.range()), &want[tensor.range()]) else { continue };
            let scale = largest(want).max(least).max(f64::MIN_POSITIVE);
            let each = got.iter().zip(want).map(|(&g, w)| (f64::from(g) - w).abs() / scale);
            all.worst = each.fold(all.worst, worse);
        }
        all
    }

    fn is_good(&self) -> bool {
        self.worst <= self.bound
    }
}

/// The larger one. Not `f64::max`, which drops what is not a number.
fn worse(a: f64, b: f64) -> f64 {
    if b <= a || a.is_nan() { a } else { b }
}

/// Checks a device on a case.
///
/// # Errors
/// [`Error::CheckFailed`] naming the first results that are too far from what they should be.
pub(super) fn check(case: &Case, condition_on: ConditionOn, memory: Memory, engine: &Engine) -> Result<Agreement> {
    let info = engine.info();
    let most = match info.kind {
        "native" => CPU_ROWS,
        "software" => SOFTWARE_ROWS,
        _ => usize::MAX,
    };
    let rows = case.batch.min(most);
    let mut x = vec![0.0; rows * case.dim as usize];
    rng::fill_normals(2, Stream::Data, 0, 0, &mut x);
    let subject = Compared { flow: model(case, condition_on, 1, engine)?, memory, batch: case.batch };
    let (against, values) = if info.engine == "cpu" {
        ("the definition in f64", subject.against_definition(&x, rows)?)
    } else {
        let cpu = Compared { flow: model(case, condition_on, 1, &Engine::cpu()?)?, ..subject };
        ("the CPU engine and the definition in f64", subject.against_cpu(&cpu, &x, rows)?)
    };
    match values.iter().find(|deviation| !deviation.is_good()) {
        None => Ok(Agreement { against, rows, values }),
        Some(&Deviation { what, worst, bound }) => Err(Error::CheckFailed {
            device: info.name,
            what: format!("{what} of {}", case.name),
            deviation: worst,
            bound,
        }),
    }
}

/// The model of a case with weights that make every network count: activations of about 1, and outputs so large that
/// all the affine maps a column goes through together stretch it moderately.
fn model(case: &Case, condition_on: ConditionOn, seed: u64, engine: &Engine) -> Result<Flow> {
    let flow = case.builder(condition_on).init_sigma(1.0).seed(seed).build(&Engine::cpu_with_threads(1)?)?;
    let mut file = flow.to_file()?;
    let plan = file.plan.clone();
    let maps = |stage: &Stage| stage.chains.iter().map(Vec::len).max().unwrap_or(0);
    let outputs = 0.1 / (plan.stages.iter().map(maps).sum::<usize>() as f32).sqrt();
    for node in plan.stages.iter().flat_map(|stage| &stage.nodes) {
        for net in node.nets.iter() {
            for (layer, shape) in node.layers().into_iter().enumerate() {
                let size = if layer == 2 { outputs } else { 1.0 };
                let mut scale = |first: u32, len: u32, by: f32| {
                    file.weights[first as usize..][..len as usize].iter_mut().for_each(|w| *w *= by);
                };
                scale(
                    net.weight[layer],
                    shape.inputs * shape.outputs,
                    size * (2.0 / shape.inputs.max(1) as f32).sqrt(),
                );
                scale(net.bias[layer], shape.outputs, 0.1 * size);
            }
        }
    }
    Flow::from_file(file, engine)
}

/// A model whose results are compared.
struct Compared {
    flow: Flow,
    memory: Memory,
    /// What its training steps are compiled for.
    batch: usize,
}

/// A training step and what it leaves.
struct Stepped {
    loss: f32,
    gradients: Vec<f32>,
    weights: Vec<f32>,
}

impl Compared {
    /// The first training step of the model with these weights, with an update that grows with the gradient.
    fn step(&self, weights: &[f32], x: &[f32], order: &[u32], noise: f32) -> Result<Stepped> {
        let id = self.flow.compiled(programs::Name::Step(self.memory), self.batch)?;
        let still = vec![0.0; self.flow.parameters()];
        self.flow.with_session(|session| {
            session.write(Values::Weights, weights)?;
            session.write(Values::FirstMoments, &still)?;
            session.write(Values::SecondMoments, &still)?;
            session.set_data(Arc::from(x))?;
            session.set_order(order)?;
            let (rows, adam) = (order.len(), update().step(RATE, 1));
            session.step(id, &StepJob { first: 0, rows, noise, dropout: 0, seed: SEED, step: 1, adam })?;
            Ok(Stepped {
                loss: session.loss()?,
                gradients: session.gradients()?,
                weights: session.read(Values::Weights)?,
            })
        })
    }

    /// Loss and gradients of a step on `rows` rows beside the definition. They are few rows again and again, each in
    /// one run of its own length: leaving one out, or taking another, is seen.
    fn steps_against_definition(&self, weights: &[f32], x: &[f32], rows: usize) -> Result<[Deviation; 3]> {
        let plan = self.flow.plan();
        let definition = Definition { plan, weights };
        let few = far_from_kinks(&definition, x);
        let count = few.len() / plan.spec.dim as usize;
        let order: Vec<u32> = (0..rows).rev().map(|i| run_of(i, rows, count)).collect();
        let mut shares = vec![0.0; count];
        order.iter().for_each(|&row| shares[row as usize] += 1.0 / rows as f64);
        let want = definition.slope(&few, &shares);
        let got = self.step(weights, &few, &order, 0.0)?;
        let trained = &weights[..plan.layout.trained];
        let expected: Vec<f32> = trained.iter().zip(&got.gradients).map(|(&w, &g)| updated(w, g)).collect();
        let updates = [moved(trained, &got.weights), moved(trained, &expected)];
        Ok([
            Deviation::of("losses", &[got.loss], &[want.loss as f32], VALUES),
            Deviation::of_tensors(plan, &got.gradients, &want.gradients),
            Deviation::of("updates", &updates[0], &updates[1], GRADIENTS),
        ])
    }

    /// All results of a device beside those of the CPU engine.
    fn against_cpu(&self, cpu: &Self, x: &[f32], rows: usize) -> Result<Vec<Deviation>> {
        let before = cpu.flow.to_file()?.weights;
        let z = self.flow.encode(x)?;
        let want = cpu.flow.encode(x)?;
        let decoded = [self, cpu].map(|subject| subject.flow.decode(&want.z));
        let samples = [self, cpu].map(|subject| subject.flow.sample(rows, SEED));
        let [[decoded, want_decoded], [samples, want_samples]] = [pair(decoded)?, pair(samples)?];
        let mut values = vec![
            Deviation::of("latents z", &z.z, &want.z, VALUES),
            Deviation::of("log-determinants", &z.log_det, &want.log_det, VALUES),
            Deviation::of("rows decoded from z", &decoded, &want_decoded, VALUES),
            Deviation::of("samples", &samples, &want_samples, VALUES),
        ];
        values.extend(self.steps_against_definition(&before, x, rows)?);
        let order: Vec<u32> = (0..rows as u32).rev().collect();
        let [got, want] = pair([self, cpu].map(|subject| subject.step(&before, x, &order, 0.01)))?;
        let trained = self.flow.parameters();
        let updates = [moved(&before[..trained], &got.weights), moved(&before[..trained], &want.weights)];
        values.extend([
            Deviation::of("losses with noise", &[got.loss], &[want.loss], VALUES),
            Deviation::of("gradients with noise", &got.gradients, &want.gradients, GRADIENTS),
            Deviation::of("updates with noise", &updates[0], &updates[1], GRADIENTS),
        ]);
        Ok(values)
    }

    /// All results of the CPU engine by other ways.
    fn against_definition(&self, x: &[f32], rows: usize) -> Result<Vec<Deviation>> {
        let (flow, plan, weights) = (&self.flow, self.flow.plan(), self.flow.to_file()?.weights);
        let Encoded { z, log_det } = flow.encode(x)?;
        let n = plan.spec.dim as usize;
        // The last ones of the batch, too.
        let some: Vec<usize> = (0..rows).rev().step_by(rows.div_ceil(DEFINITION_ROWS)).collect();
        let (mut got, mut want) = ([vec![], vec![]], [vec![], vec![]]);
        for &row in &some {
            let of_row = n * row..n * (row + 1);
            let done = Definition { plan, weights: &weights }.forward(&x[of_row.clone()]);
            got[0].extend_from_slice(&z[of_row]);
            want[0].extend(done.z.iter().map(|&z| z as f32));
            got[1].push(log_det[row]);
            want[1].push(done.log_det as f32);
        }
        let mut values = vec![
            Deviation::of("latents z", &got[0], &want[0], VALUES),
            Deviation::of("log-determinants", &got[1], &want[1], VALUES),
            Deviation::of("rows decoded from z", &flow.decode(&z)?, x, VALUES),
            Deviation::of("samples", &flow.encode(&flow.sample(rows, SEED)?)?.z, &normals(plan, rows), VALUES),
        ];
        values.extend(self.steps_against_definition(&weights, x, rows)?);
        Ok(values)
    }
}

/// Both, or the first error.
fn pair<T>([a, b]: [Result<T>; 2]) -> Result<[T; 2]> {
    Ok([a?, b?])
}

/// Which of `count` rows is number `i` of `rows`: each has one run, the later the longer.
fn run_of(i: usize, rows: usize, count: usize) -> u32 {
    let part = (i as f64 + 0.5) / rows as f64;
    (part.powf(0.75) * count as f64) as u32
}

/// The rows whose networks are the furthest from a kink of a ReLU, of twice as many: on the wrong side of one, rounding
/// alone moves a gradient by far more than rounding.
fn far_from_kinks(definition: &Definition<'_>, x: &[f32]) -> Vec<f32> {
    let rows = x.chunks_exact(definition.plan.spec.dim as usize).take(2 * DEFINITION_ROWS);
    let mut rows: Vec<_> = rows.map(|row| (definition.forward(row).margin, row)).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.iter().take(DEFINITION_ROWS).flat_map(|(_, row)| *row).copied().collect()
}

const RATE: f64 = 0.1;

fn update() -> Adam {
    Adam { eps: 1.0, ..Adam::default() }
}

fn moved(before: &[f32], after: &[f32]) -> Vec<f32> {
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

/// What the first update makes of a weight (docs/model.md, Optimiser).
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

    const TINY: Case = super::super::case::affine("tiny", 5, 12, 2, crate::plan::Depth::Levels(9), 40);

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
        }
    }

    mod gpu {
        use super::*;

        #[test]
        fn a_gpu_passes() {
            let engine = match std::env::var("HINTFLOW_TEST_DEVICE") {
                Ok(name) => Engine::named(&name),
                Err(_) => Engine::gpu(),
            };
            let engine = engine.unwrap().untuned();
            for memory in [Memory::Stored, Memory::Reversible] {
                let agreement = check(&TINY, ConditionOn::Input, memory, &engine).unwrap();
                assert_eq!((agreement.rows, agreement.values.len()), (40, 10));
            }
            let agreement = check(&TINY, ConditionOn::Output, Memory::Stored, &engine).unwrap();
            assert_eq!(agreement.values.len(), 10);
        }
    }

    /// A batch of which each partial gradient of the CPU engine adds up two tiles, as in large batches.
    #[test]
    fn partial_gradients_of_several_tiles_pass() {
        let case = Case { batch: 9_000, ..TINY };
        let agreement =
            check(&case, ConditionOn::Input, Memory::Stored, &Engine::cpu_with_threads(2).unwrap()).unwrap();
        assert_eq!(agreement.rows, CPU_ROWS);
        assert!(!agreement.rows.is_multiple_of(crate::kernel::LANES), "the last tile has padding");
        for case in super::super::CASES.iter().filter(|case| case.batch >= CPU_ROWS) {
            let plan = Plan::new(&case.spec(ConditionOn::Input)).unwrap();
            assert!(16 * crate::engine::cpu::tile_rows(&plan, CPU_ROWS) < CPU_ROWS, "{}", case.name);
        }
    }

    #[test]
    fn a_tensor_without_gradients_does_not_pass() {
        let cpu = Engine::cpu_with_threads(1).unwrap();
        let flow = model(&TINY, ConditionOn::Input, 1, &cpu).unwrap();
        let (plan, weights) = (flow.plan().clone(), flow.to_file().unwrap().weights);
        let x = normals(&plan, 40);
        let want = Definition { plan: &plan, weights: &weights }.slope(&x, &[1.0 / 40.0; 40]).gradients;
        let right: Vec<f32> = want.iter().map(|&g| g as f32).collect();
        assert!(Deviation::of_tensors(&plan, &right, &want).is_good());
        assert!(!Deviation::of_tensors(&plan, &right[1..], &want).is_good());
        for tensor in plan.layout.tensors.iter().filter(|t| t.range().end <= plan.layout.trained && !t.is_empty()) {
            for wrong in [0.0, f32::NAN] {
                let mut got = right.clone();
                got[tensor.range()].fill(wrong);
                assert!(!Deviation::of_tensors(&plan, &got, &want).is_good(), "{} of {wrong}", tensor.name);
            }
        }
    }

    #[test]
    fn other_weights_do_not_pass() {
        let cpu = Engine::cpu_with_threads(1).unwrap();
        let subject = |seed| Compared {
            flow: model(&TINY, ConditionOn::Input, seed, &cpu).unwrap(),
            memory: Memory::Stored,
            batch: TINY.batch,
        };
        let x = normals(subject(1).flow.plan(), 40);
        let of = [subject(2).flow.to_file(), subject(1).flow.to_file()].map(|file| file.unwrap().weights);
        let values = subject(2).against_cpu(&subject(1), &x, 40).unwrap();
        // Steps take the weights that they are told to.
        assert!(values[..4].iter().all(|deviation| !deviation.is_good()), "{values:?}");
        let order: Vec<u32> = (0..40).collect();
        let [a, b] = of.map(|weights| subject(1).step(&weights, &x, &order, 0.0).unwrap());
        assert!(!Deviation::of("gradients", &a.gradients, &b.gradients, GRADIENTS).is_good());
        assert!(!Deviation::of("losses", &[a.loss], &[b.loss], VALUES).is_good());
    }
}
