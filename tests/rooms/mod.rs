//! Tests of whole rooms of the crate, which see what users do not: part of the library's own test binary.

#[path = "../it/common/mod.rs"]
mod common;
mod data;
mod memory;
mod posterior;
mod python;
mod train;
