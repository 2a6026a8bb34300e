//! A whole training with its run folder: begin or resume, save, stop, finish.

mod told;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::checkpoint::{About, Checkpoint, Device};
use super::clock;
use super::compatibility::{BEFORE_IT_EXISTED, belongs, settings_that_matter};
use super::dataset::{Dataset, Rows};
use super::decision::Kept;
use super::density;
use super::ending::Ending;
use super::epoch_report::EpochReport;
use super::folder::{self, RunFolder, read_model};
use super::inputs::{absolute, keeps_inputs};
use super::logs::LogFiles;
use super::manifest::{self, DataFacts, Manifest};
use super::metrics::Metrics;
use super::training_loop::TrainingLoop;
use super::verdict::worse_at_the_end;
use crate::Overwrite;
use crate::config::{self, Config, Given, Layers, Memory, Resolved, Train};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::eval::density::{Density, TrainingRows};
use crate::flow::{Flow, FlowBuilder, ModelFile};
use crate::plan::Plan;

use told::Remembering;
pub(crate) use told::{AlreadyFinished, Observer, Options, Outcome, Start, Told};

/// Without `run.checkpoint_every`, checkpoints are this far apart: at the end of an epoch, and within one.
const AT_EPOCH_END: Duration = Duration::from_secs(10);
const WITHIN_EPOCH: Duration = Duration::from_secs(60);

/// Begins a training. The folder is made only when data and model are known to be good.
///
/// # Errors
/// Those of reading data and model, of making the folder and of training; see [`Error`].
pub(crate) fn start(
    config: Config,
    engine: &Engine,
    options: Options<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    if let Some(out) = &config.run.out {
        RunFolder::check(out, options.overwrite)?;
        keeps_inputs(out, &config)?;
    }
    // Where a run is does not belong to its settings.
    let (out, run) = (config.run.out.clone(), config::Run { out: None, ..config.run });
    let config = absolute(Config { run, ..config })?;
    let init = config.model.init.as_deref().map(read_model).transpose()?;
    let data = Dataset::load(&config, init.as_ref())?;
    let config = resolved(config, &data)?;
    let flow = model(&config, &data, init, engine)?;
    let comment = format!("# All settings of this run, for hintflow {}.\n\n", env!("CARGO_PKG_VERSION"));
    let text = comment + &config.to_toml()?;
    let steps = TrainingLoop::new(&flow, config.training().clone(), &data)?;
    // From here on an earlier run is gone.
    let folder = match out {
        Some(out) => RunFolder::create(&out, options.overwrite)?,
        None => RunFolder::create_default(&data.name, config.train.seed)?,
    };
    let logs = LogFiles::open(folder.path(), &config.train.log, 0)?;
    let metrics = Metrics::create(&folder.metrics())?.with(logs);
    let settings = folder.config();
    let mut run = Run { folder, config, data: &data, flow: &flow, steps, metrics, options, last: None, warned: false };
    // The first checkpoint is the beginning, and the settings come last: what looks like a run can be resumed without
    // the model file that it began from.
    run.save()?;
    crate::atomic::write_atomic(&settings, Overwrite::Yes, |file| file.write_all(text.as_bytes()))?;
    run.train(observer)
}

/// All choices made for a new run: what the sources gave, on top of the choices of the model that it starts from.
///
/// # Errors
/// Those of [`Layers::resolve_with`] and [`read_model`].
pub(crate) fn settings(layers: &Layers) -> Result<Config> {
    layers.resolve_with(read_model)
}

/// The settings of a run that is to be resumed.
///
/// # Errors
/// [`Error::Format`] if `path` is no run folder, those of reading settings.
pub(crate) fn settings_of(path: &Path) -> Result<Config> {
    RunFolder::is_run(path)?;
    let mut layers = Layers::new();
    layers.file(&folder::config_of(path))?;
    // The run may be older than some settings.
    // Layers see by themselves whether settings are older than splines.
    let missing =
        BEFORE_IT_EXISTED.into_iter().filter(|(key, _)| *key != "model.coupling" && layers.given(key).is_none());
    let missing: Vec<_> = missing.map(|(key, value)| (key, value.into(), "an earlier version")).collect();
    layers.flags(missing)?;
    layers.resolve_complete()
}

