//! Single training steps on a model: no files, no clock but for the rate that is shown.

mod averages;
mod go_back;
mod state;

use std::fmt;
use std::time::{Duration, Instant};

use super::dataset::Dataset;
use super::decision::{Cooldown, Course, Ended, Kept, Next, Rules};
use super::epoch_report::EpochReport;
use super::score::held_out_score;
use super::{order, rate};
use crate::config::Training;
use crate::engine::{ProgramId, Skips, StepJob, Values};
use crate::error::{Error, Result};
use crate::flow::{Flow, Losses, half_square, programs};
use crate::kernel::dropout::Dropout;
use crate::optim::Adam;
use crate::plan::Kind;
pub(crate) use go_back::{BeganCycle, Diverged, WentBack};
pub(crate) use state::{Best, Position, State};

/// The loss is read back once in this many batches, and at the end of an epoch: reading waits for the device.
const READ_EVERY: u64 = 10;

/// Most updates in a row that may be left out before it counts as diverged.
const MOST_SKIPS: u32 = 5;

/// Where a training is, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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
/// A new one begins with Adam's moments at zero and takes the place of an earlier one. Rows and moments stay on the device
/// until then, or until the flow is dropped.
pub(crate) struct TrainingLoop<'a> {
    flow: &'a Flow,
    data: &'a Dataset,
    settings: Training,
    rules: Rules,
    adam: Adam,
    program: ProgramId,
    /// That of the first epochs, up to [`crate::config::Train::way_back_from`].
    first_program: ProgramId,
    batch: u64,
    batches: u64,
    position: Position,
    /// The epoch whose order of rows is on the device.
    ordered: Option<u64>,
    loss_sum: f64,
    losses: u64,
    /// The least of these losses.
    least_loss: f64,
    /// What was decided so far.
    course: Course,
    /// The weight arena after the best epoch; empty where the training goes back to it never ([`crate::config::Train::goes_back`]).
    best: Vec<f32>,
    /// The model to go back to where there is no best one: that of the last epoch, or of the beginning. Empty where
    /// nothing goes back to it.
    good: Vec<f32>,
    /// The epoch of that model, counted from 1.
    good_epoch: u64,
    /// What there is to tell of the last retry.
    went_back: Option<WentBack>,
    /// What there is to tell of the last cycle that began.
    began_cycle: Option<BeganCycle>,
    /// Updates left out, as far as was read.
    skips: Skips,
    finished: bool,
    last_loss: Option<f32>,
    busy: Duration,
    timed_steps: u64,
}

impl fmt::Debug for TrainingLoop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainingLoop").field("position", &self.position).finish_non_exhaustive()
    }
}

impl<'a> TrainingLoop<'a> {
    /// Compiles the training step and puts the rows on the device. The settings are those that [`Dataset::resolve`]
    /// gives.
    ///
    /// # Errors
    /// [`Error::Shape`] if the data does not fit the model, [`Error::NotFinite`] if a weight is no number,
    /// [`Error::OutOfMemory`] if the device cannot hold both.
    pub(crate) fn new(flow: &'a Flow, settings: Training, data: &'a Dataset) -> Result<Self> {
        let (batch, batches) = (settings.batch(), settings.batches());
        let spec = flow.spec();
        let columns =
            [("columns of the training data", spec.dim, data.dim), ("conditions", spec.cond_dim, data.cond_dim)];
        if let Some(&(what, expected, got)) = columns.iter().find(|(_, expected, got)| *expected as usize != *got) {
            return Err(Error::Shape { what: what.into(), expected: expected as usize, got });
        }
        let clips = settings.clip_norm > 0.0;
        let (program, first_program) = match spec.kind {
            Kind::Inn => {
                let losses = settings.inn_losses();
                let first = Losses { inverse: None, ..losses };
                let compile = |losses| flow.compiled(programs::Name::InnStep(losses, clips), batch as usize);
                let first = if settings.way_back_from() > 0 { compile(first)? } else { compile(losses)? };
                (compile(losses)?, first)
            }
            _ => {
                let name = if clips { programs::Name::ClippedStep } else { programs::Name::Step };
                let program = flow.compiled(name(settings.memory), batch as usize)?;
                (program, program)
            }
        };
        let mut trainer = Self {
            flow,
            data,
            rules: Rules::from(&*settings),
            adam: settings.adam(),
            settings,
            program,
            first_program,
            batch,
            batches,
            position: Position::default(),
            ordered: None,
            loss_sum: 0.0,
            losses: 0,
            least_loss: f64::INFINITY,
            course: Course::default(),
            best: Vec::new(),
            good: Vec::new(),
            good_epoch: 0,
            went_back: None,
            began_cycle: None,
            skips: Skips::default(),
            finished: false,
            last_loss: None,
            busy: Duration::ZERO,
            timed_steps: 0,
        };
        let weights = flow.with_session(|session| session.read(Values::Weights))?;
        let tensors = &flow.plan().layout.tensors;
        if let Some(tensor) = tensors.iter().find(|tensor| weights[tensor.range()].iter().any(|w| !w.is_finite())) {
            return Err(Error::NotFinite { what: format!("a weight of `{}` of the model to start from", tensor.name) });
        }
        // The session may hold what an earlier trainer left.
        trainer.begin_optimizer()?;
        flow.with_session(|session| {
            session.set_skips(Skips::default())?;
            session.set_data(data.train.clone())
        })?;
        trainer.remember()?;
        Ok(trainer)
    }

