//! What is wrong with posteriors, in the words of those who use them.

use serde::{Deserialize, Serialize};

use super::Test;

/// What a test found to be wrong with posteriors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Truths lie further out than posteriors have it: these claim to know more than they do.
    #[serde(rename = "too_narrow")]
    Narrow,
    /// Truths lie nearer to the middle than posteriors have it.
    #[serde(rename = "too_wide")]
    Wide,
    /// Truths lie above posteriors.
    #[serde(rename = "too_low")]
    Low,
    /// Truths lie below them.
    #[serde(rename = "too_high")]
    High,
    /// Middle and width are right, and yet truths are distributed otherwise.
    #[serde(rename = "other_shape")]
    Shape,
    /// Of some values of a condition they are further off than of others.
    #[serde(rename = "not_followed")]
    Unfollowed,
}

impl Fault {
    /// Faults of columns in the order of a sentence: what overstates knowledge comes first.
    const OF_COLUMNS: [Self; 5] = [Self::Narrow, Self::Wide, Self::Low, Self::High, Self::Shape];

    fn in_words(self) -> &'static str {
        match self {
            Self::Narrow => "too narrow (overconfident)",
            Self::Wide => "too wide",
            Self::Low => "too low",
            Self::High => "too high",
            Self::Shape => "of another shape than the truths",
            Self::Unfollowed => "not as the conditions have it",
        }
    }
}

/// Columns that are named in a headline.
const NAMED: usize = 4;

/// What the tests that speak against a model find wrong with its posteriors, in half a sentence: "posteriors of mass are too
/// narrow (overconfident)". None if they tell of no such fault.
pub(crate) fn headline(rejected: &[&Test]) -> Option<String> {
    let of = |fault: Fault| {
        let columns: Vec<&str> = rejected
            .iter()
            .filter(|test| test.faults.contains(&fault))
            .filter_map(|test| test.column.as_deref())
            .collect();
        (!columns.is_empty()).then(|| (named(&columns), fault.in_words()))
    };
    let unfollowed = of(Fault::Unfollowed).map(|(conditions, _)| format!("do not follow {conditions} as truths do"));
    let parts: Vec<(String, &str)> = Fault::OF_COLUMNS.into_iter().filter_map(of).collect();
    if let [(columns, what), others @ ..] = &parts[..] {
        let others: String = others.iter().map(|(columns, what)| format!(", those of {columns} {what}")).collect();
        let unfollowed = unfollowed.map(|words| format!("; they {words}")).unwrap_or_default();
        return Some(format!("posteriors of {columns} are {what}{others}{unfollowed}"));
    }
    // No column by itself, but all of them together.
    let together = rejected.iter().filter(|test| test.column.is_none()).find_map(|test| test.faults.first());
    let together = together.map(|fault| format!("of all columns together are {}", fault.in_words()));
    match (together, unfollowed) {
        (Some(fault), Some(words)) => Some(format!("posteriors {fault}; they {words}")),
        (Some(words), None) | (None, Some(words)) => Some(format!("posteriors {words}")),
        (None, None) => None,
    }
}

fn named(columns: &[&str]) -> String {
    match columns {
        [only] => (*only).to_owned(),
        [first @ .., last] if columns.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} others", columns[..NAMED].join(", "), columns.len() - NAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn of_column(column: &str, faults: &[Fault]) -> Test {
        Test::new("", Kind::Calibration, 0.0, 0.0, String::new()).of_column(column).with(faults.to_vec())
    }

    #[test]
    fn headlines_name_columns_and_faults() {
        let words = |tests: &[Test]| headline(&tests.iter().collect::<Vec<_>>()).unwrap_or_default();
        let mass = of_column("mass", &[Fault::Narrow]);
        assert_eq!(words(std::slice::from_ref(&mass)), "posteriors of mass are too narrow (overconfident)");
        let both = of_column("rate", &[Fault::High, Fault::Narrow]);
        assert_eq!(
            words(&[mass, both]),
            "posteriors of mass and rate are too narrow (overconfident), those of rate too high"
        );
        let many: Vec<Test> = ["a", "b", "c", "d", "e", "f"].map(|name| of_column(name, &[Fault::Wide])).to_vec();
        assert_eq!(words(&many), "posteriors of a, b, c, d and 2 others are too wide");
        let coverage = Test::new("", Kind::Coverage, 0.0, 0.0, String::new()).with(vec![Fault::Wide]);
        assert_eq!(words(&[coverage]), "posteriors of all columns together are too wide");
        let shape = of_column("a", &[Fault::Shape]);
        assert_eq!(words(std::slice::from_ref(&shape)), "posteriors of a are of another shape than the truths");
        let given = of_column("depth", &[Fault::Unfollowed]);
        assert_eq!(
            words(&[shape, given.clone()]),
            "posteriors of a are of another shape than the truths; they do not follow depth as truths do"
        );
        assert_eq!(words(&[given]), "posteriors do not follow depth as truths do");
        assert_eq!(words(&[of_column("a", &[])]), "");
    }
}
