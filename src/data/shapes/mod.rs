//! The paper's families of shapes as data sets: rows of Fourier coefficients, with observations of each.
//!
//! Row i of a seed is a function of (seed, i) alone: any number of threads, any cut into calls, and with or without
//! observations. What a family draws is its own concern ([`lens`], [`cross`]); here are only rows.

pub(crate) mod cross;
pub(crate) mod fourier;
pub(crate) mod lens;
#[cfg(feature = "cli")]
pub(crate) mod natural;
pub(crate) mod plane;

use rayon::prelude::*;

use super::table::Table;
use crate::error::{Error, Result};
use crate::memory;
use crate::rng::{Counter, Stream};
use cross::Cross;
use lens::{Lens, Outline};
use plane::Point;

/// Deviation of the noise on each observation (paper, "Bayesian Inference on Fourier Shapes").
pub(crate) const OBSERVATION_NOISE: f64 = 1.0 / 20.0;

/// A family of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shapes {
    /// Intersections of two circles, 20 coefficients, two observations.
    Lens(Outline),
    /// Unions of two bars, 100 coefficients, four observations.
    Cross,
}

/// Room for the observations of any family.
const MOST_OBSERVATIONS: usize = 4;

impl Shapes {
    /// Fourier order M of the shapes.
    pub(crate) fn order(self) -> usize {
        match self {
            Self::Lens(_) => lens::ORDER,
            Self::Cross => cross::ORDER,
        }
    }

    /// N, the number of coefficients of a shape: 4 (2M + 1).
    pub(crate) fn dim(self) -> usize {
        fourier::dim(self.order())
    }

    /// Names of the coefficients.
    pub(crate) fn column_names(self) -> Vec<String> {
        fourier::column_names(self.order())
    }

