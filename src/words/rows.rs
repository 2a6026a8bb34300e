//! What is to be known of the rows of a table, and what was chosen for them.

use std::fmt;

use super::{NAMED, listed, relations};
use crate::counted::{are, counted, times};
use crate::train::found::{Chose, Drawn, Found, Judged, Lane, Repeated, Unusual, What};

/// Columns that are described; others are named.
const DESCRIBED: usize = 3;

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.join(", ");
        match &self.what {
            What::FewRows(rows) => {
                let counted = counted(*rows, "training row");
                write!(f, "there {} only {counted}: too few to learn a density from", are(*rows))
            }
            What::NoneHeldOut(judged) => {
                let loss = match judged {
                    Judged::Test => "test",
                    Judged::Validation => "validation",
                };
                write!(f, "too few rows to hold any out: there is no {loss} loss")
            }
            What::LeftOut(says) | What::Rounded(says) | What::Vanished(says) => f.write_str(says),
            What::Repeated(Repeated { count, of, row, first }) => write!(
                f,
                "{count} of {} {} others (row {row} is row {first} again): they have no density, and repeats among the held-out \
                 rows make the test loss better than it is; leave them out of the table",
                counted(*of, "training row"),
                if *count == 1 { "repeats" } else { "repeat" }
            ),
            What::Constant(lane, names) => constant(f, *lane, names),
            What::Whole(Lane::X) => write!(
                f,
                "whole numbers only: {columns}; their density is one of the numbers plus the noise added in training \
                 (train.noise), and samples are not whole"
            ),
            What::Whole(Lane::Y) => write!(
                f,
                "whole numbers only among the conditions: {columns}; they have no density, so that log p(y) and with it log p(y, \
                 x) mean little; posteriors are not affected"
            ),
            What::Given(Lane::X, found, kept) => {
                let n = found.len() + kept.len();
                let (written, remedy) = (relations::written(found), relations::remedy(kept));
                write!(
                    f,
                    "columns that others give to within 0.1 % of their deviation: {written}. The rows have no density in {}: \
                     across these relations it is that of the noise added in training (train.noise), and grows without \
                     limit as that falls; {remedy}",
                    counted(n, "column")
                )
            }
            What::Given(Lane::Y, found, _) => write!(
                f,
                "conditions that others give: {}. They have no density together, so that log p(y) and with it log p(y, x) mean \
                 little; leave them out of data.given",
                relations::written(found)
            ),
            What::Drawn(drawn, unusual) => {
                let why = match drawn {
                    Drawn::Robust => {
                        "values far from all others (codes for missing values? errors?) would hide the rest, so these columns \
                         are scaled by quantiles (robust)"
                    }
                    Drawn::Asinh => "heavy tails: these columns are drawn together by asinh",
                    Drawn::Softplus => {
                        "nearly linear far from their bound, so taken by softplus and not by the logarithm"
                    }
                };
                let described = unusual.iter().take(DESCRIBED).map(|unusual| described(*drawn, unusual));
                let names = unusual.iter().skip(DESCRIBED).map(|unusual| unusual.name.clone());
                let list = listed(described, names, unusual.len()).join(", ");
                write!(f, "{why}: {list}; columns.NAME.transform=standardize keeps mean and deviation")
            }
        }
    }
}

fn constant(f: &mut fmt::Formatter<'_>, lane: Lane, names: &[String]) -> fmt::Result {
    let is_one = names.len() == 1;
    let names = names.join(", ");
    match lane {
        Lane::X => {
            let are = if is_one { format!("column {names} is") } else { format!("columns {names} are") };
            write!(
                f,
                "{are} constant: the density there is arbitrary, that of the noise added in training (train.noise); leave out \
                 with --set data.columns=..."
            )
        }
        Lane::Y => {
            let are = if is_one { format!("condition {names} is") } else { format!("conditions {names} are") };
            write!(
                f,
                "{are} constant: nothing can be learnt from it, and for any other value the model is arbitrary; leave it out of \
                 the conditions"
            )
        }
    }
}

fn described(drawn: Drawn, unusual: &Unusual) -> String {
    let Unusual { name, value, row, usual: [low, high], .. } = unusual;
    let times = times(unusual.times);
    match drawn {
        Drawn::Softplus => name.clone(),
        Drawn::Robust => format!("{name} ({value} {times}, first in row {row}; the others from {low} to {high})"),
        Drawn::Asinh => format!("{name} (as far as {value}, {times}, first in row {row})"),
    }
}

