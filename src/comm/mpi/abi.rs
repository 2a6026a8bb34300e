//! The three binary interfaces of MPI libraries: what their handles are, and the values of the few constants that are
//! needed. Functions have the same names and, but for handles, the same arguments in all of them.

use std::ffi::{c_int, c_void};

use libloading::os::unix::Library;

/// How a library represents what it hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// MPI 5: small constants in pointers.
    Standard,
    /// MPICH, Intel MPI, MVAPICH, Cray MPICH: integers.
    Mpich,
    /// Open MPI: pointers to its variables.
    OpenMpi,
}

/// The values of constants, as an interface represents them. `H` is a handle.
pub(super) struct Constants<H> {
    /// `MPI_COMM_WORLD`
    pub(super) world: H,
    /// `MPI_BYTE`
    pub(super) byte: H,
    /// `MPI_ERRORS_RETURN`
    pub(super) errors_return: H,
    /// `MPI_REQUEST_NULL`
    pub(super) no_request: H,
    /// `MPI_STATUSES_IGNORE`
    pub(super) no_statuses: *mut c_void,
    /// `MPI_THREAD_SERIALIZED`
    pub(super) serialized: c_int,
}

/// A handle that is a pointer.
pub(super) type Pointer = *mut c_void;

impl Constants<Pointer> {
    pub(super) fn standard() -> Self {
        let handle = |value: usize| std::ptr::without_provenance_mut(value);
        Self {
            world: handle(0x101),
            byte: handle(0x247),
            errors_return: handle(0x143),
            no_request: handle(0x180),
            no_statuses: std::ptr::null_mut(),
            serialized: 2048,
        }
    }

    /// # Errors
    /// The name of a variable that the library does not have.
    pub(super) fn open_mpi(library: &Library) -> Result<Self, String> {
        let variable = |name: &str| {
            // SAFETY: only the address is taken, whatever the variable holds.
            let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
            symbol.map(|symbol| symbol.into_raw().cast()).map_err(|_| name.to_owned())
        };
        Ok(Self {
            world: variable("ompi_mpi_comm_world")?,
            byte: variable("ompi_mpi_byte")?,
            errors_return: variable("ompi_mpi_errors_return")?,
            no_request: variable("ompi_request_null")?,
            no_statuses: std::ptr::null_mut(),
            serialized: 2,
        })
    }
}

impl Constants<c_int> {
    pub(super) fn mpich() -> Self {
        Self {
            world: 0x4400_0000,
            byte: 0x4c00_010d,
            errors_return: 0x5400_0001,
            no_request: 0x2c00_0000,
            no_statuses: std::ptr::without_provenance_mut(1),
            serialized: 2,
        }
    }
}

/// The interface of a library, by its file and by what it says of itself.
pub(super) fn of(file: &str, version: &str) -> Option<Abi> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let says = |words: &[&str]| words.iter().any(|word| version.contains(word));
    if name.contains("mpi_abi") {
        Some(Abi::Standard)
    } else if says(&["Open MPI"]) {
        Some(Abi::OpenMpi)
    } else if says(&["MPICH", "MVAPICH", "Intel(R) MPI"]) {
        Some(Abi::Mpich)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_what_they_say() {
        assert_eq!(of("libmpi.so.40", "Open MPI v4.1.4, package: Debian"), Some(Abi::OpenMpi));
        assert_eq!(of("/usr/lib/libmpich.so.12", "MPICH Version: 4.0.2"), Some(Abi::Mpich));
        assert_eq!(of("libmpi.so", "CRAY MPICH version 8.1"), Some(Abi::Mpich));
        assert_eq!(of("/opt/libmpi_abi.so.1", "MPICH Version: 5.0.2"), Some(Abi::Standard));
        assert_eq!(of("libmpi.so", "something else"), None);
    }
}
