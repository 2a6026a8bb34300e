//! What is said of the layout of the text tables that a command reads.

use clap::{ArgAction, Args};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as Unknown, StrDeserializer};

use crate::data::files::Advice;
use crate::data::files::Reading;
use crate::data::files::text::{Decimal, Separator, TextSettings};
use crate::data::packing::Packed;

/// Options of a command that reads text tables. They are of all that it reads; settings of a training have more, see
/// `data.missing`: where results belong to rows, none may be left out.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Layout of text tables, which otherwise is found out")]
pub(super) struct LayoutArgs {
    /// Whether the first line holds names
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    header: Option<bool>,
    /// Between cells: comma, semicolon, tab, bar or blanks
    #[arg(long, value_name = "NAME", value_parser = |text: &str| named::<Separator>(text))]
    separator: Option<Separator>,
    /// Before fractions: point or comma
    #[arg(long, value_name = "NAME", value_parser = |text: &str| named::<Decimal>(text))]
    decimal: Option<Decimal>,
}

impl LayoutArgs {
    /// How a table is read that belongs to no model.
    pub(super) fn reading(&self) -> Reading<'static> {
        self.reading_as(Packed::No)
    }

    /// How a series is read, which has a row for each step.
    pub(super) fn reading_steps(&self) -> Reading<'static> {
        let reading = self.reading();
        Reading { text: TextSettings { advice: Advice::Steps, ..reading.text }, ..reading }
    }

    /// How a table is read whose columns are packed like this.
    pub(super) fn reading_as<'a>(&self, packed: Packed<'a>) -> Reading<'a> {
        Reading { text: self.text(), packed, ..Reading::default() }
    }

    /// What is said of text tables.
    pub(super) fn text(&self) -> TextSettings {
        let Self { header, separator, decimal } = *self;
        TextSettings { header, separator, decimal, missing: Vec::new(), advice: Advice::Options }
    }
}

/// One of several values by its name, or by its character, as in settings.
fn named<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Unknown> {
    let names: StrDeserializer<'de, Unknown> = text.into_deserializer();
    T::deserialize(names)
}
