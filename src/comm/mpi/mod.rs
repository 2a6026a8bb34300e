//! The processes of an MPI job as ranks, by the MPI library of the machine.
//!
//! The library is opened when the program runs under a launcher, and not linked. Two ways were tried. A binding to the
//! library's headers (rsmpi 0.8) works, but needs a C compiler, libclang and the headers to build, and one program for each
//! library: Open MPI's handles are pointers to its variables, MPICH's are integers. The interface that MPI 5 fixes is opened
//! at run time, but MPICH has it only from 5.0 and Open MPI not before 6.0, and distributions have neither. What ranks need
//! of MPI are thirteen functions on bytes, whose binary interface both families have kept for ten years: so one program
//! opens any of the three ([`abi`]), needs nothing to build, and runs without MPI.
//!
//! Messages are sent and received without blocking, and waited for by asking: a rank that waits for long gives its core to
//! others, and sees when it is asked to stop. One thread at a time calls the library.

mod abi;
mod library;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::launcher::launched;
use super::{Communicator, Incoming, Outgoing};
use crate::error::{Error, Result};
use library::Functions;

/// Exit code of a process that can reach another no more.
const FAILED: i32 = 1;
/// Most bytes of a message: MPI counts them in an `int`.
const MOST: usize = 1 << 30;
/// A wait that is longer gives the core to others.
const SPIN: Duration = Duration::from_micros(100);
/// A wait that is longer sleeps between two looks.
const PATIENT: Duration = Duration::from_secs(2);

/// A rank of an MPI job: a process that `mpirun`, `mpiexec` or `srun` started together with others.
///
/// The MPI library of the machine is opened when the process joins: Open MPI, MPICH and its relatives, or one with the
/// binary interface of MPI 5. The variable `HINTFLOW_MPI` names its file if it is not found, or says `off`.
///
/// ```no_run
/// use std::sync::Arc;
/// use hintflow::Engine;
/// use hintflow::comm::Mpi;
///
/// # fn main() -> hintflow::Result<()> {
/// let engine = Engine::cpu_with_threads(1)?;
/// let rank = Mpi::join()?.map(Arc::new); // none if this process was started alone
/// let engine = match &rank {
///     Some(rank) => engine.with_ranks(rank.clone()),
///     None => engine,
/// };
/// // ... the same on all ranks ...
/// # drop(engine);
/// if let Some(rank) = rank {
///     rank.leave();
/// }
/// # Ok(())
/// # }
/// ```
pub struct Mpi {
    /// One thread at a time.
    functions: Mutex<Box<dyn Functions>>,
    rank: usize,
    size: usize,
    /// Names of the machines of all ranks.
    hosts: Vec<String>,
    /// Whether this process is asked to stop, if that is known.
    stop: OnceLock<&'static AtomicBool>,
    told: AtomicBool,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Mpi {
    /// Joins the job that this process was started in; none if it was started alone. Once in a process, before other
    /// libraries call MPI.
    ///
    /// # Errors
    /// [`Error::Ranks`] if no MPI library can be opened, if it is not that of the launcher, or if it fails;
    /// [`Error::Config`] if the launcher does not let its processes know of each other.
    pub fn join() -> Result<Option<Self>> {
        let Some(launched) = launched()? else { return Ok(None) };
        let functions = library::open(&launched)?;
        functions.begin().map_err(|what| Error::Ranks { what })?;
        let (rank, size) = (functions.rank() as usize, functions.size() as usize);
        if let Some(expected) = launched.size
            && expected != size
        {
            let what = format!(
                "{} started {expected} processes, but {} knows of {size}: they are of different MPI libraries; name the \
                 launcher's own library in HINTFLOW_MPI, as HINTFLOW_MPI=/path/to/libmpi.so",
                launched.by,
                functions.version()
            );
            return Err(Error::Ranks { what });
        }
        let (functions, hosts) = (Mutex::new(functions), Vec::new());
        let mut mpi = Self { functions, rank, size, hosts, stop: OnceLock::new(), told: AtomicBool::new(false) };
        let hosts = super::collective::gather_for_all(&mpi, super::host().as_bytes())?;
        mpi.hosts = hosts.iter().map(|host| String::from_utf8_lossy(host).into_owned()).collect();
        Ok(Some(mpi))
    }

    /// A flag that is set when this process is asked to stop. A rank that waits for another one says so then.
    pub fn watch(&self, stop: &'static AtomicBool) {
        // The first flag stays.
        let _ = self.stop.set(stop);
    }

    /// The library, for people.
    pub fn version(&self) -> String {
        self.functions().version()
    }

    /// Names of the machines of all ranks.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Leaves the job, when all ranks do: the last thing that a rank does.
    pub fn leave(&self) {
        // Ranks that are done wait here and not in the library, which would keep a core busy.
        if super::collective::any(self, [false]).is_ok() {
            self.functions().end();
        }
    }

    /// Ends all ranks, with this exit code.
    pub fn abort(&self, code: u8) -> ! {
        self.functions().abort(c_int::from(code));
        std::process::exit(code.into())
    }

    fn functions(&self) -> std::sync::MutexGuard<'_, Box<dyn Functions>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, rank: usize) -> String {
        match self.hosts.get(rank) {
            Some(host) => format!("rank {rank} on {host}"),
            None => format!("rank {rank}"),
        }
    }

    /// Says whom this rank waits for, once, when it is asked to stop: the launcher asks when another rank has died, and
    /// ends this process a moment later.
    fn tell_of_stop(&self, receive: &[Incoming<'_>]) {
        let asked = self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if asked && !self.told.swap(true, Ordering::Relaxed) {
            let mut from: Vec<_> = receive.iter().map(|message| message.from).collect();
            from.dedup();
            let names: Vec<_> = from.into_iter().map(|rank| self.name(rank)).collect();
            tracing::warn!(
                "asked to stop while waiting for {}; if a rank has died, go on from the last checkpoint with: hintflow train \
                 --resume RUN, on any number of ranks",
                names.join(", ")
            );
        }
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host(&self) -> String {
        super::host()
    }

    fn exchange(&self, send: &[Outgoing<'_>], receive: &mut [Incoming<'_>]) -> Result<()> {
        let mut functions = self.functions();
        // Messages that are under way may still write into their buffers, so that this process must end.
        let failed = |rank: usize, what: String| -> ! {
            tracing::error!("no message can be passed between rank {} and {}: {what}", self.rank, self.name(rank));
            std::process::exit(FAILED)
        };
        functions.clear();
        for message in receive.iter_mut() {
            for part in message.bytes.chunks_mut(MOST) {
                // SAFETY: the buffer is borrowed mutably until `finished` says that it is written, or the process ends.
                unsafe { functions.receive(part.as_mut_ptr(), part.len() as c_int, message.from as c_int) }
                    .unwrap_or_else(|what| failed(message.from, what));
            }
        }
        for message in send {
            for part in message.bytes.chunks(MOST) {
                // SAFETY: the buffer is borrowed until `finished` says that it is read, or the process ends.
                unsafe { functions.send(part.as_ptr(), part.len() as c_int, message.to as c_int) }
                    .unwrap_or_else(|what| failed(message.to, what));
            }
        }
        let began = Instant::now();
        loop {
            let other = receive.first().map_or(0, |message| message.from);
            if functions.finished().unwrap_or_else(|what| failed(other, what)) {
                return Ok(());
            }
            match began.elapsed() {
                waited if waited < SPIN => std::hint::spin_loop(),
                waited if waited < PATIENT => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
            self.tell_of_stop(receive);
        }
    }
}
