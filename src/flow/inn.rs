//! An `inn` in the units of its networks: how well it does both ways (docs/model.md, INN), and whether these are inverse
//! to each other.

use std::sync::MutexGuard;

use super::programs::{Name, PADDING};
use super::{Flow, Lanes, Loaded, Losses};
use crate::engine::Job;
use crate::error::Result;
use crate::rng::{Stream, fill_normals};

/// Rows whose discrepancy is looked at together, as in a batch of a training.
const TOGETHER: usize = 1000;

/// What an `inn` makes of some rows, in the units of its networks.
pub(crate) struct BothWays {
    /// z, row-major (B, L).
    pub(crate) z: Vec<f32>,
    /// Of each column of y the root of the mean square of what is told of x minus y.
    pub(crate) told: Vec<f64>,
    /// The largest distance of a value of x from what comes back of it.
    pub(crate) round_trip: f64,
}

impl Flow {
    /// Looks at rows y (B, C) and x (B, N) in the user's units.
    ///
    /// # Errors
    /// Those of the columns' units, [`crate::Error::DeviceLost`].
    pub(crate) fn both_ways(&self, y: &[f32], x: &[f32]) -> Result<BothWays> {
        let (n, c) = (self.spec().dim as usize, self.spec().cond_dim as usize);
        let (w, l) = (self.spec().latent_dim() as usize, self.spec().latent as usize);
        let rows = x.len() / n;
        let (y, x) = (self.units_of_conditions().inner(y)?, self.units().given(&[]).inner(x)?);
        let there = self.columns_through(Name::Forward, &self.beside(rows, &[&x], false, &[]), rows)?;
        let back = self.columns_through(Name::Inverse, &there, rows)?;
        let mut squares = vec![0.0; c];
        for (there, y) in there.chunks_exact(w).zip(y.chunks_exact(c)) {
            for ((square, told), y) in squares.iter_mut().zip(&there[w - c..]).zip(y) {
                *square += (f64::from(*told) - f64::from(*y)).powi(2);
            }
        }
        let distances = back.chunks_exact(w).zip(x.chunks_exact(n)).flat_map(|(back, x)| x.iter().zip(back));
        let distances = distances.map(|(x, back)| (f64::from(*x) - f64::from(*back)).abs());
        // A NaN is worse than anything.
        let round_trip = distances.fold(0.0, |worst: f64, d| if worst < d || d.is_nan() { d } else { worst });
        Ok(BothWays {
            z: there.chunks_exact(w).flat_map(|row| &row[w - c - l..w - c]).copied().collect(),
            told: squares.into_iter().map(|square| (square / rows as f64).sqrt()).collect(),
            round_trip,
        })
    }

    /// Sum over rows [y, x] of the loss of an `inn`, with latent vectors that are the same each time, and no noise.
    pub(crate) fn score_inn(&self, rows: &[f32], losses: Losses) -> Result<f64> {
        let columns = self.spec().row_columns() as usize;
        let mut sum = 0.0;
        for (part, rows) in rows.chunks(TOGETHER * columns).enumerate() {
            let (count, Lanes { y, x }) = self.split_rows(rows);
            let mut z = vec![0.0; count * self.spec().latent as usize];
            fill_normals(0, Stream::TrainingLatent, part as u32, 0, &mut z);
            // Padding as in training: the networks know no other.
            let mut padding = vec![0.0; count * self.spec().latent_dim() as usize];
            fill_normals(0, Stream::Padding, part as u32, 0, &mut padding);
            padding.iter_mut().for_each(|v| *v *= PADDING);
            let target = self.beside(count, &[&z, &y], true, &padding);
            let x = self.beside(count, &[&x], false, &padding);
            let losses = self.run_losses([&target, &x], losses)?.0;
            sum += losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        }
        Ok(sum)
    }

    /// Losses of rows [padding, z, y] and [x, padding], and the gradients of all weights of their mean.
    #[cfg(test)]
    pub(crate) fn inn_gradients(&self, rows: [&[f32]; 2], losses: Losses) -> Result<(Vec<f32>, Vec<f32>)> {
        let (losses, mut loaded) = self.run_losses(rows, losses)?;
        let gradients = loaded.session.gradients()?;
        Ok((losses, gradients))
    }

    /// The same losses, before another thread can run anything.
    fn run_losses(&self, [target, x]: [&[f32]; 2], losses: Losses) -> Result<(Vec<f32>, MutexGuard<'_, Loaded>)> {
        let rows = x.len() / self.spec().latent_dim() as usize;
        let mut loaded = self.loaded();
        // Not for as many samples as others: these all meet.
        let id = loaded.program(Name::InnGradients(losses), &self.plan, TOGETHER)?;
        let mut outputs = loaded.session.run(id, &Job { rows, inputs: &[target, x], ..Job::default() })?;
        Ok((outputs.swap_remove(0), loaded))
    }

    /// Rows x forth and back.
    pub(super) fn inn_round_trip(&self, x: &[f32], rows: usize) -> Result<Vec<f32>> {
        let (w, n) = (self.spec().latent_dim() as usize, self.spec().dim as usize);
        let there = self.columns_through(Name::Forward, &self.beside(rows, &[x], false, &[]), rows)?;
        let values = self.columns_through(Name::Inverse, &there, rows)?;
        Ok(values.chunks_exact(w).flat_map(|row| &row[..n]).copied().collect())
    }

    /// Rows of the model's W columns in one of its directions.
    fn columns_through(&self, way: Name, rows: &[f32], count: usize) -> Result<Vec<f32>> {
        Ok(self.run(way, &Job { rows: count, inputs: &[rows], ..Job::default() })?.swap_remove(0))
    }

    /// Rows of the model's W columns: those of all parts side by side, and before or after them columns of `padding`, which
    /// has W columns or is empty, for zeros.
    fn beside(&self, rows: usize, parts: &[&[f32]], padding_first: bool, padding_values: &[f32]) -> Vec<f32> {
        let w = self.spec().latent_dim() as usize;
        let widths: Vec<usize> = parts.iter().map(|part| part.len() / rows.max(1)).collect();
        let padding = w - widths.iter().sum::<usize>();
        let mut all = if padding_values.is_empty() { vec![0.0; rows * w] } else { padding_values.to_vec() };
        for (row, to) in all.chunks_exact_mut(w).enumerate() {
            let mut at = if padding_first { padding } else { 0 };
            for (part, width) in parts.iter().zip(&widths) {
                to[at..at + width].copy_from_slice(&part[row * width..][..*width]);
                at += width;
            }
        }
        all
    }
}
