//! Planted faults on problems whose posterior is known.

use super::ranks::{Posterior, Samples, ranks};
use super::*;
use crate::error::Result;
use crate::rng::{Counter, Stream};

/// x ~ N(0, 1) in two columns, y = x + noise of deviation 1: x given y is N(y / 2, 1 / 2). What the posterior says is off by
/// some fault.
#[derive(Clone, Copy, Debug)]
enum Planted {
    None,
    /// By so many posterior deviations, in the first column.
    Shifted(f64),
    /// The deviations times so much.
    Scaled(f64),
    /// Correlation of columns that have none: an ellipse that lies aslant.
    Rotated(f64),
    /// Truths come from two modes, six deviations apart, of which the posterior knows one, but for this share of them.
    Dropped(f64),
}

struct Known {
    fault: Planted,
    truths: Vec<f32>,
    y: Vec<f32>,
    seed: u64,
}

const DEVIATION: f64 = std::f64::consts::FRAC_1_SQRT_2;

impl Known {
    fn new(fault: Planted, rows: usize, seed: u64) -> Self {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        let (mut truths, mut y) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let (x, e) = (rng.normal_pair(), rng.normal_pair());
            let mode = match fault {
                Planted::Dropped(share) if rng.uniform(0.0, 1.0) < share => 6.0 * DEVIATION,
                _ => 0.0,
            };
            truths.extend([(x[0] + mode) as f32, x[1] as f32]);
            y.extend([(x[0] + e[0]) as f32, (x[1] + e[1]) as f32]);
        }
        Self { fault, truths, y, seed }
    }

    fn middle(&self, row: usize) -> [f64; 2] {
        let shift = if let Planted::Shifted(by) = self.fault { by * DEVIATION } else { 0.0 };
        [f64::from(self.y[2 * row]) / 2.0 + shift, f64::from(self.y[2 * row + 1]) / 2.0]
    }

    fn scale(&self) -> f64 {
        DEVIATION * if let Planted::Scaled(by) = self.fault { by } else { 1.0 }
    }

    fn correlation(&self) -> f64 {
        if let Planted::Rotated(by) = self.fault { by } else { 0.0 }
    }

    /// x to z, and back.
    fn z(&self, row: usize, x: &[f32]) -> [f64; 2] {
        let (m, s, r) = (self.middle(row), self.scale(), self.correlation());
        let [a, b] = [(f64::from(x[0]) - m[0]) / s, (f64::from(x[1]) - m[1]) / s];
        [a, (b - r * a) / (1.0 - r * r).sqrt()]
    }

    /// Its logarithm, but for a constant.
    fn density(&self, row: usize, x: &[f32]) -> f32 {
        let [a, b] = self.z(row, x);
        (-0.5 * (a * a + b * b)) as f32
    }

    fn latents(&self) -> Vec<f32> {
        self.truths.chunks_exact(2).enumerate().flat_map(|(row, x)| self.z(row, x)).map(|z| z as f32).collect()
    }
}

impl Posterior for Known {
    fn columns(&self) -> usize {
        2
    }

    fn sample(&self, first: usize, conditions: usize, n: usize) -> Result<Samples> {
        let (s, r) = (self.scale(), self.correlation());
        let of = |row: usize| {
            let mut rng = Counter::for_row(self.seed, Stream::Latent, row as u64);
            let m = self.middle(row);
            (0..n).flat_map(move |_| {
                let [a, b] = rng.normal_pair();
                [(m[0] + s * a) as f32, (m[1] + s * (r * a + (1.0 - r * r).sqrt() * b)) as f32]
            })
        };
        let rows: Vec<f32> = (first..first + conditions).flat_map(of).collect();
        let log_prob = rows.chunks_exact(2).enumerate().map(|(at, x)| self.density(first + at / n, x)).collect();
        Ok(Samples { rows, log_prob })
    }

    fn log_prob(&self, first: usize, rows: &[f32]) -> Result<Vec<f32>> {
        Ok(rows.chunks_exact(2).enumerate().map(|(at, x)| self.density(first + at, x)).collect())
    }
}

