//! Whether the observation made is one that the simulator might have given.

use super::simulated::{label, shown};
use super::update::{Keeper, Moment};

/// An observation beyond all simulated ones by more than so many of their ranges is far from them.
pub(super) const FAR: f64 = 1.0;
/// The share of simulated observations that are less likely than the one made, below which it is unusual.
const UNUSUAL: f64 = 0.001;
/// Weights that are worth fewer particles are worth little.
const FEW: f64 = 10.0;

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
