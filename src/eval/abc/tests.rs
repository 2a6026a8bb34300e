//! Accepted draws against posteriors known in closed form and against sorting the whole pool.

use std::cell::Cell;

use super::*;
use crate::Overwrite;
use crate::data::Shapes;
use crate::data::shapes::lens::{self, Outline};
use crate::data::{POOL_FIRST_ROW, write_npy};
use crate::rng::{Counter, Stream};

fn quiet(_: u64) -> Result<()> {
    Ok(())
}

/// A pool from a function of one draw's random numbers, which writes y and x.
fn pool<F: Fn(&mut Counter, &mut [f32], &mut [f32]) + Sync>(
    observed_dim: usize,
    dim: usize,
    seed: u64,
    draw: F,
) -> impl Simulator {
    let fill = move |draws: Range<u64>, y: &mut [f32], x: &mut [f32]| {
        for (i, (y, x)) in draws.zip(y.chunks_exact_mut(observed_dim).zip(x.chunks_exact_mut(dim))) {
            draw(&mut Counter::for_row(seed, Stream::Data, i), y, x);
        }
        Ok(())
    };
    Simulate { name: format!("test-seed{seed}"), dim, observed_dim, fill }
}

/// x ~ N(0, I) in two dimensions, y = 1.5 x_0 - x_1 + N(0, 0.5^2).
fn linear_gaussian(seed: u64) -> impl Simulator {
    pool(1, 2, seed, |rng, y, x| {
        let ([a, b], [noise, _]) = (rng.normal_pair(), rng.normal_pair());
        x.copy_from_slice(&[a as f32, b as f32]);
        y[0] = (1.5 * a - b + 0.5 * noise) as f32;
    })
}

#[test]
fn a_linear_gaussian_has_its_analytic_posterior() {
    let abc = Abc { draws: 600_000, keep: 4000, distance: Distance::Euclidean };
    let observed = 1.2f32;
    let accepted = abc.run(&linear_gaussian(3), &[observed], &mut quiet).unwrap().swap_remove(0);
    assert!(accepted.tolerance() < 0.02, "{}", accepted.tolerance());

    // Posterior: mean A^T y / s, covariance I - A^T A / s with s = A A^T + 0.25.
    let (a, s) = ([1.5, -1.0], 1.5 * 1.5 + 1.0 + 0.25);
    let n = accepted.distances.len() as f64;
    let rows: Vec<[f64; 2]> = accepted.x.chunks_exact(2).map(|r| [r[0].into(), r[1].into()]).collect();
    let mean = [0, 1].map(|i| rows.iter().map(|r| r[i]).sum::<f64>() / n);
    for i in 0..2 {
        let (want, variance) = (a[i] * f64::from(observed) / s, 1.0 - a[i] * a[i] / s);
        let tolerance = 4.0 * (variance / n).sqrt();
        assert!((mean[i] - want).abs() <= tolerance, "mean {i}: {} {want}", mean[i]);
        for j in 0..2 {
            let covariance = rows.iter().map(|r| (r[i] - mean[i]) * (r[j] - mean[j])).sum::<f64>() / n;
            let want = f64::from(u8::from(i == j)) - a[i] * a[j] / s;
            let other = 1.0 - a[j] * a[j] / s;
            let tolerance = 4.0 * ((variance * other + want * want) / n).sqrt();
            assert!((covariance - want).abs() <= tolerance, "covariance {i} {j}: {covariance} {want}");
        }
    }
}

/// Observations in very different units; every 101st draw is not finite.
fn two_scales(seed: u64) -> impl Simulator {
    pool(2, 3, seed, |rng, y, x| {
        let [a, b] = rng.normal_pair();
        x.copy_from_slice(&[a as f32, b as f32, (a * b) as f32]);
        // Coarse, so that many draws are equally near.
        y.copy_from_slice(&[(a * 16.0).round() as f32 / 16.0, (1000.0 * b).round() as f32]);
        if rng.below(101) == 0 {
            y[0] = f32::NAN;
        }
    })
}

