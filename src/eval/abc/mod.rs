//! Approximate Bayesian computation by quantiles: samples of a posterior `p(x | y)` without a likelihood, from many
//! draws of the prior and the simulator (paper, section 4.3: the truth that the MMD of a conditional model is measured
//! against).
//!
//! Of a pool of draws (x, y), y simulated with the noise of the training data, those are kept whose y lie nearest to an
//! observation. The paper's authors keep 4,000 of 10^8 by the Euclidean distance of the observations as they are (and
//! leave out the very nearest, which here is kept). The accepted rows follow the posterior of an observation known to
//! within the distance of the last one, [`Accepted::tolerance`]: compare it with the noise of the observation, and take
//! a larger pool where it is not small against that.
//!
//! Two cores look at about 530,000 draws of the Lens a second for a few observations and at 420,000 for 1,000 of them:
//! 10^8 take some four minutes. Of 5 * 10^5 draws the nearest 4,000 reach as far as 0.1, twice the noise of the Lens's
//! observations, of 8 * 10^6 as far as 0.03; the distance falls with the root of the pool, to below 0.01 for the
//! authors' 10^8.
//!
//! The pool is never in memory. It passes once for any number of observations, some hundred thousand draws at a time,
//! and of a draw only y is looked at; x is made again for the draws that were kept. What is kept is a set, the nearest
//! by (distance, number of the draw), so that neither threads nor the cut into parts can change it.

mod nearest;
mod shapes;
mod store;

use std::ops::Range;

use rayon::prelude::*;

use nearest::{Nearest, Span};
pub(crate) use shapes::ShapePool;

use crate::counted::{counted, have};
use crate::error::{Error, Result};

/// Draws that the paper's authors keep, of a pool of [`PAPER_DRAWS`].
pub(crate) const PAPER_KEEP: usize = 4000;
/// Draws of the authors' pool.
pub(crate) const PAPER_DRAWS: u64 = 100_000_000;

/// Draws in memory at a time.
const SPAN: u64 = 1 << 17;
/// Draws of which [`Distance::Scaled`] takes the deviations, the first of the pool.
const SCALED_BY: u64 = 1 << 16;

/// A pool of prior draws with their simulated observations. Draw k must always be the same.
pub(crate) trait Simulator: Sync {
    /// Names data set and seed in file names: letters, digits, `-`, `_` and `.`.
    fn name(&self) -> String;
    /// N, columns of x.
    fn dim(&self) -> usize;
    /// C, columns of y.
    fn observed_dim(&self) -> usize;
    /// Writes the noisy observations of some draws, row-major (draws, C).
    fn observe(&self, draws: Range<u64>, y: &mut [f32]) -> Result<()>;
    /// Writes the x of a draw, (N).
    fn fill(&self, draw: u64, x: &mut [f32]) -> Result<()>;
}

/// A [`Simulator`] made of a function that fills rows of y and of x for a range of draws.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) struct Simulate<F> {
    /// See [`Simulator::name`].
    pub name: String,
    /// N, columns of x.
    pub dim: usize,
    /// C, columns of y.
    pub observed_dim: usize,
    /// `fill(draws, y, x)` writes rows y (draws, C) and x (draws, N).
    pub fill: F,
}

#[cfg(test)]
impl<F: Fn(Range<u64>, &mut [f32], &mut [f32]) -> Result<()> + Sync> Simulator for Simulate<F> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn observed_dim(&self) -> usize {
        self.observed_dim
    }

    fn observe(&self, draws: Range<u64>, y: &mut [f32]) -> Result<()> {
        // In parts: the x of all of them are not wanted.
        const DRAWS: usize = 1024;
        y.par_chunks_mut(DRAWS * self.observed_dim).enumerate().try_for_each(|(part, y)| {
            let first = draws.start + (part * DRAWS) as u64;
            let count = y.len() / self.observed_dim;
            (self.fill)(first..first + count as u64, y, &mut vec![0.0; count * self.dim])
        })
    }

    fn fill(&self, draw: u64, x: &mut [f32]) -> Result<()> {
        (self.fill)(draw..draw + 1, &mut vec![0.0; self.observed_dim], x)
    }
}

/// What "near" means in the space of observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Distance {
    /// Euclidean in the units of the observations, as the paper's authors have it.
    #[default]
    Euclidean,
    /// Euclidean after each column was divided by its deviation over the first 65,536 draws of the pool: for
    /// observations in different units. A column that does not vary is left as it is.
    #[cfg_attr(not(test), expect(dead_code, reason = "for observations of other simulators than the shapes"))]
    Scaled,
}

/// The settings of a pass over a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abc {
    /// Draws of the pool: numbers `0..draws`.
    pub draws: u64,
    /// Draws to keep for each observation.
    pub keep: usize,
    /// Which of them are near.
    pub distance: Distance,
}

