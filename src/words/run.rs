//! The course of a run: what it tells besides its numbers, and how it ended.

use std::fmt;

use crate::counted::counted;
use crate::train::BeganCycle;
use crate::train::CLEARLY;
use crate::train::ending::{Among, End, Ending, Left};
use crate::train::run::{AlreadyFinished, Told};
use crate::train::verdict::Worse;

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(found) => found.fmt(f),
            Self::Chose(chose) => chose.fmt(f),
            Self::PassedOver(error) => write!(f, "{error}; going on from the one before it"),
            Self::NoCheckpoint => f.write_str("there is no checkpoint yet: starting from the beginning"),
            Self::OtherDevice { before, now } => write!(
                f,
                "the run began on {} ({}) and goes on on {} ({}): the result will differ in the last bits",
                before.engine, before.arithmetic, now.engine, now.arithmetic
            ),
            Self::MetricsLack(epochs) => {
                write!(f, "metrics.csv lacks lines up to epoch {epochs}; later epochs are written after the gap")
            }
            Self::AllWarmUp { epochs, factor, warmup_epochs } => write!(
                f,
                "the whole training is warm-up ({}), with {factor} of the learning rate: take more epochs, or fewer \
                 train.warmup_epochs ({warmup_epochs})",
                count(*epochs)
            ),
            Self::WentBack(back) => back.fmt(f),
            Self::BeganCycle(cycle) => cycle.fmt(f),
            Self::LostDigits(lost) => write!(
                f,
                "train.memory = \"reversible\" has lost digits: a row comes back from decode(encode(x)) {lost:.1e} of its size \
                 away, so gradients may be as wrong; take train.memory = \"stored\", fewer blocks, or model.scale = \"atan\" \
                 where it is \"exp\""
            ),
            Self::LeftOut(updates) => {
                write!(f, "updates left out, since their gradient was not finite: {updates} (train.clip_norm)")
            }
            Self::Ended(ending) => ending.fmt(f),
            Self::Worse(worse) => worse.fmt(f),
            Self::AlreadyFinished(finished) => finished.fmt(f),
            Self::NotDrawn(error) => {
                write!(f, "not all pictures could be drawn: {error}; to try again, resume the run")
            }
            Self::NoDensity(error) => write!(f, "the densities could not be looked at: {error}"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

impl fmt::Display for BeganCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cycle, of, epoch, .. } = self;
        write!(f, "cycle {cycle} of {of} of the learning rate begins with epoch {epoch}: it ")?;
        match &self.from {
            Some(best) => {
                write!(f, "goes on from the model of epoch {} (test loss {:.4})", best.epoch, best.test_loss)?
            }
            None => f.write_str("goes on from the last model")?,
        }
        if self.decays {
            f.write_str(", with a ninth of the decay")?;
        }
        if self.from.is_some() {
            write!(f, "; it has to be better by {CLEARLY} nats a row")?;
        }
        f.write_str(" (train.cycles)")
    }
}

/// Of a plain one there is nothing to tell.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs = self.epochs;
        let mut parts = Vec::new();
        match self.end {
            End::AllEpochs => {}
            End::Stopped { patience, of } => parts.push(format!(
                "stopped after epoch {epochs} of {of}: no better score of the held-out rows in {} (train.patience)",
                count(patience)
            )),
            End::CooledDown { cooldown, whole } => parts.push(format!(
                "no better score of the held-out rows in {} after epoch {} (train.patience), so went back to its model and \
                 cooled down in {} ({})",
                count(cooldown.start - cooldown.from),
                cooldown.from,
                count(epochs - cooldown.start),
                if whole { "train.cooldown" } else { "those that were left of train.epochs" }
            )),
        }
        match self.left {
            Left::Best { epoch, test_loss, among } => {
                let why = match among {
                    Among::All => "which scores the held-out rows best".into(),
                    Among::AllIn(cycle) => format!("one of cycle {cycle}, which scores the held-out rows best"),
                    Among::Cycle(cycle, last) => format!(
                        "the best of cycle {cycle}, as cycle {last} was not better by {CLEARLY} nats a row (train.cycles)"
                    ),
                };
                parts.push(format!("kept the model of epoch {epoch} of {epochs}, {why} (test loss {test_loss:.4})"));
            }
            Left::Last if parts.is_empty() => {}
            Left::Last => parts.push("kept the last model (train.keep)".into()),
        }
        f.write_str(&parts.join("; "))
    }
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unstable { epoch, loss, end } => write!(
                f,
                "training became unstable: the training loss was {loss:.4} in epoch {epoch} and is {end:.4} at the end; lower \
                 train.lr"
            ),
            Self::Overfitted { epoch, ll, end } => write!(
                f,
                "held-out rows were scored better after epoch {epoch} (LL {ll:.4}) than at the end (LL {end:.4}): the model \
                 fits the training rows too closely; keep the best epoch's model with train.keep = \"best\", or take a smaller width"
            ),
        }
    }
}

