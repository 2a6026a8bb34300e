//! The Lens: the intersection of two circles of radius r and 2r, as 20 Fourier coefficients.
//!
//! `r ~ U(1, 2)`, the centres are 2.4 r apart in a direction `~ U(0, 2 pi)`, the mean of the outline's points lies at an
//! offset with deviation 0.5 in each axis. Which points make the outline is the caller's choice, see [`Outline`].
//!
//! Row i of a seed is a function of (seed, i) alone: any number of threads, any cut into calls, and with or without
//! observations.

mod outline;

use std::f64::consts::TAU;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::outline::{Arcs, on_circle, turn, unit_points};
pub(crate) use self::outline::{CHORD, DISTANCE, HALF_CHORD, SECOND};
use super::fourier::{self, Curve, Point};
use super::table::Table;
use crate::error::{Error, Result};
use crate::rng::{Counter, Stream};

/// Fourier order of a Lens.
pub const ORDER: usize = 2;
/// Columns of a Lens.
pub const DIM: usize = 20;
/// Names of the observations: horizontal and vertical distance of the tips.
pub const OBSERVATIONS: [&str; 2] = ["d_h", "d_v"];
/// Deviation of the noise on each observation.
pub const OBSERVATION_NOISE: f64 = 1.0 / 20.0;

/// Where the radius of circle 1 is drawn from.
pub(crate) const RADIUS: Range<f64> = 1.0..2.0;
const OFFSET_DEVIATION: f64 = 0.5;

/// Which points of a Lens the Fourier transform sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outline {
    /// Both circles are regular 64-gons with a corner at angle 0; the points are the corners of their intersection,
    /// counter-clockwise. The first is circle 1's corner at angle 0 where that is on the outline, else the crossing at
    /// which circle 1's arc begins. Number and spacing of the points vary with the angle.
    #[default]
    Vertices,
    /// 64 points equally spaced in arc length, counter-clockwise, from the tip 90 degrees left of the direction from
    /// circle 1 to circle 2.
    Arc,
}

impl FromStr for Outline {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "vertices" => Ok(Self::Vertices),
            "arc" => Ok(Self::Arc),
            other => {
                Err(Error::config("data.outline", format!("`{other}` is not an outline; take \"vertices\" or \"arc\"")))
            }
        }
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Vertices => "vertices",
            Self::Arc => "arc",
        })
    }
}

/// The four parameters of a Lens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lens {
    /// Radius of circle 1; circle 2 has twice that.
    pub radius: f64,
    /// Direction from the centre of circle 1 to the centre of circle 2.
    pub angle: f64,
    /// Mean of the outline's points.
    pub offset: Point,
}

impl Lens {
    /// Draws the parameters from their distribution.
    pub fn draw(rng: &mut Counter) -> Self {
        let radius = rng.uniform(RADIUS.start, RADIUS.end);
        let angle = rng.uniform(0.0, TAU);
        let offset = rng.normal_pair().map(|z| OFFSET_DEVIATION * z);
        Self { radius, angle, offset }
    }

    /// The parameters behind a row of [`generate`].
    pub fn of_row(seed: u64, row: u64) -> Self {
        Self::draw(&mut Counter::for_row(seed, Stream::Data, row))
    }

    /// The points that the Fourier transform sees; their mean is the offset.
    pub fn points(&self, outline: Outline) -> Vec<Point> {
        let unit = unit_points(outline, on_circle(self.angle));
        let shift = self.shift(&unit);
        unit.iter().map(|p| self.place(*p, shift)).collect()
    }

    /// The true boundary as a polygon, counter-clockwise, for drawing and comparing: of [`Outline::Vertices`] the points
    /// themselves, of [`Outline::Arc`] both arcs in `segments` pieces each (at least 1), tips included.
    pub fn boundary(&self, outline: Outline, segments: usize) -> Vec<Point> {
        match outline {
            Outline::Vertices => self.points(outline),
            Outline::Arc => {
                let shift = self.shift(&unit_points(outline, on_circle(self.angle)));
                let arcs = Arcs::new();
                let segments = segments.max(1);
                let piece = |k: usize| k as f64 / segments as f64;
                let second = (0..segments).map(|k| arcs.at(arcs.second * piece(k)));
                let first = (0..segments).map(|k| arcs.at(arcs.second + arcs.first * piece(k)));
                second.chain(first).map(|p| self.place(turn(p, on_circle(self.angle)), shift)).collect()
            }
        }
    }

