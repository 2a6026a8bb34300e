//! What a training begins with: settings, rows and model, before anything is written or computed.

use std::path::{Path, PathBuf};

use super::settings_of;
use crate::atomic::Overwrite;
use crate::config::{self, Config, Given, Resolved};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::flow::{Flow, FlowBuilder, ModelFile};
use crate::plan::Plan;
use crate::train::dataset::Dataset;
use crate::train::folder::{self, RunFolder, read_model};
use crate::train::inputs::{absolute, keeps_inputs};

/// What a new run begins with: its folder, if it has a name, its settings, its model, if there is one, and its rows.
pub(super) type Beginning = (Option<PathBuf>, Resolved, Option<ModelFile>, Dataset);

/// Reads all that a new run begins with. Nothing is written.
pub(super) fn begin(config: Config, overwrite: Overwrite) -> Result<Beginning> {
    if let Some(out) = &config.run.out {
        RunFolder::check(out, overwrite)?;
        keeps_inputs(out, &config)?;
    }
    // Where a run is does not belong to its settings.
    let (out, run) = (config.run.out.clone(), config::Run { out: None, ..config.run });
    let config = absolute(Config { run, ..config })?;
    let init = config.model.init.as_deref().map(read_model).transpose()?;
    let data = Dataset::load(&config, init.as_ref())?;
    let config = resolved(config, &data)?;
    Ok((out, config, init, data))
}

/// Of a file with rows that is no longer where it was: which setting says where it is.
pub(super) fn gone(error: Error, config: &Config) -> Error {
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
pub(super) fn remember_files(run: &Path, config: &Config) -> Result<()> {
    let before = settings_of(run)?;
    let (path, given) = (&config.data.path, &config.data.given);
    if (&before.data.path, &before.data.given) == (path, given) {
        return Ok(());
    }
    let data = config::Data { path: path.clone(), given: given.clone(), ..before.data };
    let text = Config { data, ..before }.to_toml()?;
    crate::atomic::write_atomic(&folder::config_of(run), Overwrite::Yes, |file| file.write_all(text.as_bytes()))
}

/// All settings of a training on these rows: the one place where nothing is left to choose.
pub(super) fn resolved(config: Config, data: &Dataset) -> Result<Resolved> {
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
pub(super) fn model(config: &Resolved, data: &Dataset, init: Option<ModelFile>, engine: &Engine) -> Result<Flow> {
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
