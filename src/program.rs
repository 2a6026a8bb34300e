//! The recorded list of operations: what a [`crate::tape::Tape`] writes and an engine runs.
//!
//! A program works on a tile of samples. An engine cuts a batch into as many tiles as it likes (small ones that stay in
//! cache on the CPU, as large as memory allows on a GPU) and runs [`Program::rows`] on each; [`Program::prepare`] runs
//! once before and [`Program::finish`] once after the tiles of a step. Nothing in a program depends on the device.
//!
//! Letters: B samples; N the columns that a map transforms, with two lanes those of [y, x]; C the conditions that its
//! networks are given beside them, none in a `flow`. Shapes are (features, samples).

mod compact;
mod shortcuts;

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::plan::Plan;
use crate::rng::Stream;
pub(crate) use compact::compact;
pub(crate) use shortcuts::{shortcuts, uses};

/// Index into [`Plan::stages`].
pub(crate) type StageId = usize;

/// Index into the mixings of a plan, in the order of [`Plan::mixes`].
pub(crate) type MixId = usize;

/// One operation on a tile of samples. Forward operations write their outputs; backward operations say for each
/// gradient whether they write or add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Takes the rows of the current batch from the resident data, conditions y before x:
    /// `to[c, r] = data[order[first + r], c] + noise * n`, n standard normal of the stream `Noise` and, in the columns
    /// of y, 0.
    Gather {
        /// (columns of a row, B)
        to: Buffer,
        /// Number of columns of y, which come first and get no noise.
        conditions: u32,
    },
    /// Normals: of the stream `Latent` `to[c, r]` depends on seed, number of the sample's group, its number there, and c
    /// only (see [`crate::engine::Job`]); of others, which belong to training steps, on seed, step, r and c.
    Normal {
        /// (any number of columns, B)
        to: Buffer,
        /// What they are for.
        stream: Stream,
        /// Their standard deviation.
        deviation: f32,
    },
    /// `to = Q from`, or `to = Q^T from` (docs/model.md, Mixing), n the columns of one lane.
    Mix {
        /// Which mixing.
        mix: MixId,
        /// Multiply by Q^T: the inverse map.
        transpose: bool,
        /// (n, B)
        from: Buffer,
        /// (n, B), not `from`
        to: Buffer,
    },
    /// The networks of every node of a stage: `st = [s(v), t(v)]` per node, or the parameters of splines, v its upper
    /// columns of `x` and, in nodes that read conditions, all of `given` after them. An engine may add up what nodes have
    /// for a column at once, where that is what the coupling does, in the first `sum_rows` rows of `st`.
    Networks {
        /// Which stage.
        stage: StageId,
        /// (N, B)
        x: Buffer,
        /// (C, B), empty where no node reads conditions
        given: Buffer,
        /// (st_rows, B)
        st: Buffer,
        /// Activations after the first and the second ReLU, (at most hidden_rows, B) each.
        hidden: [Buffer; 2],
        /// Whether the backward operation comes later and wants the activations; otherwise `hidden` is scratch. An
        /// engine leaves there what it does not compute again: the CPU engine nothing of the first layer.
        keep: bool,
    },
    /// The maps of a stage: every column goes through its chain of affine ones, `v <- v * exp(sigma(s)) + t`
    /// (docs/model.md, Couplings), or its spline. Adds their log-derivatives to `log_det`.
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
    /// Inverse of [`Op::Couple`] for given `st`.
    Uncouple {
        /// Which stage.
        stage: StageId,
        /// (N, B)
        from: Buffer,
        /// (N, B); may be `from`
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
        /// (C, B), as for [`Op::Networks`]
        given: Buffer,
        /// (st_rows, B), written
        st: Buffer,
        /// Activations after the first and the second ReLU, (at most hidden_rows, B) each.
        hidden: [Buffer; 2],
        /// Whether the activations are wanted later, as for [`Op::Networks`].
        keep: bool,
    },
    /// `loss = |z|^2 / 2 - log_det` per sample; seeds `d_z = z / batch` and `d_log_det = -1 / batch`
    /// (docs/model.md, Loss). The engine keeps the sum of `loss` over the batch.
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
    /// `loss += weight |from - target|^2` per sample, and `d_from`, the gradient of its mean over the batch.
    SquaredError {
        /// (n, B)
        from: Buffer,
        /// (n, B), a constant
        target: Buffer,
        /// (1, B), added to
        loss: Buffer,
        /// (n, B), written
        d_from: Buffer,
        /// Factor of this loss.
        weight: f32,
    },
    /// Squared maximum mean discrepancy of two sets of B samples (docs/model.md, INN), times `weight`: adds
    /// to each sample's loss its share, so that their mean is the whole, and writes the gradient of the first columns of
    /// `from`. It sees the whole batch at once, however that is cut into tiles.
    Discrepancy {
        /// (n, B)
        from: Buffer,
        /// (n, B), a constant
        target: Buffer,
        /// (1, B), added to
        loss: Buffer,
        /// (at most n, B), written
        d_from: Buffer,
        /// Factor of this loss.
        weight: f32,
    },
    /// Ends the losses that operations before it have added up; the engine keeps their sum over the batch.
    TotalLoss {
        /// (1, B)
        loss: Buffer,
    },
    /// Backward of [`Op::Uncouple`], in stages in which no column has two maps, and all of these are affine.
    UncoupleBackward {
        /// Which stage.
        stage: StageId,
        /// (N, B), output of the inverse
        x: Buffer,
        /// (st_rows, B)
        st: Buffer,
        /// (N, B), incoming gradient
        d_x: Buffer,
        /// (N, B), written, not `d_x`
        d_from: Buffer,
        /// (st_rows, B), written
        d_st: Buffer,
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
        /// (sum_rows, B), written: nodes whose parameters are summed have the same gradients
        d_st: Buffer,
    },
    /// Backward of [`Op::Networks`]: sums the gradients of the weights over the tiles, and adds to `d_x`.
    NetworksBackward {
        /// Which stage.
        stage: StageId,
        /// (N, B), input of the forward operation
        x: Buffer,
        /// (C, B), as for [`Op::Networks`]; gets no gradient
        given: Buffer,
        /// What the forward operation left of the activations. An engine computes the others again, in their place.
        hidden: [Buffer; 2],
        /// (sum_rows, B), incoming gradient
        d_st: Buffer,
        /// Scratch, (at most hidden_rows, B) each.
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
        /// (n, B), input of the forward operation
        from: Buffer,
        /// (n, B), incoming gradient
        d_to: Buffer,
        /// (n, B), written, not `d_to`
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
            Self::SquaredError { .. } => "squared_error",
            Self::Discrepancy { .. } => "discrepancy",
            Self::TotalLoss { .. } => "total_loss",
            Self::UncoupleBackward { .. } => "uncouple_backward",
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
            Self::Clip => "clip",
            Self::Adam => "adam",
        }
    }
}

