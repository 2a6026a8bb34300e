//! Checkpoints: everything a training goes on from, in one file that is whole or absent.
//!
//! A safetensors file with the weight arena, Adam's two moments and the weights of the best epoch; where there are any,
//! averages of the weights and those that a training goes back to. Its metadata holds
//! [`About`] as JSON under `hintflow_checkpoint` and, under `sha256`, the digest of that JSON and all tensors, so that
//! damage anywhere is seen. Random numbers need no state of their own: they are functions of the seed in the settings
//! and of the position.

mod store;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::decision::{Cooldown, Retries};
use super::training_loop::{Best, Position, State};
use crate::atomic::{Overwrite, write_atomic};
use crate::data::columns::units::Units;
use crate::engine::{DeviceInfo, Skips};
use crate::error::{Error, Result};
use crate::flow::ModelFile;
use crate::plan::{Plan, Spec};
pub(crate) use store::Store;
pub(super) use store::name_of;

const KEY: &str = "hintflow_checkpoint";
const DIGEST: &str = "sha256";
/// The newest format that this version reads: 2, and that of the units of the columns if they need a newer one, see
/// [`Units::oldest_format`].
const FORMAT: u32 = 5;
const OLDEST: u32 = 2;
const TENSORS: [&str; 4] = ["weights", "first_moments", "second_moments", "best_weights"];
/// Those that are there only where they have elements.
const EXTRAS: [&str; 2] = ["averages", "good_weights"];

/// A checkpoint in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checkpoint {
    /// What it belongs to.
    pub about: About,
    /// What the training goes on from.
    pub state: State,
}

/// The training that a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The model.
    pub spec: Spec,
    /// The settings as TOML.
    pub config: String,
    /// [`super::Dataset::fingerprint`].
    pub data: String,
    /// The device: bits are the same on the same kind of device only.
    pub device: Device,
    /// Names, bounds and standardisation of the columns of x.
    pub x: Units,
    /// The same of the conditions.
    pub y: Units,
}

impl About {
    /// Whether `train.keep` is "last".
    fn keeps_last(&self) -> bool {
        let config = self.config.parse::<toml::Table>().unwrap_or_default();
        let keep = config.get("train").and_then(|train| train.get("keep")?.as_str());
        keep == Some("last")
    }
}

/// What decides the bits of a device's results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    /// "cpu" or "gpu".
    pub engine: String,
    /// Instruction set, or adapter and driver.
    pub arithmetic: String,
}

impl From<&DeviceInfo> for Device {
    fn from(info: &DeviceInfo) -> Self {
        Self { engine: info.engine.into(), arithmetic: info.arithmetic.clone() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    about: About,
    position: Position,
    /// Bits of the sum, which a decimal number might not give back.
    loss_sum: u64,
    losses: u64,
    best: Option<BestEpoch>,
    #[serde(default)]
    cooldown: Option<Cooldown>,
    /// Bits of the least loss; a file without it does not know.
    #[serde(default = "unknown")]
    least_loss: u64,
    #[serde(default)]
    retries: Retries,
    #[serde(default)]
    skips: Skips,
}

fn unknown() -> u64 {
    f64::NEG_INFINITY.to_bits()
}

/// A [`Best`] without its weights; numbers by their bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BestEpoch {
    epoch: u64,
    test_loss: u64,
    ll: u64,
}

impl Checkpoint {
    /// The model that the training would leave if it ended here: that of its best epoch so far where that is to be
    /// kept, else the present one. Nothing else is needed of it to go on: whatever file it came from at first may be
    /// gone.
    ///
    /// # Errors
    /// [`Error::Config`] if the spec is out of range, [`Error::Shape`] if the weights are those of another model.
    pub(crate) fn model(&self) -> Result<ModelFile> {
        let plan = Plan::new(&self.about.spec)?;
        // Weights may also be remembered for a cool-down to go back to.
        let best = self.state.best.as_ref().filter(|_| !self.about.keeps_last()).map(|best| &best.weights);
        let best = best.filter(|weights| !weights.is_empty());
        let weights = best.cloned().unwrap_or_else(|| self.state.model());
        let (expected, got) = (plan.layout.len(), weights.len());
        if expected != got {
            return Err(Error::Shape { what: "weights".into(), expected, got });
        }
        let About { x, y, .. } = self.about.clone();
        Ok(ModelFile { plan: plan.into(), weights, x, y, evidence: None, training: None })
    }

    /// Whether a file says of itself that it is a checkpoint; it may be damaged nevertheless. Reads its header only.
    pub(crate) fn is_one(path: &Path) -> bool {
        let header = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(path)?;
            let mut length = [0; 8];
            file.read_exact(&mut length)?;
            let mut header = Vec::new();
            file.take(u64::from_le_bytes(length)).read_to_end(&mut header)?;
            Ok(header)
        };
        // Only a regular file has an end.
        let key = format!("\"{KEY}\"").into_bytes();
        path.is_file() && header().is_ok_and(|header| header.windows(key.len()).any(|window| window == key))
    }

