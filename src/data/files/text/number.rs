//! The number that a cell holds, or what is wrong with it and what to do.

use std::borrow::Cow;

use super::settings::Decimal;
use crate::data::files::Advice;
use crate::data::files::source::narrow;

/// Texts that stand for missing values in files of others.
pub(super) const MISSING: [&str; 8] = ["na", "n/a", "#n/a", "null", "none", "-", "?", "."];

/// The value of a cell as it is written, or what is wrong with it. A Fortran exponent, `1.5D+02`, is one.
pub(in crate::data) fn number(cell: &str, decimal: Decimal, advice: Advice) -> Result<f64, String> {
    let text = cell.trim();
    if text.is_empty() {
        return Err(format!("the cell is empty; {}", advice.missing("empty")));
    }
    let value = parsed(text, decimal).ok_or_else(|| why_not(text, decimal, advice))?;
    // "1e999" is finite on paper.
    if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(format!("{} is too large for a 64-bit float", shortened(text)));
    }
    if value.is_finite() { Ok(value) } else { narrow(value).map(f64::from) }
}

/// The number that a text is.
pub(super) fn parsed(text: &str, decimal: Decimal) -> Option<f64> {
    let text = match decimal {
        Decimal::Point => Cow::from(text),
        // A point would group thousands.
        Decimal::Comma if text.contains('.') => return None,
        Decimal::Comma => text.replacen(',', ".", 1).into(),
    };
    text.parse().ok().or_else(|| {
        // Only an exponent: "nan" and "infinity" have been read, and names are none.
        let is_fortran =
            text.contains(['d', 'D']) && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        text.replacen(['d', 'D'], "e", 1).parse().ok().filter(|_| is_fortran)
    })
}

/// Whether a text looks like a value that is missing.
pub(super) fn looks_missing(text: &str) -> bool {
    text.is_empty() || text.eq_ignore_ascii_case("nan") || MISSING.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// What is wrong with a text that is no number.
fn why_not(text: &str, decimal: Decimal, advice: Advice) -> String {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return "not UTF-8 text".into();
    }
    let hint = if looks_missing(text) {
        format!(", it looks like a missing value; {}", advice.missing(&shown(text)))
    } else if text.bytes().all(|byte| byte == b'*') {
        "; stars are what Fortran writes if a number is too wide for its format: write it with a wider one".into()
    } else if let Some(plain) = without_thousands(text, decimal, advice) {
        plain
    } else if text.contains(char::is_whitespace) {
        let separator = advice.separator();
        format!("; cells are separated by comma, semicolon, tab, bar or, in all lines, blanks ({separator})")
    } else {
        String::new()
    };
    let more = if text.chars().nth(40).is_some() { "..." } else { "" };
    format!("`{}{more}` is not a number{hint}", shown(text))
}