/// One operation per step rather than per tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOp {
    /// Q of a Householder mixing from its reflection vectors (docs/model.md, Mixing).
    Reflect {
        /// Which mixing.
        mix: MixId,
    },
    /// Gradient of the reflection vectors from the gradient of Q. The program begins with the [`StepOp::Reflect`] of the
    /// same mixing, whose intermediate results are used.
    ReflectBackward {
        /// Which mixing.
        mix: MixId,
    },
    /// The factor that clips the gradient by its norm, or that the next update is to be skipped.
    Clip,
    /// Sums the partial gradients in fixed order and steps every trained weight: clamp, L2, Adam
    /// (docs/model.md, Optimiser).
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
    /// A training step that clips its gradient by the norm.
    pub(crate) fn clipped(mut self) -> Self {
        let update = self.finish.iter().position(|op| *op == StepOp::Adam);
        self.finish.insert(update.unwrap_or_else(|| unreachable!("only training steps clip")), StepOp::Clip);
        self
    }

    /// Whether some operation sees the whole batch at once, so that all tiles have to come to it before any goes on.
    pub(crate) fn couples_samples(&self) -> bool {
        self.rows.iter().any(|op| matches!(op, Op::Discrepancy { .. }))
    }

    /// Whether it leaves gradients of the weights.
    pub(crate) fn has_gradients(&self) -> bool {
        let backward = |op: &Op| matches!(op, Op::NetworksBackward { .. } | Op::MixBackward { .. });
        !self.finish.is_empty() || self.rows.iter().any(backward)
    }

    /// Whether the gradients of every network and of every trained Q come from some operation.
    pub(crate) fn writes_every_gradient(&self) -> bool {
        let (mut networks, mut mixes) = self.written();
        networks.dedup();
        mixes.dedup();
        (networks, mixes) == self.trained()
    }

    /// Whether they come from exactly one operation each, which may then write them where nothing was.
    pub(crate) fn writes_every_gradient_once(&self) -> bool {
        self.written() == self.trained()
    }

    /// The networks that backward operations write, by the offset of a weight that every network has, and the trained
    /// mixings; in order, as often as they are written.
    fn written(&self) -> (Vec<u32>, Vec<MixId>) {
        let stages = self.rows.iter().filter_map(|op| match op {
            Op::NetworksBackward { stage, .. } => Some(*stage),
            _ => None,
        });
        let trained = self.trained().1;
        let mixes = self.rows.iter().filter_map(|op| match op {
            Op::MixBackward { mix, .. } if trained.contains(mix) => Some(*mix),
            _ => None,
        });
        self.in_order(stages, mixes)
    }

    /// The same of all that is trained.
    fn trained(&self) -> (Vec<u32>, Vec<MixId>) {
        let stages = self.plan.blocks.iter().flat_map(|block| block.stages.clone());
        let mixes = self.plan.mixes().enumerate().filter_map(|(id, mix)| mix.reflections.map(|_| id));
        self.in_order(stages, mixes)
    }

    fn in_order(
        &self,
        stages: impl Iterator<Item = StageId>,
        mixes: impl Iterator<Item = MixId>,
    ) -> (Vec<u32>, Vec<MixId>) {
        // Stages of lanes and of whole blocks share networks.
        let nodes = stages.flat_map(|stage| &self.plan.stages[stage].nodes);
        let mut networks: Vec<u32> = nodes.map(|node| node.nets[0].weight[1]).collect();
        let mut mixes: Vec<MixId> = mixes.collect();
        networks.sort_unstable();
        mixes.sort_unstable();
        (networks, mixes)
    }
}