    /// How far the training has come.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Updates that were left out, as far as is known (`train.clip_norm`): of the batches up to the last loss read.
    pub(crate) fn skipped(&self) -> u32 {
        self.skips.total
    }

    /// The cool-down that has begun, where one has.
    pub(crate) fn cooldown(&self) -> Option<Cooldown> {
        self.course.cooldown
    }

    /// Whether the training is over: all epochs are done, no epoch was better on the held-out rows for
    /// `train.patience` epochs and it has cooled down, or [`TrainingLoop::finish`] was called.
    pub(crate) fn is_done(&self) -> bool {
        self.finished || self.course.is_over(&self.rules, self.position.epoch)
    }

    /// The learning rate of the next step; where the epoch's are done, of its last.
    fn rate(&self) -> f64 {
        let Position { epoch, batch, .. } = self.position;
        rate::of_step(&self.course, &self.rules, epoch, batch.min(self.batches - 1), self.batches)
    }

    /// Updates since Adam's moments were zero. Its bias correction counts these, and not those before a cycle, a cool-down or
    /// a retry.
    fn updates(&self) -> u64 {
        self.position.step - self.course.begun(&self.rules, self.position.epoch, self.batches)
    }

    /// Whether all batches of the epoch are done, so that [`TrainingLoop::finish_epoch`] is due.
    pub(crate) fn at_epoch_end(&self) -> bool {
        self.position.batch >= self.batches
    }

    /// Takes one step. Returns whether a loss was read. Where the training has diverged and `train.retries` are left, it
    /// is back at the beginning of the epoch then, see [`TrainingLoop::went_back`].
    ///
    /// # Errors
    /// [`Error::Diverged`] if the loss that was read is not finite, or more than a few updates in a row were left out
    /// (`train.clip_norm`), and no retries are left; [`Error::DeviceLost`].
    ///
    /// # Panics
    /// If the epoch's batches are done, or the training is.
    pub(crate) fn step(&mut self) -> Result<bool> {
        match self.take_step() {
            Err(error @ Error::Diverged { .. }) => self.retry(error).map(|()| false),
            result => result,
        }
    }

