//! The share of a rank of the cores of its machine.

use crate::Result;
use crate::comm::Communicator;
use crate::comm::collective::gather_for_all;

/// The cores of this rank: those that the launcher bound it to, shared with the ranks of this machine that it bound to the
/// same ones.
pub(super) fn share_of_cores(world: &dyn Communicator) -> Result<usize> {
    let own = bound::cores();
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
    let bound = (usable * together).checked_div(taken);
    bound.unwrap_or(usable / ranks.max(1)).max(1)
}

/// The cores that this process is bound to.
mod bound {
    /// A bit for each; none if that is not known.
    #[cfg(target_os = "linux")]
    pub(super) fn cores() -> Vec<u64> {
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
    pub(super) fn cores() -> Vec<u64> {
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
