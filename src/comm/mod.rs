//! Processes that work on one thing: who they are, and the messages between them.
//!
//! A [`Communicator`] connects *ranks*, numbered from 0: one process alone ([`Single`]), threads of one process
//! ([`Threads`]), the processes of an MPI job (`Mpi`, with the feature
//! `mpi`), or what a program brings of its own. It
//! has one operation, [`Communicator::exchange`]; what all ranks do together is built of it in `collective`. Who computes
//! what, and in which order sums are added, is not decided here: results must not depend on the number of ranks, which
//! the sums of MPI itself do not promise.

pub(crate) mod agreement;
pub(crate) mod collective;
#[cfg(any(feature = "cli", feature = "mpi"))]
pub(crate) mod launcher;
#[cfg(all(feature = "mpi", unix))]
mod mpi;
mod single;
mod threads;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

#[cfg(all(feature = "mpi", unix))]
pub use mpi::Mpi;
pub use single::Single;
pub use threads::Threads;

use crate::error::Result;

/// The ranks of a job, seen from one of them.
///
/// All ranks must call the same operations in the same order. Results are the same bits for any number of ranks, as long
/// as all have the same engine and the same instruction set.
pub trait Communicator: Send + Sync + fmt::Debug {
    /// The number of this rank, counted from 0.
    fn rank(&self) -> usize;

    /// The number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Name of the machine that this rank runs on.
    fn host(&self) -> String;

    /// Sends all messages and receives all; returns when both are done, so that all buffers can be used again. A rank sends
    /// nothing to itself. Messages from one rank to another arrive in the order in which they are sent, and have the length
    /// that the receiver expects.
    ///
    /// # Errors
    /// [`crate::Error::Ranks`] if a rank is gone, or cannot be reached.
    fn exchange(&self, send: &[Outgoing<'_>], receive: &mut [Incoming<'_>]) -> Result<()>;
}

/// A message to another rank.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The rank that receives it.
    pub to: usize,
    /// What it says.
    pub bytes: &'a [u8],
}

/// A message from another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The rank that sends it.
    pub from: usize,
    /// Where it goes.
    pub bytes: &'a mut [u8],
}

/// A communicator that is shared within a process.
pub(crate) type World = Arc<dyn Communicator>;

/// The world of a process that is alone.
pub(crate) fn alone() -> World {
    Arc::new(Single)
}

/// The part of `count` things that one of `size` ranks takes: neighbours, as even as possible.
pub(crate) fn share(count: usize, rank: usize, size: usize) -> Range<usize> {
    let edge = |rank: usize| (count as u128 * rank as u128 / size as u128) as usize;
    edge(rank)..edge(rank + 1)
}

/// Name of this machine.
pub(crate) fn host() -> String {
    #[cfg(unix)]
    {
        let mut name = [0u8; 256];
        // SAFETY: the buffer has the length that is told.
        if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } == 0 {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            return String::from_utf8_lossy(&name[..end]).into_owned();
        }
    }
    "an unknown host".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_neighbours_and_even() {
        for (count, size) in [(16, 1), (16, 4), (16, 5), (3, 8), (0, 2), (usize::MAX, 3)] {
            let shares: Vec<_> = (0..size).map(|rank| share(count, rank, size)).collect();
            assert!(shares[0].start == 0 && shares[size - 1].end == count);
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            let lengths = shares.iter().map(Range::len);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
    }
}
