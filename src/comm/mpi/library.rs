//! An MPI library that was opened, and the functions of it that ranks need.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::abi::{self, Abi, Constants, Pointer};
use crate::comm::launcher::{LIBRARY, Launched};
use crate::error::{Error, Result};

/// The functions, whatever the interface of the library. Failures are its own words.
pub(super) trait Functions: Send {
    /// Begins MPI.
    fn begin(&self) -> Result<(), String>;
    /// Ends MPI; waits for all ranks.
    fn end(&self);
    /// Ends all ranks.
    fn abort(&self, code: c_int);
    /// Number of this rank.
    fn rank(&self) -> c_int;
    /// Number of ranks.
    fn size(&self) -> c_int;
    /// What the library says of itself, in a line.
    fn version(&self) -> String;
    /// Forgets the messages that are finished.
    fn clear(&mut self);
    /// Begins to send a message.
    ///
    /// # Safety
    /// The bytes stay as they are until [`Functions::finished`].
    unsafe fn send(&mut self, bytes: *const u8, count: c_int, to: c_int) -> Result<(), String>;
    /// Begins to receive a message.
    ///
    /// # Safety
    /// The bytes belong to the library until [`Functions::finished`].
    unsafe fn receive(&mut self, bytes: *mut u8, count: c_int, from: c_int) -> Result<(), String>;
    /// Whether all messages that were begun since [`Functions::clear`] are sent and received.
    fn finished(&mut self) -> Result<bool, String>;
}

/// Opens the first library that fits a launcher.
///
/// # Errors
/// [`Error::Ranks`] if there is none.
pub(super) fn open(launched: &Launched) -> Result<Box<dyn Functions>> {
    let mut tried = Vec::new();
    for file in &launched.libraries {
        match open_file(file) {
            Ok(functions) => return Ok(functions),
            Err(what) => tried.push(format!("{file}: {what}")),
        }
    }
    let what = format!(
        "{} started this program, but its MPI library cannot be opened; name it in {LIBRARY}, as {LIBRARY}=/path/to/libmpi.so, \
         or set {LIBRARY}=off if each process is to work for itself. Tried: {}",
        launched.by,
        tried.join("; ")
    );
    Err(Error::Ranks { what })
}

fn open_file(file: &str) -> Result<Box<dyn Functions>, String> {
    // SAFETY: what an MPI library does when it is opened is safe at any time. Its parts look for its names, so that they must
    // be global.
    let library = unsafe { Library::open(Some(Path::new(file)), RTLD_NOW | RTLD_GLOBAL) }.map_err(|e| e.to_string())?;
    let version = version(&library)?;
    let opened = match abi::of(file, &version) {
        Some(Abi::Standard) => Opened::boxed(library, Constants::standard(), version),
        Some(Abi::OpenMpi) => {
            let constants = Constants::open_mpi(&library);
            constants.and_then(|constants| Opened::boxed(library, constants, version))
        }
        Some(Abi::Mpich) => Opened::boxed(library, Constants::mpich(), version),
        None => return Err(format!("is of no known kind (Open MPI, MPICH and its relatives, MPI 5): {version}")),
    };
    opened.map_err(|name| format!("has no {name}"))
}

/// What a library says of itself, in a line. Can be asked before MPI begins.
fn version(library: &Library) -> Result<String, String> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    /// The most that any interface writes.
    const MOST: usize = 8192;
    // SAFETY: the function has this type in every interface.
    let get = unsafe { library.get::<Version>(b"MPI_Get_library_version") }.map_err(|_| "is no MPI 3".to_owned())?;
    let (mut text, mut length) = (vec![0 as c_char; MOST + 1], 0);
    // SAFETY: the buffer holds the longest text and a zero after it.
    let text = unsafe {
        get(text.as_mut_ptr(), &mut length);
        CStr::from_ptr(text.as_ptr())
    };
    Ok(text.to_string_lossy().lines().next().unwrap_or_default().trim().to_owned())
}

type NoArguments = unsafe extern "C" fn() -> c_int;
type InitThread = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type Number<H> = unsafe extern "C" fn(H, *mut c_int) -> c_int;
type SetErrors<H> = unsafe extern "C" fn(H, H) -> c_int;
type Abort<H> = unsafe extern "C" fn(H, c_int) -> c_int;
type Message<H> = unsafe extern "C" fn(*mut c_void, c_int, H, c_int, c_int, H, *mut H) -> c_int;
type TestAll<H> = unsafe extern "C" fn(c_int, *mut H, *mut c_int, *mut c_void) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int;

/// A library whose handles are `H`. It stays open: MPI may have begun threads of its own.
struct Opened<H> {
    constants: Constants<H>,
    version: String,
    requests: Vec<H>,
    init_thread: InitThread,
    finalize: NoArguments,
    comm_rank: Number<H>,
    comm_size: Number<H>,
    set_errors: SetErrors<H>,
    abort: Abort<H>,
    send: Message<H>,
    receive: Message<H>,
    test_all: TestAll<H>,
    error_string: ErrorString,
}

