//! What all ranks do together. Every rank must call it.

use super::{Communicator, Incoming, Outgoing};
use crate::error::{Error, Result};

/// The bytes of every rank, in the order of ranks, for each of them.
///
/// # Errors
/// Those of [`Communicator::exchange`].
pub(crate) fn gather_for_all(world: &dyn Communicator, own: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = (world.rank(), world.size());
    let others = || (0..size).filter(|&other| other != rank);
    let length = (own.len() as u64).to_le_bytes();
    let mut lengths = vec![[0u8; 8]; size];
    lengths[rank] = length;
    let send: Vec<_> = others().map(|to| Outgoing { to, bytes: &length }).collect();
    world.exchange(&send, &mut from_others(rank, &mut lengths))?;
    let mut all: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; u64::from_le_bytes(*length) as usize]).collect();
    all[rank].copy_from_slice(own);
    let send: Vec<_> = others().map(|to| Outgoing { to, bytes: own }).collect();
    world.exchange(&send, &mut from_others(rank, &mut all))?;
    Ok(all)
}

/// A message from each other rank.
fn from_others<T: AsMut<[u8]>>(rank: usize, into: &mut [T]) -> Vec<Incoming<'_>> {
    let all = into.iter_mut().map(AsMut::as_mut).enumerate();
    all.filter(|(from, _)| *from != rank).map(|(from, bytes)| Incoming { from, bytes }).collect()
}

/// For each flag whether any rank has it.
///
/// # Errors
/// Those of [`Communicator::exchange`].
pub(crate) fn any<const N: usize>(world: &dyn Communicator, flags: [bool; N]) -> Result<[bool; N]> {
    let (rank, size) = (world.rank(), world.size());
    if size == 1 {
        return Ok(flags);
    }
    let own = flags.map(u8::from);
    let mut all = vec![own; size];
    let others = (0..size).filter(|&other| other != rank);
    let send: Vec<_> = others.map(|to| Outgoing { to, bytes: &own }).collect();
    world.exchange(&send, &mut from_others(rank, &mut all))?;
    Ok(std::array::from_fn(|i| all.iter().any(|flags| flags[i] != 0)))
}

/// The result of something that each rank does for itself and all need: if it failed on any of them, all fail, and
/// those that did not say which did and why.
///
/// # Errors
/// That of this rank, else [`Error::Ranks`] with the first of the others'.
pub(crate) fn together<T>(world: &dyn Communicator, result: Result<T>) -> Result<T> {
    if world.size() == 1 {
        return result;
    }
    let told = match &result {
        Ok(_) => String::new(),
        Err(error) => format!("rank {} on {}: {error}", world.rank(), world.host()),
    };
    // A rank whose messages fail, too, has its own failure to tell.
    let failed = gather_for_all(world, told.as_bytes());
    let value = result?;
    match failed?.into_iter().find(|told| !told.is_empty()) {
        None => Ok(value),
        Some(told) => Err(Error::Ranks { what: String::from_utf8_lossy(&told).into_owned() }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::{Threads, World};
    use super::*;
    use std::sync::Arc;

    /// Runs a function on each of so many ranks.
    pub(crate) fn on_ranks<T: Send>(size: usize, run: impl Fn(World) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run = &run;
            let ranks = Threads::world(size).into_iter().map(|rank| scope.spawn(move || run(Arc::new(rank))));
            ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn everyone_gets_what_everyone_has() {
        for size in [1, 2, 5] {
            let own = |rank: usize| vec![rank as u8; rank * 3];
            let expected: Vec<_> = (0..size).map(own).collect();
            let all = on_ranks(size, |world| gather_for_all(&*world, &own(world.rank())).unwrap());
            assert!(all.iter().all(|all| *all == expected));
            let any = on_ranks(size, |world| any(&*world, [false, world.rank() == size - 1]).unwrap());
            assert!(any.iter().all(|flags| *flags == [false, true]));
        }
    }

    #[test]
    fn a_failure_of_one_is_one_of_all_and_named() {
        let failed = on_ranks(3, |world| {
            let own = if world.rank() == 1 { Err(Error::Stopped) } else { Ok(7) };
            together(&*world, own).unwrap_err().to_string()
        });
        assert_eq!(failed[1], "stopped");
        assert!(failed[0].starts_with("rank 1 on ") && failed[0].ends_with(": stopped"), "{}", failed[0]);
        assert_eq!(on_ranks(2, |world| together(&*world, Ok(world.rank())).unwrap()), [0, 1]);
    }
}
