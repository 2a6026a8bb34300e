//! Regions of highest density of points in the plane: the smallest that hold a share of them, as outlines.

use std::collections::BTreeMap;

/// Densities in the cells of a square grid.
pub(super) struct Grid {
    /// Weight of each cell, rows from the bottom, smoothed; they sum to about 1 if any point is inside.
    cells: Vec<f64>,
}

/// Cells on a side.
const SIDE: usize = 96;

/// Deviations of the curves that may smooth the cells, in cells.
const WIDTHS: [f64; 9] = [0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0];

/// Of widths that are about as good the widest is taken: outlines are to show regions, and not the luck of single points.
const ABOUT: f64 = 0.003;

impl Grid {
    /// Of points (x, y, weight), of which those between 0 and 1 in both directions count. `rows` is as how many points of equal
    /// weight they count.
    ///
    /// How much the cells are smoothed is chosen by least-squares cross-validation: a fixed width would be too wide for
    /// two narrow modes far apart, as would one from the deviation of all points.
    pub(super) fn of(points: impl Iterator<Item = [f64; 3]>, rows: f64) -> Self {
        let mut weights = vec![0.0; SIDE * SIDE];
        let place = |v: f64| (0.0..=1.0).contains(&v).then(|| ((v * SIDE as f64) as usize).min(SIDE - 1));
        for [x, y, weight] in points {
            if let (Some(x), Some(y)) = (place(x), place(y)) {
                weights[y * SIDE + x] += weight;
            }
        }
        let sum: f64 = weights.iter().sum();
        if sum > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        let all = WIDTHS.map(|width| {
            let kernel = kernel(width);
            let cells = smoothed(&weights, &kernel);
            let square: f64 = cells.iter().map(|cell| cell * cell).sum();
            // Of each point, without its own part in it.
            let own = kernel[0] * kernel[0] / rows.max(1.0);
            let at_points = weights.iter().zip(&cells).map(|(weight, cell)| weight * cell).sum::<f64>() - own;
            (square - 2.0 * at_points, cells)
        });
        let least = all.iter().map(|(score, _)| *score).fold(f64::INFINITY, f64::min);
        let is_good = |score: f64| score <= least + ABOUT * least.abs();
        let best = all.into_iter().rev().find(|(score, _)| is_good(*score));
        Self { cells: best.map_or(weights, |(_, cells)| cells) }
    }

    /// The density that the densest cells with this share of the weight have at least.
    pub(super) fn level(&self, share: f64) -> f64 {
        let mut sorted = self.cells.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let total: f64 = sorted.iter().sum();
        let mut sum = 0.0;
        let reaches = |cell: &f64| {
            sum += cell;
            sum >= share * total
        };
        sorted.iter().copied().find(reaches).unwrap_or(0.0)
    }

    /// The lines along which the density has this level, with places between 0 and 1.
    pub(super) fn outlines(&self, level: f64) -> Vec<Vec<[f64; 2]>> {
        if level.is_nan() || level <= 0.0 {
            return Vec::new();
        }
        // The middle of each cell is a corner of squares; the line crosses their sides.
        let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut places: BTreeMap<usize, [f64; 2]> = BTreeMap::new();
        for y in 0..SIDE - 1 {
            for x in 0..SIDE - 1 {
                for [from, to] in self.crossings(x, y, level) {
                    for (a, b) in [(from, to), (to, from)] {
                        places.entry(a).or_insert_with(|| self.place(a, level));
                        neighbours.entry(a).or_default().push(b);
                    }
                }
            }
        }
        // Lines that end at the edge of the grid begin at an end.
        let ends: Vec<usize> = neighbours.iter().filter(|(_, all)| all.len() == 1).map(|(&side, _)| side).collect();
        let all: Vec<usize> = neighbours.keys().copied().collect();
        let mut lines = Vec::new();
        for start in ends.into_iter().chain(all) {
            let mut line = Vec::new();
            let mut at = start;
            loop {
                line.push(places[&at]);
                let Some(next) = neighbours.get_mut(&at).and_then(Vec::pop) else { break };
                if let Some(back) = neighbours.get_mut(&next)
                    && let Some(place) = back.iter().position(|&side| side == at)
                {
                    back.swap_remove(place);
                }
                at = next;
            }
            if line.len() > 1 {
                lines.push(line);
            }
        }
        lines
    }