    /// The two crossings of the circles (for [`Outline::Arc`] the tips of the boundary): first the one 90 degrees left of
    /// the direction from circle 1 to circle 2.
    pub fn tips(&self, outline: Outline) -> [Point; 2] {
        let shift = self.shift(&unit_points(outline, on_circle(self.angle)));
        [*HALF_CHORD, -*HALF_CHORD].map(|y| self.place(turn([CHORD, y], on_circle(self.angle)), shift))
    }

    /// The row of coefficients, columns as [`fourier::column_names`] of order 2.
    pub fn coefficients(&self, outline: Outline) -> [f32; DIM] {
        let mut row = [0.0; DIM];
        fourier::coefficients_into(&self.points(outline), ORDER, &mut row);
        row
    }

    /// What moves the mean of the scaled points to the offset.
    fn shift(&self, unit: &[Point]) -> Point {
        [0, 1].map(|axis| {
            let mean = unit.iter().map(|p| p[axis]).sum::<f64>() / unit.len() as f64;
            self.offset[axis] - self.radius * mean
        })
    }

    fn place(&self, unit: Point, shift: Point) -> Point {
        [0, 1].map(|axis| self.radius * unit[axis] + shift[axis])
    }
}

/// The observations of a Lens without noise: horizontal and vertical distance of the farthest two points of its traced
/// curve. Any row of Fourier coefficients will do.
pub fn observe(row: &[f32]) -> Result<[f64; 2]> {
    let [p, q] = Curve::new(row)?.farthest_pair();
    Ok([0, 1].map(|axis| (p[axis] - q[axis]).abs()))
}

/// `n` rows of the Lens data set, beginning with row `first_row` of this seed (see [`super::TEST_FIRST_ROW`]).
pub fn generate(n: usize, seed: u64, outline: Outline, first_row: u64) -> Result<Table> {
    let mut rows = allocate(n, DIM)?;
    fill(&mut rows, seed, outline, first_row);
    Table::new(column_names(), DIM, rows)
}

/// As [`generate`], into the rows of a slice, whose length is a multiple of [`DIM`].
pub fn fill(rows: &mut [f32], seed: u64, outline: Outline, first_row: u64) {
    rows.par_chunks_exact_mut(DIM).enumerate().for_each(|(i, row)| {
        row.copy_from_slice(&Lens::of_row(seed, first_row.wrapping_add(i as u64)).coefficients(outline));
    });
}

/// Names of the columns.
pub fn column_names() -> Vec<String> {
    fourier::column_names(ORDER)
}

/// The same rows as [`generate`] and the noisy observations of each.
pub fn generate_with_observations(n: usize, seed: u64, outline: Outline, first_row: u64) -> Result<(Table, Table)> {
    let mut rows = allocate(n, OBSERVED_DIM)?;
    fill_observed(&mut rows, seed, outline, first_row)?;
    let (seen, shapes): (Vec<_>, Vec<_>) =
        rows.chunks_exact(OBSERVED_DIM).map(|row| row.split_at(OBSERVATIONS.len())).unzip();
    Ok((
        Table::new(column_names(), DIM, shapes.concat())?,
        Table::new(observation_names(), OBSERVATIONS.len(), seen.concat())?,
    ))
}

/// Columns of a row with its observations.
pub const OBSERVED_DIM: usize = OBSERVATIONS.len() + DIM;

/// Names of the observations.
pub fn observation_names() -> Vec<String> {
    OBSERVATIONS.map(String::from).to_vec()
}

/// As [`fill`], for rows of [`OBSERVED_DIM`] columns: the noisy observations of each shape, then the shape.
pub fn fill_observed(rows: &mut [f32], seed: u64, outline: Outline, first_row: u64) -> Result<()> {
    rows.par_chunks_exact_mut(OBSERVED_DIM).enumerate().try_for_each(|(i, row)| {
        let (seen, shape) = row.split_at_mut(OBSERVATIONS.len());
        let (values, coefficients) = observed_row(seed, outline, first_row.wrapping_add(i as u64))?;
        seen.copy_from_slice(&values);
        shape.copy_from_slice(&coefficients);
        Ok(())
    })
}

