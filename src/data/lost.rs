//! Numbers of a file that 32-bit floats do not hold, as a table remembers them.

/// Numbers of a column that are so small beside the others that 32-bit floats take them for zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vanished {
    /// The column of the table, from 0.
    pub(crate) column: usize,
    /// How many they are.
    pub(crate) count: usize,
    /// The most frequent of them, as it is in the file.
    pub(crate) number: f64,
    /// How often that is there.
    pub(crate) times: usize,
    /// The first row that has it, from 0.
    pub(crate) row: usize,
}

/// A number that no 32-bit float holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FarNumber {
    /// Its row, from 0.
    pub(crate) row: usize,
    /// Its column of the table, from 0.
    pub(crate) column: usize,
    pub(crate) number: f64,
}
