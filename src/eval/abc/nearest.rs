//! The draws nearest to an observation, found in one pass and in bounded memory.

use std::cmp::Ordering;

/// Draws compared at a time, without a branch for each.
const LANES: usize = 16;

/// Observations of consecutive draws, in columns.
pub(super) struct Span {
    /// Number of the first draw.
    first: u64,
    columns: usize,
    /// Columns of [`LANES`] draws, one after the other. What is beyond the last draw is NaN, and near to nothing.
    blocks: Vec<[f32; LANES]>,
}

impl Span {
    /// Rows of `columns` values.
    pub(super) fn new(first: u64, columns: usize, values: &[f32]) -> Self {
        let blocks = values.chunks(LANES * columns).flat_map(|rows| {
            (0..columns).map(move |column| {
                let mut block = [f32::NAN; LANES];
                rows.iter().skip(column).step_by(columns).zip(&mut block).for_each(|(value, place)| *place = *value);
                block
            })
        });
        Self { first, columns, blocks: blocks.collect() }
    }
}

/// The draws nearest to one observation among those seen so far.
///
/// A list of up to twice as many as are kept, cut down to the nearest whenever it is full: the same as a heap, and a
/// push costs nothing.
pub(super) struct Nearest {
    target: Vec<f64>,
    /// Factors of the squared differences.
    weights: Vec<f64>,
    keep: usize,
    /// No draw whose squared distance is not below this can be among the nearest.
    limit: f64,
    /// Squared distance and number of draws.
    candidates: Vec<(f64, u64)>,
}

impl Nearest {
    /// None yet. `scales` are what differences are divided by.
    pub(super) fn new(target: &[f32], scales: &[f64], keep: usize) -> Self {
        Self {
            target: target.iter().map(|&v| f64::from(v)).collect(),
            weights: scales.iter().map(|scale| 1.0 / (scale * scale)).collect(),
            keep,
            limit: f64::INFINITY,
            candidates: Vec::new(),
        }
    }

    /// Takes notice of some draws; their numbers must be larger than those of all before.
    pub(super) fn look_at(&mut self, span: &Span) {
        let mut number = span.first;
        for block in span.blocks.chunks_exact(span.columns) {
            let mut squares = [0.0f64; LANES];
            for ((column, target), weight) in block.iter().zip(&self.target).zip(&self.weights) {
                for (square, value) in squares.iter_mut().zip(column) {
                    let difference = f64::from(*value) - target;
                    *square += weight * (difference * difference);
                }
            }
            // Draws far away are most of them: one comparison for all.
            if squares.iter().fold(false, |any, &square| any | (square < self.limit)) {
                for (square, draw) in squares.into_iter().zip(number..) {
                    // False for NaN. A draw as far away as the limit comes after those that set it.
                    if square < self.limit {
                        self.push(square, draw);
                    }
                }
            }
            number += LANES as u64;
        }
    }

    fn push(&mut self, square: f64, draw: u64) {
        self.candidates.push((square, draw));
        if self.candidates.len() >= 2 * self.keep {
            self.cut();
        }
    }

    /// Drops all but the nearest.
    fn cut(&mut self) {
        if self.candidates.len() < self.keep {
            return;
        }
        let (_, last, _) = self.candidates.select_nth_unstable_by(self.keep - 1, by_distance);
        self.limit = last.0;
        self.candidates.truncate(self.keep);
    }

    /// The nearest, by distance and then by number.
    pub(super) fn into_sorted(mut self) -> Vec<(f64, u64)> {
        self.cut();
        self.candidates.sort_unstable_by(by_distance);
        self.candidates
    }
}

fn by_distance(a: &(f64, u64), b: &(f64, u64)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}
