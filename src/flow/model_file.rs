//! The interchange format `model.safetensors` (docs/model.md, Model file): weights by name, and the spec as JSON.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::{Evidence, digest};
use crate::atomic::{Overwrite, write_atomic};
use crate::data::columns::units::Units;
use crate::data::files::open_regular;
use crate::error::{Error, Result};
use crate::eval::density::TrainingRows;
use crate::plan::{Kind, Plan, Spec, Tensor, budget};
use crate::rng::{self, Stream};

/// Key of the JSON in the file's metadata.
const KEY: &str = "hintflow";
/// The longest header that the format safetensors allows, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;
/// The newest format that this version reads. A file is written in the oldest that has all it needs, see
/// [`Units::oldest_format`].
const FORMAT: u32 = 5;
/// The oldest format that knows an `inn`.
const FORMAT_OF_INN: u32 = 4;

/// A model off the device: its plan, all its weights, and what belongs to its columns.
#[derive(Clone, Debug)]
pub(crate) struct ModelFile {
    /// Node tables and weight layout.
    pub plan: Arc<Plan>,
    /// The weight arena; derived weights are recomputed by the programs and may hold anything.
    pub weights: Vec<f32>,
    /// Names, bounds and standardisation of the columns of x.
    pub x: Units,
    /// The same of the conditions y, where the model has any.
    pub y: Units,
    /// How usual observations are, of a trained `hint`.
    pub evidence: Option<Evidence>,
    /// The rows that it was trained on, of a training that is over.
    pub training: Option<TrainingRows>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    #[serde(flatten)]
    spec: Spec,
    #[serde(flatten)]
    x: Units,
    #[serde(default, skip_serializing_if = "is_default")]
    given: Units,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    training: Option<TrainingRows>,
}

fn is_default(units: &Units) -> bool {
    *units == Units::default()
}