    /// Writes the file atomically over what may be there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let wrong = |e: String| Error::format(path, e);
        let state = &self.state;
        let header = Header {
            format: self.about.x.oldest_format().max(self.about.y.oldest_format()).max(OLDEST),
            about: self.about.clone(),
            position: state.position,
            loss_sum: state.loss_sum.to_bits(),
            losses: state.losses,
            best: state.best.as_ref().map(|best| BestEpoch {
                epoch: best.epoch,
                test_loss: best.test_loss.to_bits(),
                ll: best.ll.to_bits(),
            }),
            cooldown: state.cooldown,
            least_loss: state.least_loss.to_bits(),
            retries: state.retries,
            skips: state.skips,
        };
        let json = serde_json::to_string(&header).map_err(|e| wrong(e.to_string()))?;
        let best_weights = state.best.as_ref().map_or(&[][..], |best| &best.weights[..]);
        let arrays = [&state.weights[..], &state.first_moments, &state.second_moments, best_weights];
        let extras = EXTRAS.iter().zip([&state.averages[..], &state.good]).filter(|(_, values)| !values.is_empty());
        let views = TENSORS.iter().zip(arrays).chain(extras).map(|(name, values)| {
            TensorView::new(Dtype::F32, vec![values.len()], bytemuck::cast_slice(values)).map(|view| (*name, view))
        });
        let views = views.collect::<Result<Vec<_>, _>>().map_err(|e| wrong(e.to_string()))?;
        let digest = digest(&json, views.iter().map(|(_, view)| view.data()));
        let metadata = HashMap::from([(KEY.to_owned(), json), (DIGEST.to_owned(), digest)]);
        let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| wrong(e.to_string()))?;
        write_atomic(path, Overwrite::Yes, |file| file.write_all(&bytes))
    }

    /// Reads and checks a file. Nothing in it is trusted before its digest is right.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Format`] if it is damaged or no checkpoint.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        let damaged = |why: String| Error::format(path, format!("is damaged or no checkpoint of hintflow ({why})"));
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
        let entry = |key: &str| {
            let entries = metadata.metadata().as_ref();
            entries.and_then(|m| m.get(key)).ok_or_else(|| damaged(format!("no entry `{key}`")))
        };
        let json = entry(KEY)?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
        let views = TENSORS.map(|name| tensors.tensor(name).map_err(|e| damaged(e.to_string())));
        let mut views = views.into_iter().collect::<Result<Vec<_>>>()?;
        let extras = EXTRAS.map(|name| tensors.tensor(name).ok());
        views.extend(extras.iter().flatten().cloned());
        if *entry(DIGEST)? != digest(json, views.iter().map(TensorView::data)) {
            return Err(damaged("its digest is wrong".into()));
        }
        let header: Header = serde_json::from_str(json).map_err(|e| damaged(e.to_string()))?;
        if !(OLDEST..=FORMAT).contains(&header.format) {
            let found = header.format;
            return Err(Error::format(
                path,
                format!("has format {found}, this version of hintflow reads up to {FORMAT}"),
            ));
        }
        let mut arrays = views.iter().map(|view| match view.dtype() {
            Dtype::F32 => {
                let (values, _) = view.data().as_chunks::<4>();
                Ok(values.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<_>>())
            }
            other => Err(damaged(format!("a tensor has type {other:?}"))),
        });
        let mut next = || arrays.next().unwrap_or_else(|| Err(damaged("a tensor is missing".into())));
        let state = State {
            weights: next()?,
            first_moments: next()?,
            second_moments: next()?,
            averages: Vec::new(),
            position: header.position,
            loss_sum: f64::from_bits(header.loss_sum),
            losses: header.losses,
            least_loss: f64::from_bits(header.least_loss),
            best: None,
            cooldown: header.cooldown,
            retries: header.retries,
            good: Vec::new(),
            skips: header.skips,
        };
        let weights = next()?;
        let best = header.best.map(|BestEpoch { epoch, test_loss, ll }| Best {
            epoch,
            test_loss: f64::from_bits(test_loss),
            ll: f64::from_bits(ll),
            weights,
        });
        let mut extra = |view: &Option<TensorView<'_>>| if view.is_some() { next() } else { Ok(Vec::new()) };
        let (averages, good) = (extra(&extras[0])?, extra(&extras[1])?);
        let state = State { best, averages, good, ..state };
        Ok(Self { about: header.about, state })
    }
}