/// Goes on with a training from its newest whole checkpoint; from its beginning, where it was stopped before the first.
/// One that has nothing left to do says so. `config` is [`settings_of`] the folder, with changes in its table `run`, of
/// `train.patience` where it does not cool down, and of the files that hold the same rows; where these are now is written
/// down.
///
/// # Errors
/// [`Error::Format`] if the checkpoint belongs to another model, other data or other settings; those of [`start`].
pub(crate) fn resume(
    path: &Path,
    config: Config,
    engine: &Engine,
    options: Options<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let folder = RunFolder::open(path)?;
    let found = folder.checkpoints().latest()?;
    // More patience than before leaves something to do.
    let is_done = found.as_ref().is_none_or(|(checkpoint, ..)| checkpoint.state.is_done(&config.train));
    if is_done && manifest::says(&folder.manifest(), manifest::FINISHED) && folder.model().is_file() {
        let state = found.as_ref().map(|(checkpoint, ..)| &checkpoint.state);
        let last = super::metrics::read(&folder.metrics()).unwrap_or_default().pop();
        let scores = last.and_then(|report| report.validation_loss.zip(report.ll));
        let kept = state.map(|state| state.course().kept(&(&config.train).into(), state.position.epoch, scores));
        observer.told(&Told::AlreadyFinished(AlreadyFinished {
            folder: folder.path().into(),
            settings: folder.config(),
            model: folder.model(),
            epochs: config.train.epochs,
            ending: kept.map(|kept| Ending::of(&kept, &config.train)),
        }));
        let step = state.map_or(0, |state| state.position.step);
        let density = manifest::density(&folder.manifest());
        return Ok(Outcome { folder: path.into(), finished: true, step, last, kept, density });
    }
    let config = absolute(config)?;
    // A checkpoint holds all there is to know of the model. Without one, the training begins as it did at first.
    let init = match &found {
        Some((checkpoint, file, _)) => Some(checkpoint.model().map_err(|e| Error::format(file, e.to_string()))?),
        None => config.model.init.as_deref().map(read_model).transpose()?,
    };
    // Rows that a checkpoint belongs to are those it was trained on, which is told below.
    let rows = Rows::load(&config, init.as_ref().filter(|_| found.is_none()), init.as_ref());
    let rows = rows.map_err(|e| gone(e, &config))?;
    if let Some((checkpoint, file, passed_over)) = &found {
        for error in passed_over {
            observer.told(&Told::PassedOver(error.to_string()));
        }
        belongs(checkpoint, file, &config, &rows)?;
    }
    if found.is_some() {
        remember_files(path, &config)?;
    }
    let data = rows.prepare(&config, init.as_ref())?;
    let config = resolved(config, &data)?;
    let flow = model(&config, &data, init, engine)?;
    let mut steps = TrainingLoop::new(&flow, config.training().clone(), &data)?;
    if let Some((checkpoint, file, _)) = &found {
        let device = Device::from(&engine.info());
        if checkpoint.about.device != device {
            observer.told(&Told::OtherDevice { before: checkpoint.about.device.clone(), now: device });
        }
        steps.restore(&checkpoint.state).map_err(|e| Error::format(file, e.to_string()))?;
    } else {
        observer.told(&Told::NoCheckpoint);
    }
    let epochs = steps.position().epoch;
    let (metrics, reports) = Metrics::reopen(&folder.metrics(), epochs)?;
    if (reports.len() as u64) < epochs {
        observer.told(&Told::MetricsLack(epochs));
    }
    let metrics = metrics.with(LogFiles::open(folder.path(), &config.train.log, steps.position().step)?);
    let last = reports.last().copied();
    let run = Run { folder, config, data: &data, flow: &flow, steps, metrics, options, last, warned: false };
    run.train(observer)
}

/// Of a file with rows that is no longer where it was: which setting says where it is.
fn gone(error: Error, config: &Config) -> Error {
    let Error::Io { path, cause, .. } = &error else { return error };
    let of =
        [("data.path", config.data.path.as_deref()), ("data.given", config.data.given.as_ref().and_then(Given::file))];
    match of.into_iter().find(|(_, file)| *file == Some(path)) {
        Some((key, _)) if cause.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("is no longer there; say where its rows are now: --set {key}=FILE");
            Error::format(path, what)
        }
        _ => error,
    }
}

