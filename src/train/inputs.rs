//! The files that a run begins from: table, conditions, model.

use std::path::Path;

use super::folder::{RunFolder, model_of};
use crate::config::{Config, Given};
use crate::error::{Error, Result};

/// Whether a new run in `out` leaves the files alone that it begins from.
pub(super) fn keeps_inputs(out: &Path, config: &Config) -> Result<()> {
    let (data, model) = (&config.data, &config.model);
    let given = data.given.as_ref().and_then(Given::file);
    for (key, input) in
        [("model.init", model.init.as_deref()), ("data.path", data.path.as_deref()), ("data.given", given)]
    {
        // A run folder stands for its model.
        let replaced = |input: &&Path| {
            RunFolder::replaces(out, input) || model_of(input).is_ok_and(|file| RunFolder::replaces(out, &file))
        };
        if let Some(input) = input.filter(replaced) {
            let what = format!(
                "{} is a file of the earlier run in {}, which the new run replaces; choose another --out, or copy the file",
                input.display(),
                out.display()
            );
            return Err(Error::config(key, what));
        }
    }
    Ok(())
}

/// Makes paths independent of the working directory, so that the settings run from anywhere.
pub(super) fn absolute(mut config: Config) -> Result<Config> {
    let given = match &mut config.data.given {
        Some(Given::File(path)) => Some(path),
        _ => None,
    };
    for path in [&mut config.data.path, &mut config.model.init].into_iter().flatten().chain(given) {
        *path = std::path::absolute(&*path).map_err(|e| Error::io("find", &*path, e))?;
    }
    Ok(config)
}
