//! `hintflow devices`

use clap::Args;

use super::device;
use super::{Done, output};

/// List the devices that can compute, and which one `auto` takes
#[derive(Args)]
pub(super) struct Devices {
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Devices {
    pub(super) fn run(self) -> Done {
        let auto = device::open("auto", 0)?.info();
        let cpu = device::open("cpu", 0)?.info();
        if self.json {
            output::line(&serde_json::json!({ "auto": auto, "cpu": cpu }).to_string())?;
            return Ok(0);
        }
        output::line(&format!("cpu  {}", cpu.name))?;
        output::line(&format!("auto takes {}", auto.name))?;
        Ok(0)
    }
}
