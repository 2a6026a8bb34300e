//! Whether two samples can be told apart: a classifier two-sample test (C2ST; Lopez-Paz and Oquab 2017) by nearest
//! neighbours.
//!
//! Each row is classified by most of its nearest neighbours among all other rows. If both samples have one distribution,
//! labels are exchangeable: the accuracy is compared with those of shuffled labels on the same neighbours.

use rayon::prelude::*;

use super::{Kind, Test, deviations};
use crate::counted::{are, counted};
use crate::rng::{Counter, Stream, permutation_on};

/// Shufflings of labels, from which mean and deviation of the accuracy are taken.
const SHUFFLES: u32 = 400;

/// Rows of each sample that are used: the time grows with the square of their number.
pub(super) const MOST: usize = 5_000;

/// Tells `ours` from `theirs`, both (rows, `columns`) of independent rows, after columns were divided by their deviation.
/// With as many rows of each an accuracy of 0.5 is a guess, and 1 tells all apart.
pub(crate) fn test(name: &str, ours: &[f32], theirs: &[f32], columns: usize, seed: u64) -> Test {
    let rows = (ours.len() / columns).min(theirs.len() / columns).min(MOST);
    if rows < 10 {
        return Test::new(
            name,
            Kind::TwoSample,
            0.5,
            1.0,
            format!("{} {} too few to tell samples apart", counted(rows, "row"), are(rows)),
        );
    }
    // Spread over the whole of each.
    let some = |all: &[f32]| -> Vec<f32> {
        let apart = all.len() / columns / rows;
        all.chunks_exact(columns).step_by(apart).take(rows).flatten().copied().collect()
    };
    let both = [some(ours), some(theirs)].concat();
    let scale = deviations(&both, columns);
    // In any order: what is equally near must not tell which sample it is of.
    let order = permutation_on(seed, Stream::Diagnosis, 4, 2 * rows as u32);
    let of_row =
        |&row: &u32| both[row as usize * columns..][..columns].iter().zip(&scale).map(|(&v, s)| f64::from(v) / s);
    let all: Vec<f64> = order.iter().flat_map(of_row).collect();
    let labels: Vec<bool> = order.iter().map(|&row| (row as usize) < rows).collect();
    let neighbours = neighbours(&all, columns);
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
    let distance = if deviation > 0.0 { (accuracy - mean) / deviation } else { 0.0 };
    let p_value = 0.5 * statrs::function::erf::erfc(distance / std::f64::consts::SQRT_2);
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