impl ModelFile {
    /// Reads and checks a model file. Nothing in the file is trusted: sizes are compared before anything is allocated.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Format`] with the key or tensor that is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        open_tensors(path)?.read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
        Self::parse(&bytes, path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::format(path, what);
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|e| wrong(format!("is not a safetensors file or is cut off ({e}); is it a hintflow model?")))?;
        let json = metadata.metadata().as_ref().and_then(|m| m.get(KEY)).ok_or_else(|| {
            wrong(format!("is a safetensors file without the metadata key `{KEY}`; it was not written by hintflow"))
        })?;
        let (json, written) = digest::taken_off(json);
        let header: Header = serde_json::from_str(&json)
            .map_err(|e| wrong(format!("the metadata key `{KEY}` does not describe a model: {e}")))?;
        if header.format > FORMAT {
            let found = header.format;
            return Err(wrong(format!("has format {found}, this version reads up to {FORMAT}; use a newer hintflow")));
        }
        header.spec.validate().map_err(|e| wrong(e.to_string()))?;
        let needed = budget::stored_weights(&header.spec).saturating_mul(4);
        if needed > bytes.len() as u64 {
            return Err(wrong(format!("its header describes {needed} bytes of weights, the file has {}", bytes.len())));
        }
        let plan = Plan::new(&header.spec).map_err(|e| wrong(e.to_string()))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| wrong(e.to_string()))?;
        // Weights that nobody reads are a sign that description and weights are not of one model.
        let known = |name: &str| plan.layout.tensors.iter().any(|tensor| tensor.name == name);
        let empty = |name: &str| tensors.tensor(name).is_ok_and(|view| view.data().is_empty());
        let foreign =
            tensors.names().into_iter().filter(|name| name.starts_with("blocks.") && !known(name) && !empty(name));
        if let Some(name) = foreign.min() {
            return Err(wrong(format!("tensor `{name}` is no part of the model that the metadata describes")));
        }
        if let Some(written) = written {
            let data = |name: &str| tensors.tensor(name).map_or(&[][..], |view| view.data());
            let tensors = plan.layout.tensors.iter().map(|tensor| (tensor.name.as_str(), data(&tensor.name)));
            if digest::of(&json, tensors) != written {
                let what = "is damaged: its content is not what was written (its digest differs); take a copy of it";
                return Err(wrong(what.into()));
            }
        }
        let mut weights = vec![0.0; plan.layout.len()];
        for tensor in plan.layout.tensors.iter().filter(|t| !t.is_empty()) {
            let view =
                tensors.tensor(&tensor.name).map_err(|_| wrong(format!("tensor `{}` is missing", tensor.name)))?;
            read_tensor(tensor, &view, &mut weights[tensor.range()]).map_err(wrong)?;
        }
        let Header { x, given: y, evidence, training, .. } = header;
        let file = Self { plan: Arc::new(plan), weights, x, y, evidence, training };
        file.check().map_err(|e| wrong(e.to_string()))?;
        Ok(file)
    }

    /// Whether the parts fit each other.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Config`] with the part that does not.
    pub(super) fn check(&self) -> Result<()> {
        let (expected, got) = (self.plan.layout.len(), self.weights.len());
        if expected != got {
            return Err(Error::Shape { what: "weights of the model".into(), expected, got });
        }
        for mix in self.plan.mixes().filter(|mix| mix.reflections.is_none()) {
            let (at, dim) = (mix.q as usize, mix.dim as usize);
            let q = &self.weights[at..at + dim * dim];
            if !is_orthogonal(q, dim) || (mix.permutes && !q.iter().all(|&q| q == 0.0 || q == 1.0)) {
                let tensor = self.plan.layout.tensors.iter().find(|tensor| tensor.offset == at);
                let name = tensor.map_or("a mixing", |tensor| &tensor.name);
                let kind = if mix.permutes { "a permutation" } else { "orthogonal" };
                let what =
                    format!("is not {kind}, so its inverse and its densities would be wrong; the file is damaged");
                return Err(Error::config(name, what));
            }
        }
        self.evidence.as_ref().map_or(Ok(()), Evidence::check)?;
        let spec = &self.plan.spec;
        self.training.as_ref().map_or(Ok(()), |training| training.check(spec.row_columns() as usize))?;
        self.x.check(spec.dim as usize, spec.cond_dim as usize, "the model")?;
        if spec.cond_dim > 0 || !is_default(&self.y) {
            self.y.check(spec.cond_dim as usize, 0, "the conditions")?;
        }
        match self.y.columns.iter().find(|name| self.x.columns.contains(name)) {
            Some(name) => {
                let what = format!("`{name}` is the name of a condition and a column; they could not be told apart");
                Err(Error::config("columns", what))
            }
            None => Ok(()),
        }
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file exists and `overwrite` is [`Overwrite::No`], [`Error::Io`] if it cannot be written.
    pub(crate) fn write(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let header = Header {
            format: match self.plan.spec.kind {
                Kind::Inn => FORMAT_OF_INN.max(self.x.oldest_format()).max(self.y.oldest_format()),
                _ => self.x.oldest_format().max(self.y.oldest_format()),
            },
            spec: self.plan.spec.clone(),
            x: self.x.clone(),
            given: self.y.clone(),
            evidence: self.evidence.clone(),
            training: self.training.clone(),
        };
        let json = serde_json::to_string(&header).map_err(|e| Error::format(path, e.to_string()))?;
        let views = self.plan.layout.tensors.iter().map(|t| {
            let bytes = bytemuck::cast_slice(&self.weights[t.range()]);
            TensorView::new(Dtype::F32, t.shape.clone(), bytes).map(|view| (t.name.clone(), view))
        });
        let views = views.collect::<Result<Vec<_>, _>>().map_err(|e| Error::format(path, e.to_string()))?;
        let bytes = |tensor: &Tensor| bytemuck::cast_slice(&self.weights[tensor.range()]);
        let digest = digest::of(&json, self.plan.layout.tensors.iter().map(|t| (t.name.as_str(), bytes(t))));
        let metadata = Some(HashMap::from([(KEY.to_owned(), digest::put_on(&json, &digest))]));
        let bytes = safetensors::serialize(views, metadata).map_err(|e| Error::format(path, e.to_string()))?;
        write_atomic(path, overwrite, |file| file.write_all(&bytes))
    }
}

