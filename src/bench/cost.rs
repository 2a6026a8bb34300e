//! Operations and bytes of the parts of a program, where they can be counted.

use std::collections::HashMap;

use crate::plan::{Plan, Stage};
use crate::program::shortcuts;
use crate::program::{Op, Program, StepOp};

/// What a kernel does in a whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Floating-point operations of matrix products, per sample. Zero: nothing that is worth counting.
    pub(super) flops: u64,
    /// Activations read and written, per sample, each counted once: the least that has to move.
    pub(super) floats: u64,
    /// Weights, gradients and moments read and written, per run.
    pub(super) weights: u64,
    /// Operations of the program that it stands for.
    pub(super) operations: usize,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.flops += other.flops;
        self.floats += other.floats;
        self.weights += other.weights;
        self.operations += 1;
    }

    /// Operations for that many rows.
    pub(super) fn flops(&self, rows: usize) -> u64 {
        self.flops * rows as u64
    }

    /// Bytes for that many rows.
    pub(super) fn bytes(&self, rows: usize) -> u64 {
        4 * (self.floats * rows as u64 + self.weights)
    }
}

/// The costs of the kernels of a profile, given by name and number of dispatches. A kernel that may not be the only one
/// to do its operations has none: neighbouring operations may share a dispatch, and wide networks have a kernel of
/// their own.
pub(super) fn of_kernels(program: &Program, gpu: bool, kernels: &[(&'static str, usize)]) -> Vec<Option<Cost>> {
    let costs = costs(program, gpu);
    // These run once on each tile.
    let tiles =
        kernels.iter().find(|(name, _)| gpu && ["gather", "normal"].contains(name)).map_or(1, |(_, calls)| *calls);
    let of = |&(name, calls): &(&'static str, usize)| {
        let plain = name.replace("_packed", "");
        let alone = kernels.iter().filter(|(other, _)| other.replace("_packed", "") == plain).count() == 1;
        let cost = costs.get(plain.as_str())?;
        // It takes a part of what these do.
        let narrow = kernels.iter().any(|(other, _)| *other == "narrow_backward");
        if narrow && ["networks", "networks_backward", "weight_gradient"].contains(&plain.as_str()) {
            return None;
        }
        let sure = if cost.flops > 0 && plain != "mix" { alone } else { calls == tiles * cost.operations };
        (sure || plain == "adam").then_some(*cost)
    };
    kernels.iter().map(of).collect()
}

/// Costs by the name of the kernel. On a GPU the backward of networks and mixings is shared out among several.
pub(super) fn costs(program: &Program, gpu: bool) -> HashMap<&'static str, Cost> {
    let mut costs = HashMap::new();
    let mut add = |name, cost| costs.entry(name).or_insert_with(Cost::default).add(cost);
    for (op, short) in program.rows.iter().zip(shortcuts(program)) {
        match (gpu, &backward(&program.plan, op, short)) {
            (true, Some([data, weights])) => {
                let kernel = if op.name() == "mix_backward" { "mix" } else { op.name() };
                if *data != Cost::default() {
                    add(kernel, *data);
                }
                add("weight_gradient", *weights);
            }
            (false, Some(both)) => both.iter().for_each(|cost| add(op.name(), *cost)),
            (_, None) => add(op.name(), forward(&program.plan, op)),
        }
    }
    for op in &program.finish {
        if *op == StepOp::Adam {
            // Gradient, weight and moments are read, all but the gradient written.
            add(op.name(), Cost { weights: 7 * program.plan.layout.trained as u64, ..Cost::default() });
        }
    }
    costs
}

/// Weights of the networks of a stage.
fn weights(stage: &Stage) -> u64 {
    let of = |n: &crate::plan::Node| n.nets.len() as u32 * n.hidden * (n.upper + n.hidden + n.outputs);
    stage.nodes.iter().map(|node| u64::from(of(node))).sum()
}

/// Everything but the backward of networks and mixings.
fn forward(plan: &Plan, op: &Op) -> Cost {
    let n = u64::from(plan.spec.dim);
    let sizes = |id: usize| {
        let stage = &plan.stages[id];
        (u64::from(stage.st_rows), u64::from(stage.hidden_rows), weights(stage))
    };
    let floats = |floats: u64| Cost { floats, ..Cost::default() };
    match *op {
        Op::Gather { .. } => floats(2 * n),
        Op::Normal { .. } => floats(n),
        Op::Fill { to, .. } => floats(to.rows.into()),
        Op::Mix { .. } => Cost { flops: 2 * n * n, floats: 2 * n, weights: n * n, ..Cost::default() },
        Op::Networks { stage, keep, .. } => {
            let (st, hidden, weights) = sizes(stage);
            Cost { flops: 2 * weights, floats: n + st + if keep { 2 * hidden } else { 0 }, weights, ..Cost::default() }
        }
        Op::Couple { stage, .. } => floats(2 * n + sizes(stage).0 + 1),
        Op::Uncouple { stage, .. } => floats(2 * n + sizes(stage).0),
        Op::Walk { stage, keep, .. } => {
            let (st, hidden, weights) = sizes(stage);
            Cost {
                flops: 2 * weights,
                floats: 2 * n + if keep { st + 2 * hidden } else { 0 },
                weights,
                ..Cost::default()
            }
        }
        Op::Loss { .. } => floats(2 * n + 3),
        Op::SquaredError { from, .. } => floats(3 * u64::from(from.rows) + 2),
        // Of the pairs only what a sample reads of its own.
        Op::Discrepancy { from, d_from, .. } => floats(2 * u64::from(from.rows) + u64::from(d_from.rows) + 2),
        Op::TotalLoss { .. } => floats(1),
        Op::UncoupleBackward { stage, .. } => floats(3 * n + 2 * sizes(stage).0),
        Op::CoupleBackward { stage, .. } => floats(3 * n + 2 * sizes(stage).0 + 1),
        Op::NetworksBackward { .. } | Op::MixBackward { .. } => Cost::default(),
    }
}

/// The backward of networks or of a mixing: gradients of activations, gradients of weights. In short form, without
/// gradients of what went in.
fn backward(plan: &Plan, op: &Op, short: bool) -> Option<[Cost; 2]> {
    let n = u64::from(plan.spec.dim);
    match *op {
        Op::NetworksBackward { stage, .. } => {
            let stage = &plan.stages[stage];
            let (st, hidden, weights) = (u64::from(stage.st_rows), u64::from(stage.hidden_rows), weights(stage));
            let product = |weights, floats| Cost { flops: 2 * weights, floats, weights, ..Cost::default() };
            let first: u64 = stage.nodes.iter().map(|node| u64::from(2 * node.hidden * node.upper)).sum();
            let data = if short {
                product(weights - first, st + 4 * hidden)
            } else {
                product(weights, st + 4 * hidden + 2 * n)
            };
            Some([data, product(weights, st + 4 * hidden + n)])
        }
        Op::MixBackward { mix, .. } => {
            let product = Cost { flops: 2 * n * n, floats: 2 * n, weights: n * n, ..Cost::default() };
            let trained = plan.mixes().nth(mix).is_some_and(|mix| mix.reflections.is_some());
            let of = |wanted| if wanted { product } else { Cost::default() };
            Some([of(!short), of(trained)])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bench::Case;
    use crate::flow::Memory;
    use crate::flow::programs::{Name, record};
    use crate::plan::ConditionOn;

    #[test]
    fn a_step_is_six_operations_per_weight_of_a_network() {
        let plan = Plan::new(&Case::named("lens2").unwrap().spec(ConditionOn::Output)).unwrap();
        let parameters = plan.layout.trained;
        let biases: usize = plan.layout.tensors.iter().filter(|t| t.shape.len() == 1).map(|t| t.shape[0]).sum();
        let program = record(Name::Step(Memory::Stored), &Arc::new(plan));
        // Two mixings of 20 columns, there and back, and the last of the four is left out; so is the gradient of what
        // the last networks got, which are those of the first block's deepest nodes.
        let first: u32 = program.plan.stages[0].nodes.iter().map(|node| 2 * node.hidden * node.upper).sum();
        for gpu in [false, true] {
            let all: u64 = costs(&program, gpu).values().map(|cost| cost.flops(10)).sum();
            let products = 6 * (parameters - biases) as u64 - 2 * u64::from(first);
            assert_eq!(all, 10 * (products + 3 * 2 * 20 * 20));
        }
        let networks = costs(&program, true)["networks"];
        assert_eq!(costs(&program, true)["weight_gradient"].flops, networks.flops);
        assert_eq!(costs(&program, false)["networks_backward"].flops, 2 * networks.flops - 2 * u64::from(first));
        assert_eq!(costs(&program, true)["adam"].bytes(10), 28 * parameters as u64);
    }

    #[test]
    fn what_may_be_shared_is_not_counted() {
        let plan = Plan::new(&Case::named("lens2").unwrap().spec(ConditionOn::Input)).unwrap();
        let program = record(Name::Step(Memory::Stored), &Arc::new(plan));
        let counted =
            |kernels: &[_]| of_kernels(&program, true, kernels).iter().map(Option::is_some).collect::<Vec<_>>();
        let two_tiles = [("gather", 2), ("networks_packed", 4), ("couple", 4), ("mix", 6), ("adam", 1), ("other", 1)];
        assert_eq!(counted(&two_tiles), [true, true, true, true, true, false]);
        let shared = [("gather", 1), ("networks_packed", 1), ("networks", 1), ("couple", 1), ("mix", 1)];
        assert_eq!(counted(&shared), [true, false, false, false, false]);
        let narrow = [("networks_packed_backward", 2), ("weight_gradient", 2), ("narrow_backward", 2), ("adam", 1)];
        assert_eq!(counted(&narrow), [false, false, false, true]);
    }
}
