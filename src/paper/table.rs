//! The paper's tables: which models each compares, and how it is written.

mod write;

use super::model::{Family, Model, Size};
use crate::config::Preset;
use crate::measure::Metric;
pub(super) use write::write;

/// A table of the paper.
pub(super) struct Table {
    /// Its name on the command line, in file names, and in the file of the paper's numbers.
    pub(super) name: &'static str,
    /// What it compares.
    pub(super) title: &'static str,
    /// What it measures.
    pub(super) metrics: &'static [Metric],
    /// Its models, in the paper's order.
    pub(super) rows: Vec<Row>,
}

/// A model of a table.
pub(super) struct Row {
    /// The model.
    pub(super) model: Model,
    /// Its key among the table's numbers of the paper.
    pub(super) key: String,
}

/// Every table.
pub(super) fn all() -> Vec<Table> {
    use Family::{Cinn, Hint, RealNvp, Recursive};
    use Metric::{Corr, Hausdorff, Iou, Ll, LogDensity, Mmd};
    let (lens, cross) = (Preset::Lens, Preset::Cross);
    let unconditional = [(RealNvp, "rnvp"), (Recursive, "rec")];
    let conditional = [(Cinn, "cinn"), (Hint, "hint")];
    vec![
        Table {
            name: "uci",
            title: "Real-NVP and recursive coupling on UCI benchmarks",
            metrics: &[LogDensity],
            rows: uci(&unconditional),
        },
        Table {
            name: "lens_unconditional",
            title: "Real-NVP and recursive coupling on Lens shapes",
            metrics: &[Mmd, Ll, Iou, Hausdorff],
            rows: by_blocks(lens, &[1, 2], &unconditional),
        },
        Table {
            name: "cross_unconditional",
            title: "Real-NVP and recursive coupling on Cross shapes",
            metrics: &[Ll, Iou, Hausdorff],
            rows: by_blocks(cross, &[4, 8], &unconditional),
        },
        Table {
            name: "lens_conditional",
            title: "Conditional (cINN) and hierarchical (HINT) coupling for Bayesian inference on Lens shapes",
            metrics: &[Mmd, Iou, Hausdorff],
            rows: by_blocks(lens, &[1, 2, 4, 8], &conditional),
        },
        Table {
            name: "cross_conditional",
            title: "Conditional (cINN) and hierarchical (HINT) coupling for Bayesian inference on Cross shapes",
            metrics: &[Ll, Iou, Hausdorff],
            rows: by_blocks(cross, &[4, 8], &conditional),
        },
        Table {
            name: "depth_fixed_2m",
            title: "Recursion depth against number of blocks on Cross shapes, equal numbers of parameters",
            metrics: &[Ll, Iou, Hausdorff, Corr],
            rows: by_depth(Size::Budget),
        },
        Table {
            name: "depth_width_128",
            title: "Recursion depth against number of blocks on Cross shapes, networks 128 wide",
            metrics: &[Ll, Iou, Hausdorff, Corr],
            rows: by_depth(Size::Width(128)),
        },
        Table {
            name: "depth_width_512",
            title: "Recursion depth against number of blocks on Cross shapes, networks 512 wide",
            metrics: &[Ll, Iou, Hausdorff, Corr],
            rows: by_depth(Size::Width(512)),
        },
    ]
}

fn uci(families: &[(Family, &str)]) -> Vec<Row> {
    let sets = [Preset::Power, Preset::Gas, Preset::Miniboone];
    let rows = [4, 8].into_iter().flat_map(|blocks| sets.map(|data| (blocks, data)));
    rows.flat_map(|(blocks, data)| {
        families.iter().map(move |(family, short)| Row {
            model: Model::new(data, *family, blocks),
            key: format!("{blocks}.{}.{short}", data.name()),
        })
    })
    .collect()
}

fn by_blocks(data: Preset, blocks: &[u32], families: &[(Family, &str)]) -> Vec<Row> {
    let row = |blocks: u32, (family, short): &(Family, &str)| Row {
        model: Model::new(data, *family, blocks),
        key: format!("{blocks}.{short}"),
    };
    blocks.iter().flat_map(|&blocks| families.iter().map(move |family| row(blocks, family))).collect()
}

/// Blocks and the depths that are tried with so many.
const DEPTHS: [(u32, &[u32]); 4] = [(4, &[0, 1, 2, 3]), (8, &[0, 1, 2]), (16, &[0, 1]), (32, &[0])];

fn by_depth(size: Size) -> Vec<Row> {
    let row = |blocks: u32, depth: u32| {
        let family = if depth == 0 { Family::RealNvp } else { Family::Depth(depth) };
        let model = Model { size, ..Model::new(Preset::Cross, family, blocks) };
        Row { model, key: format!("{blocks}.{depth}") }
    };
    DEPTHS.iter().flat_map(|(blocks, depths)| depths.iter().map(|&depth| row(*blocks, depth))).collect()
}
