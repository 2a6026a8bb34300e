//! Whether the training of a step's flow came to any good. One that diverged may end with a finite loss, and with
//! samples of nothing.

use super::observed::{FAR, listed};
use super::simulated::{bounds_of, label, shown};
use super::update::{Keeper, Moment};
use crate::error::{Error, Result};

/// A sample that is outside of all simulated states by more than so many of their ranges is none of a posterior.
const WILD: f64 = 10.0;
/// The share of such samples above which the flow is none.
const MOST: f64 = 0.01;
/// Nats per column by which no training is worse than none.
const WORSE: f64 = 10.0;

/// A training that came to no good.
pub(super) fn diverged(step: u32, what: impl std::fmt::Display) -> Error {
    Error::StepDiverged { step, what: format!("the training of its flow came to no good end: {what}") }
}

/// Whether the loss of held-out simulations, before and after a training of so many columns, is that of a flow that has
/// learned, or has at least not forgotten all.
pub(super) fn has_learned(step: u32, before: Option<f64>, after: Option<f64>, columns: usize) -> Result<()> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    // A NaN is worse than anything.
    let is_worse = after.is_nan() || after > before + WORSE * columns as f64;
    if !is_worse {
        return Ok(());
    }
    Err(diverged(step, format_args!("the loss of the held-out simulations went from {before:.4} to {after:.4}")))
}

/// Whether samples of a posterior are anywhere near the simulated states. Some that are not are told, many are an error,
/// unless the observation is as far itself.
pub(super) fn are_near(
    at: &Moment<'_>,
    observed: &[f32],
    (posterior, simulated): (&[f32], &[f32]),
    beyond: f64,
    keeper: &mut dyn Keeper,
) -> Result<()> {
    let (n, names) = (at.system.state_columns(), at.system.state_names());
    let count = posterior.len() / n;
    let is_far = beyond > FAR;
    let place = |place: usize| {
        format!("{} in {} of sample {}", shown(posterior[place]), label(&names, place % n), place / n + 1)
    };
    if let Some(bad) = posterior.iter().position(|v| !v.is_finite()) {
        let from = if is_far { format!(", from the observation {}", listed(observed)) } else { String::new() };
        return Err(diverged(at.step, format_args!("it draws {}{from}", place(bad))));
    }
    let mut wild = vec![false; count];
    let mut first = None;
    for (column, bounds) in bounds_of(at.system).into_iter().enumerate() {
        // As the flow sees a column that has bounds.
        let of = |values: &'_ [f32]| -> Vec<f64> {
            values.iter().skip(column).step_by(n).map(|x| bounds.map(f64::from(*x))).collect()
        };
        let known = of(simulated);
        let (low, high) = known.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), u| (l.min(*u), h.max(*u)));
        let room = WILD * (1.0 + beyond) * (high - low);
        if !(room > 0.0 && room.is_finite()) {
            continue;
        }
        for (row, u) in of(posterior).into_iter().enumerate() {
            if !(low - room..=high + room).contains(&u) {
                wild[row] = true;
                first = first.or(Some(row * n + column));
            }
        }
    }
    let (many, Some(first)) = (wild.iter().filter(|wild| **wild).count(), first) else { return Ok(()) };
    let what = format!(
        "{many} of {count} samples of the posterior are outside of all simulated states by more than ten times the range \
         of these, as {}",
        place(first)
    );
    if many as f64 > MOST * count as f64 && !is_far {
        return Err(diverged(at.step, what));
    }
    keeper.warning(&what);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::filter::{RowRng, StateSpace};

    #[test]
    fn a_loss_that_became_much_worse_is_that_of_no_flow() {
        let fails = |before, after| has_learned(3, before, after, 2).is_err();
        assert!(
            fails(Some(1.0), Some(21.5)) && fails(Some(1.0), Some(f64::NAN)) && fails(Some(-4.0), Some(f64::INFINITY))
        );
        assert!(!fails(Some(1.0), Some(20.5)) && !fails(Some(1.0), Some(-3.0)) && !fails(None, None));
        let said = has_learned(3, Some(0.5), Some(1e9), 2).unwrap_err();
        assert!(
            matches!(said, Error::StepDiverged { step: 3, .. }) && said.to_string().starts_with("step 3: "),
            "{said}"
        );
    }

    #[test]
    fn samples_far_from_all_simulated_states_are_of_no_flow() {
        struct Said(String);
        impl Keeper for Said {
            fn warning(&mut self, text: &str) {
                self.0.push_str(text);
            }
        }
        let system = StateSpace::new(
            (2, 1),
            |_: &mut RowRng, _: &mut [f32]| {},
            |_, _: &[f32], _: &mut RowRng, _: &mut [f32]| {},
            |_, _: &[f32], _: &mut RowRng, _: &mut [f32]| {},
        );
        // The first column goes from 1 to e, so its logarithm from 0 to 1.
        let system = system.bounds(0, Some(0.0), None).names(["a", "b"]);
        let engine = Engine::cpu_with_threads(1).unwrap();
        let at = Moment { system: &system, engine: &engine, step: 4, seed: 1, names: &[] };
        let simulated = [1.0, -1.0, std::f32::consts::E, 1.0];
        let told = |x: [f32; 2], beyond: f64| {
            let posterior: Vec<f32> = [2.0, 0.0].repeat(49).into_iter().chain(x).collect();
            let mut said = Said(String::new());
            (are_near(&at, &[0.0], (&posterior, &simulated), beyond, &mut said), said.0)
        };
        for x in [[2.0, 20.5], [10f32.exp(), 0.0], [(-9.9f32).exp(), -20.5]] {
            let (result, said) = told(x, 0.0);
            assert!(result.is_ok() && said.is_empty(), "{x:?}: {said}");
        }
        for (x, column) in [([2.0, 21.5], "column 2 (`b`)"), ([1e-45, 0.0], "column 1 (`a`)"), ([f32::MAX, 0.0], "`a`")]
        {
            let (result, _) = told(x, 0.0);
            let error = result.unwrap_err().to_string();
            assert!(error.starts_with("step 4: ") && error.contains("1 of 50") && error.contains(column), "{error}");
            assert!(error.contains("sample 50"), "{error}");
            // Of an observation that is as far, it is no fault of the training.
            let (result, _) = told(x, 1e3);
            assert!(result.is_ok());
        }
        let (result, said) = told([1e30, 0.0], 2.0);
        assert!(result.is_ok() && said.contains("1 of 50"), "{said}");
        let (result, _) = told([f32::NAN, 0.0], 0.0);
        assert!(result.unwrap_err().to_string().contains("draws NaN in column 1 (`a`) of sample 50"));
    }
}
