//! Whether two samples can be told apart: a classifier two-sample test (C2ST; Lopez-Paz and Oquab 2017) by nearest
//! neighbours.
//!
//! Each row is classified by most of its nearest neighbours among all other rows. If both samples have one distribution,
//! labels are exchangeable: the accuracy is compared with those of shuffled labels on the same neighbours.

use rayon::prelude::*;

use super::{Kind, Test};
use crate::rng::{Counter, Stream};

/// Shufflings of labels, from which mean and deviation of the accuracy are taken.
const SHUFFLES: u32 = 400;

/// Tells `ours` from `theirs`, both (rows, `columns`), after columns were divided by `scale`. With as many rows of each an
/// accuracy of 0.5 is a guess, and 1 tells all apart.
pub(crate) fn test(name: &str, ours: &[f32], theirs: &[f32], columns: usize, scale: &[f64], seed: u64) -> Test {
    let rows = (ours.len() / columns).min(theirs.len() / columns);
    let all: Vec<f64> = ours[..rows * columns]
        .chunks_exact(columns)
        .chain(theirs[..rows * columns].chunks_exact(columns))
        .flat_map(|row| row.iter().zip(scale).map(|(&v, s)| f64::from(v) / s))
        .collect();
    if rows < 10 {
        return Test::new(name, Kind::TwoSample, 0.5, 1.0, format!("{rows} rows are too few to tell samples apart"));
    }
    let neighbours = neighbours(&all, columns);
    let labels: Vec<bool> = (0..2 * rows).map(|row| row < rows).collect();
    let accuracy_of = |labels: &[bool]| accuracy(&neighbours, labels);
    let shuffled: Vec<f64> = (0..SHUFFLES)
        .into_par_iter()
        .map(|number| {
            let mut rng = Counter::new(seed, Stream::Diagnosis, number, 1);
            let mut labels = labels.clone();
            for last in (1..labels.len()).rev() {
                labels.swap(last, rng.below(last as u32 + 1) as usize);
            }
            accuracy_of(&labels)
        })
        .collect();
    let mean = shuffled.iter().sum::<f64>() / f64::from(SHUFFLES);
    let deviation = (shuffled.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / f64::from(SHUFFLES)).sqrt();
    let accuracy = accuracy_of(&labels);
    // Accuracies are sums over many rows. Only a high one tells samples apart.
    let p_value = 0.5 * statrs::function::erf::erfc((accuracy - mean) / deviation / std::f64::consts::SQRT_2);
    let says = format!("a classifier tells the two apart in {:.1} % of cases, where 50 % is a guess", 100.0 * accuracy);
    Test::new(name, Kind::TwoSample, accuracy, p_value, says)
}

/// The nearest rows of each, an odd number of them.
fn neighbours(rows: &[f64], columns: usize) -> Vec<Vec<u32>> {
    let n = rows.len() / columns;
    let k = ((n as f64).sqrt() as usize | 1).min(n - 1);
    let of = |i: usize| {
        let own = &rows[i * columns..][..columns];
        let square = |j: usize| {
            let other = &rows[j * columns..][..columns];
            own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
        };
        let mut all: Vec<(f64, u32)> = (0..n).filter(|&j| j != i).map(|j| (square(j), j as u32)).collect();
        if k < all.len() {
            all.select_nth_unstable_by(k - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        all[..k.min(all.len())].iter().map(|(_, j)| *j).collect()
    };
    (0..n).into_par_iter().map(of).collect()
}

/// The share of rows whose label most of their neighbours have; a draw counts half.
fn accuracy(neighbours: &[Vec<u32>], labels: &[bool]) -> f64 {
    let right = neighbours.iter().zip(labels).map(|(near, &label)| {
        let same = near.iter().filter(|&&j| labels[j as usize] == label).count();
        match (2 * same).cmp(&near.len()) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        }
    });
    right.sum::<f64>() / labels.len() as f64
}
