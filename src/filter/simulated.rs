//! What a simulator gave, looked at before anything is made of it: whether it is numbers, inside of the bounds of their
//! columns.

use super::system::System;
use crate::data::columns::units::Bounds;
use crate::error::{Error, Result};

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

/// An error that names the first column of simulated states in which all are equal: a flow has no density of it, and what
/// it makes of the others is wrong, too.
pub(super) fn all_vary(step: u32, states: &[f32], columns: usize, names: &[String]) -> Result<()> {
    let is_constant = |&column: &usize| {
        let mut values = states.iter().skip(column).step_by(columns);
        values.next().is_some_and(|first| values.all(|value| value == first))
    };
    match (0..columns).find(is_constant) {
        None => Ok(()),
        Some(column) => {
            let what = format!(
                "the simulator gave {} in {} of all next states, and a flow learns nothing of a column that does not vary; \
                 begin anew with a state without it (the simulator knows its value), or with --method enkf",
                shown(states[column]),
                label(names, column)
            );
            Err(Error::Simulator { step, row: None, what })
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

    #[test]
    fn columns_that_do_not_vary_are_named() {
        let names = ["x".to_owned(), "g".into()];
        assert!(all_vary(2, &[1.0, 9.5, 2.0, 9.5, 1.0, 9.6], 2, &names).is_ok());
        let error = all_vary(2, &[1.0, 9.5, 2.0, 9.5, 1.0, 9.5], 2, &names).unwrap_err().to_string();
        assert!(error.contains("step 2") && error.contains("9.5 in column 2 (`g`)"), "{error}");
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
}