impl Default for Abc {
    /// The paper's: 4,000 of 10^8.
    fn default() -> Self {
        Self { draws: PAPER_DRAWS, keep: PAPER_KEEP, distance: Distance::default() }
    }
}

/// Draws accepted for an observation, the nearest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accepted {
    /// N, columns of x.
    pub dim: usize,
    /// Distance of each simulated observation to the given one, ascending.
    pub distances: Vec<f32>,
    /// Rows x, row-major (keep, N): samples of the posterior.
    pub x: Vec<f32>,
}

impl Accepted {
    /// Distance of the farthest draw that was accepted.
    #[cfg(test)]
    pub(crate) fn tolerance(&self) -> f32 {
        self.distances.last().copied().unwrap_or(0.0)
    }
}

impl Abc {
    /// Accepted draws of `pool` for each of the observations, row-major (observations, C), in one pass.
    ///
    /// `progress` is told after every part how many draws have been looked at; an error of it ends the pass. Draws
    /// whose observations are not finite are never accepted.
    ///
    /// # Errors
    /// [`Error::Shape`] if `observations` has no rows or its length is not a multiple of C, [`Error::Config`] if
    /// an observation is not finite, nothing is to be kept, or the pool has fewer finite draws than are to be kept; and
    /// those of the simulator.
    pub(crate) fn run(
        &self,
        pool: &dyn Simulator,
        observations: &[f32],
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Vec<Accepted>> {
        let columns = pool.observed_dim();
        self.check(columns, observations)?;
        let scales = match self.distance {
            Distance::Euclidean => vec![1.0; columns],
            Distance::Scaled => scales(pool, SCALED_BY.min(self.draws))?,
        };
        let mut nearest: Vec<Nearest> =
            observations.chunks_exact(columns).map(|y| Nearest::new(y, &scales, self.keep)).collect();

        let mut values = Vec::new();
        let mut first = 0;
        while first < self.draws {
            let draws = first..(first + SPAN).min(self.draws);
            values.resize((draws.end - first) as usize * columns, 0.0);
            pool.observe(draws.clone(), &mut values)?;
            let span = Span::new(first, columns, &values);
            nearest.par_iter_mut().for_each(|nearest| nearest.look_at(&span));
            progress(draws.end)?;
            first = draws.end;
        }
        nearest.into_par_iter().map(|nearest| self.accept(pool, nearest)).collect()
    }

    fn check(&self, columns: usize, observations: &[f32]) -> Result<()> {
        if columns == 0 || observations.is_empty() || !observations.len().is_multiple_of(columns) {
            let rows = observations.len().checked_div(columns).unwrap_or(0);
            let what = format!("length of the observations, rows of {}", counted(columns, "value"));
            return Err(Error::Shape { what, expected: rows.max(1) * columns, got: observations.len() });
        }
        if let Some(at) = observations.iter().position(|v| !v.is_finite()) {
            let (row, column) = (at / columns + 1, at % columns + 1);
            let what = format!("row {row}, column {column} is {}; nothing is near to that", observations[at]);
            return Err(Error::argument("observations", what));
        }
        if self.keep == 0 || self.draws < self.keep as u64 {
            let what = format!("cannot keep {} of {} draws; keep at least 1 and draw more", self.keep, self.draws);
            return Err(Error::argument("keep", what));
        }
        Ok(())
    }

    /// Makes x of the draws that were kept.
    fn accept(&self, pool: &dyn Simulator, nearest: Nearest) -> Result<Accepted> {
        let kept = nearest.into_sorted();
        if kept.len() < self.keep {
            let (found, keep, draws) = (kept.len(), self.keep, self.draws);
            let what =
                format!("only {found} of {draws} draws {} finite observations, {keep} are to be kept", have(found));
            return Err(Error::argument("keep", what));
        }
        let dim = pool.dim();
        let mut x = vec![0.0; kept.len() * dim];
        if dim > 0 {
            x.par_chunks_exact_mut(dim).zip(&kept).try_for_each(|(x, (_, draw))| pool.fill(*draw, x))?;
        }
        Ok(Accepted { dim, distances: kept.iter().map(|(square, _)| square.sqrt() as f32).collect(), x })
    }
}

/// Deviations of the columns of y over the first draws.
fn scales(pool: &dyn Simulator, draws: u64) -> Result<Vec<f64>> {
    let columns = pool.observed_dim();
    let mut y = vec![0.0; draws as usize * columns];
    pool.observe(0..draws, &mut y)?;
    let deviation = |column: usize| {
        let values = || y.iter().skip(column).step_by(columns).map(|&v| f64::from(v)).filter(|v| v.is_finite());
        let count = values().count().max(1) as f64;
        let mean = values().sum::<f64>() / count;
        let deviation = (values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count).sqrt();
        if deviation > 0.0 { deviation } else { 1.0 }
    };
    Ok((0..columns).map(deviation).collect())
}

#[cfg(test)]
mod tests;
