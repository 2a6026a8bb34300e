//! `hintflow devices`

use std::io::Write;

use crate::engine::DeviceInfo;
use crate::engine::{AdapterInfo, adapters};
use clap::Args;

use super::device;
use super::{Done, output};

const AFTER_HELP: &str = "\
The first column is what --device takes; a part of the name does, too.

Example:
  hintflow devices --json";

/// List the devices that can compute, and which one `auto` takes
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Devices {
    /// Limits and features of the adapters too
    #[arg(long)]
    limits: bool,
    /// As one JSON object, with limits and features
    #[arg(long)]
    json: bool,
}

impl Devices {
    pub(super) fn run(self) -> Done {
        let adapters = adapters();
        let cpu = device::open("cpu", 0, false)?.info();
        let auto = device::open("auto", 0, false)?.info();
        if self.json {
            output::line(&serde_json::json!({ "auto": auto, "cpu": cpu, "adapters": adapters }).to_string())?;
            return Ok(0);
        }
        let mut out = output::stdout();
        writeln!(out, "cpu  {}", cpu.name)?;
        for adapter in &adapters {
            writeln!(out, "{:<4} {}", adapter.index, adapter.device.name)?;
            writeln!(out, "     {}", facts(adapter))?;
            writeln!(out, "     {}", limits(adapter))?;
            if self.limits {
                for (name, value) in &adapter.limits {
                    writeln!(out, "     {name} {value}")?;
                }
                writeln!(out, "     {}", adapter.features.join(" "))?;
            }
        }
        if adapters.is_empty() {
            writeln!(
                out,
                "     no GPU and no software adapter: --device gpu needs a driver (Debian: mesa-vulkan-drivers)"
            )?;
        }
        writeln!(out, "auto takes {}", taken(&auto, &adapters))?;
        output::finish(out)?;
        Ok(0)
    }
}

fn facts(adapter: &AdapterInfo) -> String {
    let kind = match adapter.device.kind {
        "software" => "software: for tests, slower than cpu",
        kind => kind,
    };
    format!("{}, driver {}, {kind}", adapter.device.backend, adapter.device.driver)
}

fn limits(adapter: &AdapterInfo) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "arrays up to {:.0} MiB, {} KiB shared by a workgroup, {} workgroups, immediates: {}",
        mib(adapter.max_array_bytes),
        adapter.workgroup_bytes >> 10,
        adapter.max_workgroups,
        if adapter.immediates { "yes" } else { "no" }
    )
}

/// The device that `auto` takes, with its number where it is an adapter.
fn taken(auto: &DeviceInfo, adapters: &[AdapterInfo]) -> String {
    match adapters.iter().find(|adapter| adapter.device == *auto) {
        Some(adapter) => format!("{}: {}", adapter.index, auto.name),
        None => format!("{}: {}", auto.engine, auto.name),
    }
}