    /// Names of the observations.
    pub(crate) fn observations(self) -> &'static [&'static str] {
        match self {
            Self::Lens(_) => &lens::OBSERVATIONS,
            Self::Cross => &cross::OBSERVATIONS,
        }
    }

    /// Names of the observations, as a table has them.
    pub(crate) fn observation_names(self) -> Vec<String> {
        self.observations().iter().copied().map(String::from).collect()
    }

    /// C + N, the number of columns of a row with its observations.
    pub(crate) fn observed_dim(self) -> usize {
        self.observations().len() + self.dim()
    }

    /// `n` rows of the data set, beginning with row `first_row` of this seed (see [`super::TEST_FIRST_ROW`]).
    ///
    /// # Errors
    /// [`Error::Config`] if no row is asked for, or more than fit in memory.
    pub(crate) fn generate(self, n: usize, seed: u64, first_row: u64) -> Result<Table> {
        let mut rows = allocate(n, self.dim())?;
        self.fill(&mut rows, seed, first_row);
        Table::new(self.column_names(), self.dim(), rows)
    }

    /// The same rows as [`Shapes::generate`] and the noisy observations of each.
    ///
    /// # Errors
    /// As [`Shapes::generate`].
    pub(crate) fn generate_with_observations(self, n: usize, seed: u64, first_row: u64) -> Result<(Table, Table)> {
        let mut rows = allocate(n, self.observed_dim())?;
        self.fill_observed(&mut rows, seed, first_row);
        let count = self.observations().len();
        let (seen, shapes): (Vec<_>, Vec<_>) =
            rows.chunks_exact(self.observed_dim()).map(|row| row.split_at(count)).unzip();
        Ok((
            Table::new(self.column_names(), self.dim(), shapes.concat())?,
            Table::new(self.observation_names(), count, seen.concat())?,
        ))
    }

    /// As [`Shapes::generate`], into the rows of a slice, whose length is a multiple of [`Shapes::dim`].
    pub(crate) fn fill(self, rows: &mut [f32], seed: u64, first_row: u64) {
        self.fill_rows(rows, seed, first_row, 0)
    }

    /// As [`Shapes::fill`], for rows [y, x] of [`Shapes::observed_dim`] columns: the noisy observations of each shape,
    /// then the shape.
    pub(crate) fn fill_observed(self, rows: &mut [f32], seed: u64, first_row: u64) {
        self.fill_rows(rows, seed, first_row, self.observations().len())
    }

    /// The observations of [`Shapes::fill_observed`] without the shapes, in rows as wide as [`Shapes::observations`]:
    /// what approximate Bayesian computation compares with an observation. Any number of rows can be streamed through
    /// one buffer by moving `first_row` on.
    pub(crate) fn fill_observations(self, rows: &mut [f32], seed: u64, first_row: u64) {
        // Some rows a task: what is written is small against what a task costs.
        const ROWS: usize = 64;
        let count = self.observations().len();
        rows.par_chunks_mut(ROWS * count).enumerate().for_each(|(task, rows)| {
            let first = first_row.wrapping_add((task * ROWS) as u64);
            for (row, i) in rows.chunks_exact_mut(count).zip(0..) {
                self.fill_row(row, &mut [], seed, first.wrapping_add(i));
            }
        });
    }

    /// The coefficients of row `row`, into a slice of [`Shapes::dim`] values.
    pub(crate) fn fill_shape(self, x: &mut [f32], seed: u64, row: u64) {
        self.fill_row(&mut [], x, seed, row);
    }

    /// The true boundary of the shape behind a row as a polygon, counter-clockwise; arcs in `segments` pieces.
    pub(crate) fn boundary(self, seed: u64, row: u64, segments: usize) -> Vec<Point> {
        match self {
            Self::Lens(outline) => Lens::of_row(seed, row).boundary(outline, segments),
            Self::Cross => Cross::of_row(seed, row).corners(),
        }
    }

    /// Rows of `count` observations and the coefficients.
    fn fill_rows(self, rows: &mut [f32], seed: u64, first_row: u64, count: usize) {
        rows.par_chunks_exact_mut(count + self.dim()).enumerate().for_each(|(i, row)| {
            let (y, x) = row.split_at_mut(count);
            self.fill_row(y, x, seed, first_row.wrapping_add(i as u64));
        });
    }

    /// Noisy observations and coefficients of a row; either may be empty if nobody looks.
    fn fill_row(self, y: &mut [f32], x: &mut [f32], seed: u64, row: u64) {
        let mut rng = Counter::for_row(seed, Stream::Data, row);
        let mut exact = [0.0; MOST_OBSERVATIONS];
        self.draw(&mut rng, x, &mut exact[..y.len()]);
        for (y, exact) in y.chunks_mut(2).zip(exact.chunks(2)) {
            // The noise comes after the parameters in the row's substream, so that the shapes stay the same.
            for ((y, exact), z) in y.iter_mut().zip(exact).zip(rng.normal_pair()) {
                *y = (exact + OBSERVATION_NOISE * z) as f32;
            }
        }
    }

    /// Draws a shape: its coefficients into `x`, and what is seen of it into `y`.
    fn draw(self, rng: &mut Counter, x: &mut [f32], y: &mut [f64]) {
        match self {
            Self::Lens(outline) => {
                let shape = Lens::draw(rng).coefficients(outline);
                if !x.is_empty() {
                    x.copy_from_slice(&shape);
                }
                // Of the curve and not of the circles, see `lens::observe`.
                if !y.is_empty() {
                    let seen =
                        lens::observe(&shape).unwrap_or_else(|e| unreachable!("a Lens has {} columns: {e}", lens::DIM));
                    y.copy_from_slice(&seen);
                }
            }
            Self::Cross => {
                let cross = Cross::draw(rng);
                if !x.is_empty() {
                    x.copy_from_slice(&cross.coefficients());
                }
                if !y.is_empty() {
                    y.copy_from_slice(&cross.observe());
                }
            }
        }
    }
}