    /// The sides, by number, that lines through a square cross, in pairs.
    fn crossings(&self, x: usize, y: usize, level: f64) -> Vec<[usize; 2]> {
        let at = |dx: usize, dy: usize| self.cells[(y + dy) * SIDE + x + dx];
        let corners = [at(0, 0), at(1, 0), at(1, 1), at(0, 1)];
        let inside = corners.map(|corner| corner >= level);
        // From each corner to the next: below, right, above, left. Two numbers for each cell: the side to its right and that
        // upwards.
        let number = |x: usize, y: usize, up: usize| 2 * (y * SIDE + x) + up;
        let sides = [number(x, y, 0), number(x + 1, y, 1), number(x, y + 1, 0), number(x, y, 1)];
        let crossed: Vec<usize> = (0..4).filter(|&k| inside[k] != inside[(k + 1) % 4]).map(|k| sides[k]).collect();
        match crossed[..] {
            [a, b] => vec![[a, b]],
            // A saddle: whether the middle is inside decides which corners belong together.
            [a, b, c, d] => {
                let middle = corners.iter().sum::<f64>() / 4.0 >= level;
                if inside[0] == middle { vec![[a, b], [c, d]] } else { vec![[a, d], [b, c]] }
            }
            _ => Vec::new(),
        }
    }

    /// Where the density has a level on a side.
    fn place(&self, side: usize, level: f64) -> [f64; 2] {
        let (cell, up) = (side / 2, side % 2);
        let (x, y) = (cell % SIDE, cell / SIDE);
        let (from, to) = (self.cells[cell], self.cells[if up == 1 { cell + SIDE } else { cell + 1 }]);
        let share = ((level - from) / (to - from)).clamp(0.0, 1.0);
        let middle = |v: usize, moves: bool| (v as f64 + 0.5 + if moves { share } else { 0.0 }) / SIDE as f64;
        [middle(x, up == 0), middle(y, up == 1)]
    }
}

/// One side of a normal curve of this deviation, from the middle on, so that the whole of it sums to 1.
fn kernel(width: f64) -> Vec<f64> {
    let reach = (3.0 * width).ceil() as usize;
    let mut kernel: Vec<f64> = (0..=reach).map(|step| (-0.5 * (step as f64 / width).powi(2)).exp()).collect();
    let sum = 2.0 * kernel.iter().sum::<f64>() - kernel[0];
    kernel.iter_mut().for_each(|part| *part /= sum);
    kernel
}

/// The cells smoothed in both directions; what goes beyond the edge is lost.
fn smoothed(cells: &[f64], kernel: &[f64]) -> Vec<f64> {
    let mut across = vec![0.0; cells.len()];
    let mut both = vec![0.0; cells.len()];
    for (at, &cell) in cells.iter().enumerate().filter(|(_, cell)| **cell > 0.0) {
        spread(cell, at % SIDE, at - at % SIDE, 1, kernel, &mut across);
    }
    for (at, &cell) in across.iter().enumerate().filter(|(_, cell)| **cell > 0.0) {
        spread(cell, at / SIDE, at % SIDE, SIDE, kernel, &mut both);
    }
    both
}

