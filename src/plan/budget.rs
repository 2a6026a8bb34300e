//! Parameter budgets: the width whose parameter count is nearest to a given number (docs/model.md, Networks).

use super::lane;
use super::spec::{Mixing, Scale, Spec};
use crate::error::{Error, Result};

/// Number of trained parameters of `spec`, without making the plan.
pub(crate) fn parameters(spec: &Spec) -> u64 {
    let networks = spec.coupling.networks().len() as u64;
    let nets: u64 = lane::couplings(spec, 0)
        .iter()
        .map(|c| {
            let (i, h, o) = (u64::from(c.upper + c.given), u64::from(c.hidden), u64::from(c.outputs));
            networks * (h * (i + 1) + h * (h + 1) + o * (h + 1))
        })
        .sum();
    let reflections = if spec.mixing == Mixing::Householder { mixing_weights(spec) } else { 0 };
    nets.saturating_mul(u64::from(spec.blocks)).saturating_add(reflections)
}

/// Number of weights that a model file of `spec` holds: trained parameters and fixed mixing matrices.
pub(crate) fn stored_weights(spec: &Spec) -> u64 {
    let fixed = match spec.mixing {
        Mixing::Fixed | Mixing::Reverse | Mixing::Permutation => mixing_weights(spec),
        Mixing::Householder | Mixing::None => 0,
    };
    parameters(spec).saturating_add(fixed)
}

/// Length of the weight arena of `spec`: what the file holds and the mixing matrices that are computed.
pub(super) fn arena_len(spec: &Spec) -> u64 {
    let derived = if spec.mixing == Mixing::Householder { mixing_weights(spec) } else { 0 };
    stored_weights(spec).saturating_add(derived)
}

/// The most couplings that any column goes through in the whole model.
pub(crate) fn maps_of_a_column(spec: &Spec) -> u64 {
    let couplings = lane::couplings(spec, 0);
    let of_column = |c: u32| couplings.iter().filter(|n| (n.lower_first..n.lower_first + n.lower).contains(&c)).count();
    let most = (0..spec.latent_dim()).map(of_column).max().unwrap_or(0) as u64;
    most * u64::from(spec.blocks)
}

/// The soft clamp with which the log-scales of all affine maps that a column goes through sum up to at most `most`.
pub(crate) fn scale_within(spec: &Spec, most: f64) -> Scale {
    let each = most / maps_of_a_column(spec) as f64;
    Scale::Atan { slope: (each / std::f64::consts::FRAC_PI_2) as f32 }
}

/// Elements of all mixing matrices.
fn mixing_weights(spec: &Spec) -> u64 {
    let mixes = (0..spec.blocks).filter(|&b| spec.block_has_mixing(b)).count() as u64;
    let of_block = lane::lanes(spec, 0).iter().map(|lane| u64::from(lane.dim) * u64::from(lane.dim)).sum::<u64>();
    mixes * of_block
}

/// The width at which `spec` has as close to `budget` trained parameters as possible; the narrower one on a tie.
///
/// # Errors
/// [`Error::Config`] if even width 1 has more than twice the budget.
pub(crate) fn width_for(spec: &Spec, budget: u64) -> Result<u32> {
    let count = |width| parameters(&Spec { width, ..spec.clone() });
    if count(1) > budget.saturating_mul(2) {
        return Err(Error::config(
            "model.budget",
            format!("{budget} is too small: even width 1 has {} parameters", count(1)),
        ));
    }
    // The count grows with the width, so bisect to the last width within the budget.
    let (mut low, mut high) = (1, 1 << 16);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if count(middle) <= budget { low = middle } else { high = middle }
    }
    let over = count(high).abs_diff(budget);
    Ok(if over < count(low).abs_diff(budget) { high } else { low })
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Spline, Transform};
    use super::super::{Kind, Plan};
    use super::*;

    #[test]
    fn count_is_the_plans() {
        for dim in [1, 2, 3, 7, 20, 33] {
            for depth in [0, 1, 99] {
                let mixings = [Mixing::None, Mixing::Fixed, Mixing::Householder, Mixing::Reverse];
                let couplings = [Transform::Affine, Transform::Spline(Spline::default())];
                for (mixing, coupling) in mixings.into_iter().flat_map(|m| couplings.map(|c| (m, c))) {
                    for (kind, cond_dim) in [(Kind::Flow, 0), (Kind::Cinn, 1), (Kind::Hint, 1), (Kind::Hint, 9)] {
                        let spec = Spec {
                            dim,
                            depth: depth.into(),
                            mixing,
                            kind,
                            cond_dim,
                            blocks: 3,
                            width: 21,
                            ..Spec::default()
                        };
                        let spec = Spec { mix_first: false, coupling, ..spec };
                        let layout = Plan::new(&spec).unwrap().layout;
                        assert_eq!(parameters(&spec), layout.trained as u64);
                        assert_eq!(stored_weights(&spec), layout.tensors.iter().map(|t| t.len() as u64).sum::<u64>());
                        assert_eq!(arena_len(&spec), layout.len() as u64);
                    }
                }
            }
        }
    }

    #[test]
    fn a_column_goes_through_one_map_a_level() {
        let maps =
            |dim, depth: u32, blocks| maps_of_a_column(&Spec { dim, depth: depth.into(), blocks, ..Spec::default() });
        assert_eq!([maps(20, 99, 2), maps(20, 0, 2), maps(1, 99, 3), maps(8, 1, 1)], [8, 2, 3, 2]);
        let hint = Spec { kind: Kind::Hint, dim: 8, cond_dim: 2, blocks: 1, ..Spec::default() };
        assert_eq!(maps_of_a_column(&hint), 4);
    }

    #[test]
    fn widths_of_the_reference_table() {
        let spec = Spec { dim: 20, blocks: 1, mixing: Mixing::Householder, mix_first: false, ..Spec::default() };
        let width = |spec: &Spec| width_for(spec, 100_000).unwrap();
        assert_eq!(width(&Spec { blocks: 2, ..spec.clone() }), 104);
        assert_eq!(width(&Spec { depth: 0.into(), ..spec.clone() }), 213);
        assert!(width(&spec).abs_diff(152) <= 1);
        assert!(width_for(&spec, 10).is_err());
    }
}
