//! What a text table looks like: found out from its first lines, unless the settings say it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::cells::{Cell, split};
use super::header;
use super::lines::Lines;
use super::number::{looks_missing, parsed};
use super::settings::{Decimal, Separator, TextSettings};
use crate::error::{Error, Result};

/// Lines that are looked at, and bytes of them.
const SAMPLE: usize = 100;
const SAMPLE_BYTES: usize = 1 << 20;

/// What a column of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Numbers, or whatever is not read.
    Values,
    /// Names or numbers of the rows, as R and pandas write them.
    RowNames,
    /// Nothing, behind a separator at the end of each line.
    Ending,
}

/// What a text table looks like.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) separator: Separator,
    pub(super) decimal: Decimal,
    /// Names of all columns, if there is a line of them; one may be empty.
    pub(super) names: Option<Vec<String>>,
    /// What each column is.
    pub(super) columns: Vec<Column>,
    /// What was assumed and might be otherwise, in sentences.
    pub(super) assumed: Vec<String>,
}

/// A line of the sample with its cells.
struct Line<'a> {
    text: &'a [u8],
    cells: Vec<Cell>,
}

impl<'a> Line<'a> {
    fn new(text: &'a [u8], separator: Separator) -> Self {
        let mut cells = Vec::new();
        split(text, separator, &mut cells);
        Self { text, cells }
    }

    fn texts(&self) -> Vec<Cow<'a, str>> {
        self.cells.iter().map(|cell| cell.text(self.text)).collect()
    }

    fn ends_empty(&self) -> bool {
        self.cells.last().is_some_and(|cell| cell.is_empty(self.text))
    }
}

impl Layout {
    /// Looks at the first lines, takes comments and the line of names, and puts the rows back.
    ///
    /// # Errors
    /// [`Error::Format`] if there is no row, or a comment holds one; [`Error::Cell`] of a first line of texts and numbers.
    pub(super) fn find(lines: &mut Lines, settings: &TextSettings) -> Result<Self> {
        let (comments, mut sample) = head(lines)?;
        let told = sample.first().and_then(|(_, line)| separator_line(line));
        if told.is_some() {
            sample.remove(0);
        }
        if sample.is_empty() {
            return Err(Error::format(lines.path(), "there are no rows"));
        }
        let texts: Vec<&[u8]> = sample.iter().map(|(_, line)| line.as_slice()).collect();
        let (separator, decimal) = guess(&texts, settings.separator.or(told), settings.decimal);
        let all: Vec<Line<'_>> = texts.iter().map(|text| Line::new(text, separator)).collect();
        let mut layout = Self { separator, decimal, names: None, columns: Vec::new(), assumed: Vec::new() };
        if decimal == Decimal::Comma && settings.decimal.is_none() {
            let point = settings.advice.given("decimal", "point");
            layout.assumed.push(format!("fractions stand behind commas ({point} if they do not)"));
        }
        let is_header = layout.is_header(&all, settings, lines)?;
        let (first, rows) = if is_header { (Some(&all[0]), &all[1..]) } else { (None, &all[..]) };
        layout.names = first.map(|first| header::names(&first.texts(), lines.path())).transpose()?;
        let dim = layout.names.as_ref().map_or(all[0].cells.len(), Vec::len);
        layout.columns = vec![Column::Values; dim];
        layout.find_columns_without_values(rows);
        layout.take_names_of_comments(&comments, rows, lines)?;
        layout.doubt(&texts, settings, told);
        if is_header {
            sample.remove(0);
        }
        lines.put_back(sample);
        Ok(layout)
    }

    /// The name of a column, if columns have names.
    pub(super) fn name(&self, column: usize) -> Option<String> {
        self.names.as_ref().map(|names| names[column].clone())
    }

    /// Whether each line ends in a separator.
    pub(super) fn ends_in_separator(&self) -> bool {
        self.columns.last() == Some(&Column::Ending)
    }

