//! Programs to lists of dispatches: how many samples lie on the device at a time, which rows of the arena are needed,
//! and what each kernel is told.

pub(crate) mod bounds;
pub(crate) mod cost;
pub(crate) mod dispatch;
pub(crate) mod recompute;
pub(crate) mod record;
pub(crate) mod tiling;
pub(crate) mod trim;
pub(crate) mod work;
