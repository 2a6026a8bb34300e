//! How deep the recursion of a coupling goes.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Recursion depth: a number of levels, or no limit. In settings it is a number or "full".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// No limit: down to nodes of three columns.
    #[default]
    Full,
    /// At most this many levels below the root; 0 is RealNVP.
    Levels(u32),
}

/// The number that stands for no limit in model files; so does every larger one.
const FULL: u32 = 99;

impl Depth {
    /// Whether nodes at a level (root: 0) may be split.
    pub(super) fn goes_below(self, level: u32) -> bool {
        match self {
            Self::Full => true,
            Self::Levels(levels) => level < levels,
        }
    }
}

impl From<u32> for Depth {
    fn from(levels: u32) -> Self {
        if levels < FULL { Self::Levels(levels) } else { Self::Full }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Levels(levels) => levels.fmt(f),
        }
    }
}

impl Serialize for Depth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Full => serializer.serialize_str("full"),
            Self::Levels(levels) => serializer.serialize_u32(*levels),
        }
    }
}

impl<'de> Deserialize<'de> for Depth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Depth;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"full\" or a number of levels")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Depth, E> {
                u64::try_from(v)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(v), &self))
                    .and_then(|v| self.visit_u64(v))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Depth, E> {
                Ok(u32::try_from(v).map_or(Depth::Full, Depth::from))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Depth, E> {
                if v == "full" { Ok(Depth::Full) } else { Err(E::invalid_value(de::Unexpected::Str(v), &self)) }
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// The form of model files: a number.
pub(super) mod number {
    use super::{Depth, Deserialize, Deserializer, FULL, Serializer};

    pub(in crate::plan) fn serialize<S: Serializer>(depth: &Depth, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(match depth {
            Depth::Full => FULL,
            Depth::Levels(levels) => *levels,
        })
    }

    pub(in crate::plan) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Depth, D::Error> {
        u32::deserialize(deserializer).map(Depth::from)
    }
}
