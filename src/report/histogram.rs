//! Histograms of single columns, as densities.

use plotters::prelude::*;

use super::page::Page;
use super::panel::{Axis, Panel};

/// Share of the weights per unit in equal bins from end to end of the axis; as many bins as suit `rows` values. Values
/// come with their weights.
pub(super) fn density(values: impl Iterator<Item = (f64, f64)>, axis: Axis, rows: f64) -> Vec<f64> {
    let bins = ((2.0 * rows.cbrt()) as usize).clamp(8, 50);
    let mut counts = vec![0.0; bins];
    let mut total = 0.0f64;
    for (value, weight) in values {
        total += weight;
        let place = axis.place(value);
        if (0.0..=1.0).contains(&place) {
            counts[((place * bins as f64) as usize).min(bins - 1)] += weight;
        }
    }
    let total = if total > 0.0 { total } else { 1.0 };
    let unit = total * (axis.high - axis.low) / bins as f64;
    counts.iter().map(|c| c / unit).collect()
}

/// The panel for some densities over one axis, with room above the highest.
pub(super) fn panel(frame: super::page::Rect, x: Axis, densities: &[Vec<f64>]) -> Panel {
    let highest = densities.iter().flatten().copied().fold(0.0, f64::max);
    Panel {
        frame,
        x,
        y: Axis { low: 0.0, high: if highest > 0.0 { 1.08 * highest } else { 1.0 }, log: false, whole: false },
    }
}

/// Draws a density as steps, its area filled or not.
pub(super) fn steps(page: &mut Page<'_>, panel: &Panel, density: &[f64], color: RGBColor, filled: bool) {
    let x = panel.x;
    let bin = (x.high - x.low) / density.len() as f64;
    let edge = |n: usize| panel.at(x.low + n as f64 * bin, 0.0)[0];
    let mut steps = vec![panel.at(x.low, 0.0)];
    for (n, &d) in density.iter().enumerate() {
        let top = panel.at(x.low, d)[1];
        steps.extend([[edge(n), top], [edge(n + 1), top]]);
    }
    steps.push(panel.at(x.high, 0.0));
    if filled {
        page.area(&steps, color.mix(0.18));
    }
    page.line(&steps, color.to_rgba(), 1.3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_has_the_area_of_what_is_in_the_picture() {
        let axis = Axis { low: 0.0, high: 4.0, log: false, whole: false };
        let area = |d: &[f64]| d.iter().sum::<f64>() * 4.0 / d.len() as f64;
        let d = density([0.5, 1.5, 3.9, 4.0, 9.0].into_iter().map(|v| (v, 1.0)), axis, 5.0);
        assert!((area(&d) - 0.8).abs() <= 1e-12, "{d:?}");
        let weighted = density([(0.5, 3.0), (9.0, 1.0)].into_iter(), axis, 2.0);
        assert!((area(&weighted) - 0.75).abs() <= 1e-12, "{weighted:?}");
        assert_eq!(density([(0.5, 0.0)].into_iter(), axis, 1.0).iter().sum::<f64>(), 0.0);
    }
}
