//! The recorded list of operations: what a [`crate::tape::Tape`] writes and an engine runs.
//!
//! A program works on a tile of samples. An engine cuts a batch into as many tiles as it likes (small ones that stay in
//! cache on the CPU, as large as memory allows on a GPU) and runs [`Program::rows`] on each; [`Program::prepare`] runs
//! once before and [`Program::finish`] once after the tiles of a step. Nothing in a program depends on the device.
//!
//! Letters: B samples, N columns of x. Shapes are (features, samples).

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::plan::Plan;

/// Index into [`Plan::stages`].
pub(crate) type StageId = usize;

/// Index into the mixings of a plan, in the order of [`Plan::mixes`].
pub(crate) type MixId = usize;

/// One operation on a tile of samples. Forward operations write their outputs; backward operations say for each
/// gradient whether they write or add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Takes the rows of the current batch from the resident data: `to[c, r] = data[order[first + r], c] + noise * n`,
    /// n standard normal of the stream `Noise`.
    Gather {
        /// (N, B)
        to: Buffer,
    },
    /// Standard normals of the stream `Latent`: `to[c, r]` depends on seed, sample number and c only.
    Normal {
        /// (N, B)
        to: Buffer,
    },
    /// `to = Q from`, or `to = Q^T from` (spec, section 3).
    Mix {
        /// Which mixing.
        mix: MixId,
        /// Multiply by Q^T: the inverse map.
        transpose: bool,
        /// (N, B)
        from: Buffer,
        /// (N, B), not `from`
        to: Buffer,
    },
    /// Both networks of every node of a stage: `st = [s(v), t(v)]` per node, v its upper columns of `x`.
    Networks {
        /// Which stage.
        stage: StageId,
        /// (N, B)
        x: Buffer,
        /// (st_rows, B)
        st: Buffer,
        /// Activations after the first and the second ReLU, (hidden_rows, B) each.
        hidden: [Buffer; 2],
        /// Whether `hidden` is read again later (training); otherwise it is scratch.
        keep: bool,
    },
    /// The affine maps of a stage: every column goes through its chain, `v <- v * exp(sigma(s)) + t`
    /// (spec, section 1). Adds `sum sigma(s)` to `log_det`.
    Couple {
        /// Which stage.
        stage: StageId,
        /// (N, B)
        x: Buffer,
        /// (st_rows, B)
        st: Buffer,
        /// (N, B), not `x`
        to: Buffer,
        /// (1, B)
        log_det: Buffer,
    },
    /// Sets every element to a constant.
    Fill {
        /// Any shape
        to: Buffer,
        /// The constant.
        value: f32,
    },
    /// Inverse of [`Op::Couple`] for given `st`: chains backwards, `v <- (v - t) * exp(-sigma(s))`, in place.
    Uncouple {
        /// Which stage.
        stage: StageId,
        /// (N, B), in and out
        x: Buffer,
        /// (st_rows, B)
        st: Buffer,
    },
    /// Inverse of a whole stage whose networks see the block's input: walks the nodes in order (upper half, node,
    /// lower half), runs each node's networks on the columns inverted so far and inverts its lower columns. In place.
    Walk {
        /// Which stage.
        stage: StageId,
        /// (N, B), in and out
        x: Buffer,
        /// (st_rows, B), written
        st: Buffer,
        /// Activations after the first and the second ReLU, (hidden_rows, B) each.
        hidden: [Buffer; 2],
        /// Whether `hidden` is read again later, as for [`Op::Networks`].
        keep: bool,
    },
    /// `loss = |z|^2 / 2 - log_det` per sample; seeds `d_z = z / batch` and `d_log_det = -1 / batch`
    /// (spec, section 5). The engine keeps the sum of `loss` over the batch.
    Loss {
        /// (N, B)
        z: Buffer,
        /// (1, B)
        log_det: Buffer,
        /// (1, B)
        loss: Buffer,
        /// (N, B), written
        d_z: Buffer,
        /// (1, B), written
        d_log_det: Buffer,
    },
    /// Backward of [`Op::Couple`].
    CoupleBackward {
        /// Which stage.
        stage: StageId,
        /// (N, B), input of the forward operation
        x: Buffer,
        /// (st_rows, B)
        st: Buffer,
        /// (N, B), incoming gradient
        d_to: Buffer,
        /// (1, B), incoming gradient
        d_log_det: Buffer,
        /// (N, B), written, not `d_to`
        d_x: Buffer,
        /// (st_rows, B), written
        d_st: Buffer,
    },
    /// Backward of [`Op::Networks`]: sums the gradients of the weights over the tiles, and adds to `d_x`.
    NetworksBackward {
        /// Which stage.
        stage: StageId,
        /// (N, B), input of the forward operation
        x: Buffer,
        /// Activations kept by the forward operation.
        hidden: [Buffer; 2],
        /// (st_rows, B), incoming gradient
        d_st: Buffer,
        /// Scratch, (hidden_rows, B) each.
        d_hidden: [Buffer; 2],
        /// Scratch, (slot_rows, B): one row per node and upper column, so that no cell has two writers.
        slots: Buffer,
        /// (N, B), added to
        d_x: Buffer,
    },
    /// Backward of [`Op::Mix`] (not transposed): `d_from = Q^T d_to`; where Q is made of trained reflections, sums
    /// `d_to from^T` over the tiles as the gradient of Q.
    MixBackward {
        /// Which mixing.
        mix: MixId,
        /// (N, B), input of the forward operation
        from: Buffer,
        /// (N, B), incoming gradient
        d_to: Buffer,
        /// (N, B), written, not `d_to`
        d_from: Buffer,
    },
}

