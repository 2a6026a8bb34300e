//! Reads and writes safetensors files: models, and the fixtures made by an independent implementation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::oracle::{AdamSettings, Model, Spec, Tensor, Tensors};

/// Key of the metadata that holds what the model is.
const SPEC_KEY: &str = "hintflow";

/// Fixtures of affine couplings, without the endings of their file names.
pub(crate) const FIXTURES: [&str; 11] = [
    "cinn_n20_c2",
    "cinn_n7_c4_full_output",
    "flow_n100_depth2",
    "flow_n1_nomix",
    "flow_n20_depth0",
    "flow_n20_full_input",
    "flow_n20_full_output",
    "flow_n3_exp",
    "flow_n7_householder",
    "hint_n20_c2",
    "hint_n5_c1_householder",
];

/// Those of splines, made by `tests/fixtures/make_splines.py`.
pub(crate) const SPLINE_FIXTURES: [&str; 9] = [
    "cinn_n5_c3_spline",
    "flow_n1_spline",
    "flow_n20_spline_reverse",
    "flow_n2_spline_reverse",
    "flow_n33_spline_depth1",
    "flow_n7_spline_permutation_output",
    "hint_n1_c1_spline",
    "hint_n5_c2_spline_output",
    "hint_n7_c4_spline_reverse",
];

/// Inputs, parameters and results of one model.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) spec: Spec,
    /// `in.*`, `param.*`, `out.*`, `grad.*`, `adam3.*`.
    pub(crate) tensors: Tensors,
    /// The optimizer's constants behind `adam3.*`.
    pub(crate) adam: AdamSettings,
}

impl Fixture {
    /// Reads the fixture of this name.
    pub(crate) fn load(name: &str) -> Self {
        let (metadata, tensors) = read(&folder().join(format!("{name}.fixture.safetensors")));
        Self { name: name.to_owned(), spec: parse(&metadata, SPEC_KEY), tensors, adam: parse(&metadata, "adam") }
    }

    /// The file of the same model alone.
    pub(crate) fn model_path(&self) -> PathBuf {
        folder().join(format!("{}.model.safetensors", self.name))
    }

    /// The model with the parameters `param.*`.
    pub(crate) fn model(&self) -> Model {
        Model::new(self.spec.clone(), self.group("param."))
    }

    /// The numbers of one tensor.
    pub(crate) fn data(&self, name: &str) -> &[f64] {
        &self.tensors.get(name).unwrap_or_else(|| panic!("{}: no tensor {name}", self.name)).data
    }

    /// x.
    pub(crate) fn x(&self) -> &[f64] {
        self.data("in.x")
    }

    /// y, empty for a flow.
    pub(crate) fn y(&self) -> &[f64] {
        self.tensors.get("in.y").map_or(&[], |y| &y.data)
    }

    /// The tensors whose names begin with `prefix`, without it.
    pub(crate) fn group(&self, prefix: &str) -> Tensors {
        let named = self
            .tensors
            .iter()
            .filter_map(|(name, tensor)| name.strip_prefix(prefix).map(|name| (name.to_owned(), tensor.clone())));
        named.collect()
    }
}

/// The folder of the fixtures.
pub(crate) fn folder() -> PathBuf {
    // Test binaries may run where they were not built; there the variable says where the project is.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    Path::new(&root).join("tests/fixtures")
}

/// Reads a model file.
pub(crate) fn read_model(path: &Path) -> Model {
    let (metadata, tensors) = read(path);
    Model::new(parse(&metadata, SPEC_KEY), tensors)
}

/// Writes a model file, in float32 as the format says.
pub(crate) fn write_model(path: &Path, model: &Model) {
    let mut spec = serde_json::to_value(&model.spec).expect("plain data");
    spec["format"] = 1.into();
    let metadata = HashMap::from([(SPEC_KEY.to_owned(), spec.to_string())]);
    write(path, metadata, &model.params);
}

fn write(path: &Path, metadata: HashMap<String, String>, tensors: &Tensors) {
    let encode = |tensor: &Tensor| tensor.data.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect::<Vec<u8>>();
    let bytes: Vec<_> = tensors.iter().map(|(name, tensor)| (name, &tensor.shape, encode(tensor))).collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("as many bytes as the shape says"))
    });
    safetensors::serialize_to_file(views, Some(metadata), path).expect("a file that can be written");
}

/// Copies a model file with a change of its description (the JSON of its metadata) and of its tensors.
pub(crate) fn rewrite(from: &Path, to: &Path, change: impl Fn(&mut serde_json::Value, &mut Tensors)) {
    let (mut metadata, mut tensors) = read(from);
    let mut description: serde_json::Value = parse(&metadata, SPEC_KEY);
    change(&mut description, &mut tensors);
    metadata.insert(SPEC_KEY.to_owned(), description.to_string());
    write(to, metadata, &tensors);
}

/// All metadata and all tensors of a file, float32 and float64 alike.
pub(crate) fn read(path: &Path) -> (HashMap<String, String>, Tensors) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a safetensors header");
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let decode = |view: &TensorView<'_>| match view.dtype() {
        Dtype::F32 => chunks(view.data()).map(|bytes| f32::from_le_bytes(bytes).into()).collect(),
        Dtype::F64 => chunks(view.data()).map(f64::from_le_bytes).collect(),
        other => panic!("{}: unexpected type {other:?}", path.display()),
    };
    let tensors = file
        .iter()
        .map(|(name, view)| (name.to_owned(), Tensor { shape: view.shape().to_vec(), data: decode(&view) }))
        .collect();
    (header.metadata().clone().unwrap_or_default(), tensors)
}

fn chunks<const SIZE: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; SIZE]> {
    bytes.chunks_exact(SIZE).map(|chunk| chunk.try_into().expect("a chunk of this size"))
}

fn parse<T: serde::de::DeserializeOwned>(metadata: &HashMap<String, String>, key: &str) -> T {
    let json = metadata.get(key).unwrap_or_else(|| panic!("no metadata {key}"));
    serde_json::from_str(json).unwrap_or_else(|error| panic!("metadata {key}: {error}"))
}
