//! The GPU engine: wgpu.