/// Numbers of the nearest draws, by sorting all of them.
fn by_sorting(pool: &dyn Simulator, draws: u64, keep: usize, target: [f64; 2], scales: [f64; 2]) -> Vec<u64> {
    let mut y = vec![0.0; 2 * draws as usize];
    pool.observe(0..draws, &mut y).unwrap();
    let square =
        |row: &[f32]| [0, 1].map(|k| ((f64::from(row[k]) - target[k]) / scales[k]).powi(2)).iter().sum::<f64>();
    let mut all: Vec<(f64, u64)> = y.chunks_exact(2).map(square).zip(0..).filter(|(d, _)| d.is_finite()).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all[..keep].iter().map(|(_, draw)| *draw).collect()
}

#[test]
fn the_kept_draws_are_those_of_a_sort_for_any_size_of_pool() {
    let pool = two_scales(5);
    // Ends within a block, at the end of a span, and beyond one.
    for (draws, keep) in [(1000, 1), (1007, 900), (SPAN, 50), (SPAN + 37, 300), (2 * SPAN + 1, 77)] {
        let observations = [[0.5f32, 300.0], [-1.25, 0.0], [9.0, 9000.0]];
        let abc = Abc { draws, keep, distance: Distance::Euclidean };
        let mut seen = Vec::new();
        let all = abc
            .run(&pool, observations.as_flattened(), &mut |draws| {
                seen.push(draws);
                Ok(())
            })
            .unwrap();
        assert_eq!((seen.last(), seen.len() as u64), (Some(&draws), draws.div_ceil(SPAN)));
        for (accepted, target) in all.iter().zip(observations) {
            let want = by_sorting(&pool, draws, keep, target.map(f64::from), [1.0; 2]);
            let mut x = vec![0.0; 3 * keep];
            x.chunks_exact_mut(3).zip(&want).for_each(|(x, draw)| pool.fill(*draw, x).unwrap());
            assert_eq!(accepted.x, x, "{draws} {keep} {target:?}");
            assert_eq!(accepted.distances.len(), keep);
            assert!(accepted.distances.is_sorted() && accepted.distances[0] >= 0.0);
        }
    }
}

#[test]
fn scaled_distances_weigh_columns_by_their_deviations() {
    let pool = two_scales(6);
    let (draws, keep) = (50_000, 400);
    let target = [0.25f32, -700.0];
    let run = |distance| Abc { draws, keep, distance }.run(&pool, &target, &mut quiet).unwrap().swap_remove(0);
    let scaled = run(Distance::Scaled);
    // Both columns are matched to about the same share of their deviation; without scaling only the second is.
    let spread = |accepted: &Accepted, column: usize, centre: f32| {
        let off = accepted.x.chunks_exact(3).map(|row| (row[column] - centre).abs());
        off.fold(0.0, f32::max)
    };
    let [a, b] = [spread(&scaled, 0, 0.25), spread(&scaled, 1, -0.7)];
    assert!(a < 0.25 && b < 0.25, "{a} {b}");
    assert!(spread(&run(Distance::Euclidean), 0, 0.25) > 2.0);

    let deviations = scales(&pool, draws).unwrap();
    assert!((deviations[0] - 1.0).abs() < 0.02 && (deviations[1] / 1000.0 - 1.0).abs() < 0.02, "{deviations:?}");
    let want = by_sorting(&pool, draws, keep, target.map(f64::from), [deviations[0], deviations[1]]);
    let mut first = [0.0; 3];
    pool.fill(want[0], &mut first).unwrap();
    assert_eq!(scaled.x[..3], first);
}

