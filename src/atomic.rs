//! Files that are whole or absent: written beside their place, synced, then moved there in one step.
//!
//! Whoever reads a file written here never sees half of it, and a failed write (full disk, a panic) leaves neither a
//! damaged file nor a temporary one. With [`Overwrite::No`] nothing that exists is replaced, even where two processes
//! write the same name at the same time: the last step is then a hard link, which the system refuses where the name is
//! taken.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Whether something that exists may be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and [`Error::Exists`] is returned.
    #[default]
    No,
    /// It may be replaced.
    Yes,
}

impl Overwrite {
    /// What a flag of the command line says.
    #[cfg(feature = "cli")]
    pub(crate) fn allowed_if(allowed: bool) -> Self {
        if allowed { Self::Yes } else { Self::No }
    }

    /// Whether it may.
    pub(crate) fn is_allowed(self) -> bool {
        self == Self::Yes
    }
}

/// Writes a file as a whole. `write` gets a buffered writer; if it fails, `path` stays as it was.
///
/// With [`Overwrite::No`] an existing file is [`Error::Exists`]. With it a regular file is replaced (a symbolic link stays one
/// and its target is replaced); folders and devices never are.
pub(crate) fn write_atomic(
    path: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    if DISCARDS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let target = target(path, overwrite)?;
    let mut temporary = Temporary::create_beside(&target).map_err(|e| Error::io("create", path, e))?;
    let failed = |e| Error::io("write", path, e);
    temporary.fill(write).map_err(failed)?;
    if overwrite.is_allowed() {
        fs::rename(&temporary.path, &target).map_err(failed)?;
        temporary.moved = true;
    } else {
        temporary.claim(&target).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists { path: path.into() },
            _ => failed(e),
        })?;
    }
    sync_folder(&target);
    Ok(())
}

/// Whether this process writes no files.
static DISCARDS: AtomicBool = AtomicBool::new(false);

/// From now on this process writes no files: another does the same work, and writes them.
#[cfg(all(feature = "cli", feature = "mpi", unix))]
pub(crate) fn discard() {
    DISCARDS.store(true, Ordering::Relaxed);
}

/// Fails as [`write_atomic`] would if `path` must not or cannot be written, before any work is spent on its content.
pub(crate) fn check_output(path: &Path, overwrite: Overwrite) -> Result<()> {
    let target = target(path, overwrite)?;
    Temporary::create_beside(&target).map(drop).map_err(|e| Error::io("create", path, e))
}

/// Removes the temporary files that killed processes left in a folder. Nobody else may be writing into it.
pub(crate) fn remove_temporaries(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(is_temporary) {
            // One that stays does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The temporary files that this process writes at the moment.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the temporary files of this process, which is about to end in the middle of whatever it writes.
#[cfg(feature = "cli")]
pub(crate) fn remove_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // One that has been moved to its place meanwhile is not there.
        let _ = fs::remove_file(path);
    }
}