    fn take_step(&mut self) -> Result<bool> {
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
            dropout: Dropout::parts(self.settings.dropout.unwrap_or(0.0) as f32),
            seed: self.settings.seed,
            step: step as u32,
            adam: rate::relaxed(self.adam, &self.course, &self.rules, epoch).step(self.rate(), self.updates() + 1),
        };
        let order = (self.ordered != Some(epoch)).then(|| {
            let count = (self.batches * self.batch) as usize;
            order::of_epoch(self.settings.shuffle, self.settings.seed, epoch, self.data.train_rows(), count)
        });
        // Counted within the epoch and not from where this process began, so that a resumed run reads the same losses.
        let read = (batch + 1).is_multiple_of(READ_EVERY) || batch + 1 == self.batches;
        let program = if epoch < self.settings.way_back_from() { self.first_program } else { self.program };
        let clips = self.adam.clip_norm > 0.0;
        let read_skips = read && clips;
        let (loss, skips) = self.flow.with_session(|session| {
            if let Some(order) = &order {
                session.set_order(order)?;
            }
            session.step(program, &job)?;
            let loss = if read { Some(session.loss()?) } else { None };
            Ok((loss, if read_skips { session.skips()? } else { Skips::default() }))
        })?;
        self.ordered = Some(epoch);
        self.position.batch += 1;
        self.position.step += 1;
        self.busy += started.elapsed();
        self.timed_steps += 1;
        let Some(loss) = loss else { return Ok(false) };
        if clips {
            self.skips = skips;
        }
        if skips.in_a_row > MOST_SKIPS {
            return Err(self.diverged(loss));
        }
        // A batch whose update was left out has changed nothing.
        let harmless = skips.in_a_row > 0 && !loss.is_finite();
        if !harmless {
            self.last_loss = Some(loss);
            if !loss.is_finite() {
                return Err(self.diverged(loss));
            }
            self.loss_sum += f64::from(loss);
            self.losses += 1;
            self.least_loss = self.least_loss.min(loss.into());
        }
        if self.at_epoch_end() && self.settings.retries > 0 && !self.is_finite()? {
            return Err(self.diverged(f32::NAN));
        }
        Ok(!harmless)
    }

    /// Scores the held-out rows, ends the epoch, and does what [`Course::after`] says of it: remembers the model where it is
    /// the best so far and the training may go back to it; goes back where the model is destroyed, where patience is lost
    /// and the training is to cool down, or where a further cycle begins.
    ///
    /// # Errors
    /// [`Error::Diverged`] if there is no model to go back to, [`Error::DeviceLost`].
    pub(crate) fn finish_epoch(&mut self) -> Result<EpochReport> {
        let score = self.score()?;
        let Position { epoch, step, .. } = self.position;
        let report = EpochReport {
            epoch: epoch + 1,
            step,
            train_loss: self.loss_sum / self.losses as f64,
            validation_loss: score.map(|(loss, _)| loss),
            ll: score.map(|(_, ll)| ll).filter(|_| self.flow.spec().kind.has_density()),
            learning_rate: self.rate(),
            rows_per_s: self.rows_per_s(),
        };
        let columns = self.data.row_columns();
        let mut course = self.course;
        let least_loss = self.least_loss;
        let turn = course.after(&self.rules, &Ended { epoch: epoch + 1, step, score, least_loss, columns });
        let loss = report.validation_loss.unwrap_or(f64::NAN);
        if turn.next == Next::Fails {
            return Err(self.diverged(loss as f32));
        }
        if turn.is_best {
            self.best = if self.rules.goes_back { self.model()? } else { Vec::new() };
        }
        self.course = course;
        self.position.epoch += 1;
        self.begin_epoch();
        if let Some(good) = turn.retry {
            self.go_back(good, Diverged::InEpoch(loss, report.epoch))?;
        }
        match turn.next {
            Next::CoolDown(_) => self.begin_from(&self.best)?,
            Next::Cycle(cycle, best) => self.begin_cycle(cycle, best)?,
            Next::Epoch | Next::Over | Next::Fails => {}
        }
        self.remember()?;
        Ok(report)
    }

    /// No batch of the epoch is done, no loss read.
    fn begin_epoch(&mut self) {
        self.position.batch = 0;
        self.position.step = self.position.epoch * self.batches;
        (self.loss_sum, self.losses, self.least_loss) = (0.0, 0, f64::INFINITY);
    }

    /// Takes these weights, with moments at zero.
    fn begin_from(&self, weights: &[f32]) -> Result<()> {
        self.flow.with_session(|session| session.write(Values::Weights, weights))?;
        self.begin_optimizer()
    }

    /// Moments at zero, and the weights as their own averages.
    fn begin_optimizer(&self) -> Result<()> {
        let zeros = vec![0.0; self.flow.plan().layout.trained];
        self.flow.with_session(|session| {
            session.write(Values::FirstMoments, &zeros)?;
            session.write(Values::SecondMoments, &zeros)
        })?;
        self.begin_averages()
    }

    /// Ends the training: leaves the model that is to be kept in the flow, that of the best epoch where `train.keep`
    /// says so and rows are held out. Says which it is.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn finish(&mut self) -> Result<Kept> {
        let leaves = self.course.leaves(&self.rules);
        let last = if leaves.is_some() { None } else { self.score()? };
        match leaves {
            Some(_) => self.flow.with_session(|session| session.write(Values::Weights, &self.best))?,
            None if self.averages() => {
                let model = self.model()?;
                self.flow.with_session(|session| session.write(Values::Weights, &model))?;
            }
            None => {}
        }
        self.finished = true;
        Ok(self.course.kept(&self.rules, self.position.epoch, last))
    }

    /// Of the model, so of the averaged weights with `train.average`: mean loss of the held-out rows, and their LL: mean
    /// log-density of x (given y) per dimension in the user's units, without the constant of the normal distribution (docs/model.md, Metrics). None where no rows are held out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn score(&self) -> Result<Option<(f64, f64)>> {
        if self.data.test.is_empty() {
            return Ok(None);
        }
        let losses = self.settings.inn_losses();
        let score = self.with_model(|| held_out_score(self.flow, self.data, losses))?;
        // Without a density there is no LL, which is kept as no number and not reported.
        Ok(score.map(|score| (score.loss, score.ll.unwrap_or(f64::NAN))))
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
    pub(crate) fn inverse_error(&self) -> Result<f64> {
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
    pub(crate) fn progress(&self) -> Progress {
        let epochs = self.course.end(&self.rules, self.position.epoch);
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

    fn diverged(&self, loss: f32) -> Error {
        Error::Diverged { step: self.position.step, loss, checkpoint: None }
    }
}
