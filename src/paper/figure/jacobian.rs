//! The figure of Jacobians.

use std::path::Path;

use crate::config::Preset;
use crate::data::lens::Outline;
use crate::data::{Shapes, TEST_FIRST_ROW};
use crate::error::Result;
use crate::paper::lab::{Found, Lab};
use crate::paper::model::{Family, Model};
use crate::plan::Kind;
use crate::report::{JacobianMap, jacobians as draw};

/// Rows over which the mean is taken.
const ROWS: usize = 200;

pub(super) fn jacobians(lab: &mut Lab<'_>, path: &Path) -> Result<bool> {
    let single = [Family::RealNvp, Family::Recursive, Family::Hint].map(|family| (family, 1));
    let models = single.into_iter().chain([(Family::RealNvp, 2), (Family::Recursive, 2)]);
    let shapes = Shapes::Lens(Outline::Vertices);
    let mut maps = Vec::new();
    for (family, blocks) in models {
        // What a block does is seen where no orthogonal map comes before it.
        let model = Model { mix_first: blocks > 1, ..Model::new(Preset::Lens, family, blocks) };
        let flow = match lab.flow(&model)? {
            Found::Flow(flow) => flow,
            Found::Diverged => continue,
            Found::Absent => return Ok(false),
        };
        let data_seed = lab.config(&model, 1)?.data.seed;
        let (x, y) = shapes.generate_with_observations(ROWS, data_seed, TEST_FIRST_ROW)?;
        let values = match flow.spec().kind {
            Kind::Flow => flow.mean_abs_jacobian(x.values())?,
            Kind::Cinn | Kind::Hint => flow.given(y.values())?.mean_abs_jacobian(x.values())?,
        };
        let plural = if blocks == 1 { "" } else { "s" };
        maps.push(JacobianMap {
            title: format!("{}, {blocks} block{plural}", model.label()),
            dim: values.len().isqrt(),
            values,
        });
    }
    // The lab has told of those that diverged.
    if !maps.is_empty() {
        draw(path, &maps, &[])?;
    }
    Ok(!maps.is_empty())
}