/// Zeros for `n` rows, or an error for a number that no machine holds.
fn allocate(n: usize, dim: usize) -> Result<Vec<f32>> {
    let too_many = || Error::argument("n", format!("{n}: so many rows do not fit in memory; ask for fewer"));
    if n == 0 {
        return Err(Error::argument("n", "0 rows were asked for; take at least 1"));
    }
    let count = n.checked_mul(dim).ok_or_else(too_many)?;
    let mut values = memory::reserved(count, String::new).map_err(|_| too_many())?;
    values.resize(count, 0.0);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::TEST_FIRST_ROW;

    const FAMILIES: [Shapes; 3] = [Shapes::Lens(Outline::Vertices), Shapes::Lens(Outline::Arc), Shapes::Cross];

    #[test]
    fn sizes_and_names_fit_together() {
        for shapes in FAMILIES {
            assert_eq!(shapes.column_names().len(), shapes.dim());
            assert!(shapes.observations().len() <= MOST_OBSERVATIONS);
        }
        assert_eq!([FAMILIES[0], Shapes::Cross].map(Shapes::dim), [lens::DIM, cross::DIM]);
        assert_eq!([FAMILIES[0], Shapes::Cross].map(Shapes::observed_dim), [lens::OBSERVED_DIM, cross::OBSERVED_DIM]);
    }

    #[test]
    fn rows_are_those_of_the_drawn_shapes() {
        let rows = Shapes::Cross.generate(5, 3, 20).unwrap();
        let (same, seen) = Shapes::Cross.generate_with_observations(5, 3, 20).unwrap();
        assert_eq!(rows, same);
        for (k, (row, seen)) in (20..).zip(rows.iter_rows().zip(seen.iter_rows())) {
            let cross = Cross::of_row(3, k);
            assert_eq!(row, cross.coefficients());
            assert!(cross.observe().iter().zip(seen).all(|(a, b)| (a - f64::from(*b)).abs() < 6.0 * OBSERVATION_NOISE));
            assert_eq!(Shapes::Cross.boundary(3, k, 1), cross.corners());
        }
        let rows = Shapes::Lens(Outline::Arc).generate(1, 3, 7).unwrap();
        assert_eq!(rows.row(0), Lens::of_row(3, 7).coefficients(Outline::Arc));
    }

    #[test]
    fn any_cut_and_any_number_of_threads_give_the_same_rows() {
        type Fill = fn(Shapes, &mut [f32], u64, u64);
        type Dim = fn(Shapes) -> usize;
        let fills: [(Fill, Dim); 3] = [
            (Shapes::fill, Shapes::dim),
            (Shapes::fill_observed, Shapes::observed_dim),
            (Shapes::fill_observations, |shapes| shapes.observations().len()),
        ];
        for shapes in FAMILIES {
            for (fill, dim) in fills {
                let dim = dim(shapes);
                let first = TEST_FIRST_ROW - 5;
                let on = |threads: usize, rows: &mut [f32], first| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| fill(shapes, rows, 9, first));
                };
                let mut whole = vec![f32::NAN; 23 * dim];
                on(1, &mut whole, first);
                let mut parts = vec![f32::NAN; 23 * dim];
                let (head, tail) = parts.split_at_mut(7 * dim);
                on(3, head, first);
                on(3, tail, first + 7);
                assert_eq!(parts, whole, "{shapes:?}");
                let mut other = vec![f32::NAN; 23 * dim];
                fill(shapes, &mut other, 10, first);
                assert_ne!(other, whole, "{shapes:?}");
            }
        }
    }

    #[test]
    fn noise_is_all_that_differs_from_exact_observations() {
        let n = 20_000;
        for shapes in [FAMILIES[0], Shapes::Cross] {
            let (count, dim) = (shapes.observations().len(), shapes.observed_dim());
            let mut noisy = vec![f32::NAN; n * dim];
            shapes.fill_observed(&mut noisy, 4, 0);
            let mut alone = vec![f32::NAN; n * count];
            shapes.fill_observations(&mut alone, 4, 0);
            let mut noise = vec![0.0; n * count];
            for (i, row) in noisy.chunks_exact(dim).enumerate() {
                assert_eq!(row[..count], alone[i * count..][..count]);
                let mut shape = vec![f32::NAN; shapes.dim()];
                shapes.fill_shape(&mut shape, 4, i as u64);
                assert_eq!(row[count..], shape);
                let exact = match shapes {
                    Shapes::Lens(_) => lens::observe(&shape).unwrap().to_vec(),
                    Shapes::Cross => Cross::of_row(4, i as u64).observe().to_vec(),
                };
                for k in 0..count {
                    noise[i * count + k] = f64::from(row[k]) - exact[k];
                }
            }
            // Five standard errors of each moment; columns are independent.
            let tolerance = 5.0 * 0.05 / (n as f64).sqrt();
            for j in 0..count {
                let column = |j: usize| noise.iter().skip(j).step_by(count);
                let mean = column(j).sum::<f64>() / n as f64;
                let deviation = (column(j).map(|d| d * d).sum::<f64>() / n as f64).sqrt();
                assert!(mean.abs() < tolerance && (deviation - 0.05).abs() < tolerance, "{j}: {mean} {deviation}");
                for k in 0..j {
                    let both = column(j).zip(column(k)).map(|(a, b)| a * b).sum::<f64>() / n as f64;
                    assert!(both.abs() < 0.05 * tolerance, "{j} {k}: {both}");
                }
            }
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for shapes in FAMILIES {
            for n in [0, usize::MAX, usize::MAX / 40] {
                let error = shapes.generate(n, 0, 0).unwrap_err();
                assert!(matches!(&error, Error::Argument { name, .. } if name == "n"), "{error}");
                assert!(shapes.generate_with_observations(n, 0, 0).is_err());
            }
        }
    }
}
