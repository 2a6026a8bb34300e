//! The paper's system of four competing species (appendix, "Bayesian filtering using HINT"): the competitive
//! Lotka-Volterra equations
//!
//! ```text
//! dx_i / dt = beta_i x_i (1 - sum over j of alpha_ij x_j)
//! ```
//!
//! over unit time steps, by the classical Runge-Kutta method of fixed step. The paper adds "random noise at each time
//! step" and measures the first three species with noise, without numbers. Here the noise of the process multiplies:
//! after each step a population is its own `exp(sigma z)` times, so it stays positive and a dying species dies, as it
//! does in the paper; the noise of a measurement adds.

use super::table::Table;
use crate::error::{Error, Result};
use crate::rng::{Counter, Stream};

/// Number of species.
pub(crate) const SPECIES: usize = 4;
/// The first so many are measured.
pub(crate) const OBSERVED: usize = 3;
/// Steps of the paper's series.
pub(crate) const STEPS: usize = 10;
/// Deviation of both noises where nothing else is asked for.
pub(crate) const NOISE: f64 = 0.05;
/// A population that is less is set to this: 32-bit floats hold no smaller one with all their digits.
pub(crate) const LEAST: f64 = 1e-30;

/// Undisturbed growth rates beta.
const GROWTH: [f64; SPECIES] = [1.14143055, 0.64270729, 1.42981209, 0.90620443];

/// Interactions alpha.
const COMPETITION: [[f64; SPECIES]; SPECIES] = [
    [0.78382338, 1.26614888, 1.25787652, 0.80904295],
    [1.00470891, 0.32719451, 1.34501072, 1.29758381],
    [1.28599724, 0.39362355, 0.89977679, 1.00063551],
    [1.12163602, 1.08672758, 1.39634746, 0.53592833],
];

/// The true populations at time 0.
const TRUE_START: Populations = [1.00471435, 0.98809024, 1.01432707, 0.99687348];

/// What is guessed of each population at time 0: mean and standard deviation.
const GUESS: [f64; 2] = [1.0, 0.1];

/// Runge-Kutta steps of a unit of time. The error over ten units is below 2e-6.
const SUBSTEPS: u32 = 20;

/// Populations of all species.
pub(crate) type Populations = [f64; SPECIES];

/// Where a simulated series begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the paper's true populations.
    #[default]
    Paper,
    /// At a draw of the initial guess, so that coverages of many series mean something.
    Guess,
}

/// The system with its noises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LotkaVolterra {
    /// Standard deviation of the logarithm of a population after a step.
    pub process_noise: f64,
    /// Standard deviation of a measurement.
    pub observation_noise: f64,
}

impl Default for LotkaVolterra {
    fn default() -> Self {
        Self { process_noise: NOISE, observation_noise: NOISE }
    }
}

impl LotkaVolterra {
    /// The system with such noises.
    ///
    /// # Errors
    /// [`Error::Argument`] if one is negative or no number, or no measurement has any.
    pub(crate) fn new(process_noise: f64, observation_noise: f64) -> Result<Self> {
        if !(process_noise.is_finite() && process_noise >= 0.0) {
            let what = format!("must be a number of at least 0, is {process_noise}");
            return Err(Error::argument("process_noise", what));
        }
        if !(observation_noise.is_finite() && observation_noise > 0.0) {
            let what = format!("must be a number greater than 0, is {observation_noise}");
            return Err(Error::argument("observation_noise", what));
        }
        Ok(Self { process_noise, observation_noise })
    }

    /// Names of the species, as a table has them.
    pub(crate) fn names() -> Vec<String> {
        (1..=SPECIES).map(|i| format!("x{i}")).collect()
    }

    /// Names of the measurements.
    pub(crate) fn observation_names() -> Vec<String> {
        (1..=OBSERVED).map(|i| format!("y{i}")).collect()
    }

    /// Populations at time 0 as they are guessed.
    pub(crate) fn guess(rng: &mut Counter) -> Populations {
        let [mean, deviation] = GUESS;
        normals(rng).map(|z| (mean + deviation * z).max(LEAST))
    }

    /// Populations a unit of time later.
    pub(crate) fn advance(&self, x: &Populations, rng: &mut Counter) -> Populations {
        let later = runge_kutta(x, SUBSTEPS);
        let z = normals(rng);
        std::array::from_fn(|i| (later[i] * (self.process_noise * z[i]).exp()).max(LEAST))
    }

