//! How a training ended, and which model it leaves: facts for people.

use super::decision::{Cooldown, Kept};
use crate::config::{Keep, Train};

/// The end of a training and the model that it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ending {
    /// Epochs that were trained.
    pub epochs: u64,
    /// Why there were no more.
    pub end: End,
    /// The model that is left.
    pub left: Left,
}

/// Why a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It had trained all epochs.
    AllEpochs,
    /// None was better for so many epochs, of how many it might have trained.
    Stopped { patience: u64, of: u64 },
    /// None was better, and it has cooled down: for as long as was asked for, or for the epochs that were left.
    CooledDown { cooldown: Cooldown, whole: bool },
}

/// Which model a training leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    /// The last one.
    Last,
    /// That of this epoch, counted from 1, which scores the held-out rows best, with this loss.
    Best { epoch: u64, test_loss: f64, among: Among },
}

/// Which epochs the best one is the best of. Cycles of the learning rate are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// All.
    All,
    /// All, and it is one of this cycle.
    AllIn(u64),
    /// Those of this cycle, as the last one, which is given too, was not clearly better. Its losses may be lower.
    Cycle(u64, u64),
}

impl Ending {
    /// That of a training with these settings.
    pub(super) fn of(kept: &Kept, settings: &Train) -> Self {
        let &Kept { epoch, epochs, .. } = kept;
        let end = match kept.cooldown {
            Some(cooldown) => End::CooledDown { cooldown, whole: kept.stopped_early },
            None if kept.stopped_early => End::Stopped { patience: settings.patience, of: settings.epochs },
            None => End::AllEpochs,
        };
        let left = match (settings.keep, kept.test_loss) {
            (Keep::Best, Some(test_loss)) => Left::Best { epoch, test_loss, among: among(kept, settings) },
            _ => Left::Last,
        };
        Self { epochs, end, left }
    }

    /// Whether it is simply the model after all epochs, which is nothing to tell.
    pub(crate) fn is_plain(&self) -> bool {
        (self.end, self.left) == (End::AllEpochs, Left::Last)
    }
}

/// A cool-down belongs to the cycle of the model that it went back to.
fn among(kept: &Kept, settings: &Train) -> Among {
    let schedule = settings.schedule();
    let (own, last) = match kept.cooldown {
        Some(Cooldown { start, from }) => (if kept.epoch > start { from } else { kept.epoch }, start),
        None => (kept.epoch, kept.epochs),
    };
    match [own, last].map(|epoch| schedule.cycle(epoch.saturating_sub(1)) + 1) {
        [1, 1] => Among::All,
        [own, last] if own == last => Among::AllIn(own),
        [own, last] => Among::Cycle(own, last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_affine_tables;

    #[test]
    fn the_best_of_a_cycle_is_not_the_best_of_all() {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.keep, train.cycles) = (60, 0, Keep::Best, Some(2));
        let among = |epoch, cooldown| {
            let kept = Kept { epoch, epochs: 60, test_loss: Some(1.5), ll: None, stopped_early: false, cooldown };
            super::among(&kept, &train)
        };
        assert_eq!([28, 57].map(|epoch| among(epoch, None)), [Among::Cycle(1, 2), Among::AllIn(2)]);
        // A cool-down in the epochs of the second that goes on from a model of the first.
        assert_eq!(among(52, Some(Cooldown { start: 48, from: 28 })), Among::Cycle(1, 2));
        assert_eq!(among(33, Some(Cooldown { start: 29, from: 20 })), Among::All);
    }

    #[test]
    fn only_the_last_model_after_all_epochs_is_nothing_to_tell() {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.keep) = (50, 8, Keep::Best);
        let cooldown = Cooldown { start: 13, from: 5 };
        let kept = Kept { epoch: 9, epochs: 17, test_loss: Some(1.5), ll: None, stopped_early: true, cooldown: None };
        let best = Left::Best { epoch: 9, test_loss: 1.5, among: Among::All };
        let stopped = Ending { epochs: 17, end: End::Stopped { patience: 8, of: 50 }, left: best };
        assert_eq!(Ending::of(&kept, &train), stopped);
        let cooled = Kept { cooldown: Some(cooldown), ..kept };
        let end = End::CooledDown { cooldown, whole: true };
        assert_eq!(Ending::of(&cooled, &train), Ending { end, ..stopped });
        let whole = Kept { epochs: 50, stopped_early: false, ..kept };
        assert!(!Ending::of(&whole, &train).is_plain(), "the best one is left");
        assert!(Ending::of(&Kept { test_loss: None, ..whole }, &train).is_plain(), "no rows are held out");
        train.keep = Keep::Last;
        assert!(Ending::of(&whole, &train).is_plain());
        assert_eq!(Ending::of(&cooled, &train), Ending { epochs: 17, end, left: Left::Last });
    }
}
