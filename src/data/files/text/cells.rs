//! The cells of a line.

use std::borrow::Cow;
use std::ops::Range;

use super::settings::Separator;

/// Where a cell is in its line, without the blanks and quotes around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    range: Range<usize>,
    /// It was in quotes: two quotes in a row in it stand for one.
    pub(super) quoted: bool,
}

impl Cell {
    /// What the cell says.
    pub(super) fn text<'a>(&self, line: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(&line[self.range.clone()]);
        if self.quoted && text.contains("\"\"") { text.replace("\"\"", "\"").into() } else { text }
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self, line: &[u8]) -> bool {
        line[self.range.clone()].trim_ascii().is_empty()
    }
}

/// Takes a line apart.
pub(super) fn split(line: &[u8], separator: Separator, cells: &mut Vec<Cell>) {
    cells.clear();
    match separator {
        Separator::Blanks => {
            let mut at = 0;
            loop {
                at += line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                if at >= line.len() {
                    return;
                }
                let end = end_of_cell(line, at, |byte| byte.is_ascii_whitespace());
                cells.push(cell(line, at..end));
                at = end;
            }
        }
        _ => {
            let (mut at, byte) = (0, separator.byte());
            loop {
                let end = end_of_cell(line, at, |&b| b == byte);
                cells.push(cell(line, at..end));
                if end >= line.len() {
                    return;
                }
                at = end + 1;
            }
        }
    }
}

/// Where the cell that begins at `at` ends: at the next separator that is not in quotes. Quotes begin a cell or are none.
fn end_of_cell(line: &[u8], at: usize, is_separator: impl Fn(&u8) -> bool) -> usize {
    let mut from = at;
    let start = at + line[at..].iter().take_while(|&&byte| byte == b' ').count();
    if line.get(start) == Some(&b'"')
        && let Some(close) = closing_quote(line, start + 1)
    {
        from = close + 1;
    }
    from + line[from..].iter().position(is_separator).unwrap_or(line.len() - from)
}

/// The quote that ends a quoted cell: two in a row are one of the cell.
fn closing_quote(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += line[at..].iter().position(|&byte| byte == b'"')?;
        if line.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

fn cell(line: &[u8], range: Range<usize>) -> Cell {
    let text = line[range.clone()].trim_ascii();
    let start = range.start + line[range.clone()].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let range = start.min(range.end)..start.min(range.end) + text.len();
    let quoted = text.len() > 1 && text[0] == b'"' && closing_quote(text, 1) == Some(text.len() - 1);
    if !quoted {
        return Cell { range, quoted };
    }
    let inner = line[range.start + 1..range.end - 1].trim_ascii();
    let blanks = line[range.start + 1..range.end - 1].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let start = range.start + 1 + if inner.is_empty() { 0 } else { blanks };
    Cell { range: start..start + inner.len(), quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str, separator: Separator) -> Vec<String> {
        let mut cells = Vec::new();
        split(line.as_bytes(), separator, &mut cells);
        cells.iter().map(|cell| cell.text(line.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn cells_are_between_separators_and_quotes_hold_them() {
        use Separator::{Blanks, Comma, Semicolon, Tab};
        let cases: [(&str, Separator, &[&str]); 14] = [
            ("1,2", Comma, &["1", "2"]),
            (" 1 , 2 ,", Comma, &["1", "2", ""]),
            (",", Comma, &["", ""]),
            ("\"a,b\",c", Comma, &["a,b", "c"]),
            ("\"say \"\"a\"\"\", \" b \"", Comma, &["say \"a\"", "b"]),
            ("\"a\nb\";c", Semicolon, &["a\nb", "c"]),
            ("5\" pipe,2", Comma, &["5\" pipe", "2"]),
            ("\"a\"b,2", Comma, &["\"a\"b", "2"]),
            ("\"open,2", Comma, &["\"open", "2"]),
            ("\"\",x", Comma, &["", "x"]),
            ("  1   -2\t3 ", Blanks, &["1", "-2", "3"]),
            ("\"my x\"  \"y\" ", Blanks, &["my x", "y"]),
            ("1\t\t3", Tab, &["1", "", "3"]),
            ("", Comma, &[""]),
        ];
        for (line, separator, expected) in cases {
            assert_eq!(texts(line, separator), expected, "{line:?}");
        }
    }
}