fn digest<'a>(json: &str, tensors: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    hash.update((json.len() as u64).to_le_bytes());
    hash.update(json);
    for bytes in tensors {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Mixing;

    fn checkpoint(step: u64) -> Checkpoint {
        let about = About {
            spec: Spec::default(),
            config: "[model]\n".into(),
            data: "abc".into(),
            device: Device { engine: "cpu".into(), arithmetic: "AVX2".into() },
            x: Units::fit(vec!["a".into(), "b".into()], vec![], 2, true, &[0.1, 0.2, 0.3, 7.0]).unwrap(),
            y: Units::default(),
        };
        let state = State {
            weights: vec![1.0, -2.5, 3.0],
            first_moments: vec![0.1, 0.2],
            second_moments: vec![],
            averages: vec![0.5, -0.25],
            position: Position { epoch: 1, batch: 2, step },
            loss_sum: 0.1 + 0.2,
            losses: 3,
            least_loss: -0.1,
            best: Some(Best { epoch: 1, test_loss: 0.1 + 0.2, ll: -1e-300, weights: vec![4.0, 5.0, -6.5] }),
            cooldown: Some(Cooldown { start: 1, from: 1 }),
            retries: Retries { count: 2, step: 3 },
            good: vec![7.0, 8.0, 9.0],
            skips: Skips { total: 4, in_a_row: 1 },
        };
        Checkpoint { about, state }
    }

    #[test]
    fn comes_back_bit_by_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        checkpoint(5).write(&path).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), checkpoint(5));
        let mut none = checkpoint(5);
        none.state.best = None;
        none.state.averages = vec![];
        none.write(&path).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), none);
    }

    #[test]
    fn the_model_is_that_which_is_to_be_kept() {
        let mut c = checkpoint(5);
        c.about.spec = Spec { dim: 1, blocks: 1, mixing: Mixing::None, ..Spec::default() };
        let length = Plan::new(&c.about.spec).unwrap().layout.len();
        c.state.weights = vec![1.0; length];
        let averages = std::mem::take(&mut c.state.averages);
        let mut best = c.state.best.take().unwrap();
        best.weights = vec![2.0; length];
        c.state.best = Some(best);
        let first = |config: &str, c: &Checkpoint| {
            let about = About { config: config.into(), ..c.about.clone() };
            Checkpoint { about, ..c.clone() }.model().unwrap().weights[0]
        };
        let [best, last] = ["[train]\nkeep = \"best\"", "[train]\nkeep = \"last\""];
        // There the best weights are for a cool-down.
        assert_eq!((first(best, &c), first(last, &c)), (2.0, 1.0));
        c.state.best = None;
        assert_eq!(first(best, &c), 1.0);
        c.state.averages = averages;
        assert_eq!(first(best, &c), 0.5);
    }

    #[test]
    fn headers_from_before_there_was_a_cooldown_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        checkpoint(5).write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let mut header: serde_json::Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()[KEY]).unwrap();
        for later in ["cooldown", "least_loss", "retries", "skips"] {
            assert!(header.as_object_mut().unwrap().remove(later).is_some());
        }
        let header = serde_json::from_value::<Header>(header).unwrap();
        assert_eq!((header.cooldown, header.retries, header.skips), (None, Retries::default(), Skips::default()));
        assert_eq!(f64::from_bits(header.least_loss), f64::NEG_INFINITY);
    }

    #[test]
    fn any_changed_byte_and_any_cut_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        checkpoint(5).write(&path).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            for change in [1, 0x20, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= change;
                std::fs::write(&path, &bad).unwrap();
                match Checkpoint::read(&path) {
                    Err(Error::Format { .. }) => {}
                    // A header may differ without meaning something else, for example by a space.
                    Ok(read) => assert_eq!(read, checkpoint(5), "byte {at}"),
                    Err(other) => panic!("{other}"),
                }
            }
        }
        for length in 0..good.len() {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(matches!(Checkpoint::read(&path), Err(Error::Format { .. })), "{length} bytes");
        }
    }

    #[test]
    fn the_last_two_are_kept_and_the_newest_whole_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("checkpoints"));
        assert!(store.latest().unwrap().is_none());
        let paths: Vec<_> = [1, 2, 30].map(|step| store.write(&checkpoint(step)).unwrap()).into();
        std::fs::write(folder.path().join("checkpoints/other.txt"), "").unwrap();
        assert_eq!(store.files().unwrap().iter().map(|f| f.0).collect::<Vec<_>>(), [2, 30]);
        assert_eq!(store.latest().unwrap().unwrap().0, checkpoint(30));
        std::fs::write(&paths[2], "torn").unwrap();
        let (found, _, passed_over) = store.latest().unwrap().unwrap();
        assert_eq!((found, passed_over.len()), (checkpoint(2), 1));
        std::fs::write(&paths[1], "").unwrap();
        assert!(store.latest().is_err());
        // A training that went back.
        store.write(&checkpoint(1)).unwrap();
        assert_eq!(store.files().unwrap().iter().map(|f| f.0).collect::<Vec<_>>(), [1]);
        store.clear().unwrap();
        assert!(store.latest().unwrap().is_none());
    }
}
