//! What people are told to do about a file, in the words of the command they gave.

/// What the advice of a message can name: how whoever reads a table says its layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Advice {
    /// By settings of a training: `data.header=false`.
    #[default]
    Settings,
    /// By options of a command, whose results belong to rows, so that it leaves out none: `--header false`.
    Options,
    /// The same, of a series with a row for each step.
    Steps,
}

impl Advice {
    /// How a part of the layout is given a value.
    pub(in crate::data::files) fn given(self, part: &str, value: &str) -> String {
        match self {
            Self::Settings => format!("data.{part}={value}"),
            Self::Options | Self::Steps => format!("--{part} {value}"),
        }
    }

    /// What says what separates cells.
    pub(in crate::data::files) fn separator(self) -> &'static str {
        match self {
            Self::Settings => "data.separator",
            Self::Options | Self::Steps => "--separator",
        }
    }

    /// What to do about a missing value, for which `word` stands.
    pub(in crate::data::files) fn missing(self, word: &str) -> String {
        match self {
            Self::Settings => format!("data.missing={word} leaves out such rows"),
            Self::Options => "write a number there, or take the row out of the file".into(),
            Self::Steps => "write a number there; each row is a step, and none can be left out".into(),
        }
    }

    /// What to do about a number that is too far from all others.
    pub(in crate::data::files) fn too_far(self) -> &'static str {
        match self {
            Self::Settings => {
                "leave the row out, name it in data.missing if it stands for a missing value, or take the logarithm of the \
                 column"
            }
            Self::Options | Self::Steps => "correct it, or take the row out of the file",
        }
    }

    /// How to leave out a column.
    pub(in crate::data::files) fn without_column(self) -> &'static str {
        match self {
            Self::Settings => "leave it out (data.columns)",
            Self::Options | Self::Steps => "take it out of the file",
        }
    }
}
