//! The paper's species as a system to filter.

use rayon::prelude::*;

use super::closures::for_rows;
use super::system::{Draws, System};
use crate::data::lotka_volterra::{LotkaVolterra, OBSERVED, Populations, SPECIES};
use crate::error::Result;

impl System for LotkaVolterra {
    fn state_columns(&self) -> usize {
        SPECIES
    }

    fn observation_columns(&self) -> usize {
        OBSERVED
    }

    fn state_names(&self) -> Vec<String> {
        Self::names()
    }

    fn bounds(&self, _: usize) -> (Option<f64>, Option<f64>) {
        (Some(0.0), None)
    }

    fn start(&self, draws: Draws, states: &mut [f32]) -> Result<()> {
        states.par_chunks_exact_mut(SPECIES).enumerate().for_each(|(row, state)| {
            let x = Self::guess(draws.row(row as u32).counter());
            state.iter_mut().zip(x).for_each(|(to, x)| *to = x as f32);
        });
        Ok(())
    }

    fn advance(&self, _: u32, draws: Draws, states: &[f32], next: &mut [f32], seen: &mut [f32]) -> Result<()> {
        for_rows([SPECIES, OBSERVED], states, next, seen, |row, x, next, y| {
            let mut rng = draws.row(row);
            let x = LotkaVolterra::advance(self, &populations(x), rng.counter());
            next.iter_mut().zip(x).for_each(|(to, x)| *to = x as f32);
            if !y.is_empty() {
                let seen = self.observe(&x, rng.counter());
                y.iter_mut().zip(seen).for_each(|(to, y)| *to = y as f32);
            }
        });
        Ok(())
    }

    fn log_likelihood(&self, _: u32, observed: &[f32], states: &[f32], log_likelihood: &mut [f64]) -> Result<()> {
        let rows = states.par_chunks_exact(SPECIES).zip(log_likelihood);
        rows.for_each(|(x, density)| *density = LotkaVolterra::log_likelihood(self, &populations(x), observed));
        Ok(())
    }
}

fn populations(row: &[f32]) -> Populations {
    std::array::from_fn(|i| f64::from(row[i]))
}
