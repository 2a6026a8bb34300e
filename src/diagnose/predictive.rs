//! Whether a posterior explains its observation: what is simulated from samples of it, beside what was observed (a posterior
//! predictive check; Gelman, Meng and Stern 1996).
//!
//! The observation was used to draw the samples, so a right model's p-values are seldom small: at a level a, at most 2 a of
//! right models are found wrong (Meng 1994), and usually far fewer.

use super::{Kind, Test, smallest_of};
use crate::eval::density::TrainingRows;

/// Fewer predictions tell nothing.
pub(crate) const FEWEST: usize = 100;

/// An observation that is checked.
pub(crate) struct Checked<'a> {
    /// Names of the C columns of an observation.
    pub names: &'a [String],
    /// What was simulated, (rows, C).
    pub rows: &'a [f32],
    /// What was observed, of C columns.
    pub observed: &'a [f32],
}

impl Checked<'_> {
    /// The column that is least like its predictions, and all columns together.
    pub(crate) fn tests(&self) -> Vec<Test> {
        let all = (self.observed.len() > 1).then(|| self.together());
        std::iter::once(self.worst_column()).chain(all).collect()
    }

    fn count(&self) -> usize {
        self.rows.len() / self.observed.len()
    }

    fn worst_column(&self) -> Test {
        let (c, n) = (self.observed.len(), self.count());
        let of = |column: usize| {
            let observed = self.observed[column];
            let values = || self.rows.iter().skip(column).step_by(c);
            let below = values().filter(|&&v| v <= observed).count();
            let above = values().filter(|&&v| v >= observed).count();
            let p_value = (2.0 * tail(below.min(above), n)).min(1.0);
            (column, below.min(above), if below < above { "below" } else { "above" }, p_value)
        };
        let worst = (0..c).map(of).min_by(|a, b| a.3.total_cmp(&b.3));
        let (column, beyond, side, p_value) = worst.unwrap_or_else(|| unreachable!("an observation has columns"));
        let says = format!(
            "{} was observed as {:.4}; {beyond} of {n} predictions lie {side} that or at it",
            self.names[column], self.observed[column]
        );
        // Of several columns one is the farthest out.
        let p_value = if c == 1 { p_value } else { smallest_of(p_value, c) };
        Test::new("prediction of each column", Kind::Predictive, beyond as f64 / n as f64, p_value, says)
    }

    /// By the density of a Gaussian that is fitted to the predictions: one that is far from theirs has a low one. It is a
    /// measure of distance alone; predictions need not be Gaussian.
    fn together(&self) -> Test {
        let (c, n) = (self.observed.len(), self.count());
        let fitted = TrainingRows::fit(self.rows, c, |_, _| 0.0);
        let Some(gaussian) = fitted.gaussian() else {
            let says = "predictions are no numbers that a distance could be taken of".to_owned();
            return Test::new("prediction of all columns", Kind::Predictive, f64::NAN, f64::NAN, says);
        };
        let observed = gaussian.log_prob(self.observed, 0);
        let farther = self.rows.chunks_exact(c).filter(|row| gaussian.log_prob(row, 0) <= observed).count();
        let says = format!("{farther} of {n} predictions lie as far from the others as the observation");
        Test::new("prediction of all columns", Kind::Predictive, farther as f64 / n as f64, tail(farther, n), says)
    }
}

/// The chance that `beyond` of `n` are beyond a value; never 0, of which `n` rows cannot know.
fn tail(beyond: usize, n: usize) -> f64 {
    (beyond + 1) as f64 / (n + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, fill_normals};

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|i| format!("y{i}")).collect()
    }

    /// Rows of two columns of correlation 0.9.
    fn rows(seed: u64) -> Vec<f32> {
        let mut z = vec![0.0; 2 * 5000];
        fill_normals(seed, Stream::Data, 0, 0, &mut z);
        z.chunks_exact(2).flat_map(|z| [z[0], 0.9 * z[0] + 0.436 * z[1]]).collect()
    }

    fn p_values(observed: &[f32]) -> Vec<f64> {
        let (names, rows) = (names(2), rows(1));
        let tests = Checked { names: &names, rows: &rows, observed }.tests();
        tests.into_iter().map(|test| test.p_value).collect()
    }

    #[test]
    fn observations_like_the_predictions_are_explained() {
        assert!(p_values(&[0.3, 0.1]).into_iter().all(|p| p > 0.3), "{:?}", p_values(&[0.3, 0.1]));
        // Draws of the same distribution: a p-value below 0.05 of at most about one in twenty.
        let few = rows(2).chunks_exact(2).take(400).filter(|row| p_values(row)[1] < 0.05).count();
        assert!((8..=34).contains(&few), "{few} of 400");
    }

    #[test]
    fn observations_unlike_the_predictions_are_found() {
        let one_column = p_values(&[0.0, 5.0]);
        assert!(one_column[0] < 1e-3 && one_column[1] < 1e-3, "{one_column:?}");
        // Usual in each column, and impossible together.
        let together = p_values(&[1.5, -1.5]);
        assert!(together[0] > 0.1 && together[1] < 1e-3, "{together:?}");
        // What is no number is not explained.
        assert_eq!(p_values(&[f32::NAN, 0.0])[1], p_values(&[1e30, 0.0])[1]);
    }

    #[test]
    fn repeated_predictions_and_single_columns_are_fine() {
        let (names, rows) = (names(1), vec![3.0; 500]);
        let of = |observed: f32| Checked { names: &names, rows: &rows, observed: &[observed] }.tests();
        assert_eq!((of(3.0).len(), of(3.0)[0].p_value), (1, 1.0));
        assert!(of(3.1)[0].p_value < 0.005, "{:?}", of(3.1));
        assert!(of(3.1)[0].says.contains("0 of 500 predictions lie above"), "{:?}", of(3.1));
    }
}
