//! Whether this process is one of several that an MPI launcher started, by what launchers leave in the environment.

use crate::error::{Error, Result};

/// The launcher of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    /// Its name, for people.
    pub(crate) by: &'static str,
    /// How many processes it started, if it says so.
    pub(crate) size: Option<usize>,
    /// Files of MPI libraries that fit it, the likeliest first; of [`LIBRARY`] alone, if that is set.
    pub(crate) libraries: Vec<String>,
}

/// The variable that names the MPI library, or `off`: this process is alone, whoever launched it.
pub(crate) const LIBRARY: &str = "HINTFLOW_MPI";

/// Open MPI 2 to 5.
const OPEN_MPI: [&str; 2] = ["libmpi.so.40", "libmpi.40.dylib"];
/// MPICH 3 and 4 and its relatives; Debian has its own name for it.
const MPICH: [&str; 3] = ["libmpi.so.12", "libmpich.so.12", "libmpi.12.dylib"];
/// MPICH 5, Open MPI 6.
const STANDARD: [&str; 2] = ["libmpi_abi.so.1", "libmpi_abi.so.0"];

/// The launcher of this process, if it has one that starts several.
///
/// # Errors
/// [`Error::Config`] if it cannot be seen of how many processes this is one.
pub(crate) fn launched() -> Result<Option<Launched>> {
    of_environment(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}

fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Launched>> {
    let named = variable(LIBRARY);
    if named.as_deref() == Some("off") {
        return Ok(None);
    }
    let number = |name: &str| {
        variable(name)
            .map(|text| {
                text.trim().parse::<usize>().map_err(|_| Error::config(name, format!("is no number: `{text}`")))
            })
            .transpose()
    };
    let of_slurm = || number("SLURM_STEP_NUM_TASKS");
    let (by, size, families): (_, _, [&[&str]; 3]) = if let Some(size) = number("OMPI_COMM_WORLD_SIZE")? {
        ("Open MPI's mpirun", Some(size), [&OPEN_MPI, &STANDARD, &[]])
    } else if let Some(size) = number("PMI_SIZE")? {
        let by = if variable("SLURM_PROCID").is_some() { "srun" } else { "mpiexec" };
        (by, Some(size), [&MPICH, &STANDARD, &[]])
    } else if variable("PMIX_RANK").is_some() {
        ("a launcher with PMIx", of_slurm()?, [&OPEN_MPI, &STANDARD, &MPICH])
    } else if variable("SLURM_PROCID").is_some() && of_slurm()?.is_some_and(|size| size > 1) {
        let what = "srun started several processes, but did not tell them of each other; start them with `srun --mpi=pmix` or \
                    `srun --mpi=pmi2`, whichever `srun --mpi=list` has and the MPI library takes, or set HINTFLOW_MPI=off if \
                    each is to work for itself";
        return Err(Error::config("srun", what));
    } else {
        return Ok(None);
    };
    if size == Some(1) {
        return Ok(None);
    }
    let libraries = match named {
        Some(path) => vec![path],
        None => families.into_iter().flatten().map(|name| (*name).to_owned()).collect(),
    };
    Ok(Some(Launched { by, size, libraries }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(variables: &[(&str, &str)]) -> Result<Option<Launched>> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        of_environment(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(launched(&[]).unwrap(), None);
        let found = launched(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")]).unwrap().unwrap();
        assert_eq!((found.size, &*found.libraries[0]), (Some(4), "libmpi.so.40"));
        let found = launched(&[("PMI_SIZE", "2")]).unwrap().unwrap();
        assert_eq!((found.by, found.size, &*found.libraries[0]), ("mpiexec", Some(2), "libmpi.so.12"));
        let found = launched(&[("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "3")]).unwrap().unwrap();
        assert_eq!((found.size, &*found.libraries[0]), (Some(3), "libmpi.so.40"));
        let found = launched(&[("PMI_SIZE", "2"), (LIBRARY, "/opt/libmpi.so")]).unwrap().unwrap();
        assert_eq!(found.libraries, ["/opt/libmpi.so"]);
    }

    #[test]
    fn one_process_is_alone_and_so_is_whoever_is_told_so() {
        assert_eq!(launched(&[("OMPI_COMM_WORLD_SIZE", "1")]).unwrap(), None);
        assert_eq!(launched(&[("PMI_SIZE", "8"), (LIBRARY, "off")]).unwrap(), None);
        assert_eq!(launched(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]).unwrap(), None);
    }

    #[test]
    fn processes_that_do_not_know_of_each_other_are_refused() {
        let error = launched(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")]).unwrap_err();
        assert!(error.to_string().contains("srun --mpi=pmix"), "{error}");
        assert!(launched(&[("PMI_SIZE", "many")]).is_err());
    }
}