// SAFETY: handles belong to the process, and MPI is begun so that any thread may call it, one at a time.
unsafe impl<H> Send for Opened<H> {}

impl<H: Copy + 'static> Opened<H>
where
    Self: Functions,
{
    /// # Errors
    /// The name of a function that the library does not have.
    fn boxed(library: Library, constants: Constants<H>, version: String) -> Result<Box<dyn Functions>, String> {
        fn get<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the callers below name a function and the type that it has in this interface.
            unsafe { library.get::<T>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| name.to_owned())
        }
        let opened = Self {
            constants,
            version,
            requests: Vec::new(),
            init_thread: get(&library, "MPI_Init_thread")?,
            finalize: get(&library, "MPI_Finalize")?,
            comm_rank: get(&library, "MPI_Comm_rank")?,
            comm_size: get(&library, "MPI_Comm_size")?,
            set_errors: get(&library, "MPI_Comm_set_errhandler")?,
            abort: get(&library, "MPI_Abort")?,
            send: get(&library, "MPI_Isend")?,
            receive: get(&library, "MPI_Irecv")?,
            test_all: get(&library, "MPI_Testall")?,
            error_string: get(&library, "MPI_Error_string")?,
        };
        std::mem::forget(library);
        Ok(Box::new(opened))
    }

    fn checked(&self, code: c_int) -> Result<(), String> {
        /// The most that any interface writes.
        const MOST: usize = 512;
        if code == 0 {
            return Ok(());
        }
        let (mut text, mut length) = ([0 as c_char; MOST + 1], 0);
        // SAFETY: the buffer holds the longest text and a zero after it.
        let text = unsafe {
            (self.error_string)(code, text.as_mut_ptr(), &mut length);
            CStr::from_ptr(text.as_ptr())
        };
        Err(text.to_string_lossy().trim().to_owned())
    }

    fn number(&self, of: Number<H>) -> c_int {
        let mut number = 0;
        // SAFETY: MPI has begun, and writes a number.
        unsafe { of(self.constants.world, &mut number) };
        number
    }

    /// Begins a message with an `MPI_Isend` or `MPI_Irecv`.
    ///
    /// # Safety
    /// The bytes are valid for what the function does until the message is finished.
    unsafe fn message(&mut self, how: Message<H>, bytes: *mut u8, count: c_int, other: c_int) -> Result<(), String> {
        let Constants { world, byte, no_request, .. } = self.constants;
        let mut request = no_request;
        // SAFETY: the caller's promise, and a request that outlives the call.
        let code = unsafe { how(bytes.cast(), count, byte, other, TAG, world, &mut request) };
        self.checked(code)?;
        self.requests.push(request);
        Ok(())
    }
}

/// The tag of all messages: their order tells them apart.
const TAG: c_int = 23;

/// Implements [`Functions`] once for each kind of handle.
macro_rules! functions {
    ($handle:ty) => {
        impl Functions for Opened<$handle> {
            fn begin(&self) -> Result<(), String> {
                let mut provided = 0;
                let needed = self.constants.serialized;
                let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
                // SAFETY: arguments of the program are optional.
                let code = unsafe { (self.init_thread)(none, nothing, needed, &mut provided) };
                self.checked(code)?;
                if provided < needed {
                    return Err(format!("{} does not let threads take turns; use another build of it", self.version));
                }
                // SAFETY: MPI has begun.
                self.checked(unsafe { (self.set_errors)(self.constants.world, self.constants.errors_return) })
            }

            fn end(&self) {
                // SAFETY: MPI has begun, and no message is under way.
                unsafe { (self.finalize)() };
            }

            fn abort(&self, code: c_int) {
                // SAFETY: MPI has begun.
                unsafe { (self.abort)(self.constants.world, code) };
            }

            fn rank(&self) -> c_int {
                self.number(self.comm_rank)
            }

            fn size(&self) -> c_int {
                self.number(self.comm_size)
            }

            fn version(&self) -> String {
                self.version.clone()
            }

            fn clear(&mut self) {
                self.requests.clear();
            }

            unsafe fn send(&mut self, bytes: *const u8, count: c_int, to: c_int) -> Result<(), String> {
                // SAFETY: the caller's promise; nothing is written.
                unsafe { self.message(self.send, bytes.cast_mut(), count, to) }
            }

            unsafe fn receive(&mut self, bytes: *mut u8, count: c_int, from: c_int) -> Result<(), String> {
                // SAFETY: the caller's promise.
                unsafe { self.message(self.receive, bytes, count, from) }
            }

            fn finished(&mut self) -> Result<bool, String> {
                let (mut all, count) = (0, self.requests.len() as c_int);
                let statuses = self.constants.no_statuses;
                // SAFETY: as many requests as are told, whose buffers are valid until they are finished.
                let code = unsafe { (self.test_all)(count, self.requests.as_mut_ptr(), &mut all, statuses) };
                self.checked(code)?;
                Ok(all != 0)
            }
        }
    };
}

functions!(c_int);
functions!(Pointer);
