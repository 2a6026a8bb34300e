//! What a training tells, in words: one sentence for each fact that `train` found or decided.
//!
//! `train` holds facts and no sentences but those of errors; each type of them has its [`std::fmt::Display`] here. The
//! commands print these sentences, and files of a run have them beside their numbers. The room is not a part of `cli`, as a
//! library has some of them too: [`crate::Dataset::warnings`], [`crate::train::Event::WentBack`].

mod relations;
mod rows;
#[cfg(feature = "cli")]
mod run;
mod went_back;

/// Columns that are named in a list; others are counted.
const NAMED: usize = 12;

/// The beginning of a list whose first parts are described, and then how many are left out of it.
fn listed(
    described: impl IntoIterator<Item = String>,
    names: impl IntoIterator<Item = String>,
    of: usize,
) -> Vec<String> {
    let more = (of > NAMED).then(|| format!("and {} more", of - NAMED));
    described.into_iter().chain(names).take(NAMED).chain(more).collect()
}