    /// What is measured of populations.
    pub(crate) fn observe(&self, x: &Populations, rng: &mut Counter) -> [f64; OBSERVED] {
        let z = normals(rng);
        std::array::from_fn(|i| x[i] + self.observation_noise * z[i])
    }

    /// The log-density of measurements given populations, in nats.
    pub(crate) fn log_likelihood(&self, x: &Populations, observed: &[f32]) -> f64 {
        let sigma = self.observation_noise;
        let of = |(x, y): (&f64, &f32)| -0.5 * ((f64::from(*y) - x) / sigma).powi(2);
        let constant = sigma.ln() + 0.5 * std::f64::consts::TAU.ln();
        x.iter().zip(observed).map(of).sum::<f64>() - observed.len() as f64 * constant
    }

    /// A series of `n` unit steps: the populations after each (n, 4), and what is measured of them (n, 3).
    ///
    /// # Errors
    /// [`Error::Argument`] if `n` is 0 or more than memory holds.
    pub(crate) fn series(&self, n: usize, seed: u64, start: Start) -> Result<(Table, Table)> {
        if n == 0 {
            return Err(Error::argument("n", "0 steps were asked for; take at least 1"));
        }
        let (mut truth, mut seen) = (Vec::<f32>::new(), Vec::<f32>::new());
        let room = |values: &mut Vec<f32>, columns: usize| {
            n.checked_mul(columns).is_some_and(|count| values.try_reserve_exact(count).is_ok())
        };
        if u32::try_from(n).is_err() || !room(&mut truth, SPECIES) || !room(&mut seen, OBSERVED) {
            return Err(Error::argument("n", format!("{n} steps are too many; ask for fewer")));
        }
        // One substream for the beginning, one for each step: a longer series begins as a shorter one does.
        let mut x = match start {
            Start::Paper => TRUE_START,
            Start::Guess => Self::guess(&mut Counter::for_row(seed, Stream::Data, 0)),
        };
        for step in 1..=n as u64 {
            let mut rng = Counter::for_row(seed, Stream::Data, step);
            x = self.advance(&x, &mut rng);
            truth.extend(x.map(|v| v as f32));
            seen.extend(self.observe(&x, &mut rng).map(|v| v as f32));
        }
        Ok((Table::new(Self::names(), SPECIES, truth)?, Table::new(Self::observation_names(), OBSERVED, seen)?))
    }
}

/// Four standard normals; as many words of the generator whoever asks.
fn normals(rng: &mut Counter) -> [f64; 4] {
    let ([a, b], [c, d]) = (rng.normal_pair(), rng.normal_pair());
    [a, b, c, d]
}

/// The time derivatives.
fn rates(x: &Populations) -> Populations {
    std::array::from_fn(|i| {
        let pressure: f64 = COMPETITION[i].iter().zip(x).map(|(alpha, x)| alpha * x).sum();
        GROWTH[i] * x[i] * (1.0 - pressure)
    })
}

