//! Columns that others give: named, with what to leave out.

use super::{NAMED, listed};
use crate::train::found::Relation;

/// Relations that are written out.
const WRITTEN: usize = 4;
/// Terms of a relation that are written out.
const TERMS: usize = 4;
/// Columns that are listed as those to keep.
const LISTED: usize = 20;
/// A factor or constant within this share of a round number is one.
const ROUND: f64 = 2e-3;

/// Relations in words, some of them in full.
pub(super) fn written(found: &[Relation]) -> String {
    let names = found.iter().take(NAMED).skip(WRITTEN).map(|relation| relation.column.clone());
    listed(found.iter().take(WRITTEN).map(in_full), names, found.len()).join("; ")
}

/// `total = a + b`, or, where all parts have the same weight, `p1 + p2 + p3 = 1`.
fn in_full(Relation { column, terms, constant }: &Relation) -> String {
    if terms.len() > TERMS {
        let some = terms.iter().take(TERMS - 1).map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        return format!("{column} from {} columns ({some}, ...)", terms.len());
    }
    let size = terms.iter().fold(constant.abs(), |most, (_, factor)| most.max(factor.abs()));
    // What is nothing beside the rest is rounding.
    let constant = if constant.abs() < ROUND * size { 0.0 } else { *constant };
    if constant != 0.0 && terms.iter().all(|(_, factor)| (factor + 1.0).abs() < ROUND) {
        let parts = terms.iter().map(|(name, _)| name).chain([column]).cloned().collect::<Vec<_>>().join(" + ");
        return format!("{parts} = {}", number(constant));
    }
    let mut text = format!("{column} =");
    let mut first = true;
    let mut add = |factor: f64, what: Option<&str>| {
        let sign = match (factor < 0.0, first) {
            (true, true) => " -",
            (false, true) => " ",
            (true, false) => " - ",
            (false, false) => " + ",
        };
        first = false;
        let size = number(factor.abs());
        text.push_str(sign);
        text.push_str(&match what {
            Some(name) if size == "1" => name.to_owned(),
            Some(name) => format!("{size} {name}"),
            None => size,
        });
    };
    terms.iter().for_each(|(name, factor)| add(*factor, Some(name)));
    if constant != 0.0 {
        add(constant, None);
    }
    text
}

/// A number in about three digits, a whole one where it nearly is one.
fn number(x: f64) -> String {
    if x.round() != 0.0 && (x - x.round()).abs() < ROUND * x.abs() && x.abs() < 1e6 {
        return x.round().to_string();
    }
    let text = format!("{x:.3e}");
    text.parse::<f64>().map_or(text, |short| short.to_string())
}

/// What to do about it, with the columns that are left.
pub(super) fn remedy(kept: &[String]) -> String {
    let plain = |name: &String| !name.contains([',', '"', ' ', '\'']);
    if kept.is_empty() {
        "the conditions give all columns".into()
    } else if kept.len() <= LISTED && kept.iter().all(plain) {
        format!("leave them out with --set data.columns={}", kept.join(","))
    } else {
        "leave them out with --set data.columns=...".into()
    }
}

#[cfg(test)]
mod tests {
    use crate::Dataset;
    use crate::config::Given;
    use crate::config::preset::for_tables;
    use crate::plan::Kind;
    use crate::rng::{Stream, fill_normals};

    /// Notes on a table of some functions of normals.
    fn notes<const N: usize>(
        header: &str,
        rows: usize,
        kind: Kind,
        given: Option<&str>,
        f: impl Fn(&[f32]) -> [f32; N],
    ) -> Vec<String> {
        let mut z = vec![0.0; 4 * rows];
        fill_normals(5, Stream::Data, 0, 0, &mut z);
        let line = |z: &[f32]| f(z).map(|v| v.to_string()).join(",") + "\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, format!("{header}\n") + &z.chunks_exact(4).map(line).collect::<String>()).unwrap();
        let mut config = for_tables();
        config.model.kind = kind;
        config.data.path = Some(path);
        config.data.given = given.map(Given::of_text);
        Dataset::load(&config, None).unwrap().notes
    }

    fn one<const N: usize>(header: &str, f: impl Fn(&[f32]) -> [f32; N]) -> String {
        let notes = notes(header, 500, Kind::Flow, None, f);
        assert_eq!(notes.len(), 1, "{notes:?}");
        notes[0].clone()
    }

    #[test]
    fn relations_are_written_with_what_to_leave_out() {
        let text = one("a,b,a2,b2", |z| [z[0], z[1], z[0], 1.5 - 2.5 * z[1]]);
        assert!(text.contains("a2 = a; b2 = -2.5 b + 1.5") && text.contains("data.columns=a,b"), "{text}");
        assert!(text.contains("no density in 4 columns") && text.contains("train.noise"), "{text}");
        let text = one("a,b,total", |z| [z[0], z[1], z[0] + z[1]]);
        assert!(text.contains("total = a + b.") && text.ends_with("data.columns=a,b"), "{text}");
        let text = one("p1,p2,p3", |z| {
            let e = [z[0].exp(), z[1].exp(), z[2].exp()];
            e.map(|part| part / (e[0] + e[1] + e[2]))
        });
        assert!(text.contains("p1 + p2 + p3 = 1") && text.ends_with("data.columns=p1,p2"), "{text}");
        assert_eq!(notes("a,b,c", 500, Kind::Flow, None, |z| [z[0], z[1], z[0].abs()]), Vec::<String>::new());
    }

    #[test]
    fn conditions_are_told_of_where_they_have_a_density() {
        let of = |kind| notes("a,b,c,d", 500, kind, Some("c,d"), |z| [z[0], z[1], z[2], 2.0 * z[2]]);
        assert!(
            of(Kind::Hint)[0].contains("d = 2 c") && of(Kind::Hint)[0].contains("data.given"),
            "{:?}",
            of(Kind::Hint)
        );
        assert_eq!(of(Kind::Cinn), Vec::<String>::new());
        let text = notes("a,b,c", 500, Kind::Cinn, Some("c"), |z| [z[0], z[0] + z[2], z[2]]).join(" ");
        assert!(text.contains("b = c + a") && text.ends_with("data.columns=a"), "{text}");
    }

    #[test]
    fn rows_that_repeat_are_told() {
        let repeated = |z: &[f32]| if z[3] > 1.0 { [0.5, 7.25] } else { [z[0], z[1]] };
        let text = notes("a,b", 500, Kind::Flow, None, repeated).join(" ");
        assert!(text.contains("training rows repeat others") && text.contains("again"), "{text}");
        // Of whole numbers that is no wonder.
        let whole = |z: &[f32]| [(2.0 * z[0]).round(), (2.0 * z[1]).round()];
        assert!(notes("a,b", 500, Kind::Flow, None, whole).iter().all(|note| !note.contains("repeat")));
    }
}
