//! Numbers of things, in words: `1 row`, `2 rows`.

use std::fmt::Display;

/// A number with its noun, of which the last word is the plural where it is one: `1 training row`, `0 batches`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let noun = of(&count, noun);
    format!("{count} {noun}")
}

/// The noun of so many things, without their number.
pub(crate) fn of<N: PartialEq + From<u8>>(count: &N, noun: &str) -> String {
    if *count == N::from(1) { noun.to_owned() } else { plural(noun) }
}

/// `is` of one thing, `are` of others.
pub(crate) fn are<N: PartialEq + From<u8>>(count: N) -> &'static str {
    if count == N::from(1) { "is" } else { "are" }
}

/// `has` of one thing, `have` of others.
pub(crate) fn have<N: PartialEq + From<u8>>(count: N) -> &'static str {
    if count == N::from(1) { "has" } else { "have" }
}

/// `once`, `twice`, `3 times`.
pub(crate) fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{n} times"),
    }
}

fn plural(noun: &str) -> String {
    let hisses = ["s", "x", "tch", "sh"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        _ if hisses => format!("{noun}es"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_another_noun_than_several() {
        assert_eq!(
            [0u64, 1, 2].map(|n| counted(n, "training row")),
            ["0 training rows", "1 training row", "2 training rows"]
        );
        assert_eq!(counted(3usize, "batch") + &counted(1u32, "batch"), "3 batches1 batch");
        assert_eq!(
            ["box", "density", "day", "loss", "epoch"].map(plural),
            ["boxes", "densities", "days", "losses", "epochs"]
        );
        assert_eq!([are(1), are(0), have(1), have(2)], ["is", "are", "has", "have"]);
        assert_eq!([1, 2, 12].map(times), ["once", "twice", "12 times"]);
    }
}
