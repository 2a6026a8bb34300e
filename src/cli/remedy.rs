//! What the command line adds to errors of the library: what to do, and the exit code.

use crate::Error;

/// Exit code of the command for an error (see `hintflow --help`).
pub(super) fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Config { .. } | Error::UnknownKey { .. } | Error::Argument { .. } | Error::WrongKind { .. } => 2,
        Error::Diverged { .. } | Error::StepDiverged { .. } => 3,
        Error::Device { .. }
        | Error::DeviceLost { .. }
        | Error::NoAdapter { .. }
        | Error::OutOfMemory { .. }
        | Error::UnsupportedLimit { .. } => 4,
        Error::CheckFailed { .. } => 5,
        Error::Stopped => 130,
        _ => 1,
    }
}

/// What to do about an error, if there is something.
pub(super) fn remedy(error: &Error) -> Option<String> {
    Some(match error {
        Error::Exists { .. } => "choose another name or pass --force to overwrite it".into(),
        Error::UnknownKey { nearest: None, .. } => "`hintflow train --help` lists all".into(),
        Error::NoAdapter { found, .. } if found.is_empty() => install().into(),
        Error::OutOfMemory { .. } => {
            "choose a smaller model or batch, or --device cpu on a machine with more memory".into()
        }
        Error::UnsupportedLimit { .. } => "choose fewer or narrower blocks, another --device, or --device cpu".into(),
        Error::DeviceLost { .. } => "continue from the last checkpoint with --resume".into(),
        Error::CheckFailed { .. } => {
            "look for a newer driver or choose another --device (if this is the CPU engine, it is a \
                                      mistake in hintflow)"
                .into()
        }
        Error::StepDiverged { .. } => {
            "begin the filter anew with a lower learning rate, as with --set train.lr=0.001, or with more --samples"
                .into()
        }
        Error::Diverged { checkpoint, .. } => {
            let again = "try a lower train.lr, train.memory = \"stored\" if it is \"reversible\", or model.scale = \"atan\" if \
                         it is \"exp\"";
            match checkpoint {
                None => again.into(),
                Some(path) => format!(
                    "the last good checkpoint is {path}; start from it with --init {path} and a smaller train.lr, or start \
                     anew: {again}",
                    path = path.display()
                ),
            }
        }
        _ => return None,
    })
}

/// What to install on a machine without any adapter.
fn install() -> &'static str {
    if cfg!(target_os = "linux") {
        "install the Vulkan driver of the GPU, or a software adapter (Debian: apt-get install libvulkan1 \
         mesa-vulkan-drivers), or use --device cpu"
    } else {
        "install the driver of the GPU, or use --device cpu"
    }
}

/// An error with what to do about it.
pub(super) fn in_words(error: &Error) -> String {
    match remedy(error) {
        None => error.to_string(),
        Some(remedy) => format!("{error}; {remedy}"),
    }
}
