//! The digest of a model file: a changed bit anywhere in it would be another model without a word.
//!
//! It is the last field of the JSON in the metadata, and that of the JSON without it and of all tensors. Files without one
//! are read as they are.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// What stands before the digest, at the end of the JSON.
const BEFORE: &str = ",\"sha256\":\"";
/// What stands behind it.
const BEHIND: &str = "\"}";
/// Hexadecimal digits of one.
const DIGITS: usize = 64;

/// SHA-256 in hexadecimal of the JSON without digest, and of name, number of bytes (as a little-endian u64) and bytes of
/// each tensor in the order of their names.
pub(super) fn of<'a>(json: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hash = Sha256::new();
    hash.update(json);
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_unstable();
    for (name, bytes) in tensors {
        hash.update(name);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The JSON of an object with its digest.
pub(super) fn put_on(json: &str, digest: &str) -> String {
    let open = json.strip_suffix('}').unwrap_or(json);
    format!("{open}{BEFORE}{digest}{BEHIND}")
}

/// The JSON without its digest, and that, if it has one.
pub(super) fn taken_off(json: &str) -> (Cow<'_, str>, Option<&str>) {
    let parts = || {
        let json = json.strip_suffix(BEHIND)?;
        let (open, digest) = json.split_at_checked(json.len().checked_sub(DIGITS)?)?;
        Some((open.strip_suffix(BEFORE)?, digest))
    };
    match parts() {
        Some((open, digest)) => (format!("{open}}}").into(), Some(digest)),
        None => (json.into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_goes_on_and_comes_off() {
        let json = r#"{"format":3,"kind":"flow"}"#;
        let digest = of(json, [("a", &[1u8, 2][..])].into_iter());
        let with = put_on(json, &digest);
        assert!(with.ends_with(&format!(",\"sha256\":\"{digest}\"}}")) && digest.len() == DIGITS);
        let (without, found) = taken_off(&with);
        assert_eq!((&*without, found), (json, Some(&*digest)));
        for other in [json, "", "{}", "\"}", "ä\"}"] {
            assert_eq!(taken_off(other), (other.into(), None));
        }
    }

    #[test]
    fn it_is_of_all_that_is_in_the_file() {
        let first = of("{}", [("a", &[1u8, 2][..]), ("b", &[][..])].into_iter());
        for other in [
            of("{ }", [("a", &[1u8, 2][..]), ("b", &[][..])].into_iter()),
            of("{}", [("a", &[1u8, 3][..]), ("b", &[][..])].into_iter()),
            of("{}", [("a", &[1u8][..]), ("b", &[2u8][..])].into_iter()),
            of("{}", [("a", &[1u8, 2][..]), ("c", &[][..])].into_iter()),
        ] {
            assert_ne!(first, other);
        }
    }
}