impl fmt::Display for AlreadyFinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, settings) = (self.folder.display(), self.settings.display());
        let anew = format!("start a new run with --init {}", self.model.display());
        match &self.ending {
            Some(ending @ Ending { end: End::CooledDown { whole: true, .. }, .. }) => {
                write!(f, "{path} is finished: {ending}. To train on, {anew}")
            }
            Some(ending @ Ending { end: End::Stopped { .. }, .. }) => write!(
                f,
                "{path} is finished: {ending}. To train on, raise train.patience in {settings} (0: never stop) and resume again, or \
                 {anew}"
            ),
            _ => write!(
                f,
                "{path} is finished: it has trained {}, all of train.epochs. To train on, {anew}",
                count(self.epochs)
            ),
        }
    }
}

/// A number of epochs in words.
fn count(epochs: u64) -> String {
    counted(epochs, "epoch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{BestEpoch, Cooldown};

    const BEST: Left = Left::Best { epoch: 9, test_loss: 1.5, among: Among::All };

    fn ending(epochs: u64, end: End, left: Left) -> String {
        Ending { epochs, end, left }.to_string()
    }

    fn cooled(start: u64, whole: bool) -> End {
        End::CooledDown { cooldown: Cooldown { start, from: 5 }, whole }
    }

    #[test]
    fn the_best_of_a_cycle_is_not_called_the_best_of_all() {
        let best = |among| ending(60, End::AllEpochs, Left::Best { epoch: 28, test_loss: 1.5, among });
        let first = best(Among::Cycle(1, 2));
        assert!(first.contains("epoch 28 of 60, the best of cycle 1") && first.contains("0.05 nats"), "{first}");
        assert!(
            first.contains("cycle 2 was not better") && !first.contains("scores the held-out rows best"),
            "{first}"
        );
        let second = best(Among::AllIn(2));
        assert!(second.contains("one of cycle 2, which scores the held-out rows best"), "{second}");
        let early = best(Among::All);
        assert!(early.contains("which scores the held-out rows best") && !early.contains("cycle"), "{early}");
    }

    #[test]
    fn words_say_which_model_and_why() {
        assert_eq!(
            ending(17, End::Stopped { patience: 8, of: 50 }, BEST),
            "stopped after epoch 17 of 50: no better score of the held-out rows in 8 epochs (train.patience); kept the model \
             of epoch 9 of 17, which scores the held-out rows best (test loss 1.5000)"
        );
        let text = ending(17, cooled(13, true), BEST);
        assert!(text.contains("8 epochs after epoch 5") && text.contains("in 4 epochs (train.cooldown)"), "{text}");
        assert!(text.contains("kept the model of epoch 9 of 17") && !text.contains("stopped"), "{text}");
        let once = ending(7, cooled(6, true), BEST);
        assert!(once.contains("in 1 epoch after") && once.contains("in 1 epoch ("), "{once}");
        assert!(!ending(50, End::AllEpochs, BEST).contains("stopped"));
        assert!(
            ending(17, End::Stopped { patience: 8, of: 50 }, Left::Last).ends_with("kept the last model (train.keep)")
        );
        for whole in [true, false] {
            let text = ending(17, cooled(13, whole), Left::Last);
            assert!(text.contains("went back to its model") && text.contains("last model"), "{text}");
        }
        assert_eq!(ending(50, End::AllEpochs, Left::Last), "");
    }

    #[test]
    fn cycles_are_told_with_the_model_that_they_go_on_from() {
        let best = BestEpoch { epoch: 28, test_loss: 1.5, ll: 0.0 };
        let began = BeganCycle { cycle: 2, of: 2, epoch: 31, from: Some(best), decays: true };
        assert_eq!(
            began.to_string(),
            "cycle 2 of 2 of the learning rate begins with epoch 31: it goes on from the model of epoch 28 (test loss \
             1.5000), with a ninth of the decay; it has to be better by 0.05 nats a row (train.cycles)"
        );
        assert_eq!(
            BeganCycle { from: None, decays: false, ..began }.to_string(),
            "cycle 2 of 2 of the learning rate begins with epoch 31: it goes on from the last model (train.cycles)"
        );
    }

    #[test]
    fn a_finished_run_says_how_to_train_on() {
        let finished = |end| {
            let ending = Some(Ending { epochs: 17, end, left: BEST });
            let [folder, settings, model] = ["r", "r/config.toml", "r/model.safetensors"].map(Into::into);
            AlreadyFinished { folder, settings, model, epochs: 50, ending }.to_string()
        };
        let stopped = finished(End::Stopped { patience: 8, of: 50 });
        assert!(stopped.starts_with("r is finished: stopped after epoch 17 of 50"), "{stopped}");
        assert!(
            stopped.contains("raise train.patience in r/config.toml")
                && stopped.ends_with("--init r/model.safetensors")
        );
        assert!(!finished(cooled(13, true)).contains("raise train.patience"));
        for end in [End::AllEpochs, cooled(13, false)] {
            assert!(finished(end).contains("it has trained 50 epochs, all of train.epochs"));
        }
    }

    #[test]
    fn a_worse_end_is_told_with_its_epoch_and_what_helps() {
        let unstable = Worse::Unstable { epoch: 21, loss: 1.9, end: 2.5 }.to_string();
        assert!(unstable.contains("1.9000 in epoch 21 and is 2.5000 at the end; lower train.lr"), "{unstable}");
        let overfitted = Worse::Overfitted { epoch: 2, ll: -1.0, end: -1.2 }.to_string();
        assert!(overfitted.contains("after epoch 2 (LL -1.0000) than at the end (LL -1.2000)"), "{overfitted}");
    }
}