    /// Whether the first line holds names.
    fn is_header(&mut self, all: &[Line<'_>], settings: &TextSettings, lines: &Lines) -> Result<bool> {
        if let Some(header) = settings.header {
            return Ok(header);
        }
        let first = all[0].texts();
        if header::is_names(&first, self.decimal, settings.advice, lines.path())? {
            return Ok(true);
        }
        let rows: Vec<_> = all[1..].iter().map(Line::texts).collect();
        // As R writes the names of a matrix: in quotes, and the numbers below without.
        let quoted = |line: &Line<'_>| line.cells.iter().all(|cell| cell.quoted);
        let whole = first.iter().all(|text| header::whole(text).is_some());
        let in_quotes = whole && !rows.is_empty() && quoted(&all[0]) && !all[1..].iter().any(quoted);
        let is_header = in_quotes || header::counts(&first, &rows, self.decimal);
        if is_header {
            let some: Vec<&str> = first.iter().take(4).map(AsRef::as_ref).collect();
            let more = if first.len() > some.len() { ", ..." } else { "" };
            let why = if in_quotes {
                "it is in quotes and the rows are not"
            } else {
                "its numbers are in order and the rows are not"
            };
            let some = some.join(", ");
            self.assumed.push(format!(
                "the first line ({some}{more}) was taken for names, as {why}; {} takes it for a row",
                settings.advice.given("header", "false")
            ));
        }
        Ok(is_header)
    }

    /// Columns that name the rows, and what is behind the separators at the ends of lines.
    fn find_columns_without_values(&mut self, rows: &[Line<'_>]) {
        if rows.is_empty() {
            return;
        }
        let dim = self.columns.len();
        let one_more = rows.iter().all(|row| row.cells.len() == dim + 1);
        let as_many = rows.iter().any(|row| row.cells.len() == dim);
        let all_end_empty = rows.iter().filter(|row| row.cells.len() >= dim).all(Line::ends_empty);
        let has_name = |column: usize| self.names.as_ref().is_some_and(|names| !names[column].is_empty());
        let named = self.names.is_some();
        let mut dropped = None;
        if named && one_more && all_end_empty {
            self.add_column(dim, Column::Ending);
        } else if as_many && all_end_empty && dim > 1 && !has_name(dim - 1) && (named || rows.len() > 1) {
            self.columns[dim - 1] = Column::Ending;
        } else if named && one_more && names_rows(rows, false) {
            self.add_column(0, Column::RowNames);
            dropped = Some("for which the first line has no name");
        } else if named && dim > 1 && !has_name(0) && names_rows(rows, true) {
            self.columns[0] = Column::RowNames;
            dropped = Some("which has no name");
        }
        if self.ends_in_separator() {
            self.assumed.push("lines end in a separator, behind which nothing is read".into());
        }
        if let Some(why) = dropped {
            self.assumed.push(format!("the first column, {why}, was left out: it names the rows"));
        }
    }

    fn add_column(&mut self, at: usize, column: Column) {
        self.columns.insert(at, column);
        if let Some(names) = &mut self.names {
            names.insert(at, String::new());
        }
    }

    /// The names of a last comment, as NumPy writes them: as many as cells, none of them a number. A row of numbers behind
    /// the sign is an error: whoever took it out of the table may have meant to, or not.
    fn take_names_of_comments(&mut self, comments: &[(u64, Vec<u8>)], rows: &[Line<'_>], lines: &Lines) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let is_number = |text: &Cow<'_, str>| parsed(text, self.decimal).is_some();
        if !first.texts().iter().any(is_number) {
            return Ok(());
        }
        for (i, (number, line)) in comments.iter().enumerate() {
            let says = comment(line).unwrap_or_default();
            let cells = comment_cells(says, self.separator);
            if cells.len() != first.cells.len() {
                continue;
            }
            if cells.len() > 1 && cells.iter().all(is_number) {
                let written = Line::new(line, self.separator).texts();
                let what = format!("line {number} is a row behind a `#`: `{}` is not a number", written[0]);
                return Err(Error::format(lines.path(), what));
            }
            if i + 1 == comments.len() && self.names.is_none() && !cells.iter().any(is_number) {
                self.names = Some(header::names(&cells, lines.path())?);
            }
        }
        Ok(())
    }

    /// Tells of a table of two columns that may be one of numbers with commas.
    fn doubt(&mut self, texts: &[&[u8]], settings: &TextSettings, told: Option<Separator>) {
        let said = settings.separator.is_some() || settings.decimal.is_some() || told.is_some();
        if !said && self.separator == Separator::Comma && self.names.is_none() && texts.iter().all(|t| has_one_comma(t))
        {
            let comma = settings.advice.given("decimal", "comma");
            self.assumed.push(format!(
                "each line was taken for two whole numbers; if it is one with a fraction behind a comma, say {comma}"
            ));
        }
    }
}

/// The comments before the first line, and the first lines, with their numbers.
#[expect(clippy::type_complexity, reason = "two lists of the same")]
fn head(lines: &mut Lines) -> Result<(Vec<(u64, Vec<u8>)>, Vec<(u64, Vec<u8>)>)> {
    let (mut comments, mut sample, mut line, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while sample.len() < 2 || (sample.len() < SAMPLE && bytes < SAMPLE_BYTES) {
        let Some(number) = lines.next(&mut line)? else { break };
        if sample.is_empty() && comment(&line).is_some() {
            comments.push((number, line.clone()));
        } else {
            bytes += line.len();
            sample.push((number, line.clone()));
        }
    }
    Ok((comments, sample))
}

/// What a comment says. "#,b" is a line of names, the first of which is "#".
fn comment(line: &[u8]) -> Option<&[u8]> {
    let says = line.trim_ascii_start().strip_prefix(b"#")?;
    (!matches!(says.first(), Some(b',' | b';' | b'|'))).then(|| {
        let signs = says.iter().take_while(|&&byte| byte == b'#').count();
        says[signs..].trim_ascii()
    })
}

/// The cells of a comment; those between other separators if blanks separate the numbers.
fn comment_cells(says: &[u8], separator: Separator) -> Vec<Cow<'_, str>> {
    let listed = Separator::ALL.into_iter().find(|s| *s != Separator::Blanks && says.contains(&s.byte()));
    let separator = listed.filter(|_| separator == Separator::Blanks).unwrap_or(separator);
    Line::new(says, separator).texts()
}

/// The separator that Excel is told in a first line of its own: `sep=;`.
fn separator_line(line: &[u8]) -> Option<Separator> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (key, value) = line.split_at_checked(4)?;
    if !key.eq_ignore_ascii_case(b"sep=") {
        return None;
    }
    match value {
        // A tab itself was trimmed away.
        b"\\t" | b"\t" | b"" => Some(Separator::Tab),
        [byte] => Separator::ALL.into_iter().find(|separator| separator.byte() == *byte),
        _ => None,
    }
}

/// The separator that cuts the lines into as many numbers each, and what stands before fractions.
fn guess(lines: &[&[u8]], separator: Option<Separator>, decimal: Option<Decimal>) -> (Separator, Decimal) {
    let mut best = (0.0, Separator::Comma, decimal.unwrap_or_default());
    if best.2 == Decimal::Comma {
        best.1 = Separator::Semicolon;
    }
    for candidate in Separator::ALL.into_iter().filter(|candidate| separator.is_none_or(|said| said == *candidate)) {
        let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::new(line, candidate)).collect();
        for mark in [Decimal::Point, Decimal::Comma] {
            let possible = decimal.map_or(candidate != Separator::Comma || mark == Decimal::Point, |said| said == mark);
            // A comma cannot be both, unless someone says so of cells in quotes.
            if possible && (separator.is_some() || candidate != Separator::Comma || mark == Decimal::Point) {
                let score = score(&lines, mark);
                if score > best.0 {
                    best = (score, candidate, mark);
                }
            }
        }
    }
    let (_, found, mark) = best;
    if separator.is_none() && decimal.is_none() && found == Separator::Comma && is_one_column_of_fractions(lines) {
        return (Separator::Semicolon, Decimal::Comma);
    }
    (separator.unwrap_or(found), mark)
}

/// How well a separator fits: the share of lines with the most frequent number of cells, at least two, times the share of
/// numbers in these. The first line may hold names; then there are as many, or one less.
fn score(lines: &[Line<'_>], decimal: Decimal) -> f64 {
    let body = if lines.len() > 1 { &lines[1..] } else { lines };
    let mut counts: HashMap<usize, usize> = HashMap::new();
    body.iter().for_each(|line| *counts.entry(line.cells.len()).or_default() += 1);
    let Some((&cells, &agree)) = counts.iter().max_by_key(|&(&cells, &agree)| (agree, cells)) else { return 0.0 };
    if cells < 2 {
        return 0.0;
    }
    let fits = |text: &Cow<'_, str>| looks_missing(text) || parsed(text, decimal).is_some();
    let same = body.iter().filter(|line| line.cells.len() == cells);
    let numbers: usize = same.map(|line| line.texts().iter().filter(|text| fits(text)).count()).sum();
    let first = lines[0].cells.len();
    let head = if first == cells || first + 1 == cells || first == cells + 1 { 1.0 } else { 0.25 };
    head * agree as f64 / body.len() as f64 * (0.05 + numbers as f64 / (agree * cells) as f64)
}

/// Whether lines with one comma each are numbers with a fraction: the line of names has no comma, or a whole part is `-0`,
/// or the digits behind a comma begin with a zero.
fn is_one_column_of_fractions(lines: &[&[u8]]) -> bool {
    let text = |line: &&[u8]| String::from_utf8_lossy(line).trim().to_owned();
    let is_name = |line: &&[u8]| !line.contains(&b',') && parsed(&text(line), Decimal::Point).is_none();
    let named = lines.len() > 1 && is_name(&lines[0]);
    let body = &lines[usize::from(named)..];
    let odd = |line: &&[u8]| {
        let text = text(line);
        let Some((whole, fraction)) = text.split_once(',') else { return false };
        whole == "-0" || (fraction.len() > 1 && fraction.starts_with('0'))
    };
    body.iter().all(|line| has_one_comma(line)) && (named || body.iter().any(odd))
}

/// Whether a line is digits, a comma and digits.
fn has_one_comma(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let unsigned = line.strip_prefix(b"-").or_else(|| line.strip_prefix(b"+")).unwrap_or(line);
    let mut parts = unsigned.split(|&byte| byte == b',');
    let is_digits =
        |part: Option<&[u8]>| part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    is_digits(parts.next()) && is_digits(parts.next()) && parts.next().is_none()
}

/// Whether the first cells of rows name these: texts, cells in quotes, or numbers that count from 0 or 1; `loosely`, any
/// that grow.
fn names_rows(rows: &[Line<'_>], loosely: bool) -> bool {
    let texts: Vec<_> =
        rows.iter().filter_map(|row| Some((row.cells.first()?, row.cells.first()?.text(row.text)))).collect();
    let numbers: Option<Vec<i64>> = texts.iter().map(|(_, text)| header::whole(text)).collect();
    match numbers {
        Some(numbers) => {
            let by_one = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
            let grows = numbers.windows(2).all(|pair| pair[1] > pair[0]);
            let counts = by_one && numbers.len() > 1 && numbers.first().is_some_and(|first| (0..=1).contains(first));
            counts || texts.iter().all(|(cell, _)| cell.quoted) || (loosely && grows && numbers.len() > 1)
        }
        None => texts.iter().all(|(_, text)| parsed(text, Decimal::Point).is_none() && !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_found() {
        use Separator::{Bar, Blanks, Comma, Semicolon, Tab};
        let cases: [(&str, Separator, Decimal); 18] = [
            ("1,2\n3,4\n", Comma, Decimal::Point),
            ("1;2\n3;4", Semicolon, Decimal::Point),
            ("1\t2\n3\t4\n", Tab, Decimal::Point),
            ("a,b;c\n1;2\n", Semicolon, Decimal::Point),
            ("time [a;b],x\n1,2\n", Comma, Decimal::Point),
            ("\"a,b,c\";d\n1;2", Semicolon, Decimal::Point),
            ("1,5;2,5\n1,5;2,5\n", Semicolon, Decimal::Comma),
            ("1;2", Semicolon, Decimal::Point),
            ("1", Comma, Decimal::Point),
            ("a;b;c\n1;2\n", Semicolon, Decimal::Point),
            ("x y\n1,5 2,5\n3,5 4,5\n", Blanks, Decimal::Comma),
            ("1, 2\n3, 4\n", Comma, Decimal::Point),
            ("x|y\n1.0|2.5\n", Bar, Decimal::Point),
            ("pop;x\n1.250,75;0,5\n12.900,00;0,7\n", Semicolon, Decimal::Comma),
            ("-3.0D+00  4.0D+02\n1 2\n", Blanks, Decimal::Point),
            ("1,5\n2,25\n-0,75\n", Semicolon, Decimal::Comma),
            ("x\n1,5\n2,25\n", Semicolon, Decimal::Comma),
            ("1,5\n2,25\n", Comma, Decimal::Point),
        ];
        for (text, separator, decimal) in cases {
            let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
            assert_eq!(guess(&lines, None, None), (separator, decimal), "{text:?}");
        }
    }

    #[test]
    fn a_line_for_excel_names_the_separator() {
        for (line, separator) in [
            ("sep=;", Some(Separator::Semicolon)),
            ("\"sep=,\"", Some(Separator::Comma)),
            ("SEP=\\t", Some(Separator::Tab)),
            ("sep=\t", Some(Separator::Tab)),
            ("sep=x", None),
            ("sep", None),
            ("a,b", None),
        ] {
            assert_eq!(separator_line(line.as_bytes()), separator, "{line:?}");
        }
    }
}
