//! Normals and gathering: the numbers of `rng.rs`, computed on the device.

use super::*;
use crate::engine::{Groups, StepJob};
use crate::optim::Adam;
use crate::rng;

/// Normal number `column` of a sample, from its definition in `rng.rs`, with the transformation in f64.
fn normal(seed: u64, stream: Stream, step: u32, row: u64, column: u32, columns: u32) -> f64 {
    let group = row.wrapping_mul(columns.div_ceil(4).into()).wrapping_add((column / 4).into());
    let u = rng::philox4x32_10([group as u32, (group >> 32) as u32, step, stream as u32], rng::key(seed));
    let unit = |word: u32| f64::from(rng::unit_f32(word));
    let pair = (column % 4 / 2) as usize * 2;
    let (r, turn) = ((-2.0 * unit(u[pair]).ln()).sqrt(), std::f64::consts::TAU * unit(u[pair + 1]));
    if column.is_multiple_of(2) { r * turn.cos() } else { r * turn.sin() }
}

#[test]
fn normals_are_those_of_the_host() {
    let device = device();
    for dim in [1, 3, 4, 7, 33] {
        let plan = plan(Spec { dim, ..Spec::default() });
        let mut case = Case::new(&plan);
        let [_, to, _] = [1, dim, 1].map(|n| case.buffer(n));
        case.ops.push(Op::Normal { to, stream: Stream::Latent, deviation: 1.0 });
        for (first_row, tile) in [(0, usize::MAX), (u64::from(u32::MAX) - 10, 32)] {
            let mut session = session_with(&device, &plan, tiles(tile));
            let id = session.compile(case.program(), 37).unwrap();
            let inputs = case.inputs(37);
            let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
            let seed = 0x0123_4567_89ab_cdef;
            let outputs =
                session.run(id, &Job { rows: 37, inputs: &inputs, seed, first_row, ..Job::default() }).unwrap();
            let expected: Vec<f64> = (0..37)
                .flat_map(|r| (0..dim).map(move |c| normal(seed, Stream::Latent, 0, first_row + r, c, dim)))
                .collect();
            assert_close(&format!("N = {dim}, from {first_row}"), &outputs[1], &expected, within(5e-7));
            assert_eq!(outputs[0], inputs[0], "the row before");
            assert_eq!(outputs[2], inputs[2], "the row after");
        }
    }
}

/// Samples are counted within their groups, and a group has the numbers of a step of its own.
#[test]
fn normals_of_groups_are_counted_from_zero() {
    let plan = plan(Spec { dim: 6, ..Spec::default() });
    let device = device();
    let mut case = Case::new(&plan);
    let to = case.scratch(6);
    case.outputs.push(to);
    case.ops.push(Op::Normal { to, stream: Stream::Latent, deviation: 1.0 });
    for tile in [usize::MAX, 32] {
        let mut session = session_with(&device, &plan, tiles(tile));
        let id = session.compile(case.program(), 100).unwrap();
        let groups = Groups { rows: 9, first: 40 };
        let job = Job { rows: 100, seed: 12, first_row: 7, groups, ..Job::default() };
        let got = session.run(id, &job).unwrap().remove(0);
        let number = |r: u64| (40 + (7 + r) / 9, (7 + r) % 9);
        let expected: Vec<f64> = (0..100)
            .flat_map(|r| {
                let (step, row) = number(r);
                (0..6).map(move |c| normal(12, Stream::Latent, step as u32, row, c, 6))
            })
            .collect();
        assert_close(&format!("tiles of {tile}"), &got, &expected, within(5e-7));
    }
}

/// A program that only gathers; its result stays in the arena and is read by a second program of the same shape.
fn gathered(session: &mut GpuSession, plan: &Arc<Plan>, job: &StepJob) -> Vec<f32> {
    let mut case = Case::new(plan);
    let to = case.scratch(plan.spec.row_columns());
    case.ops.push(Op::Gather { to, conditions: plan.spec.cond_dim });
    let id = session.compile(case.program(), job.rows).unwrap();
    session.step(id, job).unwrap();
    let mut look = Case::new(plan);
    look.outputs.push(to);
    look.arena = case.arena;
    let id = session.compile(look.program(), job.rows).unwrap();
    session.run(id, &Job { rows: job.rows, inputs: &[], seed: 0, first_row: 0, ..Job::default() }).unwrap().remove(0)
}

#[test]
fn rows_come_in_order_and_with_noise() {
    let device = device();
    for (dim, cond_dim) in DIMS.into_iter().map(|dim| (dim, 0)).chain([(1, 1), (5, 3), (3, 6), (7, 4), (4, 9)]) {
        let kind = if cond_dim > 0 { Kind::Hint } else { Kind::Flow };
        let plan = plan(Spec { kind, cond_dim, dim, ..Spec::default() });
        let columns = dim + cond_dim;
        let data = numbers(5, 100 * columns as usize, 1.0);
        let order: Vec<u32> = (0..100).map(|i| (i * 37 + 11) % 100).collect();
        let mut results = vec![];
        for streamed in [false, true] {
            let mut session = session_with(&device, &plan, streaming(streamed));
            session.set_data(data.as_slice().into()).unwrap();
            session.set_order(&order).unwrap();
            for (rows, noise) in [(1, 0.0), (37, 0.0), (37, 0.25)] {
                let adam = Adam::default().step(0.1, 1);
                let job = StepJob { first: 13, rows, noise, dropout: 0, seed: 99 << 32 | 5, step: 7, adam };
                let got = gathered(&mut session, &plan, &job);
                let expected: Vec<f64> = (0..rows)
                    .flat_map(|r| {
                        let row = order[13 + r] as usize * columns as usize;
                        let data = &data;
                        (0..columns).map(move |c| {
                            // Conditions come first and get none.
                            let number = c.checked_sub(cond_dim);
                            let z = number.map_or(0.0, |c| normal(job.seed, Stream::Noise, 7, r as u64, c, dim));
                            f64::from(data[row + c as usize]) + f64::from(noise) * z
                        })
                    })
                    .collect();
                let tolerance = if noise == 0.0 { 0.0 } else { 5e-7 };
                assert_close(&format!("N = {dim}, {rows} rows, noise {noise}"), &got, &expected, within(tolerance));
                results.push((streamed, got));
            }
        }
        let (streamed, resident): (Vec<_>, Vec<_>) = results.into_iter().partition(|(streamed, _)| *streamed);
        assert!(streamed.iter().map(|r| &r.1).eq(resident.iter().map(|r| &r.1)), "streaming changes bits");
    }
}
