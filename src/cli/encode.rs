//! `hintflow encode`

use std::path::PathBuf;

use crate::Overwrite;
use crate::data::files::Columns;
use crate::data::{check_table_output, side_by_side, write_table, write_vector};
use crate::flow::Encoded;
use crate::plan::Kind;
use crate::{Flow, Result};
use clap::Args;

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Of a `hint`, latent vectors and log-determinants are those of the conditions, then those of the columns given them.

Example:
  hintflow encode runs/first table.csv -o latent.npy --log-det logdet.npy
  hintflow encode runs/posterior theta.npy --given x.npy -o latent.npy";

/// Map rows to latent vectors: x to z
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Encode {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    #[command(flatten)]
    data: model::Data,
    /// Latent vectors: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write log |det dz/dx| of each row, in nats and the units of the data
    #[arg(long, value_name = "FILE")]
    log_det: Option<PathBuf>,
    /// Overwrite the files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Encode {
    pub(super) fn run(self) -> Done {
        check_table_output(&self.output, Overwrite::allowed_if(self.force))?;
        if let Some(path) = &self.log_det {
            check_table_output(path, Overwrite::allowed_if(self.force))?;
        }
        let log_det = self.log_det.as_deref().map(|path| ("--log-det", path));
        let outputs: Vec<_> = std::iter::once(("-o", self.output.as_path())).chain(log_det).collect();
        output::distinct(&outputs, &self.data.inputs())?;
        let flow = model::load(&self.run, &self.device)?;
        let Latent { rows, names, z, log_det_names, log_det } = Latent::of(&flow, &self.data.rows_for(&flow)?)?;
        output::warn_not_finite("latent vectors", names.len(), &z);
        if self.log_det.is_some() {
            output::warn_not_finite("log-determinants", log_det_names.len(), &log_det);
        }
        write_table(
            &self.output,
            &Columns::from(&names[..]),
            rows,
            names.len(),
            &z,
            Overwrite::allowed_if(self.force),
        )?;
        match &self.log_det {
            Some(path) if log_det_names.len() == 1 => {
                write_vector(path, "log_det", &log_det, Overwrite::allowed_if(self.force))?
            }
            Some(path) => write_table(
                path,
                &Columns::from(&log_det_names[..]),
                rows,
                log_det_names.len(),
                &log_det,
                Overwrite::allowed_if(self.force),
            )?,
            None => {}
        }
        Ok(0)
    }
}

/// Latent vectors and log-determinants as they are written: of two lanes those of y before those of x.
struct Latent {
    rows: usize,
    names: Vec<String>,
    z: Vec<f32>,
    log_det_names: Vec<String>,
    log_det: Vec<f32>,
}

impl Latent {
    fn of(flow: &Flow, rows: &model::Rows) -> Result<Self> {
        let numbered = |prefix: &str, n: u32| (1..=n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
        let spec = flow.spec();
        if spec.kind != Kind::Hint {
            let Encoded { z, log_det } = flow.given(&rows.y)?.encode(&rows.x)?;
            let names = numbered("z", spec.dim);
            return Ok(Self { rows: log_det.len(), names, z, log_det_names: vec!["log_det".into()], log_det });
        }
        let count = rows.x.len() / spec.dim as usize;
        let y = model::one_each(&rows.y, count, spec.cond_dim as usize);
        let lanes = flow.joint()?.encode(&y, &rows.x)?;
        Ok(Self {
            rows: count,
            names: [numbered("z_y", spec.cond_dim), numbered("z_x", spec.dim)].concat(),
            z: side_by_side(&lanes.y.z, &lanes.x.z, count),
            log_det_names: ["log_det_y", "log_det_x"].map(String::from).to_vec(),
            log_det: side_by_side(&lanes.y.log_det, &lanes.x.log_det, count),
        })
    }
}