/// The beginning of a text, with what a terminal would take for commands made visible.
fn shown(text: &str) -> String {
    shortened(text).chars().flat_map(|c| if c == '\'' { vec![c] } else { c.escape_debug().collect() }).collect()
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The hint for a number in digits of three, or with a comma before its fraction.
fn without_thousands(text: &str, decimal: Decimal, advice: Advice) -> Option<String> {
    let comma = advice.given("decimal", "comma");
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for (separator, name) in [
        (",", "commas"),
        (".", "points"),
        ("'", "apostrophes"),
        ("\u{2019}", "apostrophes"),
        (" ", "blanks"),
        ("\u{a0}", "blanks"),
        ("\u{202f}", "blanks"),
        ("_", "underscores"),
    ] {
        let fraction_mark = if separator == "." { "," } else { "." };
        // Digits after the other mark are a fraction; without one, Swiss and blank groups may have a comma too.
        let (whole, fraction) = match digits
            .split_once(fraction_mark)
            .or_else(|| digits.split_once(",").filter(|_| !",.".contains(separator)))
        {
            Some((whole, fraction)) if is_digits(fraction) => (whole, Some(fraction)),
            Some(_) => continue,
            None => (digits, None),
        };
        let mut groups = whole.split(separator);
        let first = groups.next().unwrap_or_default();
        let rest: Vec<&str> = groups.collect();
        let grouped = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_digits(group));
        if !(grouped && first.len() <= 3 && is_digits(first)) {
            continue;
        }
        let plain = format!("{sign}{first}{}{}", rest.concat(), fraction.map(|f| format!(".{f}")).unwrap_or_default());
        if separator == "," && rest.len() == 1 && fraction.is_none() {
            return Some(format!(
                "; if the comma groups thousands, write {plain}, if it stands before a fraction, say {comma}"
            ));
        }
        return Some(format!("; {name} group its thousands: write {plain}"));
    }
    let fits = decimal == Decimal::Point && text.contains(',') && text.replacen(',', ".", 1).parse::<f64>().is_ok();
    fits.then(|| format!("; decimals need a point, or all cells of the table a comma ({comma})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_numbers_or_say_why_not() {
        let point = |text: &str| number(text, Decimal::Point, Advice::Settings);
        for (text, value) in [
            ("1", 1.0),
            (" -2.5e3 ", -2500.0),
            ("+.5", 0.5),
            ("7.", 7.0),
            ("1e-60", 1e-60),
            ("-1e39", -1e39),
            ("3.4e38", 3.4e38),
            ("-1.5D+02", -150.0),
            (".5d1", 5.0),
        ] {
            assert_eq!(point(text), Ok(value), "{text}");
        }
        let cases = [
            ("", "empty"),
            ("   ", "empty"),
            ("abc", "`abc` is not a number"),
            ("d5", "`d5` is not a number"),
            ("0x10", "not a number"),
            ("1,5", "decimals need a point"),
            ("1.0 2.0", "separated by comma"),
            ("nan", "NaN"),
            ("NA", "data.missing=NA"),
            ("?", "data.missing=?"),
            ("****", "Fortran"),
            ("-inf", "infinite"),
            ("1e999", "too large"),
            ("-1e999", "too large"),
            ("\u{fffd}", "UTF-8"),
        ];
        for (text, expected) in cases {
            let error = point(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (advice, text, expected) in [
            (Advice::Options, "", "take the row out"),
            (Advice::Options, "NA", "take the row out"),
            (Advice::Steps, "NA", "none can be left out"),
            (Advice::Options, "1,5", "--decimal comma"),
            (Advice::Steps, "1,250", "--decimal comma"),
            (Advice::Options, "1.0 2.0", "--separator"),
        ] {
            let error = number(text, Decimal::Point, advice).unwrap_err();
            assert!(error.contains(expected) && !error.contains("data."), "{text}: {error}");
        }
        let long = point(&"x".repeat(10_000)).unwrap_err();
        assert!(long.len() < 100, "{long}");
        let escape = point("\u{1b}[31mred").unwrap_err();
        assert!(!escape.contains('\u{1b}') && escape.contains("red"), "{escape}");
    }

    #[test]
    fn digits_in_threes_have_a_hint_of_their_own() {
        let hint = |text: &str, decimal| number(text, decimal, Advice::Settings).unwrap_err();
        for (text, expected) in [
            ("1,250", "write 1250, if it stands before a fraction"),
            ("-1,250,000", "commas group its thousands: write -1250000"),
            ("1,250.75", "commas group its thousands: write 1250.75"),
            ("1.250,75", "points group its thousands: write 1250.75"),
            ("1.250.000", "points group its thousands: write 1250000"),
            ("1'250", "`1'250` is not a number; apostrophes group its thousands: write 1250"),
            ("1 250,5", "blanks group its thousands: write 1250.5"),
        ] {
            let error = hint(text, Decimal::Point);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(hint("1.250,75", Decimal::Comma).contains("write 1250.75"));
        for text in ["1,25,3", "12,34", "1,2500", "a,250"] {
            let error = hint(text, Decimal::Point);
            assert!(!error.contains("thousands"), "{error}");
        }
    }

    #[test]
    fn fractions_may_stand_behind_a_comma() {
        let comma = |text: &str| number(text, Decimal::Comma, Advice::Settings);
        assert_eq!([comma("1,5"), comma("-,5"), comma("2"), comma("1,5e2")], [Ok(1.5), Ok(-0.5), Ok(2.0), Ok(150.0)]);
        assert!(comma("1.5").is_err() && comma("1,5,2").is_err());
    }
}
