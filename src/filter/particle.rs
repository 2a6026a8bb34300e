//! The bootstrap particle filter (Gordon, Salmond, Smith 1993): states move as the system does, are weighed by the
//! likelihood of what was observed, and drawn again by their weights. With many particles it is the truth that other
//! filters are held against; it needs a likelihood, which they do not.

use rayon::prelude::*;

use super::observed::{beyond, few, listed};
use super::update::{Keeper, Moment, Step, Update, forecast};
use crate::error::{Error, Result};
use crate::rng::{Counter, Stream};

/// The filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Particles {
    pub particles: usize,
}

impl Update for Particles {
    fn name(&self) -> &'static str {
        "particle"
    }

    fn members(&self) -> usize {
        self.particles
    }

    fn stream(&self) -> Stream {
        Stream::Particles
    }

    fn update(
        &mut self,
        at: &Moment<'_>,
        prior: &[f32],
        observed: &[f32],
        keeper: &mut dyn Keeper,
    ) -> Result<(Vec<f32>, Step)> {
        let n = at.system.state_columns();
        let (next, seen) = forecast(self, at, prior)?;
        let beyond = beyond(at, observed, &seen, keeper);
        drop(seen);
        let mut weights = vec![f64::NAN; next.len() / n];
        at.system.log_likelihood(at.step, observed, &next, &mut weights)?;
        let Weighed { log_mean, effective } = weigh(at.step, observed, &mut weights)?;
        few(effective, weights.len(), keeper);
        let start = Counter::new(at.seed, Stream::Resampling, at.step, 0).uniform01();
        let chosen = resample(&weights, start);
        let mut states = vec![0.0; next.len()];
        let rows = states.par_chunks_exact_mut(n).zip(&chosen);
        rows.for_each(|(state, &from)| state.copy_from_slice(&next[from as usize * n..][..n]));
        let simulations = chosen.len() as u64;
        let (log_evidence, effective, beyond) = (Some(log_mean), Some(effective), Some(beyond));
        Ok((states, Step { step: at.step, simulations, log_evidence, effective, beyond, ..Step::default() }))
    }
}

struct Weighed {
    /// Logarithm of the mean of the likelihoods.
    log_mean: f64,
    /// `(sum w)^2 / sum w^2`
    effective: f64,
}

/// Turns log-likelihoods into likelihoods relative to the largest.
fn weigh(step: u32, observed: &[f32], weights: &mut [f64]) -> Result<Weighed> {
    /// Nats that log-likelihoods must tell apart.
    const DIGITS: f64 = 0.01;
    if let Some(row) = weights.iter().position(|w| w.is_nan() || *w == f64::INFINITY) {
        let what = format!("the log-likelihood of the state is {}", weights[row]);
        return Err(Error::Simulator { step, row: Some(row + 1), what });
    }
    let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Of huge numbers nothing but rounding is left of what differs, and all weights would seem equal.
    if most == f64::NEG_INFINITY || most.abs() * f64::EPSILON > DIGITS {
        let what = format!(
            "no particle can have given the observation {}: the largest of {} log-likelihoods is {most:.3e}; look at this row \
             of the observations, or take more noise",
            listed(observed),
            weights.len()
        );
        return Err(Error::Simulator { step, row: None, what });
    }
    weights.par_iter_mut().for_each(|w| *w = (*w - most).exp());
    // One after the other, so that the sums do not depend on threads.
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    Ok(Weighed { log_mean: most + (sum / weights.len() as f64).ln(), effective: sum * sum / squares })
}

/// Systematic resampling (Kitagawa 1996): as many rows as there are weights, a row with its share of them, up to one
/// more or less. `start` is in [0, 1).
fn resample(weights: &[f64], start: f64) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let spacing = total / weights.len() as f64;
    let (mut chosen, mut row, mut sum) = (Vec::with_capacity(weights.len()), 0, weights[0]);
    for k in 0..weights.len() {
        let place = (k as f64 + start) * spacing;
        // The last row with a weight takes what rounding leaves over.
        while place >= sum && row + 1 < weights.len() {
            row += 1;
            sum += weights[row];
        }
        chosen.push(row as u32);
    }
    let last = weights.iter().rposition(|w| *w > 0.0).unwrap_or(0) as u32;
    chosen.iter_mut().for_each(|row| *row = (*row).min(last));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_drawn_as_often_as_its_weight_says() {
        let weights = [0.0, 3.0, 0.5, 0.0, 1.25, 0.25, 3.0, 0.0];
        let total: f64 = weights.iter().sum();
        for k in 0..50 {
            let chosen = resample(&weights, f64::from(k) / 50.0);
            assert_eq!(chosen.len(), weights.len());
            for (row, w) in weights.iter().enumerate() {
                let times = chosen.iter().filter(|&&c| c as usize == row).count() as f64;
                let expected = w / total * weights.len() as f64;
                assert!((times - expected).abs() < 1.0, "{row}: {times} {expected}");
            }
        }
        // What rounding leaves over goes to no row without a weight.
        assert_eq!(resample(&[0.1, 0.1, 0.1, 0.0], 1.0 - f64::EPSILON), [0, 1, 2, 2]);
    }

    #[test]
    fn weights_are_relative_to_the_best() {
        let mut weights = [-1000.0, -1000.0 + 2f64.ln(), f64::NEG_INFINITY];
        let Weighed { log_mean, effective } = weigh(1, &[0.0], &mut weights).unwrap();
        assert!((log_mean - (-1000.0)).abs() < 1e-9, "{log_mean}");
        assert!((effective - 9.0 / 5.0).abs() < 1e-12, "{effective}");
        let row = |weights: &[f64]| match weigh(7, &[1e30], &mut weights.to_vec()) {
            Err(Error::Simulator { step: 7, row, .. }) => row,
            _ => panic!("no error"),
        };
        assert_eq!(row(&[0.0, f64::NAN]), Some(2));
        assert_eq!(row(&[f64::INFINITY]), Some(1));
        assert_eq!(row(&[f64::NEG_INFINITY; 2]), None);
        // As far away as all of them are, they differ by rounding alone.
        assert_eq!(row(&[-2e62, -2e62]), None);
        let said = weigh(7, &[0.5, 1e30], &mut [-2e62, -2e62]).err().unwrap().to_string();
        assert!(said.starts_with("step 7: ") && said.contains("(0.5, 1e30)") && said.contains("-2.000e62"), "{said}");
        // Unlikely, and still to be told apart.
        assert!((weigh(7, &[1.0], &mut [-1e6, -1e6 - 1.0]).unwrap().effective - 1.648_054).abs() < 1e-4);
    }
}
