//! The command line as a user meets it: every command, every kind of bad input, stopping and resuming.

mod bad_input;
mod commands;
mod conditional;
mod damage;
mod data_report;
mod density;
mod docs;
mod filter;
mod filter_mistakes;
mod fixtures;
mod inn;
mod packing;
mod paper;
mod plot;
mod printing;
mod regression;
mod report;
mod resume;
mod settings;
mod tool;
mod trust;
mod uci;
