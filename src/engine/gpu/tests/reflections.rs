//! Trained mixings of many sizes against f64, one reflection at a time.

use super::*;
use crate::engine::gpu::kernels::shader::Kernel;
use crate::kernel::reflect::plain::Plain;
use crate::plan::Mixing;

/// Within a tile, at its ends, and in several.
const SIZES: [u32; 11] = [1, 2, 3, 7, 31, 32, 33, 64, 65, 100, 130];

fn trained(dim: u32, blocks: u32) -> Arc<Plan> {
    plan(Spec { dim, blocks, mixing: Mixing::Householder, width: 2, depth: 0.into(), ..Spec::default() })
}

/// The gradient of all trained mixings, with random gradients of Q.
fn case_of(plan: &Arc<Plan>) -> Case {
    let mut case = Case::new(plan);
    for (mix, dim) in plan.mixes().map(|mix| mix.dim).enumerate() {
        let [from, d_to, d_from] = [dim, dim, dim].map(|n| case.buffer(n));
        case.prepare.push(StepOp::Reflect { mix });
        case.ops.push(Op::MixBackward { mix, from, d_to, d_from });
        case.finish.push(StepOp::ReflectBackward { mix });
    }
    case
}

/// The weights after a run with those given, and the gradients that it leaves.
fn run(plan: &Arc<Plan>, session: &mut GpuSession, weights: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let case = case_of(plan);
    let id = session.compile(case.program(), 50).unwrap();
    session.write(Values::Weights, weights).unwrap();
    let inputs = case.inputs(50);
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    session.run(id, &Job { rows: 50, inputs: &inputs, seed: 0, first_row: 0, ..Job::default() }).unwrap();
    (session.read(Values::Weights).unwrap(), session.gradients().unwrap())
}

/// Vectors of lengths from 0.001 to 1000 and more, and among them zeros and equal ones.
fn spread(n: usize, vectors: &mut [f32]) {
    for (r, v) in vectors.chunks_exact_mut(n).enumerate() {
        v.iter_mut().for_each(|v| *v *= [1.0, 1e-3, 1e3][r % 3]);
    }
    if n > 1 {
        vectors.copy_within(..n, n);
    }
    if n > 2 {
        vectors[2 * n..3 * n].fill(0.0);
    }
    if n > 32 {
        vectors[30 * n..31 * n].fill(0.0);
        // From one tile to the next.
        vectors.copy_within(31 * n..32 * n, 32 * n);
        vectors[(n - 1) * n..].fill(0.0);
    }
}

/// Every row times the length of its vector: gradients grow where vectors are small.
fn times_lengths<T: Copy + Into<f64>>(n: usize, vectors: &[f32], values: &[T]) -> Vec<f64> {
    let length = |v: &[f32]| v.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    let rows = vectors.chunks_exact(n).zip(values.chunks_exact(n));
    rows.flat_map(|(v, values)| values.iter().map(move |&value| length(v) * value.into())).collect()
}

#[test]
fn agree_with_f64() {
    let device = device();
    for dim in SIZES {
        let (n, plan) = (dim as usize, trained(dim, 2));
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        for case in ["usual", "spread", "small"] {
            let mut weights = weights(&plan);
            for mix in plan.mixes() {
                let vectors = &mut weights[mix.reflections.unwrap() as usize..][..n * n];
                match case {
                    "spread" => spread(n, vectors),
                    "small" => vectors.iter_mut().for_each(|v| *v *= 0.01),
                    _ => {}
                }
            }
            let (after, gradients) = run(&plan, &mut session, &weights);
            for (number, mix) in plan.mixes().enumerate() {
                let what = format!("N = {n}, {case}, mixing {number}");
                let at = mix.reflections.unwrap() as usize;
                let vectors = &weights[at..at + n * n];
                let d_q: Vec<f64> = gradients[mix.q as usize..][..n * n].iter().map(|&d| d.into()).collect();
                assert!(d_q.iter().any(|&d| d != 0.0));
                let (mut plain, mut expected) = (Plain::default(), vec![0.0; n * n]);
                plain.product(n, vectors);
                let q = &after[mix.q as usize..][..n * n];
                assert_close(&format!("{what}, Q"), q, &plain.m, within(1e-6));
                plain.backward(n, vectors, &d_q, &mut expected);
                let got = &gradients[at..at + n * n];
                if n == 1 {
                    // Q is -1 whatever the vector.
                    assert_eq!(got, [0.0], "{what}");
                    continue;
                }
                let (scaled, wanted) = (times_lengths(n, vectors, got), times_lengths(n, vectors, &expected));
                assert_close(&format!("{what}, gradient"), &scaled, &wanted, within(2e-6));
                for (v, d) in vectors.chunks_exact(n).zip(got.chunks_exact(n)) {
                    let zero = v.iter().all(|&v| v == 0.0);
                    assert!(!zero || d.iter().all(|&d| d == 0.0), "{what}: a gradient along nothing");
                }
            }
        }
    }
}