/// Adds a cell, which is the `place`-th of a line, to those near it.
fn spread(cell: f64, place: usize, start: usize, step: usize, kernel: &[f64], to: &mut [f64]) {
    for other in place.saturating_sub(kernel.len() - 1)..=(place + kernel.len() - 1).min(SIDE - 1) {
        to[start + other * step] += cell * kernel[other.abs_diff(place)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    /// The area that closed lines go around.
    fn area(lines: &[Vec<[f64; 2]>]) -> f64 {
        let of = |line: &Vec<[f64; 2]>| {
            let pairs = line.iter().zip(line.iter().cycle().skip(1));
            pairs.map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum::<f64>().abs() / 2.0
        };
        lines.iter().map(of).sum()
    }

    fn normal(n: usize) -> Vec<[f64; 2]> {
        let mut rng = Counter::new(3, Stream::Data, 0, 0);
        (0..n).map(|_| rng.normal_pair()).map(|z| [0.5 + z[0] / 10.0, 0.5 + z[1] / 10.0]).collect()
    }

    #[test]
    fn regions_of_a_normal_distribution_are_its_circles() {
        let grid = Grid::of(normal(40_000).iter().map(|&[x, y]| [x, y, 1.0]), 40_000.0);
        for share in [0.5f64, 0.9] {
            let lines = grid.outlines(grid.level(share));
            // 1 - exp(-r^2 / 2) is inside of the circle of radius r; the smoothing widens it a little.
            let want = std::f64::consts::PI * -2.0 * (1.0 - share).ln() * 0.01;
            assert!(
                lines.len() == 1 && (area(&lines) / want - 1.0).abs() < 0.12,
                "{share}: {} of {want}",
                area(&lines)
            );
            let line = &lines[0];
            assert!(line.iter().all(|p| p.iter().all(|v| (0.0..=1.0).contains(v))));
        }
    }

    /// Modes of a hundredth of the picture: what a width by the deviation of all points would smear.
    #[test]
    fn narrow_modes_far_apart_stay_narrow() {
        let points = normal(4000).into_iter().enumerate().map(|(i, [x, y])| {
            let middle = if i % 2 == 0 { 0.2 } else { 0.8 };
            [middle + (x - 0.5) / 5.0, middle + (y - 0.5) / 5.0, 1.0]
        });
        let grid = Grid::of(points, 4000.0);
        let lines = grid.outlines(grid.level(0.9));
        let want = 2.0 * std::f64::consts::PI * -2.0 * 0.1f64.ln() * 0.0004;
        assert!(lines.len() == 2 && (area(&lines) / want - 1.0).abs() < 0.35, "{} of {want}", area(&lines));
    }

    #[test]
    fn weights_count() {
        // Every point twice as often to the right.
        let points = normal(20_000);
        let weighted = Grid::of(points.iter().map(|&[x, y]| [x, y, if x > 0.5 { 2.0 } else { 1.0 }]), 20_000.0);
        let twice = points.iter().filter(|p| p[0] > 0.5).chain(&points);
        let repeated = Grid::of(twice.map(|&[x, y]| [x, y, 1.0]), 20_000.0);
        assert!(weighted.cells.iter().zip(&repeated.cells).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn two_clouds_have_two_outlines_and_lines_end_at_the_edge() {
        let apart = normal(10_000).into_iter().enumerate().map(|(i, [x, y])| {
            let side = if i % 2 == 0 { 0.25 } else { 0.75 };
            [side + (x - 0.5) / 2.0, y, 1.0]
        });
        let grid = Grid::of(apart, 10_000.0);
        assert_eq!(grid.outlines(grid.level(0.5)).len(), 2);
        let edge = Grid::of(normal(10_000).into_iter().map(|[x, y]| [(x - 0.5).abs(), y, 1.0]), 10_000.0);
        let lines = edge.outlines(edge.level(0.5));
        assert_eq!(lines.len(), 1);
        let ends = [lines[0][0], lines[0][lines[0].len() - 1]];
        assert!(ends.iter().all(|p| p[0] < 0.05) && ends[0] != ends[1], "{ends:?}");
    }

    #[test]
    fn nothing_has_no_outline() {
        let none = Grid::of(std::iter::empty(), 0.0);
        assert!(none.outlines(none.level(0.9)).is_empty());
        let one = Grid::of([[0.5, 0.5, 1.0], [f64::NAN, 0.5, 1.0]].into_iter(), 2.0);
        assert_eq!(one.outlines(one.level(0.5)).len(), 1);
    }
}
