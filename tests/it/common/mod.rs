//! What the test binaries share: the comparison helper, the float64 oracle, its fixtures, random models, and Jacobians.
//!
//! Only `engines` uses the crate under test, so that an agreement of the oracle with it means something.
#![allow(dead_code, unused_imports, reason = "every test binary compiles this module and uses only a part of it")]

pub(crate) mod compare;
pub(crate) mod engines;
pub(crate) mod fixture;
pub(crate) mod jacobian;
pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod whole;