/// All tests of a posterior on `rows` held-out rows.
fn diagnose(fault: Planted, rows: usize, seed: u64) -> Diagnosis {
    let known = Known::new(fault, rows, seed);
    let names = ["a", "b"].map(String::from);
    // The truths of other rows.
    let points: Vec<f32> = (0..rows).flat_map(|row| known.truths[(row + 1) % rows * 2..][..2].to_vec()).collect();
    let ranks = ranks(&known, &known.truths, &points, &[1.0, 1.0], 200, seed, &mut |_| ()).unwrap();
    let mut tests = ranks.tests(&names);
    tests.extend(latents::tests(&known.latents(), 2, &known.y, &names));
    Diagnosis::of(tests)
}

/// The share of seeds in which the fault is found.
fn power(fault: Planted, rows: usize, seeds: u64) -> f64 {
    (0..seeds).filter(|&seed| diagnose(fault, rows, seed).p_value < LEVEL).count() as f64 / seeds as f64
}

#[test]
fn planted_faults_are_found_and_exact_posteriors_are_not_rejected() {
    for (fault, least, most) in [
        (Planted::None, 0.0, 0.04),
        (Planted::Shifted(0.3), 0.95, 1.0),
        (Planted::Scaled(1.3), 0.95, 1.0),
        (Planted::Scaled(1.0 / 1.3), 0.95, 1.0),
        (Planted::Rotated(0.3), 0.95, 1.0),
        (Planted::Dropped(0.3), 0.95, 1.0),
    ] {
        let found = power(fault, 500, 30);
        eprintln!("{fault:?}: found in {:.0} % of seeds", 100.0 * found);
        assert!((least..=most).contains(&found), "{fault:?}: {found}");
    }
}

#[test]
#[ignore = "prints a table, and takes minutes; tests/long.sh runs it"]
fn table_of_power() {
    for rows in [200, 500, 1000] {
        for size in [0.1, 0.2, 0.3] {
            let faults = [
                Planted::Shifted(size),
                Planted::Scaled(1.0 + size),
                Planted::Scaled(1.0 / (1.0 + size)),
                Planted::Rotated(size),
                Planted::Dropped(size / 10.0),
            ];
            let cells = faults.map(|fault| format!("{:.0}", 100.0 * power(fault, rows, 100)));
            eprintln!("| {rows} | {size} | {} |", cells.join(" | "));
        }
    }
}

#[test]
fn the_test_that_speaks_names_the_fault() {
    let first = |fault| diagnose(fault, 500, 3).rejected(LEVEL).first().map(|test| (test.kind, test.says.clone()));
    let says = |fault| first(fault).map(|(_, says)| says).unwrap_or_default();
    assert_eq!(first(Planted::None), None);
    let shifted = says(Planted::Shifted(0.5));
    assert!(shifted.starts_with("posteriors of a are too high, as truths lie 0."), "{shifted}");
    let narrow = says(Planted::Scaled(0.7));
    assert!(narrow.starts_with("posteriors of a are too narrow, as truths scatter 1."), "{narrow}");
    let wide = says(Planted::Scaled(1.4));
    assert!(wide.contains(" are too wide, as truths scatter 0."), "{wide}");
    let narrow = diagnose(Planted::Scaled(0.7), 500, 3);
    assert_eq!(headline(&narrow.rejected(LEVEL)).unwrap(), "posteriors of a and b are too narrow (overconfident)");
    let coverage = narrow.tests.iter().find(|test| test.kind == Kind::Coverage).unwrap();
    assert!(coverage.says.starts_with("posteriors are too narrow: the densest"), "{}", coverage.says);
    // What is right is called neither.
    let right = diagnose(Planted::None, 500, 3);
    assert!(right.tests.iter().all(|test| test.faults.is_empty()), "{right:?}");
    assert!(right.tests[0].says.ends_with("no more than chance"), "{}", right.tests[0].says);
    let rotated = diagnose(Planted::Rotated(0.5), 500, 3);
    assert!(rotated.rejected(LEVEL).iter().any(|test| test.kind == Kind::Pairs), "{rotated:?}");
}