impl Op {
    /// Its name in profiles: that of its kernel.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Gather { .. } => "gather",
            Self::Normal { .. } => "normal",
            Self::Mix { .. } => "mix",
            Self::Networks { .. } => "networks",
            Self::Couple { .. } => "couple",
            Self::Fill { .. } => "fill",
            Self::Uncouple { .. } => "uncouple",
            Self::Walk { .. } => "walk",
            Self::Loss { .. } => "loss",
            Self::CoupleBackward { .. } => "couple_backward",
            Self::NetworksBackward { .. } => "networks_backward",
            Self::MixBackward { .. } => "mix_backward",
        }
    }
}

impl StepOp {
    /// Its name in profiles: that of its kernel.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reflect { .. } => "reflect",
            Self::ReflectBackward { .. } => "reflect_backward",
            Self::Adam => "adam",
        }
    }
}

/// One operation per step rather than per tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOp {
    /// Q of a Householder mixing from its reflection vectors (spec, section 3).
    Reflect {
        /// Which mixing.
        mix: MixId,
    },
    /// Gradient of the reflection vectors from the gradient of Q.
    ReflectBackward {
        /// Which mixing.
        mix: MixId,
    },
    /// Sums the partial gradients in fixed order and steps every trained weight: clamp, L2, Adam (spec, section 5).
    Adam,
}

/// A recorded computation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    /// The model it belongs to.
    pub(crate) plan: Arc<Plan>,
    /// Short name for logs and profiles.
    pub(crate) name: &'static str,
    /// Rows of the activation arena.
    pub(crate) arena_rows: u32,
    /// Buffers that the caller fills before the operations run.
    pub(crate) inputs: Vec<Buffer>,
    /// Buffers that the caller reads afterwards.
    pub(crate) outputs: Vec<Buffer>,
    /// Once before the tiles.
    pub(crate) prepare: Vec<StepOp>,
    /// For each tile of samples.
    pub(crate) rows: Vec<Op>,
    /// Once after all tiles.
    pub(crate) finish: Vec<StepOp>,
}

impl Program {
    /// Whether it leaves gradients of the weights.
    pub(crate) fn has_gradients(&self) -> bool {
        let backward = |op: &Op| matches!(op, Op::NetworksBackward { .. } | Op::MixBackward { .. });
        !self.finish.is_empty() || self.rows.iter().any(backward)
    }

    /// Whether the gradients of every network and of every trained Q come from exactly one operation, which may then write
    /// them where nothing was.
    pub(crate) fn writes_every_gradient_once(&self) -> bool {
        let once = |of: &dyn Fn(&Op) -> bool| self.rows.iter().filter(|op| of(op)).count() == 1;
        let stages = (0..self.plan.stages.len())
            .all(|wanted| once(&|op| matches!(op, Op::NetworksBackward { stage, .. } if *stage == wanted)));
        let mixes = self.plan.mixes().enumerate().filter(|(_, mix)| mix.reflections.is_some());
        stages
            && mixes
                .into_iter()
                .all(|(wanted, _)| once(&|op| matches!(op, Op::MixBackward { mix, .. } if *mix == wanted)))
    }
}
