//! Least squares on correlated columns: a Cholesky decomposition of their correlations that grows by a column at a time
//! and leaves out what the columns before it give.

use rayon::prelude::*;

/// A column depends on others if this share of its deviation is all that they leave.
pub(super) const TOLERANCE: f64 = 1e-3;

/// Columns of mean 0 and deviation 1 that none of the others gives, with the triangle L of their correlations L L^T.
#[derive(Default)]
pub(super) struct Basis {
    /// Which columns they are.
    pub(super) members: Vec<usize>,
    rows: Vec<Vec<f64>>,
}

impl Basis {
    /// L^-1 of the correlations of a column with the members.
    pub(super) fn solve(&self, products: &[f64]) -> Vec<f64> {
        let mut row: Vec<f64> = Vec::with_capacity(products.len());
        for (of_member, product) in self.rows.iter().zip(products) {
            let before = dot(&of_member[..row.len()], &row);
            row.push((product - before) / of_member[row.len()]);
        }
        row
    }

    /// The share of a column's variance that the members leave.
    pub(super) fn unexplained(row: &[f64]) -> f64 {
        1.0 - row.iter().map(|v| v * v).sum::<f64>()
    }

    /// L^-T of the same: the coefficients of least squares.
    pub(super) fn coefficients(&self, row: Vec<f64>) -> Vec<f64> {
        let mut coefficients = row;
        for i in (0..coefficients.len()).rev() {
            coefficients[i] /= self.rows[i][i];
            let (before, coefficient) = (&self.rows[i][..i], coefficients[i]);
            for (f, l) in coefficients.iter_mut().zip(before) {
                *f -= coefficient * l;
            }
        }
        coefficients
    }

    /// A column with its [`Basis::solve`].
    pub(super) fn push(&mut self, member: usize, mut row: Vec<f64>) {
        row.push(Self::unexplained(&row).max(TOLERANCE * TOLERANCE).sqrt());
        self.members.push(member);
        self.rows.push(row);
    }
}

/// A column brought to mean 0 and deviation 1.
struct Scaled {
    mean: f64,
    deviation: f64,
    values: Vec<f64>,
}

impl Scaled {
    /// None of a constant column.
    fn of(column: &[f64]) -> Option<Self> {
        let n = column.len() as f64;
        let mean = column.iter().sum::<f64>() / n;
        let deviation = (column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let values = column.iter().map(|v| (v - mean) / deviation).collect();
        (deviation > 0.0).then_some(Self { mean, deviation, values })
    }
}

/// Columns that others are regressed on.
pub(super) struct Regressors {
    /// None if a column is constant.
    columns: Vec<Option<Scaled>>,
    basis: Basis,
}

/// A linear function of some columns.
pub(super) struct Linear {
    pub(super) constant: f64,
    /// One for each column.
    pub(super) coefficients: Vec<f64>,
}

impl Regressors {
    /// Those of columns of as many rows each. Of few rows only the first columns take part, a tenth as many as rows: more
    /// would fit what is chance in them.
    pub(super) fn new(columns: &[Vec<f64>]) -> Self {
        let columns: Vec<Option<Scaled>> = columns.par_iter().map(|column| Scaled::of(column)).collect();
        let mut basis = Basis::default();
        for (j, column) in columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let row = basis.solve(&Self::products(&columns, &basis, column));
            if Basis::unexplained(&row) > TOLERANCE * TOLERANCE && basis.members.len() < column.values.len() / 10 {
                basis.push(j, row);
            }
        }
        Self { columns, basis }
    }

    /// The function that is nearest to a column of as many rows, by squares.
    pub(super) fn fit(&self, column: &[f64]) -> Linear {
        let mut coefficients = vec![0.0; self.columns.len()];
        let Some(column) = Scaled::of(column) else {
            return Linear { constant: column.first().copied().unwrap_or(0.0), coefficients };
        };
        let solved = self.basis.solve(&Self::products(&self.columns, &self.basis, &column));
        let mut constant = column.mean;
        for (&member, coefficient) in self.basis.members.iter().zip(self.basis.coefficients(solved)) {
            if let Some(of) = &self.columns[member] {
                coefficients[member] = coefficient * column.deviation / of.deviation;
                constant -= coefficients[member] * of.mean;
            }
        }
        Linear { constant, coefficients }
    }

    /// Correlations of a column with the members of the basis.
    fn products(columns: &[Option<Scaled>], basis: &Basis, column: &Scaled) -> Vec<f64> {
        let n = column.values.len() as f64;
        let of = |&member: &usize| columns[member].as_ref().map_or(0.0, |c| dot(&c.values, &column.values) / n);
        basis.members.par_iter().map(of).collect()
    }
}

impl Linear {
    /// Its values on some columns of as many rows.
    pub(super) fn values(&self, columns: &[Vec<f64>]) -> Vec<f64> {
        let mut values = vec![self.constant; columns.first().map_or(0, Vec::len)];
        for (&coefficient, column) in
            self.coefficients.iter().zip(columns).filter(|(coefficient, _)| **coefficient != 0.0)
        {
            values.iter_mut().zip(column).for_each(|(value, x)| *value += coefficient * x);
        }
        values
    }
}

/// The product of two vectors.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums, which a compiler may keep in one register.
    let (mut sums, fours) = ([0.0; 4], a.len() / 4 * 4);
    for (a, b) in a[..fours].chunks_exact(4).zip(b.chunks_exact(4)) {
        (0..4).for_each(|i| sums[i] += a[i] * b[i]);
    }
    let rest: f64 = a[fours..].iter().zip(&b[fours..]).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, fill_normals};

    fn normals(n: usize, row: u32) -> Vec<f64> {
        let mut values = vec![0.0; n];
        fill_normals(5, Stream::Mixing, row, 0, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    /// A linear function is found again, of columns of any scale, beside constants and copies that take no part.
    #[test]
    fn a_linear_function_is_its_own_nearest() {
        let n = 60;
        let (a, b) = (normals(n, 0), normals(n, 1));
        let b: Vec<f64> = b.iter().zip(&a).map(|(b, a)| 1e4 * (b + 0.9 * a) + 3.0).collect();
        let copy = a.iter().map(|a| 2.0 * a).collect();
        let columns = [a.clone(), vec![7.0; n], b.clone(), copy];
        let x: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 5.0 - 2.0 * a + 1e-3 * b).collect();
        let found = Regressors::new(&columns).fit(&x);
        for (got, want) in found.coefficients.iter().zip([-2.0, 0.0, 1e-3, 0.0]) {
            assert!((got - want).abs() < 1e-9, "{:?}", found.coefficients);
        }
        assert!((found.constant - 5.0).abs() < 1e-9, "{}", found.constant);
        for (got, want) in found.values(&columns).iter().zip(&x) {
            assert!((got - want).abs() < 1e-8);
        }
        let constant = Regressors::new(&columns).fit(&vec![4.0; n]);
        assert_eq!((constant.constant, constant.coefficients), (4.0, vec![0.0; 4]));
    }
}