/// Small models stack many mixings, whose errors add up: an element of Q has the error of its own rounding and no more.
#[test]
fn q_of_few_columns_is_rounded_once() {
    let device = device();
    for dim in [2, 3, 4, 5, 7, 12, 20, 31, 32] {
        let (n, plan) = (dim as usize, trained(dim, 8));
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        for seed in 1..4 {
            let weights = numbers(seed, plan.layout.len(), 0.4);
            let (after, _) = run(&plan, &mut session, &weights);
            for (number, mix) in plan.mixes().enumerate() {
                let mut plain = Plain::default();
                plain.product(n, &weights[mix.reflections.unwrap() as usize..][..n * n]);
                let q = &after[mix.q as usize..][..n * n];
                // Half a unit in the last place of what is less than 1.
                assert_close(&format!("N = {n}, seed {seed}, mixing {number}"), q, &plain.m, within(0.0).floor(3e-8));
            }
        }
    }
}

/// Large mixings take several dispatches, which changes nothing.
#[test]
fn in_several_dispatches() {
    let (plan, weights) = (trained(70, 3), weights(&trained(70, 3)));
    let device = device();
    let cut = |work: u64| session_with(&device, &plan, Options { reflection_work: Some(work), ..Options::default() });
    let whole = run(&plan, &mut cut(u64::MAX), &weights);
    let row = 70 * 70 * 70 / 3;
    // All three mixings, one at a time, two of three rows of tiles at a time, one at a time; backward the sum of the
    // slices has a dispatch of its own.
    for (work, expected) in [(u64::MAX, 3 + 4), (70 * 70 * 70, 3 * (3 + 4)), (2 * row, 3 * (6 + 7)), (1, 3 * (9 + 10))]
    {
        let mut session = cut(work);
        let id = session.compile(case_of(&plan).program(), 50).unwrap();
        let kernels = session.kernels(id);
        let of_rows = kernels.iter().filter(|k| [Kernel::Mix, Kernel::WeightGradient].contains(k)).count();
        assert_eq!(kernels.len() - of_rows, expected, "{work}");
        assert!(run(&plan, &mut session, &weights) == whole, "{work}");
    }
}

/// Without a backward pass there is no use for C.
#[test]
fn forward_alone() {
    let plan = trained(40, 2);
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let (with, _) = run(&plan, &mut session, &weights(&plan));
    let forward = Program { rows: vec![], finish: vec![], ..case_of(&plan).program() };
    let id = session.compile(forward, 1).unwrap();
    session.write(Values::Weights, &weights(&plan)).unwrap();
    let inputs = case_of(&plan).inputs(1);
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    session.run(id, &Job { rows: 1, inputs: &inputs, seed: 0, first_row: 0, ..Job::default() }).unwrap();
    assert!(session.read(Values::Weights).unwrap() == with);
}

/// Not only values: what is not finite must not vanish.
#[test]
fn nan_reaches_q() {
    let plan = trained(40, 1);
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let (mut weights, mix) = (weights(&plan), plan.mixes().next().unwrap().clone());
    weights[mix.reflections.unwrap() as usize + 35 * 40] = f32::NAN;
    let (after, _) = run(&plan, &mut session, &weights);
    assert!(after[mix.q as usize..][..1600].iter().all(|q| q.is_nan()));
}
