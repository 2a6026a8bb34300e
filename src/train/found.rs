//! What is to be known of the rows of a table, and what was chosen for them: facts. [`crate::words`] makes sentences of them.

use crate::data::columns::units::Choice;

/// Something to know of some columns or rows before a density of them is believed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// The columns that it is about, as messages call them; empty if it is about rows.
    pub columns: Vec<String>,
    /// What it is.
    pub what: What,
}

impl Found {
    /// Of rows.
    pub(super) fn of_rows(what: What) -> Self {
        Self { columns: Vec::new(), what }
    }
}

/// What may be to know of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// So few training rows that they teach nothing.
    FewRows(usize),
    /// No row is held out.
    NoneHeldOut(Judged),
    /// Rows were left out: what reading them said.
    LeftOut(String),
    /// Rows that repeat others.
    Repeated(Repeated),
    /// Columns with one value, by name, or by number where they have none.
    Constant(Lane, Vec<String>),
    /// Columns of few values, all of them whole numbers.
    Whole(Lane),
    /// Columns that others give, and the columns that do not follow from others, by name, or by number where they have
    /// none.
    Given(Lane, Vec<Relation>, Vec<String>),
    /// Columns that are brought to the networks in this way, though nobody asked for it.
    Drawn(Drawn, Vec<Unusual>),
    /// Numbers that rounding changed: what the table says.
    Rounded(String),
    /// Numbers that are nothing beside the others: what the table says.
    Vanished(String),
}

/// Conditions, or the columns that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Conditions.
    Y,
    /// Columns that are modelled.
    X,
}

/// What the held-out rows are called where their loss is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// By those of a table.
    Test,
    /// By those of a program.
    Validation,
}

/// Training rows that repeat others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// One of them, by its number in the table, from 1.
    pub row: usize,
    /// The row that it repeats.
    pub first: usize,
}

/// A column that others give: the sum of its terms, each a column with its factor, and a constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Relation {
    /// The column.
    pub column: String,
    /// The columns that give it.
    pub terms: Vec<(String, f64)>,
    /// What is added to them.
    pub constant: f64,
}

/// The ways to the networks that are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// Values far from all others would hide the rest.
    Robust,
    /// The tails are heavy.
    Asinh,
    /// Nearly linear far from a bound.
    Softplus,
}

impl Drawn {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Robust, Self::Asinh, Self::Softplus];

    /// Its transform.
    pub(super) fn choice(self) -> Choice {
        match self {
            Self::Robust => Choice::Robust,
            Self::Asinh => Choice::Asinh,
            Self::Softplus => Choice::Softplus,
        }
    }
}

/// A column that is not like others. Its numbers are as they are in its file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unusual {
    /// The column.
    pub name: String,
    /// Its farthest value.
    pub value: String,
    /// How often it has it.
    pub times: usize,
    /// The first row that has it, by its number in the table, from 1.
    pub row: usize,
    /// Where the values lie that are not far out.
    pub usual: [String; 2],
}

/// Something that was chosen for the rows, and is nothing to worry about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chose {
    /// Something that was assumed of the file: what reading it said.
    Assumed(String),
    /// Columns whose linear regression on the conditions is subtracted, each with the share of its variance that this takes.
    Regressed(Vec<(String, f64)>),
}
