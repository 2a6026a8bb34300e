//! Measures of models of simulated shapes.
//!
//! A true shape that is fitted to a sample may have any size, as in the fits of the paper's appendix.

use std::path::Path;

use super::{Protocol, Scores, Tell, mean_discrepancy, not_finite};
use crate::config::Config;
use crate::data::{POOL_FIRST_ROW, Shapes, TEST_FIRST_ROW};
use crate::error::Result;
use crate::eval::abc::{Abc, Accepted, Distance, ShapePool};
use crate::eval::correlation::Correlation;
use crate::eval::fit::{Likenesses, Rules};
use crate::flow::Flow;
use crate::plan::Kind;
use crate::train::add_test_noise;

/// Rows x of the test set, row-major, as held-out rows are scored: with the noise of the settings, which samples of a
/// model that was trained with it have too. Without it the data would be more correlated than any such model: the small
/// coefficients of a Cross are not larger than the noise. With `observed` also the observations of each row.
pub(crate) fn held_out(
    shapes: Shapes,
    config: &Config,
    rows: usize,
    observed: bool,
) -> Result<(Vec<f32>, Option<Vec<f32>>)> {
    let (mut x, y) = if observed {
        let (x, y) = shapes.generate_with_observations(rows, config.data.seed, TEST_FIRST_ROW)?;
        (x.into_values(), Some(y.into_values()))
    } else {
        (shapes.generate(rows, config.data.seed, TEST_FIRST_ROW)?.into_values(), None)
    };
    add_test_noise(&mut x, config);
    Ok((x, y))
}

/// Samples that are drawn between two words about how far it is, which may stop it.
const TOLD_EVERY: usize = 50_000;

/// A model of shapes and what it is measured on.
pub(super) struct Subject<'a> {
    pub(super) flow: &'a Flow,
    pub(super) shapes: Shapes,
    pub(super) config: &'a Config,
    pub(super) protocol: &'a Protocol,
}

impl Subject<'_> {
    /// Adds to `scores` what can be said of shapes.
    pub(super) fn measure(&self, scores: Scores, store: &Path, tell: &mut Tell<'_>) -> Result<Scores> {
        let dim = self.shapes.dim();
        let conditional = self.flow.spec().kind != Kind::Flow;

        let (data, seen) = held_out(self.shapes, self.config, self.protocol.correlated, conditional)?;
        let samples = self.samples(seen.as_deref(), tell)?;
        let broken = not_finite(&samples, dim);
        let correlation = |rows: &[f32]| Correlation::of(rows, dim);
        // Of a model whose samples are no numbers there is nothing to compare.
        let corr = match samples.len() / dim - broken {
            0 | 1 => None,
            _ => correlation(&data)?.mean_abs_difference(&correlation(&samples)?)?,
        };

        tell(&format!("fits of {} shapes", self.protocol.fitted))?;
        let likenesses = Likenesses::of(&samples[..self.protocol.fitted * dim], dim, self.shapes, Rules::AnySize)?;
        let likeness = likenesses.mean();
        drop((data, samples));

        let (mmd, skipped) = match conditional {
            true => self.posterior_mmd(store, tell)?,
            // They are the samples above, which are counted already, as far as those reach.
            false => (self.prior_mmd(tell)?, 0),
        };
        Ok(Scores {
            mmd,
            iou: likeness.map(|l| l.iou),
            hausdorff: likeness.map(|l| l.hausdorff),
            corr,
            not_finite: broken + skipped,
            ..scores
        })
    }

    /// As many samples as are correlated, one for each row of observations `seen` where there are some.
    fn samples(&self, seen: Option<&[f32]>, tell: &mut Tell<'_>) -> Result<Vec<f32>> {
        let rows = self.protocol.correlated;
        let mut samples = Vec::with_capacity(rows * self.shapes.dim());
        for first in (0..rows).step_by(TOLD_EVERY) {
            tell(&format!("samples and correlations: {first} of {rows} rows"))?;
            let part = first..rows.min(first + TOLD_EVERY);
            samples.extend(match seen {
                None => self.flow.sample_from(part.len(), self.seed(), first as u64)?,
                Some(seen) => {
                    let dim = seen.len() / rows;
                    let seen = &seen[part.start * dim..part.end * dim];
                    self.flow.given(seen)?.numbered_from(first as u32).sample(1, self.seed())?
                }
            });
        }
        Ok(samples)
    }

    /// Seed of the samples.
    fn seed(&self) -> u64 {
        self.config.train.seed
    }

    /// Discrepancy of samples from the data.
    fn prior_mmd(&self, tell: &mut Tell<'_>) -> Result<Option<f64>> {
        let Protocol { batches, batch_rows, .. } = *self.protocol;
        let dim = self.shapes.dim();
        let (mean, _) = mean_discrepancy(batches, dim, |k| {
            tell(&format!("MMD: batch {} of {batches}", k + 1))?;
            let first = (k * batch_rows) as u64;
            let mut data = vec![0.0; batch_rows * dim];
            self.shapes.fill(&mut data, self.config.data.seed, TEST_FIRST_ROW + first);
            Ok((self.flow.sample_from(batch_rows, self.seed(), first)?, data))
        })?;
        Ok(mean)
    }

    /// Discrepancy of samples given an observation from accepted draws, averaged over observations of the test set
    /// (paper, "Bayesian Inference on Fourier Shapes").
    fn posterior_mmd(&self, store: &Path, tell: &mut Tell<'_>) -> Result<(Option<f64>, usize)> {
        let Protocol { batches, batch_rows, draws, .. } = *self.protocol;
        if batches == 0 {
            return Ok((None, 0));
        }
        let observed = self.shapes.observations().len();
        let mut observations = vec![0.0; batches * observed];
        self.shapes.fill_observations(&mut observations, self.config.data.seed, TEST_FIRST_ROW);
        let pool = ShapePool { shapes: self.shapes, seed: self.config.data.seed, first_row: POOL_FIRST_ROW };
        let abc = Abc { draws, keep: batch_rows, distance: Distance::Euclidean };
        tell(&format!("ABC: {draws} draws"))?;
        let accepted: Vec<Accepted> = abc.run_stored(store, &pool, &observations, &mut |done| {
            tell(&format!("ABC: {:.0} % of {draws} draws", 100.0 * done as f64 / draws as f64))
        })?;
        mean_discrepancy(batches, self.shapes.dim(), |k| {
            tell(&format!("MMD: observation {} of {batches}", k + 1))?;
            let y = &observations[k * observed..][..observed];
            let samples = self.flow.given(y)?.numbered_from(k as u32).sample(batch_rows, self.seed())?;
            Ok((samples, accepted[k].x.clone()))
        })
    }
}
