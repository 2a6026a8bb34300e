//! What a simulator gave, looked at before anything is made of it: whether it is numbers inside of the bounds of their
//! columns, and whether the observation made is one that it might have given.

use super::system::System;
use super::update::{Keeper, Moment};
use crate::data::columns::units::Bounds;
use crate::error::{Error, Result};

/// An observation beyond all simulated ones by more than so many of their ranges is far from them.
pub(super) const FAR: f64 = 1.0;
/// The share of simulated observations that are less likely than the one made, below which it is unusual.
const UNUSUAL: f64 = 0.001;
/// Weights that are worth fewer particles are worth little.
const FEW: f64 = 10.0;

/// Bounds of each column of a state.
pub(super) fn bounds_of(system: &dyn System) -> Vec<Bounds> {
    let of = |column| {
        let (lower, upper) = system.bounds(column);
        Bounds { lower, upper }
    };
    (0..system.state_columns()).map(of).collect()
}

/// What to call a column, from 0, of those that have these names or none.
pub(super) fn label(names: &[String], column: usize) -> String {
    match names.get(column) {
        Some(name) => format!("column {} (`{name}`)", column + 1),
        None => format!("column {}", column + 1),
    }
}

/// An error that names the first value of simulated rows that is no number.
pub(super) fn all_finite(step: u32, what: &str, values: &[f32], columns: usize, names: &[String]) -> Result<()> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(place) => {
            let column = label(names, place % columns);
            let what = format!("the simulator gave {} in {column} of the {what}", shown(values[place]));
            Err(Error::Simulator { step, row: Some(place / columns + 1), what })
        }
    }
}

/// An error that names the first value of simulated states that is outside of the bounds of its column, or on one if
/// that is not allowed.
pub(super) fn all_inside(step: u32, what: &str, states: &[f32], system: &dyn System, on_bounds: bool) -> Result<()> {
    let Some((place, must_be)) = outside(states, &bounds_of(system), on_bounds) else { return Ok(()) };
    let (n, names) = (system.state_columns(), system.state_names());
    let what = format!(
        "the simulator gave {} in {} of the {what}, which must be {must_be}, as the bounds of the column say; mend the \
         simulator, or begin anew with other bounds",
        shown(states[place]),
        label(&names, place % n)
    );
    Err(Error::Simulator { step, row: Some(place / n + 1), what })
}

/// The place of the first value that is outside of the bounds of its column, and what it must be.
pub(crate) fn outside(states: &[f32], bounds: &[Bounds], on_bounds: bool) -> Option<(usize, String)> {
    if bounds.iter().all(Bounds::is_none) {
        return None;
    }
    let is_inside = |x: f32, bounds: &Bounds| match on_bounds {
        false => bounds.holds(x.into()),
        // As 32-bit floats: a state that was moved onto a bound is one.
        true => bounds.lower.is_none_or(|v| x >= v as f32) && bounds.upper.is_none_or(|v| x <= v as f32),
    };
    let place = states.iter().zip(bounds.iter().cycle()).position(|(x, bounds)| !is_inside(*x, bounds))?;
    let Bounds { lower, upper } = bounds[place % bounds.len()];
    let [above, below] = if on_bounds { ["at least", "at most"] } else { ["greater than", "less than"] };
    let lower = lower.map(|bound| format!("{above} {bound}"));
    let must_be = lower.into_iter().chain(upper.map(|bound| format!("{below} {bound}"))).collect::<Vec<_>>();
    Some((place, must_be.join(" and ")))
}

/// How far an observation is outside of all simulated ones in the column in which it is furthest, in ranges of these; 0
/// if it is inside. Says so if it is far.
pub(super) fn beyond(at: &Moment<'_>, observed: &[f32], seen: &[f32], keeper: &mut dyn Keeper) -> f64 {
    let mut furthest = (0.0, 0, [0.0; 2]);
    for (column, y) in observed.iter().copied().map(f64::from).enumerate() {
        let values = || seen.iter().skip(column).step_by(observed.len()).copied().map(f64::from);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let outside = (low - y).max(y - high);
        if outside > 0.0 && outside / (high - low) > furthest.0 {
            furthest = (outside / (high - low), column, [low, high]);
        }
    }
    let (beyond, column, [low, high]) = furthest;
    if beyond > FAR {
        keeper.warning(&format!(
            "{} of the observation is {}, but all {} simulated ones lie from {} to {}: the posterior is worth \
             little, as the simulator does not explain what was seen",
            label(at.names, column),
            shown(observed[column]),
            seen.len() / observed.len(),
            shown(low as f32),
            shown(high as f32)
        ));
    }
    beyond
}

