//! The program as one rank of several, which an MPI launcher started: the same command runs on all. The first rank writes
//! files, results and messages; the others share its work.

#[cfg(all(feature = "mpi", unix))]
mod cores;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Result;
use crate::comm::{World, alone};
use crate::engine::Engine;

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
/// [`crate::Error::Ranks`] if this program or machine has no MPI that fits the launcher.
#[cfg(all(feature = "mpi", unix))]
pub(super) fn join() -> Result<()> {
    let Some(mpi) = crate::comm::Mpi::join()? else { return Ok(()) };
    mpi.watch(&super::interrupt::STOP);
    let mpi = std::sync::Arc::new(mpi);
    let cores = cores::share_of_cores(&*mpi)?;
    if crate::comm::Communicator::rank(&*mpi) > 0 {
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
/// [`crate::Error::Ranks`]
#[cfg(not(all(feature = "mpi", unix)))]
pub(super) fn join() -> Result<()> {
    let Some(launched) = crate::comm::launcher::launched()? else { return Ok(()) };
    let what = format!(
        "{} started this program together with others, but it was built without MPI: build it with `--features mpi`, or set \
         {}=off if each process is to work for itself",
        launched.by,
        crate::comm::launcher::LIBRARY
    );
    Err(crate::Error::Ranks { what })
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
/// That of this rank, or [`crate::Error::Ranks`] with that of another.
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

/// The threads of this rank: its share of the cores of its machine. 0 if it is alone, which takes all.
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

/// Tells of a failure, and ends all ranks. If several fail alike, the first tells it.
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

/// Writes the results of the others nowhere.
#[cfg(all(feature = "mpi", unix))]
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
