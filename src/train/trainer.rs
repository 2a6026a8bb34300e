//! Single training steps on a model: no files, no clock but for the rate that is shown.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::best::Best;
use super::cooldown::{Cooldown, end, is_over};
use super::dataset::Dataset;
use super::kept::{Kept, count};
use super::metrics::EpochReport;
use super::order;
use super::score::held_out_score;
use crate::config::{Config, Keep, Memory, Train};
use crate::engine::{ProgramId, StepJob, Values};
use crate::error::{Error, Result};
use crate::flow::{Flow, half_square, programs};
use crate::kernel::dropout::Dropout;
use crate::optim::{Adam, Schedule};

/// The loss is read back once in this many batches, and at the end of an epoch: reading waits for the device.
const READ_EVERY: u64 = 10;

/// How far a training has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Whole epochs done.
    pub epoch: u64,
    /// Batches done of the epoch after these.
    pub batch: u64,
    /// Steps done since the beginning of the training.
    pub step: u64,
}

/// Everything that a training goes on from. With the settings and the data it determines all that follows.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The weight arena.
    pub weights: Vec<f32>,
    /// Adam's first moments.
    pub first_moments: Vec<f32>,
    /// Adam's second moments.
    pub second_moments: Vec<f32>,
    /// How far the training has come.
    pub position: Position,
    /// Sum of the losses read in the present epoch.
    pub loss_sum: f64,
    /// Number of these losses.
    pub losses: u64,
    /// The best epoch so far, where rows are held out.
    pub best: Option<Best>,
    /// Where patience is lost and the training cools down.
    pub cooldown: Option<Cooldown>,
}

impl State {
    /// Whether nothing is left to do, as [`Trainer::is_done`] has it.
    pub(super) fn is_done(&self, settings: &Train) -> bool {
        is_over(self.position.epoch, self.best.as_ref(), self.cooldown, settings)
    }
}

/// Where a training is, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Epoch that is being trained, counted from 1.
    pub epoch: u64,
    /// Number of epochs, as far as is known: fewer where the training stops early.
    pub epochs: u64,
    /// Steps done.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// The loss that was read last, in nats.
    pub loss: Option<f32>,
    /// Training rows per second in this epoch.
    pub rows_per_s: f64,
    /// Seconds until the last step at that rate.
    pub eta_s: f64,
}

/// Trains a model on a data set, step by step.
///
/// A [`Flow`] has one trainer at a time: a new one begins with Adam's moments at zero, and takes the place of an
/// earlier one, which must not go on. Rows and moments stay on the device until the next trainer, or until the flow is
/// dropped.
pub struct Trainer<'a> {
    flow: &'a Flow,
    data: &'a Dataset,
    settings: Train,
    adam: Adam,
    schedule: Schedule,
    program: ProgramId,
    batch: u64,
    batches: u64,
    position: Position,
    /// The epoch whose order of rows is on the device.
    ordered: Option<u64>,
    loss_sum: f64,
    losses: u64,
    best: Option<Best>,
    cooldown: Option<Cooldown>,
    finished: bool,
    last_loss: Option<f32>,
    busy: Duration,
    timed_steps: u64,
}

impl<'a> Trainer<'a> {
    /// Compiles the training step and puts the rows on the device.
    ///
    /// # Errors
    /// [`Error::Config`] where the settings do not fit the data, [`Error::Shape`] where the data does not fit the
    /// model, [`Error::Device`] where the device cannot hold both.
    pub fn new(flow: &'a Flow, config: &Config, data: &'a Dataset) -> Result<Self> {
        let mut config = config.clone();
        data.complete(&mut config)?;
        let settings = config.train;
        let (Some(batch), Some(batches)) = (settings.batch, settings.batches_per_epoch) else {
            unreachable!("`Dataset::complete` sets both")
        };
        let spec = flow.spec();
        let columns =
            [("columns of the training data", spec.dim, data.dim), ("conditions", spec.cond_dim, data.cond_dim)];
        if let Some(&(what, expected, got)) = columns.iter().find(|(_, expected, got)| *expected as usize != *got) {
            return Err(Error::Shape { what: what.into(), expected: expected as usize, got });
        }
        let program = flow.compiled(programs::Name::Step(settings.memory), batch as usize)?;
        // The session may hold the moments of an earlier trainer.
        let zeros = vec![0.0; flow.plan().layout.trained];
        flow.with_session(|session| {
            session.write(Values::FirstMoments, &zeros)?;
            session.write(Values::SecondMoments, &zeros)?;
            session.set_data(data.train.clone())
        })?;
        Ok(Self {
            flow,
            data,
            adam: settings.adam(),
            schedule: settings.schedule(),
            settings,
            program,
            batch,
            batches,
            position: Position::default(),
            ordered: None,
            loss_sum: 0.0,
            losses: 0,
            best: None,
            cooldown: None,
            finished: false,
            last_loss: None,
            busy: Duration::ZERO,
            timed_steps: 0,
        })
    }