/// The same without waiting and without taking memory: of a process that has none left, in whatever it was doing.
#[cfg(feature = "cli")]
pub(crate) fn try_remove_unfinished() {
    if let Ok(unfinished) = UNFINISHED.try_lock() {
        unfinished.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

/// Whether a file has a name that [`Temporary`] gives.
pub(crate) fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers.and_then(|n| n.split_once('-')).is_some_and(|(process, number)| digits(process) && digits(number))
}

const PREFIX: &str = ".hintflow-";
const SUFFIX: &str = ".tmp";

/// The file to put in place: `path`, or what it links to.
fn target(path: &Path, overwrite: Overwrite) -> Result<PathBuf> {
    let invalid = |what: &str| Error::io("write", path, io::Error::new(io::ErrorKind::InvalidInput, what));
    if path.file_name().is_none() {
        return Err(invalid("not the name of a file"));
    }
    // Also sees a link to nowhere, which is in the way as much as a file.
    if fs::symlink_metadata(path).is_err() {
        return Ok(path.into());
    }
    if !overwrite.is_allowed() {
        return Err(Error::Exists { path: path.into() });
    }
    let target = fs::canonicalize(path).map_err(|e| Error::io("write", path, e))?;
    if target.is_file() { Ok(target) } else { Err(invalid("something that is not a regular file has this name")) }
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A file that is removed on drop unless it was moved away.
struct Temporary {
    path: PathBuf,
    file: Option<File>,
    moved: bool,
}

impl Temporary {
    fn create_beside(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut attempts = 0;
        loop {
            // Independent of the target's name, which may be as long as the system allows.
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder(target).join(format!("{PREFIX}{}-{number}{SUFFIX}", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
                    return Ok(Self { path, file: Some(file), moved: false });
                }
                // Left by a killed process that had our number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempts < 1000 => attempts += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes, syncs and closes.
    fn fill(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let mut buffered = BufWriter::with_capacity(1 << 18, file);
        match write(&mut buffered).and_then(|()| buffered.flush()) {
            Ok(()) => buffered.get_ref().sync_all(),
            Err(e) => {
                // Without this, dropping the buffer would try to write again what could not be written.
                let _ = buffered.into_parts();
                Err(e)
            }
        }
    }

    /// Moves the file to a name that must be free.
    fn claim(&mut self, target: &Path) -> io::Result<()> {
        match fs::hard_link(&self.path, target) {
            // The temporary name goes on drop.
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
            // A file system without hard links: take the name with an empty file, which only one process can, and
            // replace that.
            Err(_) => {
                OpenOptions::new().write(true).create_new(true).open(target)?;
                fs::rename(&self.path, target).inspect_err(|_| drop(fs::remove_file(target)))?;
                self.moved = true;
                Ok(())
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.moved {
            // Some systems do not remove open files.
            drop(self.file.take());
            let _ = fs::remove_file(&self.path);
        }
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.path);
    }
}

/// Makes the new name survive a power cut where the system can. The content is safe already, so a failure is no error.
fn sync_folder(path: &Path) {
    if cfg!(unix)
        && let Ok(folder) = File::open(folder(path))
    {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn put(path: &Path, overwrite: Overwrite, text: &str) -> Result<()> {
        write_atomic(path, overwrite, |w| w.write_all(text.as_bytes()))
    }

    #[test]
    fn writes_and_replaces_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        put(&path, Overwrite::No, "one").unwrap();
        assert!(matches!(put(&path, Overwrite::No, "two"), Err(Error::Exists { .. })));
        assert!(matches!(check_output(&path, Overwrite::No), Err(Error::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        check_output(&path, Overwrite::Yes).unwrap();
        put(&path, Overwrite::Yes, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        put(&folder.path().join("b.txt"), Overwrite::Yes, "new").unwrap();
        assert_eq!(names(folder.path()), ["a.txt", "b.txt"]);
    }

    #[test]
    fn failed_writes_leave_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        put(&path, Overwrite::No, "old").unwrap();
        for overwrite in [Overwrite::No, Overwrite::Yes] {
            let target = if overwrite.is_allowed() { path.clone() } else { folder.path().join("new.txt") };
            let error = write_atomic(&target, overwrite, |w| {
                w.write_all(&[b'x'; 1 << 20])?;
                Err(io::ErrorKind::StorageFull.into())
            });
            assert!(
                matches!(&error, Err(Error::Io { action: "write", cause, .. }) if cause.kind() == io::ErrorKind::StorageFull)
            );
            let panicked = std::panic::catch_unwind(|| write_atomic(&target, overwrite, |_| panic!("on purpose")));
            assert!(panicked.is_err());
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn places_that_cannot_be_written_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/a.txt");
        assert!(matches!(check_output(&missing, Overwrite::Yes), Err(Error::Io { action: "create", .. })));
        assert!(
            matches!(put(&missing, Overwrite::No, ""), Err(Error::Io { action: "create", path, .. }) if path == missing)
        );
        fs::create_dir(folder.path().join("sub")).unwrap();
        assert!(matches!(put(&folder.path().join("sub"), Overwrite::Yes, ""), Err(Error::Io { .. })));
        assert!(matches!(put(&folder.path().join("sub"), Overwrite::No, ""), Err(Error::Exists { .. })));
        assert!(matches!(put(&folder.path().join(".."), Overwrite::Yes, ""), Err(Error::Io { .. })));
        let under_a_file = folder.path().join("file/a.txt");
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(matches!(put(&under_a_file, Overwrite::Yes, ""), Err(Error::Io { .. })));
        assert_eq!(names(folder.path()), ["file", "sub"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_stay_devices() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, nowhere] = ["file", "link", "nowhere"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(folder.path().join("gone"), &nowhere).unwrap();
        put(&link, Overwrite::Yes, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(matches!(put(&nowhere, Overwrite::No, ""), Err(Error::Exists { .. })));
        assert!(matches!(check_output(Path::new("/dev/null"), Overwrite::Yes), Err(Error::Io { .. })));
    }

    #[test]
    fn only_temporaries_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = Temporary::create_beside(&folder.path().join("x")).unwrap();
        let path = left.path.clone();
        std::mem::forget(left);
        let others = [".hintflow-1-.tmp", ".hintflow-1-2.tmp.npy", ".hintflow-a-1.tmp", "1-2.tmp"];
        others.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        assert!(path.exists());
        remove_temporaries(folder.path());
        assert!(!path.exists());
        assert_eq!(names(folder.path()), others);
        remove_temporaries(&folder.path().join("missing"));
    }

    #[test]
    fn longest_names_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        put(&path, Overwrite::No, "x").unwrap();
        put(&path, Overwrite::Yes, "y").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "y");
    }

    #[test]
    fn of_many_writers_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let path = folder.path().join(format!("{round}.txt"));
            let barrier = Barrier::new(4);
            let won: Vec<usize> = thread::scope(|scope| {
                let writers: Vec<_> = (0..4)
                    .map(|i| {
                        let (path, barrier) = (&path, &barrier);
                        scope.spawn(move || {
                            // All check the name before any of them takes it.
                            let result = write_atomic(path, Overwrite::No, |w| {
                                barrier.wait();
                                w.write_all(&[b'0' + i as u8; 1000])
                            });
                            match result {
                                Ok(()) => Some(i),
                                Err(Error::Exists { .. }) => None,
                                Err(e) => panic!("{e}"),
                            }
                        })
                    })
                    .collect();
                writers.into_iter().filter_map(|w| w.join().unwrap()).collect()
            });
            assert_eq!(won.len(), 1);
            assert_eq!(fs::read(&path).unwrap(), [b'0' + won[0] as u8; 1000]);
        }
        assert_eq!(names(folder.path()).len(), 20);
    }
}
