//! What the kernels know of a model, as plain data: its nodes, columns and weight tiles in one array of words, and the
//! order in which its weights are read.

pub(crate) mod jobs;
pub(crate) mod narrow;
pub(crate) mod nodes;
pub(crate) mod packs;
pub(crate) mod panels;
pub(crate) mod tables;
pub(crate) mod workgroup;