#[test]
fn threads_do_not_change_what_is_accepted() {
    let pool = ShapePool { shapes: Shapes::Lens(Outline::Vertices), seed: 2, first_row: POOL_FIRST_ROW };
    let abc = Abc { draws: 20_000, keep: 100, distance: Distance::Euclidean };
    let with = |threads| {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        threads.install(|| abc.run(&pool, &[1.0, 2.0, 2.5, 0.3], &mut quiet).unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(3));
}

#[test]
fn a_pool_of_shapes_is_the_data_set() {
    let family = Shapes::Lens(Outline::Arc);
    let pool = ShapePool { shapes: family, seed: 7, first_row: 1000 };
    let (shapes, seen) = family.generate_with_observations(3000, 7, 1000).unwrap();
    let observed = [1.4f32, 1.9];
    let accepted =
        Abc { draws: 3000, keep: 20, distance: Distance::Euclidean }.run(&pool, &observed, &mut quiet).unwrap();
    for (x, distance) in accepted[0].x.chunks_exact(lens::DIM).zip(&accepted[0].distances) {
        let row = shapes.iter_rows().position(|shape| shape == x).expect("a row of the data set");
        let y = seen.row(row);
        let want = (y[0] - observed[0]).hypot(y[1] - observed[1]);
        assert!((distance - want).abs() <= 1e-6, "{distance} {want}");
    }
}

#[test]
fn stored_draws_come_back_and_spare_the_pass() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/if/need/be");
    let pool = two_scales(8);
    let abc = Abc { draws: 2000, keep: 30, distance: Distance::Scaled };
    let calls = Cell::new(0);
    let mut count = |_| {
        calls.set(calls.get() + 1);
        Ok(())
    };
    let observations = [0.5f32, 1e-7, -1.0, 250.0, 0.5, 1e-7];
    let first = abc.run_stored(&folder, &pool, &observations, &mut count).unwrap();
    assert_eq!((first.len(), calls.get()), (3, 1));
    assert_eq!(first, abc.run(&pool, &observations, &mut quiet).unwrap());
    let again = abc.run_stored(&folder, &pool, &observations, &mut count).unwrap();
    assert_eq!((&again, calls.get()), (&first, 1));

    let name = "abc-test-seed8-draws2000-keep30-scaled-y0.5_1e-7.npy";
    assert_eq!(abc.file_name(&pool, &observations[..2]), name);
    let path = folder.join(name);
    assert!(path.exists() && std::fs::read_dir(&folder).unwrap().count() == 2);
    // A file of something else is no result.
    let descends: Vec<f32> = (0..4 * 30).map(|k| -(k as f32) + 1000.0).collect();
    for (columns, values) in [(5, vec![1.0; 5 * 30]), (4, descends), (4, vec![-1.0; 4 * 30]), (4, vec![1.0; 4 * 29])] {
        write_npy(&path, values.len() / columns, columns, &values, Overwrite::Yes).unwrap();
        let error = abc.run_stored(&folder, &pool, &observations, &mut count).unwrap_err();
        assert!(matches!(&error, Error::Format { path: at, .. } if *at == path), "{error}");
    }
}

#[test]
fn a_pass_that_is_stopped_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let abc = Abc { draws: 2 * SPAN, keep: 10, distance: Distance::Euclidean };
    let mut seen = 0;
    let mut stop = |_| {
        seen += 1;
        Err(Error::Stopped)
    };
    let error = abc.run_stored(folder.path(), &linear_gaussian(1), &[0.5], &mut stop).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    assert_eq!((seen, std::fs::read_dir(folder.path()).unwrap().count()), (1, 0));
}

#[test]
fn impossible_requests_are_errors() {
    let pool = linear_gaussian(1);
    let run = |draws, keep, observations: &[f32]| {
        Abc { draws, keep, distance: Distance::Euclidean }.run(&pool, observations, &mut quiet)
    };
    assert!(run(100, 100, &[0.0]).is_ok());
    assert!(matches!(run(100, 101, &[0.0]), Err(Error::Argument { .. })));
    assert!(matches!(run(100, 0, &[0.0]), Err(Error::Argument { .. })));
    assert!(matches!(run(100, 1, &[f32::NAN]), Err(Error::Argument { .. })));
    assert!(matches!(run(100, 1, &[]), Err(Error::Shape { .. })));
    let two = two_scales(1);
    let abc = Abc { draws: 5000, keep: 5000, distance: Distance::Euclidean };
    assert!(matches!(abc.run(&two, &[0.0; 3], &mut quiet), Err(Error::Shape { expected: 2, got: 3, .. })));
    // One in a hundred draws is not finite.
    let error = abc.run(&two, &[0.0; 2], &mut quiet).unwrap_err().to_string();
    assert!(error.contains("of 5000 draws have finite observations"), "{error}");
}