/// Writes down where the files of a run are now, if they have moved.
fn remember_files(run: &Path, config: &Config) -> Result<()> {
    let before = settings_of(run)?;
    let (path, given) = (&config.data.path, &config.data.given);
    if (&before.data.path, &before.data.given) == (path, given) {
        return Ok(());
    }
    let data = config::Data { path: path.clone(), given: given.clone(), ..before.data };
    let text = Config { data, ..before }.to_toml()?;
    crate::atomic::write_atomic(&folder::config_of(run), Overwrite::Yes, |file| file.write_all(text.as_bytes()))
}

/// The rows that settings ask for, and all settings of a training on them. Nothing is written and no device is used.
///
/// # Errors
/// Those of reading data and model, [`Error::Config`] if settings do not fit the data.
pub(crate) fn plan(config: Config) -> Result<(Dataset, Resolved)> {
    let config = absolute(config)?;
    let init = config.model.init.as_deref().map(read_model).transpose()?;
    let data = Dataset::load(&config, init.as_ref())?;
    let settings = resolved(config, &data)?;
    // Whether there can be such a model.
    Plan::new(settings.spec())?;
    Ok((data, settings))
}

/// All settings of a training on these rows: the one place where nothing is left to choose.
fn resolved(config: Config, data: &Dataset) -> Result<Resolved> {
    let training = data.resolve(&config.train, config.model.kind, config.model.coupling)?;
    let spec = config.model.spec(data.dim as u32, data.cond_dim as u32).map_err(|e| match (e, &config.data.path) {
        (Error::Config { key, what }, Some(path)) if key == "model.dim" => {
            let what = format!("the number of columns of {} {what}; choose some with data.columns", path.display());
            Error::config("data.path", what)
        }
        (other, _) => other,
    })?;
    Ok(Resolved::new(config, training, spec))
}

/// The model of a training on a device, new or with the weights of `init`.
fn model(config: &Resolved, data: &Dataset, init: Option<ModelFile>, engine: &Engine) -> Result<Flow> {
    match init {
        Some(file) => {
            let plan = Plan::new(config.spec())?.into();
            Flow::from_file(ModelFile { plan, x: data.x.clone(), y: data.y.clone(), ..file }, engine)
        }
        None => {
            let builder = FlowBuilder::from_spec(config.spec().clone())
                .seed(config.train.seed)
                .units(data.x.clone())
                .units_of_conditions(data.y.clone());
            match config.model.init_sigma {
                Some(sigma) => builder.init_sigma(sigma as f32),
                None => builder.init_by_inputs(),
            }
            .build(engine)
        }
    }
}

struct Run<'a> {
    folder: RunFolder,
    config: Resolved,
    data: &'a Dataset,
    flow: &'a Flow,
    steps: TrainingLoop<'a>,
    metrics: Metrics,
    options: Options<'a>,
    last: Option<EpochReport>,
    /// Whether the observer knows that a reversible training has lost digits.
    warned: bool,
}