/// The observations of [`fill_observed`] without the shapes, in rows of as many columns as [`OBSERVATIONS`].
pub fn fill_observations(rows: &mut [f32], seed: u64, outline: Outline, first_row: u64) -> Result<()> {
    // Some rows a task: what is written is small against what a task costs.
    const ROWS: usize = 64;
    rows.par_chunks_mut(ROWS * OBSERVATIONS.len()).enumerate().try_for_each(|(task, rows)| {
        let first = first_row.wrapping_add((task * ROWS) as u64);
        rows.chunks_exact_mut(OBSERVATIONS.len()).zip(0..).try_for_each(|(row, i)| {
            row.copy_from_slice(&observed_row(seed, outline, first.wrapping_add(i))?.0);
            Ok(())
        })
    })
}

/// The noisy observations and the coefficients of a row.
fn observed_row(seed: u64, outline: Outline, row: u64) -> Result<([f32; OBSERVATIONS.len()], [f32; DIM])> {
    // The noise comes after the parameters in the row's substream, so that the shapes stay the same.
    let mut rng = Counter::for_row(seed, Stream::Data, row);
    let shape = Lens::draw(&mut rng).coefficients(outline);
    let (exact, noise) = (observe(&shape)?, rng.normal_pair());
    Ok(([0, 1].map(|axis| (exact[axis] + OBSERVATION_NOISE * noise[axis]) as f32), shape))
}