    /// How far the training has come.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The cool-down that has begun, where one has.
    pub fn cooldown(&self) -> Option<Cooldown> {
        self.cooldown
    }

    /// Whether the training is over: all epochs are done, no epoch was better on the held-out rows for
    /// `train.patience` epochs and it has cooled down, or [`Trainer::finish`] was called.
    pub fn is_done(&self) -> bool {
        self.finished || is_over(self.position.epoch, self.best.as_ref(), self.cooldown, &self.settings)
    }

    /// The learning rate of this epoch.
    fn rate(&self) -> f64 {
        let epoch = self.position.epoch;
        match self.cooldown {
            Some(cooldown) => cooldown.rate(&self.schedule, &self.settings, epoch),
            None => self.schedule.rate(epoch),
        }
    }

    /// Updates since Adam's moments were zero. Its bias correction counts these, and not those before a cool-down.
    fn updates(&self) -> u64 {
        self.position.step - self.cooldown.map_or(0, |cooldown| cooldown.start * self.batches)
    }

    /// Whether all batches of the epoch are done, so that [`Trainer::finish_epoch`] is due.
    pub fn at_epoch_end(&self) -> bool {
        self.position.batch >= self.batches
    }

    /// Takes one step. Returns whether a loss was read.
    ///
    /// # Errors
    /// [`Error::Diverged`] where the loss that was read is not finite, [`Error::DeviceLost`].
    ///
    /// # Panics
    /// If the epoch's batches are done, or the training is.
    pub fn step(&mut self) -> Result<bool> {
        assert!(!self.is_done() && !self.at_epoch_end(), "a step beyond the end of an epoch");
        let started = Instant::now();
        let Position { epoch, batch, step } = self.position;
        if batch == 0 {
            (self.busy, self.timed_steps) = (Duration::ZERO, 0);
        }
        let job = StepJob {
            first: (batch * self.batch) as usize,
            rows: self.batch as usize,
            noise: self.settings.noise as f32,
            dropout: Dropout::parts(self.settings.dropout as f32),
            seed: self.settings.seed,
            step: step as u32,
            adam: self.adam.step(self.rate(), self.updates() + 1),
        };
        let order = (self.ordered != Some(epoch)).then(|| {
            let count = (self.batches * self.batch) as usize;
            order::of_epoch(self.settings.shuffle, self.settings.seed, epoch, self.data.train_rows(), count)
        });
        // Counted within the epoch and not from where this process began, so that a resumed run reads the same losses.
        let read = (batch + 1).is_multiple_of(READ_EVERY) || batch + 1 == self.batches;
        let program = self.program;
        let loss = self.flow.with_session(|session| {
            if let Some(order) = &order {
                session.set_order(order)?;
            }
            session.step(program, &job)?;
            if read { session.loss().map(Some) } else { Ok(None) }
        })?;
        self.ordered = Some(epoch);
        self.position.batch += 1;
        self.position.step += 1;
        self.busy += started.elapsed();
        self.timed_steps += 1;
        let Some(loss) = loss else { return Ok(false) };
        self.last_loss = Some(loss);
        if !loss.is_finite() {
            return Err(self.diverged(loss));
        }
        self.loss_sum += f64::from(loss);
        self.losses += 1;
        Ok(true)
    }