impl Run<'_> {
    fn train(mut self, observer: &mut dyn Observer) -> Result<Outcome> {
        let begun = Instant::now();
        let earlier = manifest::facts(&self.folder.manifest()).unwrap_or_default();
        let (warnings, notes) = (earlier.warnings.clone(), earlier.notes.clone());
        let mut manifest = Manifest { seconds: earlier.seconds, warnings, notes, ..self.manifest() };
        manifest.write(&self.folder.manifest())?;
        // A training that goes on takes the units of its model, and finds out no more about the table.
        if self.steps.position().step == 0 || !self.folder.data().is_file() {
            self.data.report().write(&self.folder.data())?;
        }
        // What there is to tell of the rows has a file of its own.
        self.data.found.iter().for_each(|found| observer.told(&Told::Found(found.clone())));
        self.data.chose.iter().for_each(|chose| observer.told(&Told::Chose(chose.clone())));
        let observer = &mut Remembering::new(observer, (earlier.warnings, earlier.notes));
        let train = &self.config.train;
        if train.epochs <= train.warmup_epochs && train.warmup_factor < 1.0 {
            let Train { epochs, warmup_factor: factor, warmup_epochs, .. } = *train;
            observer.told(&Told::AllWarmUp { epochs, factor, warmup_epochs });
        }
        observer.started(&Start {
            folder: self.folder.path(),
            flow: self.flow,
            data: self.data,
            config: &self.config,
            position: self.steps.position(),
        });
        let mut result = self.train_on(observer).map_err(|e| self.explain(e));
        let (mut kept, mut training) = (None, None);
        if let Ok(true) = result {
            let finished = self.steps.finish();
            let saved = finished.and_then(|model| Ok((model, self.save_model()?)));
            result = saved.map(|(model, rows)| {
                (kept, training) = (Some(model), Some(rows));
                true
            });
        }
        if let Ok(true) = result {
            let skipped = self.steps.skipped();
            if skipped > 0 {
                observer.told(&Told::LeftOut(skipped));
            }
            let ending = kept.map(|kept| Ending::of(&kept, &self.config.train));
            ending.filter(|ending| !ending.is_plain()).iter().for_each(|ending| observer.told(&Told::Ended(*ending)));
            match super::metrics::read(&self.folder.metrics()) {
                Ok(reports) => {
                    let worse = worse_at_the_end(&reports, self.steps.cooldown(), self.config.training(), self.data);
                    worse.iter().for_each(|worse| observer.told(&Told::Worse(*worse)));
                }
                Err(error) => observer.told(&Told::Failed(error.to_string())),
            }
        }
        observer.saved();
        let drawn = self.pictures(observer, kept);
        let density = training.and_then(|training| self.density(observer, &training));
        manifest.status = match &result {
            Ok(true) if !drawn => manifest::UNDRAWN,
            Ok(true) => manifest::FINISHED,
            Ok(false) => manifest::INTERRUPTED,
            Err(Error::Diverged { .. }) => manifest::DIVERGED,
            Err(_) => "failed",
        };
        if let Err(error) = &result {
            observer.warnings.push(error.to_string());
        }
        manifest.ended = Some(clock::now());
        manifest.step = self.steps.position().step;
        manifest.ll = kept.map_or(self.last.and_then(|report| report.ll), |kept| kept.ll);
        manifest.kept_epoch = kept.map(|kept| kept.epoch);
        manifest.stopped_early = kept.is_some_and(|kept| kept.stopped_early);
        manifest.density.clone_from(&density);
        manifest.seconds += begun.elapsed().as_secs_f64();
        (manifest.warnings, manifest.notes) = (observer.warnings.clone(), observer.notes.clone());
        match (result, manifest.write(&self.folder.manifest())) {
            (Ok(finished), Ok(())) => {
                let folder = self.folder.path().into();
                Ok(Outcome { finished, folder, step: self.steps.position().step, last: self.last, kept, density })
            }
            (Ok(_), Err(error)) => Err(error),
            // The first failure is the one to report.
            (Err(error), written) => {
                if let Err(second) = written {
                    observer.told(&Told::Failed(second.to_string()));
                }
                Err(error)
            }
        }
    }

    /// All steps that are left. Returns false where the training was stopped.
    fn train_on(&mut self, observer: &mut dyn Observer) -> Result<bool> {
        let mut saved = Instant::now();
        while !self.steps.is_done() {
            if self.steps.step()? {
                observer.progress(&self.steps.progress());
            }
            self.tell_of_retry(observer);
            let ended = self.steps.at_epoch_end();
            if ended {
                let report = self.steps.finish_epoch()?;
                self.metrics.append(&report)?;
                self.last = Some(report);
                // After the epoch: only then is it known whether the training stops early.
                observer.epoch(&report, &self.steps.progress());
                self.tell_of_retry(observer);
                self.steps.began_cycle().iter().for_each(|cycle| observer.told(&Told::BeganCycle(*cycle)));
                self.watch_inverse(observer)?;
            }
            let stop = self.options.stop.load(Ordering::Relaxed);
            let due = match self.config.run.checkpoint_every {
                Some(steps) => self.steps.position().step.is_multiple_of(steps),
                None => saved.elapsed() >= if ended { AT_EPOCH_END } else { WITHIN_EPOCH },
            };
            if due || stop || self.steps.is_done() {
                if let Err(error) = self.save() {
                    // A state that is not to be kept.
                    self.steps.retry(error)?;
                    self.tell_of_retry(observer);
                    self.save()?;
                }
                saved = Instant::now();
            }
            if stop && !self.steps.is_done() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn tell_of_retry(&mut self, observer: &mut dyn Observer) {
        self.steps.retried().iter().for_each(|back| observer.told(&Told::WentBack(*back)));
    }

    /// Warns, once, where the backward pass of a reversible training cannot be as exact as it should be.
    fn watch_inverse(&mut self, observer: &mut dyn Observer) -> Result<()> {
        /// Gradients of reversible trainings are to agree with others to that.
        const GOOD: f64 = 1e-4;
        if self.config.train.memory != Memory::Reversible || self.warned {
            return Ok(());
        }
        let lost = self.steps.inverse_error()?;
        if lost > GOOD || lost.is_nan() {
            self.warned = true;
            observer.told(&Told::LostDigits(lost));
        }
        Ok(())
    }

    /// Writes the model that was kept, with what is to be known of its rows and observations.
    fn save_model(&self) -> Result<TrainingRows> {
        let training = density::remember(self.flow, self.data, self.config.train.noise)?;
        self.flow.save(self.folder.model(), Overwrite::Yes)?;
        Ok(training)
    }

    /// What the model does with the held-out rows. The model is written by now: where this fails, the run does not.
    fn density(&self, observer: &mut dyn Observer, training: &TrainingRows) -> Option<Density> {
        if !self.flow.spec().kind.has_density() {
            return None;
        }
        let density = density::held_out(self.flow, self.data, Some(training), density::SAMPLES);
        density.map_err(|error| observer.told(&Told::NoDensity(error.to_string()))).ok()
    }

    fn save(&mut self) -> Result<PathBuf> {
        // First the lines of the epochs that the checkpoint takes as done.
        self.metrics.sync()?;
        let about = About {
            spec: self.flow.spec().clone(),
            config: settings_that_matter(&self.config)?.to_string(),
            data: self.data.fingerprint.clone(),
            device: Device::from(&self.flow.engine().info()),
            x: self.flow.units().clone(),
            y: self.flow.units_of_conditions().clone(),
        };
        self.folder.checkpoints().write(&Checkpoint { about, state: self.steps.state()? })
    }

    /// Adds to an error where the run can be taken up again.
    fn explain(&self, error: Error) -> Error {
        let Error::Diverged { step, loss, .. } = error else { return error };
        let files = self.folder.checkpoints().files().unwrap_or_default();
        Error::Diverged { step, loss, checkpoint: files.last().map(|(_, path)| path.clone()) }
    }

    fn manifest(&self) -> Manifest {
        let position = self.steps.position();
        Manifest {
            version: env!("CARGO_PKG_VERSION"),
            command: self.options.command.to_vec(),
            status: manifest::RUNNING,
            started: clock::now(),
            ended: None,
            from_step: position.step,
            step: position.step,
            seed: self.config.train.seed,
            device: self.flow.engine().info(),
            model: self.flow.spec().clone(),
            parameters: self.flow.parameters(),
            data: DataFacts {
                name: self.data.name.clone(),
                fingerprint: self.data.fingerprint.clone(),
                train_rows: self.data.train_rows(),
                test_rows: self.data.test_rows(),
            },
            epochs: self.config.train.epochs,
            kept_epoch: None,
            stopped_early: false,
            ll: None,
            density: None,
            seconds: 0.0,
            warnings: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Pictures are an extra: where they fail, the run does not. Whether all could be drawn.
    fn pictures(&self, observer: &mut dyn Observer, kept: Option<Kept>) -> bool {
        let drawn = super::figures::write(&self.folder, &self.config, self.flow, self.data, kept);
        if let Err(error) = &drawn {
            observer.told(&Told::NotDrawn(error.to_string()));
        }
        drawn.is_ok()
    }
}
