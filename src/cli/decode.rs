//! `hintflow decode`

use std::path::{Path, PathBuf};

use crate::Overwrite;
use crate::counted::counted;
use crate::data::files::Columns;
use crate::data::{Table, check_table_output, side_by_side, write_table};
use crate::plan::Kind;
use crate::{Error, Flow, Result};
use clap::Args;

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Examples:
  hintflow decode runs/first latent.npy -o rows.csv
  hintflow decode runs/posterior latent.npy --given seen.npy -o theta.npy";

/// Map latent vectors to rows: z to x
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Decode {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Latent vectors, as `encode` writes them: .npy or .csv
    latent: PathBuf,
    /// Conditions of a conditional model: a table with one row, or as many as LATENT; a `hint` without them decodes
    /// both
    #[arg(long, value_name = "FILE")]
    given: Option<PathBuf>,
    /// Rows: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Decode {
    pub(super) fn run(self) -> Done {
        check_table_output(&self.output, Overwrite::allowed_if(self.force))?;
        let inputs: Vec<_> = std::iter::once(self.latent.as_path()).chain(self.given.as_deref()).collect();
        output::distinct(&[("-o", &self.output)], &inputs)?;
        let flow = model::load(&self.run, &self.device)?;
        let (columns, dim, rows) = match &self.given {
            None if flow.spec().kind == Kind::Hint => both_lanes(&flow, &self.latent, &self.layout)?,
            None if matches!(flow.spec().kind, Kind::Cinn | Kind::Inn) => {
                return Err(model::needs_conditions(&flow).into());
            }
            given => {
                let y = given.as_deref().map(|path| model::observations(&flow, path, &self.layout)).transpose()?;
                let dim = flow.spec().dim as usize;
                let latent = if flow.spec().kind == Kind::Inn { flow.spec().latent as usize } else { dim };
                let z = model::latent_rows(&self.latent, latent, &self.layout)
                    .map_err(|error| both_are_there(&flow, &self.latent, &self.layout, error))?;
                if let Some(y) = y.as_ref().filter(|y| y.rows != 1 && y.rows != z.rows) {
                    let (of_y, of_z) = (counted(y.rows, "row"), counted(z.rows, "latent row"));
                    let what = format!("{of_y} of conditions for {of_z}");
                    return Err(Error::config(model::GIVEN, format!("{what}; give one row, or as many")).into());
                }
                let y = y.map(Table::into_values).unwrap_or_default();
                (output::columns(&flow), dim, flow.given(&y)?.decode(z.values())?)
            }
        };
        output::warn_not_finite("rows", dim, &rows);
        write_table(&self.output, &columns, rows.len() / dim, dim, &rows, Overwrite::allowed_if(self.force))?;
        Ok(0)
    }
}

/// Of what `encode` writes of a `hint`, conditions take the place of the first columns.
fn both_are_there(flow: &Flow, path: &Path, layout: &LayoutArgs, error: Error) -> Error {
    let spec = flow.spec();
    match Table::read_with(path, &layout.reading()) {
        Ok(table) if spec.kind == Kind::Hint && table.dim() == spec.latent_dim() as usize => Error::format(
            path,
            format!(
                "holds latent vectors of the conditions and of the columns, as `encode` writes them; leave out {} to decode \
                 both, or give the last {} alone",
                model::GIVEN,
                counted(spec.dim, "column")
            ),
        ),
        _ => error,
    }
}

/// Columns, their number, and rows [y, x] of latent rows [z_y, z_x].
fn both_lanes(flow: &Flow, path: &Path, layout: &LayoutArgs) -> Result<(Columns, usize, Vec<f32>)> {
    let (c, dim) = (flow.spec().cond_dim as usize, flow.spec().latent_dim() as usize);
    let z = model::latent_rows(path, dim, layout)?;
    let part =
        |range: std::ops::Range<usize>| z.iter_rows().flat_map(|row| row[range.clone()].to_vec()).collect::<Vec<_>>();
    let lanes = flow.joint()?.decode(&part(0..c), &part(c..dim))?;
    Ok((output::joint_columns(flow), dim, side_by_side(&lanes.y, &lanes.x, z.rows)))
}
