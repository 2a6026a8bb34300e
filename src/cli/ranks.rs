//! The program as one rank of several, which an MPI launcher started: the same command runs on all. The first rank writes
//! files, results and messages; the others share its work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::interrupt;
use crate::comm::collective::gather_for_all;
use crate::comm::{Communicator, World, alone};
use crate::engine::Engine;
use crate::{Error, Result};

/// The job, if there is one.
static JOB: OnceLock<Job> = OnceLock::new();
/// Whether the command shares its work.
static SHARES: AtomicBool = AtomicBool::new(true);

/// What is known of the job.
struct Job {
    world: World,
    /// The cores of this rank.
    cores: usize,
    #[cfg(all(feature = "mpi", unix))]
    mpi: std::sync::Arc<crate::comm::Mpi>,
}

/// Joins the job that this process was launched in, if it was.
///
/// # Errors
/// [`Error::Ranks`] if this program or machine has no MPI that fits the launcher.
#[cfg(all(feature = "mpi", unix))]
pub(super) fn join() -> Result<()> {
    let Some(mpi) = crate::comm::Mpi::join()? else { return Ok(()) };
    mpi.watch(&interrupt::STOP);
    let mpi = std::sync::Arc::new(mpi);
    let cores = share_of_cores(&*mpi)?;
    if mpi.rank() > 0 {
        crate::atomic::discard();
        silence();
    }
    // Joined once.
    let _ = JOB.set(Job { world: mpi.clone(), cores, mpi });
    Ok(())
}

/// Fails if this process was launched together with others, as this program has no MPI.
///
/// # Errors
/// [`Error::Ranks`]
#[cfg(not(all(feature = "mpi", unix)))]
pub(super) fn join() -> Result<()> {
    let Some(launched) = crate::comm::launcher::launched()? else { return Ok(()) };
    let what = format!(
        "{} started this program together with others, but it was built without MPI: build it with `--features mpi`, or set \
         {}=off if each process is to work for itself",
        launched.by,
        crate::comm::launcher::LIBRARY
    );
    Err(Error::Ranks { what })
}

/// Those that share the work of this command.
fn world() -> World {
    match JOB.get() {
        Some(job) if SHARES.load(Ordering::Relaxed) => job.world.clone(),
        _ => alone(),
    }
}

/// The device, shared with the other ranks.
pub(super) fn shared(engine: Engine) -> Engine {
    engine.with_ranks(world())
}

/// The result of something that each rank does for itself, and that must work on all of them.
///
/// # Errors
/// That of this rank, or [`Error::Ranks`] with that of another.
pub(super) fn together<T>(result: Result<T>) -> Result<T> {
    crate::comm::collective::together(&*world(), result)
}

/// Whether this rank writes and tells.
pub(super) fn is_first() -> bool {
    JOB.get().is_none_or(|job| job.world.rank() == 0)
}

/// The command is done by the first rank alone.
pub(super) fn do_not_share() {
    SHARES.store(false, Ordering::Relaxed);
}

/// The threads of this rank: its share of the cores of its machine. 0 where it is alone, which takes all.
pub(super) fn threads() -> usize {
    JOB.get().map_or(0, |job| job.cores)
}

/// What there is to tell of the job at the beginning.
pub(super) fn describe() {
    #[cfg(all(feature = "mpi", unix))]
    if let Some(job) = JOB.get()
        && is_first()
    {
        let mut hosts = job.mpi.hosts().to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        let (ranks, hosts) = (job.world.size(), crate::counted::counted(hosts.len(), "machine"));
        let each = crate::counted::counted(job.cores, "core");
        tracing::info!("{ranks} ranks on {hosts}, {each} for the first; {}", job.mpi.version());
    }
}

/// Leaves the job, after all that was done.
pub(super) fn leave() {
    #[cfg(all(feature = "mpi", unix))]
    if let Some(job) = JOB.get() {
        job.mpi.leave();
    }
}

/// Tells of a failure, and ends all ranks. Where several fail alike, the first tells it.
pub(super) fn fail(text: &str, code: u8) {
    /// The first rank ends the others within this time.
    const FIRST: Duration = Duration::from_secs(1);
    let Some(job) = JOB.get() else { return super::logging::error(text) };
    let world = &job.world;
    if world.rank() > 0 {
        std::thread::sleep(FIRST);
        super::logging::error(&format!("rank {} on {}: {text}", world.rank(), world.host()));
    } else {
        super::logging::error(text);
    }
    #[cfg(all(feature = "mpi", unix))]
    job.mpi.abort(code);
    #[cfg(not(all(feature = "mpi", unix)))]
    let _ = code;
}

/// The cores of this rank: those that the launcher bound it to, shared with the ranks of this machine that it bound to the
/// same ones.
fn share_of_cores(world: &dyn Communicator) -> Result<usize> {
    let own = cores::bound();
    let host = world.host();
    let told = [host.as_bytes(), &[0], &own.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()].concat();
    let all = gather_for_all(world, &told)?;
    let of_host = all.iter().filter_map(|told| told.strip_prefix([host.as_bytes(), &[0]].concat().as_slice()));
    let sets: Vec<&[u8]> = of_host.collect();
    let count = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    let mut together = vec![0u8; own.len() * 8];
    for set in &sets {
        together.iter_mut().zip(*set).for_each(|(all, byte)| *all |= byte);
    }
    let taken: usize = sets.iter().map(|set| count(set)).sum();
    // The system may allow fewer than it has.
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(share_of(usable, count(&together), taken, sets.len()))
}

/// The share of a rank that may use so many cores, if the ranks of its machine may use `together` different ones, and
/// `taken` if each is counted as often as it is used.
fn share_of(usable: usize, together: usize, taken: usize, ranks: usize) -> usize {
    let share = if taken == 0 { usable / ranks.max(1) } else { usable * together / taken };
    share.max(1)
}

/// Writes the results of the others nowhere.
#[cfg(unix)]
fn silence() {
    // SAFETY: the name ends with a zero, and a descriptor that cannot be opened is not used.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
        if nowhere >= 0 {
            libc::dup2(nowhere, libc::STDOUT_FILENO);
            libc::close(nowhere);
        }
    }
}

/// The cores that this process is bound to.
mod cores {
    /// A bit for each; none where that is not known.
    #[cfg(target_os = "linux")]
    pub(super) fn bound() -> Vec<u64> {
        const WORDS: usize = size_of::<libc::cpu_set_t>() / 8;
        // SAFETY: a set of bits, as which all zeros are valid, and its size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
                return Vec::new();
            }
            let bit = |word: usize, bit: usize| u64::from(libc::CPU_ISSET(word * 64 + bit, &set)) << bit;
            (0..WORDS).map(|word| (0..64).fold(0, |bits, i| bits | bit(word, i))).collect()
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn bound() -> Vec<u64> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shared_by_the_ranks_that_may_use_them() {
        assert_eq!(share_of(8, 8, 16, 2), 4, "two ranks on the same eight");
        assert_eq!(share_of(4, 8, 8, 2), 4, "two ranks bound to four each");
        assert_eq!(share_of(2, 2, 8, 4), 1, "more ranks than cores");
        assert_eq!(share_of(6, 0, 0, 2), 3, "nothing is known of binding");
        assert!(share_of_cores(&crate::comm::Single).unwrap() >= 1);
    }
}