/// A unit of time in so many steps of the classical Runge-Kutta method, whose error falls with their fourth power.
fn runge_kutta(x: &Populations, substeps: u32) -> Populations {
    let h = 1.0 / f64::from(substeps);
    let moved =
        |x: &Populations, by: f64, k: &Populations| -> Populations { std::array::from_fn(|i| x[i] + by * k[i]) };
    let mut x = *x;
    for _ in 0..substeps {
        let k1 = rates(&x);
        let k2 = rates(&moved(&x, 0.5 * h, &k1));
        let k3 = rates(&moved(&x, 0.5 * h, &k2));
        let k4 = rates(&moved(&x, h, &k3));
        x = std::array::from_fn(|i| x[i] + h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &Populations, b: &Populations) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_method_has_order_four() {
        let exact = runge_kutta(&TRUE_START, 4096);
        let error = |substeps| distance(&runge_kutta(&TRUE_START, substeps), &exact);
        for substeps in [32, 64, 128] {
            let order = (error(substeps) / error(2 * substeps)).log2();
            assert!((3.9..4.2).contains(&order), "{substeps}: {order}");
        }
        let mut x = [TRUE_START; 2];
        for _ in 0..STEPS {
            x = [runge_kutta(&x[0], SUBSTEPS), runge_kutta(&x[1], 4096)];
        }
        assert!(distance(&x[0], &x[1]) < 2e-6, "{x:?}");
    }

    #[test]
    fn a_species_alone_grows_as_the_logistic_function() {
        // dx/dt = b x (1 - a x) has the solution 1 / (a + (1 / x0 - a) exp(-b t)).
        let (a, b, start) = (COMPETITION[2][2], GROWTH[2], 0.1);
        let [x1, x2, x3, x4] = runge_kutta(&[0.0, 0.0, start, 0.0], 200);
        let expected = 1.0 / (a + (1.0 / start - a) * (-b).exp());
        assert!((x3 - expected).abs() < 1e-9, "{x3} {expected}");
        assert_eq!([x1, x2, x4], [0.0; 3]);
    }

    #[test]
    fn the_fourth_species_dies_off_as_in_the_paper() {
        let (truth, seen) = LotkaVolterra::new(0.0, 0.05).unwrap().series(STEPS, 1, Start::Paper).unwrap();
        assert_eq!((truth.rows(), truth.dim(), seen.rows(), seen.dim()), (10, 4, 10, 3));
        // Of an independent program of the same equations.
        let expected = [0.003_645_74, 0.179_241_0, 0.982_757_0, 0.011_191_0];
        let wrong = truth.row(9).iter().zip(expected).map(|(x, e)| (f64::from(*x) - e).abs()).fold(0.0, f64::max);
        assert!(wrong < 2e-6, "{:?}", truth.row(9));
        let x4: Vec<f32> = truth.iter_rows().map(|row| row[3]).collect();
        assert!(x4.is_sorted_by(|a, b| a > b) && x4[0] < 0.36, "{x4:?}");
    }

    #[test]
    fn noises_have_their_deviations_and_populations_stay_positive() {
        let system = LotkaVolterra::new(0.2, 0.03).unwrap();
        let n = 20_000;
        let (mut process, mut seen) = (Vec::new(), Vec::new());
        let exact = runge_kutta(&TRUE_START, SUBSTEPS);
        for row in 0..n {
            let mut rng = Counter::for_row(3, Stream::Data, row);
            let x = system.advance(&TRUE_START, &mut rng);
            process.extend(x.iter().zip(&exact).map(|(x, e)| (x / e).ln()));
            let y = system.observe(&x, &mut rng);
            seen.extend(y.iter().zip(&x).map(|(y, x)| y - x));
            let density = system.log_likelihood(&x, &y.map(|y| y as f32));
            let normal = |(y, x): (&f64, &f64)| -0.5 * ((y - x) / 0.03f64).powi(2) - (0.03 * 2.506_628_274_6f64).ln();
            let expected: f64 = y.iter().zip(&x).map(normal).sum();
            assert!((density - expected).abs() < 1e-3, "{density} {expected}");
        }
        for (values, sigma) in [(process, 0.2), (seen, 0.03)] {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let deviation = (values.iter().map(|v| v * v).sum::<f64>() / count).sqrt();
            // Five standard errors.
            assert!(mean.abs() < 5.0 * sigma / count.sqrt(), "{mean}");
            assert!((deviation / sigma - 1.0).abs() < 5.0 / (2.0 * count).sqrt(), "{deviation}");
        }
        let wild = LotkaVolterra::new(2.0, 0.05).unwrap();
        let (truth, _) = wild.series(300, 7, Start::Guess).unwrap();
        assert!(truth.values().iter().all(|x| *x > 0.0 && x.is_finite()));
    }

    #[test]
    fn series_are_functions_of_their_seed() {
        let system = LotkaVolterra::default();
        let (long, seen) = system.series(8, 5, Start::Guess).unwrap();
        let (short, first) = system.series(3, 5, Start::Guess).unwrap();
        assert_eq!((short.values(), first.values()), (&long.values()[..12], &seen.values()[..9]));
        assert_ne!(system.series(3, 6, Start::Guess).unwrap().0, short);
        assert_ne!(system.series(3, 5, Start::Paper).unwrap().0, short);
        assert_eq!(long.columns(), ["x1", "x2", "x3", "x4"]);
        assert_eq!(seen.columns(), ["y1", "y2", "y3"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let name = |error| match error {
            Error::Argument { name, .. } => name,
            other => panic!("{other}"),
        };
        for bad in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(name(LotkaVolterra::new(bad, 0.05).unwrap_err()), "process_noise");
            assert_eq!(name(LotkaVolterra::new(0.05, bad).unwrap_err()), "observation_noise");
        }
        assert_eq!(name(LotkaVolterra::new(0.0, 0.0).unwrap_err()), "observation_noise");
        for n in [0, usize::MAX] {
            assert_eq!(name(LotkaVolterra::default().series(n, 1, Start::Paper).unwrap_err()), "n");
        }
    }
}
