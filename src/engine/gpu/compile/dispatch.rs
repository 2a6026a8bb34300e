//! Dispatches as they are recorded: the kernel, what it is told, and the extent of its grid.

use bytemuck::bytes_of;

use crate::engine::gpu::kernels::launch::{Launch, MAX_BYTES, TileJob, Update};
use crate::engine::gpu::kernels::shader::Variant;

/// Extent of a grid in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// That many workgroups.
    Fixed(u32),
    /// As many workgroups of that many quads as the tile's samples need.
    Quads(u32),
    /// One workgroup per slice that the tile visits.
    Slices,
}

impl Extent {
    /// Workgroups for a tile of that many quads that visits that many slices.
    pub(crate) fn workgroups(self, quads: u32, slices: u32) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Quads(per_workgroup) => quads.div_ceil(per_workgroup),
            Self::Slices => slices,
        }
    }
}

/// What a launch struct begins with, filled in at each replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    None,
    Tile,
    Update,
}

/// One dispatch of a recorded program.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub(crate) variant: Variant,
    pub(crate) launch: [u8; MAX_BYTES],
    /// Bytes of `launch` in use.
    pub(crate) len: usize,
    pub(crate) head: Head,
    pub(crate) grid: [Extent; 2],
}

impl Dispatch {
    pub(crate) fn new<L: Launch>(variant: Variant, head: Head, grid: [Extent; 2], launch: L) -> Self {
        let (mut bytes, len) = ([0; MAX_BYTES], size_of::<L>());
        bytes[..len].copy_from_slice(bytes_of(&launch));
        Self { variant, launch: bytes, len, head, grid }
    }

    /// The launch bytes with their head filled in.
    pub(crate) fn bytes(&self, tile: &TileJob, update: &Update) -> [u8; MAX_BYTES] {
        let mut bytes = self.launch;
        match self.head {
            Head::None => {}
            Head::Tile => bytes[..size_of::<TileJob>()].copy_from_slice(bytes_of(tile)),
            Head::Update => bytes[..size_of::<Update>()].copy_from_slice(bytes_of(update)),
        }
        bytes
    }
}

/// The dispatches of a program.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Before the first tile.
    pub(crate) prepare: Vec<Dispatch>,
    /// Of every tile.
    pub(crate) rows: Vec<Dispatch>,
    /// After the last tile.
    pub(crate) finish: Vec<Dispatch>,
}

impl Recorded {
    /// All of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Dispatch> {
        self.prepare.iter().chain(&self.rows).chain(&self.finish)
    }
}
