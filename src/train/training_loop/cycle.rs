//! Falls of the learning rate: when a further one begins, and which models it may replace.

use super::TrainingLoop;
use crate::config::Train;
use crate::error::Result;
use crate::optim::Adam;
use crate::train::best::Best;

/// Nats per row by which a cycle of less decay has to be better than the one before: more than smooth tables of 500 rows
/// gained by luck, less than others gained by learning more. Of few rows the least of many losses is a lucky one.
pub(crate) const CLEARLY: f64 = 0.05;

impl TrainingLoop<'_> {
    /// Says, once, that a further cycle has begun, where one has since the last call.
    pub(crate) fn began_cycle(&mut self) -> Option<String> {
        self.began_cycle.take()
    }

    /// The cycle whose decay is in effect: of a cool-down, that of the epoch that it went back to.
    fn cycle(&self) -> u64 {
        let epoch = self.cooldown.map_or(self.position.epoch, |cooldown| cooldown.from.saturating_sub(1));
        self.schedule.cycle(epoch)
    }

    /// The optimiser with the decay of the cycle; of a cool-down, with that of the cycle that it went back to.
    pub(super) fn relaxed(&self) -> Adam {
        let relax = Train::RELAX.powf(self.cycle() as f64);
        Adam { decay: (f64::from(self.adam.decay) * relax) as f32, ..self.adam }
    }

    /// Whether the held-out rows are scored better after the epoch that ends than after any before; [`CLEARLY`] better than
    /// in the cycle before.
    pub(super) fn is_best(&self, test_loss: f64) -> bool {
        let relaxed = self.best.as_ref().is_some_and(|best| self.schedule.cycle(best.epoch - 1) < self.cycle());
        let margin = if relaxed { CLEARLY } else { 0.0 };
        Best::is_beaten(self.best.as_ref(), test_loss + margin)
    }

    /// Takes the best model where a further cycle begins with the epoch that comes.
    pub(super) fn begin_cycle(&mut self) -> Result<()> {
        let epoch = self.position.epoch;
        let begins = epoch < self.settings.epochs && epoch > 0 && self.schedule.start_of(epoch) == epoch;
        if !begins || self.cooldown.is_some() {
            return Ok(());
        }
        let best = self.best.as_ref().filter(|best| !best.weights.is_empty());
        match best {
            Some(best) => self.begin_from(&best.weights)?,
            None => self.begin_from(&self.model()?)?,
        }
        let from = match best {
            Some(best) => format!("goes on from the model of epoch {} (test loss {:.4})", best.epoch, best.test_loss),
            None => "goes on from the last model".into(),
        };
        let decay = if self.adam.decay > 0.0 { ", with a ninth of the decay" } else { "" };
        let has_to = match best {
            Some(_) => format!("; it has to be better by {CLEARLY} nats a row"),
            None => String::new(),
        };
        self.began_cycle = Some(format!(
            "cycle {} of {} of the learning rate begins with epoch {}: it {from}{decay}{has_to} (train.cycles)",
            self.schedule.cycle(epoch) + 1,
            self.schedule.cycles,
            epoch + 1
        ));
        Ok(())
    }
}
