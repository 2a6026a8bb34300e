//! The figure of Jacobians.

use std::path::Path;

use crate::config::Preset;
use crate::counted::counted;
use crate::data::TEST_FIRST_ROW;
use crate::error::Result;
use crate::paper::lab::{Found, Lab};
use crate::paper::model::{Family, Model};
use crate::plan::Kind;
use crate::report::{JacobianMap, jacobians as draw};

/// Rows over which the mean is taken.
const ROWS: usize = 200;

/// Those of one block are in no table.
pub(super) fn models() -> Vec<Model> {
    use Family::{Hint, RealNvp, Recursive};
    // What a block does is seen where no orthogonal map comes before it.
    [(RealNvp, 1), (Recursive, 1), (Hint, 1), (RealNvp, 2), (Recursive, 2)]
        .map(|(family, blocks)| Model { mix_first: blocks > 1, ..Model::new(Preset::Lens, family, blocks) })
        .into()
}

pub(super) fn jacobians(lab: &mut Lab<'_>, models: &[Model], path: &Path) -> Result<bool> {
    let shapes = lab.lens()?;
    let mut maps = Vec::new();
    for model in models {
        let title = format!("{}, {}", model.label(), counted(model.blocks, "block"));
        let flow = match lab.flow(model)? {
            Found::Flow(flow) => flow,
            Found::Diverged => {
                let dim = shapes.dim();
                maps.push(JacobianMap {
                    title: title + ", diverged",
                    dim,
                    conditions: 0,
                    values: vec![f64::NAN; dim * dim],
                });
                continue;
            }
            Found::Nothing => return Ok(false),
        };
        let data_seed = lab.config(model, 1)?.data.seed;
        let (x, y) = shapes.generate_with_observations(ROWS, data_seed, TEST_FIRST_ROW)?;
        let values = match flow.spec().kind {
            Kind::Flow => flow.mean_abs_jacobian(x.values())?,
            Kind::Cinn | Kind::Hint | Kind::Inn => flow.given(y.values())?.mean_abs_jacobian(x.values())?,
        };
        let dim = values.len().isqrt();
        maps.push(JacobianMap { title, dim, conditions: dim - shapes.dim(), values });
    }
    if maps.iter().flat_map(|map| &map.values).all(|v| v.is_nan()) {
        let text = format!("{}: no model has a Jacobian that can be drawn", path.display());
        lab.watcher.warning(&text);
        return Ok(false);
    }
    draw(path, &maps, &[])?;
    Ok(true)
}
