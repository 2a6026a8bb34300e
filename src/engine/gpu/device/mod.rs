//! wgpu: finding and opening a device, handing commands and values to it, reading values and times back.

pub(crate) mod adapter;
pub(crate) mod commands;
pub(crate) mod open;
pub(crate) mod timer;
pub(crate) mod transfer;
pub(crate) mod uploads;