    /// Scores the held-out rows and ends the epoch. Remembers the model where it is the best so far and the training
    /// may go back to it, and goes back where patience is lost and the training is to cool down.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn finish_epoch(&mut self) -> Result<EpochReport> {
        let test = self.score()?;
        if let Some((test_loss, ll)) = test
            && Best::is_beaten(self.best.as_ref(), test_loss)
        {
            let weights = match self.settings.goes_back() {
                true => self.flow.with_session(|session| session.read(Values::Weights))?,
                false => Vec::new(),
            };
            self.best = Some(Best { epoch: self.position.epoch + 1, test_loss, ll, weights });
        }
        let report = EpochReport {
            epoch: self.position.epoch + 1,
            step: self.position.step,
            train_loss: self.loss_sum / self.losses as f64,
            test_loss: test.map(|(loss, _)| loss),
            ll: test.map(|(_, ll)| ll),
            lr: self.rate(),
            rows_per_s: self.rows_per_s(),
        };
        self.position.epoch += 1;
        self.position.batch = 0;
        (self.loss_sum, self.losses) = (0.0, 0);
        if let Some(due) = Cooldown::due(self.cooldown, self.best.as_ref(), self.position.epoch, &self.settings) {
            self.cooldown = Some(due);
            self.back_to_best()?;
        }
        Ok(report)
    }

    /// Takes the weights of the best epoch, with moments at zero.
    fn back_to_best(&self) -> Result<()> {
        let Some(best) = &self.best else { return Ok(()) };
        let zeros = vec![0.0; self.flow.plan().layout.trained];
        self.flow.with_session(|session| {
            session.write(Values::Weights, &best.weights)?;
            session.write(Values::FirstMoments, &zeros)?;
            session.write(Values::SecondMoments, &zeros)
        })
    }

    /// Ends the training: leaves the model that is to be kept in the flow, that of the best epoch where `train.keep`
    /// says so and rows are held out. Says which it is.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn finish(&mut self) -> Result<Kept> {
        let kept = Kept::of(self.position.epoch, self.best.as_ref(), self.cooldown, &self.settings, || self.score())?;
        if let Some(best) = self.best.as_ref().filter(|_| self.settings.keep == Keep::Best) {
            self.flow.with_session(|session| session.write(Values::Weights, &best.weights))?;
        }
        self.finished = true;
        Ok(kept)
    }

    /// Mean loss of the held-out rows, and their LL: mean log-density of x (given y) per dimension in the user's units
    /// without the constant of the normal distribution (spec, section 5). None where no rows are held out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn score(&self) -> Result<Option<(f64, f64)>> {
        Ok(held_out_score(self.flow, self.data)?.map(|score| (score.loss, score.ll)))
    }

    /// What a reversible backward pass loses on its way: the largest distance of a row from what [`Flow::encode`] and
    /// [`Flow::decode`] make of it, relative to the root of the rows' mean square. Looks at up to 1000 held-out rows,
    /// or training rows where none are held out; standardised rows where the model standardises.
    ///
    /// Of models with random weights, gradients were 3e-7 of their length wrong where this was 6e-6, 3e-5 where it was
    /// 2e-5 or 1e-3, and no numbers where it was infinite.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn inverse_error(&self) -> Result<f64> {
        let n = self.flow.spec().row_columns() as usize;
        let all = if self.data.test.is_empty() { &self.data.train[..] } else { &self.data.test[..] };
        let x = &all[..all.len().min(1000 * n)];
        let rows = x.len() / n;
        let back = self.flow.round_trip(x)?;
        let square = |values: &[f32]| 2.0 * half_square(values);
        let distance = |(x, back): (&[f32], &[f32])| {
            x.iter().zip(back).map(|(x, back)| (f64::from(*x) - f64::from(*back)).powi(2)).sum::<f64>().sqrt()
        };
        let distances = x.chunks_exact(n).zip(back.chunks_exact(n)).map(distance);
        // A NaN is worse than anything.
        let worst =
            distances.fold(0.0, |worst: f64, d| if worst.is_nan() || d.is_nan() { f64::NAN } else { worst.max(d) });
        Ok(worst / (square(x) / rows as f64).sqrt())
    }

    /// Where the training is, for people. Right after an epoch the rate is still that of the epoch.
    pub fn progress(&self) -> Progress {
        let epochs = end(self.position.epoch, self.best.as_ref(), self.cooldown, &self.settings);
        let steps = epochs * self.batches;
        let rate = self.rows_per_s();
        Progress {
            epoch: (self.position.epoch + 1).min(epochs),
            epochs,
            step: self.position.step,
            steps,
            loss: self.last_loss,
            rows_per_s: rate,
            eta_s: steps.saturating_sub(self.position.step) as f64 * self.batch as f64 / rate,
        }
    }

    fn rows_per_s(&self) -> f64 {
        (self.timed_steps * self.batch) as f64 / self.busy.as_secs_f64().max(1e-9)
    }

    /// Everything that this training goes on from.
    ///
    /// # Errors
    /// [`Error::Diverged`] where a weight or moment is not finite: such a state must not be kept.
    /// [`Error::DeviceLost`].
    pub fn state(&self) -> Result<State> {
        let read = |values| self.flow.with_session(|session| session.read(values));
        let state = State {
            weights: read(Values::Weights)?,
            first_moments: read(Values::FirstMoments)?,
            second_moments: read(Values::SecondMoments)?,
            position: self.position,
            loss_sum: self.loss_sum,
            losses: self.losses,
            best: self.best.clone(),
            cooldown: self.cooldown,
        };
        let best = state.best.as_ref().map_or(&[][..], |best| &best.weights[..]);
        let all = [&state.weights[..], &state.first_moments, &state.second_moments, best];
        if all.into_iter().flatten().all(|v| v.is_finite()) { Ok(state) } else { Err(self.diverged(f32::NAN)) }
    }

    /// Goes on from a state of the same model, settings and data.
    ///
    /// # Errors
    /// [`Error::Shape`] where the state is that of another model, [`Error::Config`] where its position is beyond the
    /// end of the training.
    pub fn restore(&mut self, state: &State) -> Result<()> {
        let layout = &self.flow.plan().layout;
        if let Some(best) = &state.best {
            let expected = if self.settings.goes_back() { layout.len() } else { 0 };
            if best.weights.len() != expected {
                let got = best.weights.len();
                return Err(Error::Shape { what: "weights of the best epoch".into(), expected, got });
            }
            if best.epoch > state.position.epoch {
                let what = format!("epoch {} is the best of {}", best.epoch, count(state.position.epoch));
                return Err(Error::config("train.epochs", what));
            }
        }
        if let Some(Cooldown { start, from }) =
            state.cooldown.filter(|c| c.start > state.position.epoch || c.from > c.start)
        {
            let what = format!(
                "a cool-down from epoch {from} after {} cannot be when {} are done",
                count(start),
                state.position.epoch
            );
            return Err(Error::config("train.cooldown", what));
        }
        let arrays = [
            ("weights", Values::Weights, &state.weights, layout.len()),
            ("first moments", Values::FirstMoments, &state.first_moments, layout.trained),
            ("second moments", Values::SecondMoments, &state.second_moments, layout.trained),
        ];
        for (what, _, array, expected) in &arrays {
            if array.len() != *expected {
                return Err(Error::Shape { what: (*what).into(), expected: *expected, got: array.len() });
            }
        }
        let Position { epoch, batch, step } = state.position;
        let reached = epoch.checked_mul(self.batches).and_then(|steps| steps.checked_add(batch));
        if reached != Some(step) || epoch > self.settings.epochs || batch >= self.batches {
            let what = format!("step {step} is not batch {batch} after {} of {} batches", count(epoch), self.batches);
            return Err(Error::config("train.batches_per_epoch", what));
        }
        self.flow.with_session(|session| {
            arrays.iter().try_for_each(|(_, values, array, _)| session.write(*values, array))
        })?;
        self.position = state.position;
        (self.loss_sum, self.losses) = (state.loss_sum, state.losses);
        self.best = state.best.clone();
        self.cooldown = state.cooldown;
        self.finished = false;
        self.ordered = None;
        Ok(())
    }

    fn diverged(&self, loss: f32) -> Error {
        let stored = match self.settings.memory {
            Memory::Stored => "",
            // An inverse that has lost all digits leaves gradients that are no numbers.
            Memory::Reversible => "train.memory = \"stored\", ",
        };
        let remedy = format!("try a lower train.lr, {stored}or model.scale = \"atan\" where it is \"exp\"");
        Error::Diverged { step: self.position.step, loss, remedy }
    }
}
