//! What a user can hold: the program by its commands, the library by its public interface. One binary, so that the crate
//! is linked once. Tests that look into rooms are in `tests/rooms`.

mod cli;
mod common;
mod conditional;
mod contract;
mod fixtures;
mod helpers;
mod jacobian;
mod library;
mod oracle;
