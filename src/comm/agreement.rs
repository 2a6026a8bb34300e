//! Whether all ranks are about to do the same: each fact that must agree is exchanged as a hash before they begin.

use sha2::{Digest, Sha256};

use super::Communicator;
use super::collective::gather_for_all;
use crate::error::{Error, Result};

/// Something that must be the same on all ranks.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// What it is, for people: "data".
    pub(crate) what: &'static str,
    /// What to do if it differs.
    pub(crate) remedy: &'static str,
    /// The fact.
    pub(crate) value: Vec<u8>,
}

/// Bytes of a hash.
const HASH: usize = 32;

/// Whether all ranks have the same facts.
///
/// # Errors
/// [`Error::Ranks`] with the first fact that differs, and the ranks and hosts that have another than most ranks have (than
/// rank 0, if no value is that of most), on every rank.
pub(crate) fn agree(world: &dyn Communicator, facts: &[Fact]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let mut own: Vec<u8> = facts.iter().flat_map(|fact| Sha256::digest(&fact.value)).collect();
    own.extend_from_slice(world.host().as_bytes());
    let all = gather_for_all(world, &own)?;
    // Another version may have other facts.
    let (mut hashes, mut hosts) = (Vec::new(), Vec::new());
    for told in &all {
        let (known, host) = told.split_at(told.len().min(facts.len() * HASH));
        hashes.push(known);
        hosts.push(String::from_utf8_lossy(host));
    }
    for (i, fact) in facts.iter().enumerate() {
        let of = |rank: usize| hashes[rank].get(i * HASH..(i + 1) * HASH);
        let count = |rank: usize| (0..all.len()).filter(|&other| of(other) == of(rank)).count();
        // The last of the largest is the lowest rank.
        let usual = (0..all.len()).rev().max_by_key(|&rank| count(rank)).unwrap_or(0);
        let others = (0..all.len()).filter(|&rank| of(rank) != of(usual));
        let others: Vec<_> = others.map(|rank| format!("rank {rank} on {}", hosts[rank])).collect();
        if !others.is_empty() {
            let (what, remedy) = (fact.what, fact.remedy);
            let has = if others.len() == 1 { "has" } else { "have" };
            let what =
                format!("{} {has} another {what} than rank {usual} on {}; {remedy}", others.join(", "), hosts[usual]);
            return Err(Error::Ranks { what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::collective::tests::on_ranks;
    use super::*;

    fn facts(seed: u8, data: u8) -> [Fact; 2] {
        let fact = |what, value| Fact { what, remedy: "make them agree", value: vec![value] };
        [fact("seed", seed), fact("data", data)]
    }

    #[test]
    fn the_rank_that_differs_from_the_others_is_named() {
        assert!(on_ranks(3, |world| agree(&*world, &facts(1, 2))).into_iter().all(|agreed| agreed.is_ok()));
        for odd in 0..3 {
            let told = on_ranks(3, |world| agree(&*world, &facts(1, u8::from(world.rank() == odd))).unwrap_err());
            for error in told {
                let text = error.to_string();
                assert!(text.starts_with(&format!("rank {odd} on ")), "{text}");
                assert!(text.contains("has another data than rank ") && text.ends_with("; make them agree"), "{text}");
            }
        }
        let told = on_ranks(2, |world| agree(&*world, &facts(world.rank() as u8, 0)).unwrap_err());
        assert!(told[0].to_string().starts_with("rank 1 on "), "of two it is not rank 0");
    }
}