/// Says if hardly any simulation is like an observation that is not far from all of them.
pub(super) fn unusual(usual: Option<f64>, beyond: f64, keeper: &mut dyn Keeper) {
    if let Some(usual) = usual.filter(|&usual| usual < UNUSUAL && beyond <= FAR) {
        keeper.warning(&format!(
            "hardly any simulation is like this observation ({:.2} % of them are less likely): the posterior is worth \
             little; the simulator may not be one of these observations",
            100.0 * usual
        ));
    }
}

/// Says if the weights are those of few particles.
pub(super) fn few(effective: f64, particles: usize, keeper: &mut dyn Keeper) {
    if effective < FEW {
        keeper.warning(&format!(
            "the weights are worth {effective:.1} of {particles} particles: the posterior is worth little; take more, or \
             look whether the simulator explains what was seen"
        ));
    }
}

/// An observation for a message.
pub(super) fn listed(observed: &[f32]) -> String {
    const MOST: usize = 6;
    let some: Vec<String> = observed.iter().take(MOST).map(|y| shown(*y)).collect();
    format!("({}{})", some.join(", "), if observed.len() > MOST { ", ..." } else { "" })
}

/// A number, with an exponent if it would have many zeros. A 32-bit float has the digits that were written.
pub(crate) fn shown(value: f32) -> String {
    if value == 0.0 || !value.is_finite() || (1e-4..1e6).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::filter::{RowRng, StateSpace};

    /// Keeps what is said.
    #[derive(Default)]
    struct Said(Vec<String>);

    impl Keeper for Said {
        fn warning(&mut self, text: &str) {
            self.0.push(text.into());
        }
    }

    #[test]
    fn values_on_bounds_are_inside_if_they_may_be() {
        let bounds = [Bounds::default(), Bounds { lower: Some(0.7), upper: Some(2.0) }];
        let place = |x: f32, on_bounds| outside(&[9.0, 1.0, -9.0, x], &bounds, on_bounds);
        // The float that is nearest to 0.7 is less.
        for x in [0.7f32, 2.0] {
            assert_eq!((place(x, true), place(x, false).unwrap().0), (None, 3), "{x}");
        }
        assert_eq!(place(0.7f32.next_down(), true), Some((3, "at least 0.7 and at most 2".into())));
        assert_eq!(place(2.1, false), Some((3, "greater than 0.7 and less than 2".into())));
        assert_eq!(place(1.0, false), None);
        assert_eq!(outside(&[f32::NAN], &[Bounds { lower: Some(0.0), upper: None }], true).unwrap().0, 0);
    }

    #[test]
    fn observations_far_from_all_simulated_ones_are_told() {
        let system = StateSpace::new(
            (1, 2),
            |_: &mut RowRng, _: &mut [f32]| {},
            |_, _: &[f32], _: &mut RowRng, _: &mut [f32]| {},
            |_, _: &[f32], _: &mut RowRng, _: &mut [f32]| {},
        );
        let (engine, names) = (Engine::cpu_with_threads(1).unwrap(), vec!["a".to_owned(), "b".into()]);
        let at = Moment { system: &system, engine: &engine, step: 1, seed: 1, names: &names };
        let seen = [0.0, 5.0, 1.0, 5.0, 0.5, 5.0];
        let told = |observed: [f32; 2]| {
            let mut said = Said::default();
            (beyond(&at, &observed, &seen, &mut said), said.0.concat())
        };
        assert_eq!(told([0.2, 5.0]), (0.0, String::new()));
        assert_eq!(told([1.75, 5.0]), (0.75, String::new()));
        let (far, said) = told([-3.0, 5.0]);
        assert!(
            far == 3.0 && said.contains("column 1 (`a`)") && said.contains("is -3") && said.contains("0 to 1"),
            "{said}"
        );
        // All simulated ones are equal.
        let (far, said) = told([1.75, 5.5]);
        assert!(far == f64::INFINITY && said.contains("column 2 (`b`)"), "{far} {said}");
        let (_, said) = told([1e30, 5.0]);
        assert!(said.contains("is 1e30,") && said.contains("all 3 simulated"), "{said}");
        assert_eq!(listed(&[0.25, 1e30]), "(0.25, 1e30)");
    }
}
