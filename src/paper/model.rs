//! The models of the paper's experiments, and the settings with which each is trained.

use std::path::Path;

use crate::config::{Config, Layers, Preset};
use crate::error::Result;

use super::Scale;

/// Slope of the log-scale function of RealNVP and cINN, whose log-scales end at 3.18 pi/2 = 5. The authors make them of
/// the couplings of FrEIA as it was in 2020, with `clamp=5.` and `clamp * 0.636 * atan(s)`; their recursive couplings
/// have 4.
const PLAIN_SLOPE: f64 = 3.18;

/// The source of an experiment's own settings, in messages.
const EXPERIMENT: &str = "the experiment";

/// How a model couples its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Plain coupling blocks.
    RealNvp,
    /// Recursive coupling blocks as deep as the columns allow.
    Recursive,
    /// Recursive coupling blocks down to a depth, 1 or more.
    Depth(u32),
    /// Plain coupling blocks whose networks see the observations.
    Cinn,
    /// Recursive coupling blocks in both lanes.
    Hint,
}

/// What the width of the networks follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// The parameters of the preset: the same for all models of an experiment.
    Budget,
    /// Hidden width of the largest networks, whatever the number of parameters.
    Width(u32),
}

/// A model of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// Its data set.
    pub data: Preset,
    /// How it couples.
    pub family: Family,
    /// Number of blocks.
    pub blocks: u32,
    /// Its size.
    pub size: Size,
    /// Whether the first block has an orthogonal map too. Models without one show in their Jacobians what the blocks
    /// do.
    pub mix_first: bool,
}

impl Model {
    /// A model of the size that the data set's experiments have, with an orthogonal map in every block.
    pub(crate) const fn new(data: Preset, family: Family, blocks: u32) -> Self {
        Self { data, family, blocks, size: Size::Budget, mix_first: true }
    }

    /// Its name in files: data set, family, blocks.
    pub(crate) fn name(&self) -> String {
        let family = match self.family {
            Family::RealNvp => "rnvp".to_owned(),
            Family::Recursive => "recursive".to_owned(),
            Family::Depth(depth) => format!("depth{depth}"),
            Family::Cinn => "cinn".to_owned(),
            Family::Hint => "hint".to_owned(),
        };
        let width = match self.size {
            Size::Budget => String::new(),
            Size::Width(width) => format!("-width{width}"),
        };
        let unmixed = if self.mix_first { "" } else { "-unmixed" };
        format!("{}-{family}-{}{width}{unmixed}", self.data.name(), self.blocks)
    }

    /// Its name for readers.
    pub(crate) fn label(&self) -> String {
        match self.family {
            Family::RealNvp => "RealNVP".into(),
            Family::Recursive => "recursive".into(),
            Family::Depth(depth) => format!("depth {depth}"),
            Family::Cinn => "cINN".into(),
            Family::Hint => "HINT".into(),
        }
    }

    /// Whether it is a model of shapes given observations.
    pub(crate) fn is_conditional(&self) -> bool {
        matches!(self.family, Family::Cinn | Family::Hint)
    }

    /// Whether its couplings are not recursive.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.family, Family::RealNvp | Family::Cinn)
    }

    /// Whether it begins with a tenth of the learning rate, as the paper's appendix says of some models of 16 and 32
    /// blocks, without their names.
    pub(super) fn begins_slower(&self) -> bool {
        self.blocks >= 16
    }

    /// What `hintflow train` takes with `--set`, as `key=value`: the same training by hand.
    ///
    /// Every block begins with its orthogonal map, as in the paper's figure of a block. In the authors' configurations
    /// the first block of the recursive models has none: of a single block, one coefficient then stays as it is, and
    /// samples, which draw it from the normal distribution, lie far outside of the data.
    ///
    /// RealNVP and cINN have log-scales up to 5, as the authors' have, recursive models up to 4. It matters for a
    /// single block: the noise of the training, 0.01, becomes 1 by a scale of exp(4.6). With 4, the RealNVP of one
    /// block on Lens shapes loses 0.13 of its LL (`benches/paper/slope-2.544`). Of HINT the authors' recursive
    /// couplings alone have 4, those of its y lane and between the lanes 5; here one slope serves a whole model.
    pub(crate) fn assignments(&self, scale: Scale, run: u64) -> Vec<String> {
        let (kind, depth) = match self.family {
            Family::RealNvp => ("flow", Some(0)),
            Family::Recursive => ("flow", None),
            Family::Depth(depth) => ("flow", Some(depth)),
            Family::Cinn => ("cinn", Some(0)),
            Family::Hint => ("hint", None),
        };
        let depth = depth.map_or("full".to_owned(), |depth| depth.to_string());
        let mut all = vec![
            format!("model.kind={kind}"),
            format!("model.blocks={}", self.blocks),
            format!("model.depth={depth}"),
            format!("model.mix_first={}", self.mix_first),
            format!("train.seed={run}"),
        ];
        all.extend(self.is_plain().then(|| format!("model.slope={PLAIN_SLOPE}")));
        if let Size::Width(width) = self.size {
            all.push(format!("model.width={width}"));
        }
        if self.begins_slower() {
            all.extend(["train.lr=0.001".into(), "train.lr_final=0.00001".into()]);
        }
        all.extend(scale.assignments(self));
        all
    }

    /// The settings of run number `run`, counted from 1; `path` is that of a data set that is read from files, `set`
    /// are settings besides those of the experiment.
    pub(super) fn settings(&self, scale: Scale, run: u64, path: Option<&Path>, set: &[String]) -> Result<Config> {
        let mut layers = Layers::new();
        let path = path.map(|path| ("data.path", path.display().to_string(), "--uci"));
        layers.flags([("data.preset", self.data.name().to_owned(), EXPERIMENT)].into_iter().chain(path))?;
        let own = self.assignments(scale, run);
        layers
            .flags(own.iter().filter_map(|own| own.split_once('=')).map(|(key, v)| (key, v.to_owned(), EXPERIMENT)))?;
        layers.assignments(set)?;
        layers.resolve()
    }
}