impl fmt::Display for Chose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assumed(says) => f.write_str(says),
            Self::Regressed(columns) => {
                let described = |(name, r_squared): &(String, f64)| format!("{name} (R² {:.0} %)", 100.0 * r_squared);
                let list = listed(columns.iter().take(NAMED).map(described), [], columns.len());
                write!(
                    f,
                    "subtracted inside the model: the linear regression on the conditions, of {}; data.regression=false turns \
                     this off",
                    list.join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Dataset;
    use crate::config::Given;
    use crate::config::preset::for_tables;
    use crate::plan::Kind;

    #[test]
    fn long_lists_describe_some_name_more_and_count_the_rest() {
        let unusual = |i: usize| super::Unusual {
            name: format!("c{i}"),
            value: "-9999".into(),
            times: i,
            row: 7,
            usual: ["1".into(), "2".into()],
        };
        let what = super::What::Drawn(super::Drawn::Robust, (1..15).map(unusual).collect());
        let text = super::Found { columns: vec![], what }.to_string();
        let list = "c1 (-9999 once, first in row 7; the others from 1 to 2), c2 (-9999 twice, first in row 7; the others from 1 \
                    to 2), c3 (-9999 3 times, first in row 7; the others from 1 to 2), c4, c5, c6, c7, c8, c9, c10, c11, c12, and \
                    2 more;";
        assert!(text.contains(list), "{text}");
    }

    /// Two columns of 400 rows: of one a few values are far, the other has a heavy tail.
    #[test]
    fn columns_with_other_units_are_told_with_value_row_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = for_tables();
        let path = folder.path().join("t.csv");
        let waves = |i: i32, far: bool| {
            let wave = f64::from(i * 7919 % 401) / 401.0 + 0.001;
            let mag = if far { -9999.0 } else { 20.0 + (f64::from(i) * 0.37).sin() };
            format!("{mag},{},{wave}\n", (8.0 * wave).exp())
        };
        let rows: String = (0..400).map(|i| waves(i, i % 40 == 5)).collect();
        std::fs::write(&path, "mag,flux,u\n".to_owned() + &rows).unwrap();
        config.data.path = Some(path);
        let data = Dataset::load(&config, None).unwrap();
        let notes = data.notes.join("\n");
        let of = |name: &str| data.notes.iter().find(|note| note.contains(name)).cloned().unwrap_or_default();
        assert_eq!(data.notes.len(), 2, "{notes}");
        let mag = of("mag");
        assert!(mag.contains("(robust): mag (-9999 ") && mag.contains("times, first in row 6;"), "{mag}");
        assert!(mag.contains("from 19") && mag.contains("columns.NAME.transform=standardize"), "{mag}");
        assert!(of("flux").contains("asinh: flux (as far as 29"), "{notes}");
        for (name, setting) in [("mag", "standardize"), ("flux", "log")] {
            let transform = serde_json::from_value(setting.into()).unwrap();
            config.columns.insert(name.into(), crate::data::ColumnSetting { transform, ..Default::default() });
        }
        assert!(Dataset::load(&config, None).unwrap().notes.is_empty());
    }

    #[test]
    fn columns_of_whole_numbers_and_constants_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = for_tables();
        let path = folder.path().join("t.csv");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        config.data.path = Some(path.clone());
        write(&(0..100).map(|i| format!("{},{}\n", 2 * i, i * i)).collect::<String>());
        assert!(Dataset::load(&config, None).unwrap().notes.is_empty(), "all numbers are different");
        let rows = (0..100i32).map(|i| format!("{},{},7\n", i % 4, f64::from((i % 4).pow(2)) + 0.5));
        write(&("count,half,seven\n".to_owned() + &rows.collect::<String>()));
        let notes = Dataset::load(&config, None).unwrap().notes;
        assert!(notes.len() == 2 && notes[0].contains("only: count;"), "{notes:?}");
        assert!(notes[1].contains("column seven is constant") && notes[1].contains("data.columns"), "{notes:?}");

        // Conditions have no noise, and what is said of them differs.
        config.model.kind = Kind::Hint;
        config.data.given = Some(Given::of_text("seven,count"));
        let notes = Dataset::load(&config, None).unwrap().notes;
        assert!(notes.len() == 2 && notes[0].contains("conditions: count;"), "{notes:?}");
        assert!(notes[1].contains("condition seven is constant") && !notes[1].contains("data.columns"), "{notes:?}");
        config.model.kind = Kind::Cinn;
        assert_eq!(Dataset::load(&config, None).unwrap().notes, notes[1..]);

        (config.model.kind, config.data.given) = (Kind::Flow, None);
        config.data.rows = Some(15);
        let notes = Dataset::load(&config, None).unwrap().notes.join("; ");
        assert!(notes.contains("only 13 training rows") || notes.contains("only 14 training rows"), "{notes}");
    }
}