#[test]
fn two_samples_of_one_distribution_are_not_told_apart() {
    let sample = |seed, shift: f32| -> Vec<f32> {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        (0..400).flat_map(|_| rng.normal_pair().map(|v| v as f32 + shift)).collect()
    };
    let p = |shift, seed| neighbours::test("two", &sample(seed, 0.0), &sample(seed + 1000, shift), 2, 1).p_value;
    let wrong = (0..40).filter(|&seed| p(0.0, seed) < 0.05).count();
    assert!(wrong <= 6, "{wrong} of 40");
    let weakest = (0..5).map(|seed| p(0.7, seed)).fold(0.0, f64::max);
    assert!(weakest < 1e-3, "{weakest}");
}

#[test]
fn holm_adjusts_by_the_number_of_tests_that_are_left() {
    let test = |p| Test::new("", Kind::Norm, 0.0, p, String::new());
    let diagnosis = Diagnosis::of([0.01, 0.04, 0.03, f64::NAN].map(test).to_vec());
    let adjusted: Vec<f64> = diagnosis.tests.iter().map(|test| test.adjusted_p_value).collect();
    for (got, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.0]) {
        approx::assert_abs_diff_eq!(*got, want, epsilon = 1e-12);
    }
    assert_eq!((diagnosis.p_value, diagnosis.rejected(0.05).len()), (0.0, 2));
    assert_eq!(Diagnosis::of(Vec::new()).p_value, 1.0);
}

/// Samples that are there, in place of a model.
struct Drawn {
    samples: Vec<f32>,
    n: usize,
}

impl Posterior for Drawn {
    fn columns(&self) -> usize {
        2
    }

    fn sample(&self, first: usize, conditions: usize, n: usize) -> Result<Samples> {
        assert_eq!(n, self.n);
        Ok(Samples { rows: self.samples[2 * n * first..][..2 * n * conditions].to_vec(), log_prob: Vec::new() })
    }

    fn log_prob(&self, _: usize, _: &[f32]) -> Result<Vec<f32>> {
        Ok(Vec::new())
    }
}

/// The arrays are those of `benches/calibration.py --fixture`: what `_run_sbc` and `_run_tarp` of sbi 0.27 make of them.
#[test]
fn ranks_and_coverage_of_random_points_are_those_of_sbi() {
    let bytes = include_bytes!("../../tests/fixtures/sbi_calibration.safetensors");
    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let values = |name: &str| -> Vec<f32> {
        let tensor = file.tensor(name).unwrap();
        tensor.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    };
    let (truths, points) = (values("truths"), values("points"));
    let rows = truths.len() / 2;
    let n = file.tensor("samples").unwrap().shape()[1];
    let posterior = Drawn { samples: values("samples"), n };
    let found = ranks(&posterior, &truths, &points, &[1.0, 1.0], n, 1, &mut |_| ()).unwrap();
    // Ours are between the samples; theirs count those below.
    let below = |rank: f64| (rank * (n + 1) as f64).floor();
    let theirs = values("ranks");
    for (row, theirs) in theirs.chunks_exact(2).enumerate() {
        let ours = [0, 1].map(|c| below(found.columns[c][row]));
        assert_eq!(ours, [0, 1].map(|c| f64::from(theirs[c])), "row {row}");
    }
    // Theirs is a histogram, of which a share may fall on the edge of a bin.
    let shares: Vec<f64> = found.distance.iter().map(|&rank| below(rank) / n as f64).collect();
    let (coverage, credibility) = (values("coverage"), values("credibility"));
    assert!(coverage.len() > 10, "{}", coverage.len());
    for (&coverage, &edge) in coverage.iter().zip(&credibility) {
        let share = |edge: f64| shares.iter().filter(|&&share| share < edge).count() as f64 / rows as f64;
        let (least, most) = (share(f64::from(edge) - 1e-5), share(f64::from(edge) + 1e-5));
        let coverage = f64::from(coverage);
        assert!((least - 1e-5..=most + 1e-5).contains(&coverage), "{edge}: {least} {coverage} {most}");
    }
}