/// Zeros for `n` rows, or an error for a number that no machine holds.
fn allocate(n: usize, dim: usize) -> Result<Vec<f32>> {
    let too_many = || Error::config("n", format!("{n} rows do not fit in memory; ask for fewer"));
    if n == 0 {
        return Err(Error::config("n", "0 rows were asked for; take at least 1"));
    }
    let count = n.checked_mul(dim).ok_or_else(too_many)?;
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| too_many())?;
    values.resize(count, 0.0);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    fn lens(angle: f64) -> Lens {
        Lens { radius: 1.3, angle, offset: [0.7, -0.2] }
    }

    fn area(points: &[Point]) -> f64 {
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0])).sum()
    }

    fn distance(p: Point, q: Point) -> f64 {
        (p[0] - q[0]).hypot(p[1] - q[1])
    }

    /// Area of the intersection of two discs, the textbook's formula.
    fn area_of_discs(r: f64, s: f64, d: f64) -> f64 {
        let a = r * r * ((d * d + r * r - s * s) / (2.0 * d * r)).acos();
        let b = s * s * ((d * d + s * s - r * r) / (2.0 * d * s)).acos();
        a + b - 0.5 * ((-d + r + s) * (d + r - s) * (d - r + s) * (d + r + s)).sqrt()
    }

    #[test]
    fn boundaries_have_the_area_of_the_discs_and_run_counter_clockwise() {
        let expected = area_of_discs(1.3, 2.6, 2.4 * 1.3);
        for angle in [0.0, 0.4, 1.9, 3.3, 5.0] {
            let fine = area(&lens(angle).boundary(Outline::Arc, 2000));
            assert!((fine - expected).abs() < 1e-6 * expected, "{fine} {expected}");
            // Inscribed polygons: smaller, by about a percent.
            let polygon = area(&lens(angle).points(Outline::Vertices));
            assert!(polygon < expected && polygon > 0.985 * expected, "{polygon} {expected}");
        }
    }

    #[test]
    fn arc_points_are_equally_spaced_from_the_left_tip() {
        let shape = lens(0.8);
        let points = shape.points(Outline::Arc);
        assert_eq!(points.len(), 64);
        let [left, right] = shape.tips(Outline::Arc);
        assert!(distance(points[0], left) < 1e-12);
        // Left of the direction 0.8: the direction turned by 90 degrees.
        let [dx, dy] = on_circle(0.8 + 0.5 * PI);
        let chord = [left[0] - right[0], left[1] - right[1]];
        assert!((chord[0] * dy - chord[1] * dx).abs() < 1e-12 && chord[0] * dx + chord[1] * dy > 0.0);

        // Lengths along a fine boundary that begins at the same tip.
        let fine = shape.boundary(Outline::Arc, 20_000);
        assert!(distance(fine[0], left) < 1e-12 && distance(fine[20_000], right) < 1e-12);
        let total: f64 = fine.iter().zip(fine.iter().cycle().skip(1)).map(|(p, q)| distance(*p, *q)).sum();
        let (mut length, mut next) = (0.0, 0);
        for (p, q) in fine.iter().zip(fine.iter().cycle().skip(1)) {
            if next < 64 && length >= total * f64::from(next) / 64.0 {
                assert!(distance(*p, points[next as usize]) < 5e-4 * 1.3, "point {next}");
                next += 1;
            }
            length += distance(*p, *q);
        }
        assert_eq!(next, 64);
    }

    #[test]
    fn circles_have_the_specified_radii_and_distance() {
        // Undo placement: the corner points must lie on one of two circles 2.4 r apart.
        let shape = lens(2.2);
        for outline in [Outline::Vertices, Outline::Arc] {
            let points = shape.boundary(outline, 50);
            let [left, right] = shape.tips(outline);
            let u = on_circle(2.2);
            let middle = [0, 1].map(|axis| 0.5 * (left[axis] + right[axis]));
            let first = [0, 1].map(|axis| middle[axis] - CHORD * 1.3 * u[axis]);
            let second = [0, 1].map(|axis| first[axis] + 2.4 * 1.3 * u[axis]);
            let on_one =
                |p: &Point| (distance(*p, first) - 1.3).abs() < 1e-9 || (distance(*p, second) - 2.6).abs() < 1e-9;
            let off = points.iter().filter(|p| !on_one(p)).count();
            // The two crossings of the polygons are inside both circles.
            assert_eq!(off, if outline == Outline::Vertices { 2 } else { 0 });
            assert!(points.iter().all(|p| distance(*p, first) < 1.3 + 1e-9 && distance(*p, second) < 2.6 + 1e-9));
        }
    }

    #[test]
    fn mean_of_the_points_is_the_offset_and_a_0_of_the_row() {
        for outline in [Outline::Vertices, Outline::Arc] {
            for row in 0..50 {
                let shape = Lens::of_row(3, row);
                let points = shape.points(outline);
                let coefficients = shape.coefficients(outline);
                for axis in 0..2 {
                    let mean = points.iter().map(|p| p[axis]).sum::<f64>() / points.len() as f64;
                    assert!((mean - shape.offset[axis]).abs() < 1e-12);
                    assert!((f64::from(coefficients[5 * axis + 2]) - mean).abs() < 1e-6);
                    assert_eq!(coefficients[12 + 5 * axis], 0.0);
                }
            }
        }
    }

    #[test]
    fn traced_curve_follows_the_outline() {
        for outline in [Outline::Vertices, Outline::Arc] {
            for row in 0..20 {
                let shape = Lens::of_row(8, row);
                let fine = shape.boundary(outline, 400);
                let curve = Curve::new(&shape.coefficients(outline)).unwrap();
                let worst = curve.trace(200).into_iter().fold(0.0f64, |worst, p| {
                    worst.max(fine.iter().fold(f64::INFINITY, |near, q| near.min(distance(p, *q))))
                });
                assert!(worst < 0.2 * shape.radius, "row {row} {outline}: {worst} at radius {}", shape.radius);
            }
        }
    }

    #[test]
    fn observations_measure_the_tips() {
        for row in 0..30 {
            let shape = Lens::of_row(1, row);
            let [left, right] = shape.tips(Outline::Arc);
            let seen = observe(&shape.coefficients(Outline::Arc)).unwrap();
            for axis in 0..2 {
                let exact = (left[axis] - right[axis]).abs();
                // Order 2 rounds the tips off.
                assert!((seen[axis] - exact).abs() < 0.25 * shape.radius, "{} {exact}", seen[axis]);
            }
        }
        assert!(observe(&[0.0; 7]).is_err());
    }

    /// The farthest pair of a grid, and of a finer one around it: right to about 1e-4 along the curve.
    fn by_brute_force(curve: &Curve) -> [f64; 2] {
        let count = 600;
        let points = curve.trace(count);
        let apart = |p: &Point, q: &Point| distance(*p, *q);
        let pairs = (0..count).flat_map(|i| (0..i).map(move |j| (i, j)));
        let far = |a: &(usize, usize), b: &(usize, usize)| {
            apart(&points[a.0], &points[a.1]).total_cmp(&apart(&points[b.0], &points[b.1]))
        };
        let (i, j) = pairs.max_by(far).unwrap();
        let near = |i: usize| (-40..=40).map(move |k| curve.at((i as f64 + f64::from(k) / 40.0) / count as f64));
        let (first, second): (Vec<Point>, Vec<Point>) = (near(i).collect(), near(j).collect());
        let pairs = first.iter().flat_map(|p| second.iter().map(move |q| (p, q)));
        let (p, q) = pairs.max_by(|a, b| apart(a.0, a.1).total_cmp(&apart(b.0, b.1))).unwrap();
        [(p[0] - q[0]).abs(), (p[1] - q[1]).abs()]
    }

    #[test]
    fn observations_are_those_of_brute_force_to_a_thousandth() {
        for outline in [Outline::Vertices, Outline::Arc] {
            for row in 0..100 {
                let shape = Lens::of_row(2, row).coefficients(outline);
                let [got, want] = [observe(&shape).unwrap(), by_brute_force(&Curve::new(&shape).unwrap())];
                for axis in 0..2 {
                    let off = (got[axis] - want[axis]).abs();
                    assert!(off <= 1e-3, "{outline}, row {row}: {got:?} {want:?}");
                }
            }
        }
    }

    #[test]
    fn noise_of_observations_has_its_deviation_and_is_the_same_for_any_part_of_the_rows() {
        let n = 20_000;
        let (shapes, seen) = generate_with_observations(n, 4, Outline::Vertices, 0).unwrap();
        let exact: Vec<[f64; 2]> = shapes.iter_rows().map(|row| observe(row).unwrap()).collect();
        let noise = |axis: usize| seen.iter_rows().zip(&exact).map(move |(y, e)| f64::from(y[axis]) - e[axis]);
        for axis in 0..2 {
            let mean = noise(axis).sum::<f64>() / n as f64;
            let deviation = (noise(axis).map(|d| d * d).sum::<f64>() / n as f64).sqrt();
            assert!(mean.abs() < 5.0 * 0.05 / (n as f64).sqrt(), "{mean}");
            assert!((deviation - 0.05).abs() < 5.0 * 0.05 / (2.0 * n as f64).sqrt(), "{deviation}");
        }
        let both = noise(0).zip(noise(1)).map(|(a, b)| a * b).sum::<f64>() / n as f64;
        assert!(both.abs() < 5.0 * 0.0025 / (n as f64).sqrt(), "{both}");
        let (_, later) = generate_with_observations(5, 4, Outline::Vertices, 100).unwrap();
        assert_eq!(later.values(), &seen.values()[200..210]);
        let mut alone = vec![f32::NAN; 2 * 131];
        fill_observations(&mut alone, 4, Outline::Vertices, 70).unwrap();
        assert_eq!(alone, seen.values()[140..140 + alone.len()]);
        assert_eq!(shapes, generate(n, 4, Outline::Vertices, 0).unwrap());
    }

    #[test]
    fn parameters_have_their_distribution() {
        let n = 40_000u64;
        let shapes: Vec<Lens> = (0..n).map(|row| Lens::of_row(5, row)).collect();
        let stats = |value: fn(&Lens) -> f64| {
            let mean = shapes.iter().map(value).sum::<f64>() / n as f64;
            let variance = shapes.iter().map(|s| (value(s) - mean).powi(2)).sum::<f64>() / n as f64;
            (mean, variance.sqrt())
        };
        let check = |value: fn(&Lens) -> f64, mean: f64, deviation: f64| {
            let (got_mean, got_deviation) = stats(value);
            let error = deviation / (n as f64).sqrt();
            assert!((got_mean - mean).abs() < 5.0 * error, "{got_mean} {mean}");
            assert!((got_deviation - deviation).abs() < 5.0 * error, "{got_deviation} {deviation}");
        };
        check(|s| s.radius, 1.5, 1.0 / 12f64.sqrt());
        check(|s| s.angle, PI, TAU / 12f64.sqrt());
        check(|s| s.offset[0], 0.0, 0.5);
        check(|s| s.offset[1], 0.0, 0.5);
        assert!(shapes.iter().all(|s| (1.0..2.0).contains(&s.radius) && (0.0..TAU).contains(&s.angle)));
    }

    #[test]
    fn outline_names_round_trip() {
        for outline in [Outline::Vertices, Outline::Arc] {
            assert_eq!(outline.to_string().parse::<Outline>().unwrap(), outline);
            assert_eq!(serde_json::to_string(&outline).unwrap(), format!("\"{outline}\""));
        }
        assert_eq!(Outline::default(), Outline::Vertices);
        assert!("Arc".parse::<Outline>().unwrap_err().to_string().contains("data.outline"));
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for n in [0, usize::MAX, usize::MAX / 40] {
            let error = generate(n, 0, Outline::Arc, 0).unwrap_err();
            assert!(matches!(&error, Error::Config { key, .. } if key == "n"), "{error}");
            assert!(generate_with_observations(n, 0, Outline::Arc, 0).is_err());
        }
    }
}
