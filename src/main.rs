//! The `hintflow` command: see `hintflow --help`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    quiet_mesa();
    cli::run()
}

/// Keeps Mesa's Vulkan layer that sorts devices by the display they drive from looking for a display: without a session
/// it prints an error of its own on every look at the adapters.
#[cfg(target_os = "linux")]
fn quiet_mesa() {
    let set = |name| std::env::var_os(name).is_some();
    if !set("XDG_RUNTIME_DIR") && !set("MESA_VK_DEVICE_SELECT") {
        // SAFETY: no other thread runs yet that could read the environment.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

#[cfg(not(target_os = "linux"))]
fn quiet_mesa() {}