/// Opens a safetensors file. One whose header would be longer than it or the format allows is something else, and is
/// refused before it is read: it may be of any size.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::Format`] if it is something else.
pub(crate) fn open_tensors(path: &Path) -> Result<File> {
    let (mut file, size) = open_regular(path)?;
    let failed = |e| Error::io("read", path, e);
    let mut first = Vec::new();
    file.by_ref().take(8).read_to_end(&mut first).map_err(failed)?;
    // A shorter file has no header.
    let header = first.try_into().map_or(0, u64::from_le_bytes);
    if header > LONGEST_HEADER.min(size.saturating_sub(8)) {
        let what =
            format!("is not a safetensors file or is cut off (its first bytes say that its header has {header} bytes)");
        return Err(Error::format(path, format!("{what}; is it a hintflow model?")));
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Whether `Q^T Q v = v` for a random vector, which takes n^2 operations and not n^3. Rounding of Q to `f32` leaves
/// about 1e-7.
fn is_orthogonal(q: &[f32], n: usize) -> bool {
    let mut v = vec![0.0; n];
    rng::fill_normals(0, Stream::Mixing, 0, 0, &mut v);
    let mut back = vec![0.0f64; n];
    for row in q.chunks_exact(n) {
        let along: f64 = row.iter().zip(&v).map(|(q, v)| f64::from(*q) * f64::from(*v)).sum();
        back.iter_mut().zip(row).for_each(|(b, q)| *b += along * f64::from(*q));
    }
    back.iter().zip(&v).all(|(b, v)| (b - f64::from(*v)).abs() <= 1e-3)
}

fn read_tensor(want: &Tensor, view: &TensorView<'_>, out: &mut [f32]) -> Result<(), String> {
    let name = &want.name;
    if view.dtype() != Dtype::F32 {
        return Err(format!("tensor `{name}` has type {:?}, must be F32", view.dtype()));
    }
    if view.shape() != want.shape {
        return Err(format!("tensor `{name}` has shape {:?}, must have {:?}", view.shape(), want.shape));
    }
    let (values, _) = view.data().as_chunks::<4>();
    for (value, bytes) in out.iter_mut().zip(values) {
        *value = f32::from_le_bytes(*bytes);
    }
    match out.iter().position(|v| !v.is_finite()) {
        Some(at) => Err(format!("tensor `{name}` holds {} at element {at}; the model is not usable", out[at])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::data::{Bounds, Standardizer};
    use crate::flow::Flow;

    #[test]
    fn files_whose_parts_do_not_fit_are_refused() {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let file = Flow::builder(5).width(8).build(&engine).unwrap().to_file().unwrap();
        assert!(file.check().is_ok());
        let message = |change: &dyn Fn(&mut ModelFile)| {
            let mut file = file.clone();
            change(&mut file);
            Flow::from_file(file, &engine).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(message(&|f| f.weights.truncate(3)).contains("weights"));
        assert!(message(&|f| f.x.columns = vec!["a".into()]).contains("column names"));
        let last = file.weights.len() - 1;
        assert!(message(&|f| f.weights[last] += 0.1).contains("blocks.1.mix.weight"));
        assert!(message(&|f| f.weights[last] = f32::NAN).contains("blocks.1.mix.weight"));
    }

    /// Units of x lie beside the spec as they always did, those of y below `given`.
    #[test]
    fn units_have_their_keys_and_come_back() {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let spec = Spec { kind: crate::plan::Kind::Hint, dim: 2, cond_dim: 1, width: 4, ..Spec::default() };
        let mut file = crate::flow::FlowBuilder::from_spec(spec).build(&engine).unwrap().to_file().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let json = |file: &ModelFile, name: &str| -> serde_json::Value {
            let path = folder.path().join(name);
            file.write(&path, Overwrite::No).unwrap();
            let back = ModelFile::read(&path).unwrap();
            assert_eq!((&back.x, &back.y), (&file.x, &file.y));
            let bytes = std::fs::read(&path).unwrap();
            let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
            serde_json::from_str(&metadata.metadata().as_ref().unwrap()[KEY]).unwrap()
        };
        let plain = json(&file, "plain");
        for key in ["columns", "standardize", "bounds", "given", "transforms", "squash"] {
            assert!(plain.get(key).is_none(), "{key} is left out where there is none");
        }
        assert_eq!(plain["format"], 1);
        let bounds = vec![Bounds { lower: Some(1e-30), upper: Some(1e30) }, Bounds::default()];
        file.x = Units { columns: vec!["a".into(), "b".into()], bounds, ..Units::default() };
        let standardize = Standardizer::fit(&[1.0, 3.0], 1).unwrap();
        let bounds = vec![Bounds { lower: None, upper: Some(7.0) }];
        file.y = Units { columns: vec!["c".into()], bounds, standardize: Some(standardize), ..Units::default() };
        let full = json(&file, "full");
        assert_eq!(full["columns"], serde_json::json!(["a", "b"]));
        assert_eq!(full["bounds"], serde_json::json!([{"lower": 1e-30, "upper": 1e30}, {}]));
        let given = serde_json::json!({
            "columns": ["c"], "bounds": [{"upper": 7.0}], "standardize": {"mean": [2.0], "scale": [1.0]}
        });
        assert_eq!(full["given"], given);
        assert_eq!(full["format"], 1);
        let robust = serde_json::json!({"kind": "robust", "center": 0.5, "scale": 2.0, "knee": 4.0, "pull": 1.0});
        file.y.transforms = vec![serde_json::from_value(robust.clone()).unwrap()];
        file.x.squash = Some(3.0);
        let new = json(&file, "new");
        assert_eq!((&new["format"], &new["squash"]), (&2.into(), &3.0.into()));
        assert_eq!(new["given"]["transforms"], serde_json::json!([robust]));
        assert!(new["regression"].is_null());
        let regression = serde_json::json!({"coefficients": [[0.5], []]});
        file.x.regression = serde_json::from_value(regression.clone()).unwrap();
        let newest = json(&file, "newest");
        assert_eq!((&newest["format"], &newest["regression"]), (&3.into(), &regression));
        file.x.regression = serde_json::from_value(serde_json::json!({"coefficients": [[0.5, 1.0], []]})).unwrap();
        assert!(file.check().unwrap_err().to_string().contains("2 coefficients of a column, of 1 condition"));
        file.x.regression = None;
        file.y.bounds.push(Bounds::default());
        assert!(file.check().unwrap_err().to_string().contains("bounds of the conditions"));
    }

    /// A table of gigabytes by the name of a model is not read, and is not looked through for a header.
    #[test]
    fn what_has_no_header_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let message = |first: &[u8], size: u64| {
            std::fs::write(&path, first).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
            let errors = [ModelFile::read(&path), crate::train::folder::read_model(&path)];
            errors.map(|result| result.unwrap_err().to_string())
        };
        // Gigabytes that take no room.
        for (first, size) in
            [(&b"0.1,0.2,"[..], 1 << 32), (&100_000_001u64.to_le_bytes()[..], 1 << 32), (b"a,b\n1,2\n", 8)]
        {
            for text in message(first, size) {
                assert!(text.contains("not a safetensors file") && text.contains("header has"), "{text}");
            }
        }
        for text in message(b"a,b\n1,2", 7) {
            assert!(text.contains("not a safetensors file"), "{text}");
        }
    }

    /// Descriptions that were changed by hand.
    #[test]
    fn names_and_scales_that_no_training_writes_are_refused() {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let spec = Spec { kind: crate::plan::Kind::Hint, dim: 2, cond_dim: 1, width: 4, ..Spec::default() };
        let mut file = crate::flow::FlowBuilder::from_spec(spec).build(&engine).unwrap().to_file().unwrap();
        file.x = Units::fit(vec!["a".into(), "b".into()], vec![], 2, true, &[1.0, 2.0, 3.0, 5.0]).unwrap();
        file.y = Units::fit(vec!["c".into()], vec![], 1, true, &[1.0, 3.0]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let message = |change: &dyn Fn(&mut ModelFile)| {
            let mut file = file.clone();
            change(&mut file);
            file.write(&path, Overwrite::Yes).unwrap();
            ModelFile::read(&path).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(message(&|_| {}), "");
        let text = message(&|f| f.x.columns[1] = "a".into());
        assert!(text.contains("model.safetensors") && text.contains("`a`") && text.contains("two columns"), "{text}");
        let text = message(&|f| f.y.columns[0] = "b".into());
        assert!(text.contains("`b`") && text.contains("a condition and a column"), "{text}");
        for wrong in [0.0, -0.0, -1.0, 5e-324, 1e-100, 1e40, f64::MAX] {
            let text = message(&|f| f.x.standardize.as_mut().unwrap().scale[1] = wrong);
            assert!(text.contains("standardize") && text.contains("`b`") && text.contains("deviation"), "{text}");
        }
        for wrong in [1e40, f64::MIN] {
            let text = message(&|f| f.y.standardize.as_mut().unwrap().mean[0] = wrong);
            assert!(text.contains("standardize") && text.contains("`c`") && text.contains("mean"), "{text}");
        }
        let text = message(&|f| f.x.standardize.as_mut().unwrap().constant = vec![2]);
        assert!(text.contains("standardize") && text.contains("constant"), "{text}");
        // JSON has no word for these; in memory they are refused by the same check.
        for wrong in [f64::NAN, f64::INFINITY] {
            assert!(
                message(&|f| f.x.standardize.as_mut().unwrap().scale[0] = wrong).contains("does not describe a model")
            );
            let mut file = file.clone();
            file.x.standardize.as_mut().unwrap().scale[0] = wrong;
            assert!(file.check().unwrap_err().to_string().contains("`a`"));
        }
    }

    /// A file of a few hundred bytes that claims billions of fixed weights: refused before any of them is allocated.
    #[test]
    fn huge_claims_are_refused_by_the_size_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let claim = r#"{"format":1,"kind":"flow","dim":40000,"blocks":1,"depth":0,"width":1,"mixing":"fixed"}"#;
        let none: [(&str, TensorView<'_>); 0] = [];
        let metadata = Some(HashMap::from([(KEY.to_owned(), claim.to_owned())]));
        std::fs::write(&path, safetensors::serialize(none, metadata).unwrap()).unwrap();
        let message = ModelFile::read(&path).unwrap_err().to_string();
        assert!(message.contains("describes 6400") && message.contains("the file has"), "{message}");
    }

    /// Wherever a bit of a file has changed, it is refused or says the same.
    #[test]
    fn a_changed_bit_is_no_other_model() {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let file = Flow::builder(5).width(4).build(&engine).unwrap().to_file().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        file.write(&path, Overwrite::No).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut refused = 0;
        for i in 0..600 {
            let bit = (i * 7919 + 13) * 31 % (whole.len() * 8);
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match ModelFile::parse(&bytes, &path) {
                Err(_) => refused += 1,
                Ok(read) => {
                    let same = (&read.weights, &read.x, &read.y) == (&file.weights, &file.x, &file.y);
                    assert!(same && read.plan.spec == file.plan.spec, "bit {bit} of {}", whole.len() * 8);
                }
            }
        }
        assert!(refused > 500, "{refused} of 600");
    }

    #[test]
    fn a_file_without_a_digest_is_read() {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let file = Flow::builder(3).width(4).build(&engine).unwrap().to_file().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        file.write(&path, Overwrite::No).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let json = digest::taken_off(&metadata.metadata().as_ref().unwrap()[KEY]).0.into_owned();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let without = safetensors::serialize(tensors.tensors(), Some(HashMap::from([(KEY.to_owned(), json)]))).unwrap();
        assert_eq!(ModelFile::parse(&without, &path).unwrap().weights, file.weights);
    }
}
