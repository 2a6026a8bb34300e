//! The beginning of a text table: its byte order mark, comments, line of names, and what separates its cells.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};

/// In order of preference: a comma may be part of names in a file of semicolons, hardly the other way round.
const DELIMITERS: [u8; 3] = *b"\t;,";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the comments and the first two lines, finds the delimiter, and gives the whole text back: without its byte
/// order mark, with an empty line for each comment so that lines keep their numbers.
pub(super) fn open(file: File, path: &Path) -> Result<(Box<dyn Read>, u8)> {
    let failed = |e| Error::io("read", path, e);
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut mark = Vec::new();
    input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut mark).map_err(failed)?;
    if mark.starts_with(b"\xff\xfe") || mark.starts_with(b"\xfe\xff") {
        return Err(Error::format(path, "the text is UTF-16; save it as UTF-8"));
    }
    let mut start = if mark == BYTE_ORDER_MARK { Vec::new() } else { mark };
    let mut lines = 0;
    let mut before = 0;
    while lines < 2 {
        if input.read_until(b'\n', &mut start).map_err(failed)? == 0 {
            break;
        }
        let line = &start[before..];
        lines += usize::from(!line.trim_ascii().is_empty() && comment(line).is_none());
        before = start.len();
    }
    let start = without_comments(start);
    let delimiter = delimiter(&start);
    let by_blanks = delimiter == b' ';
    let text = Cursor::new(start).chain(input);
    Ok((if by_blanks { Box::new(Blanks { text, pending: false, begun: false }) } else { Box::new(text) }, delimiter))
}

/// What a comment says. "#,b" is a line of names, the first of which is "#".
fn comment(line: &[u8]) -> Option<&[u8]> {
    let says = line.trim_ascii_start().strip_prefix(b"#")?;
    (!matches!(says.first(), Some(b',' | b';'))).then(|| {
        let signs = says.iter().take_while(|&&byte| byte == b'#').count();
        says[signs..].trim_ascii()
    })
}

/// The text without the comments before its first line; of a last one that holds names, without its sign.
///
/// A comment holds names if it has as many cells as the first line, none of them a number. A row of numbers behind the
/// sign stays as it is and becomes an error: whoever took it out of the table may have meant to, or not.
fn without_comments(text: Vec<u8>) -> Vec<u8> {
    let (mut comments, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let line = line_at(&text, at);
        match comment(&text[line.clone()]) {
            Some(_) => comments.push(line.clone()),
            None if text[line.clone()].trim_ascii().is_empty() => {}
            None => break,
        }
        at = line.end + 1;
    }
    if comments.is_empty() {
        return text;
    }
    let rest = &text[at.min(text.len())..];
    let delimiter = delimiter(rest);
    let first = cells(&rest[line_at(rest, 0)], delimiter);
    let is_number = |cell: &String| cell.parse::<f64>().is_ok();
    let mut result = Vec::with_capacity(text.len());
    let mut copied = 0;
    let last = comments.len() - 1;
    for (i, line) in comments.into_iter().enumerate() {
        result.extend_from_slice(&text[copied..line.start]);
        copied = line.end;
        let cells = cells(comment(&text[line.clone()]).unwrap_or_default(), delimiter);
        if cells.len() != first.len() || !first.iter().any(is_number) {
            continue;
        }
        if cells.len() > 1 && cells.iter().all(is_number) {
            result.extend_from_slice(&text[line]);
        } else if i == last && !cells.iter().any(is_number) {
            result.extend_from_slice(&written(&cells, delimiter));
        }
    }
    result.extend_from_slice(&text[copied..]);
    result
}

/// The line that begins at `at`, without its end.
fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let length = text[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    at..length.map_or(text.len(), |length| at + length)
}

/// The cells of a line; of one of names, those between commas or semicolons where blanks separate the numbers.
fn cells(line: &[u8], delimiter: u8) -> Vec<String> {
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).trim().to_owned();
    let by_blanks = delimiter == b' ';
    let listed = DELIMITERS.into_iter().find(|d| line.contains(d));
    match listed {
        None if by_blanks => line.split(u8::is_ascii_whitespace).filter(|c| !c.is_empty()).map(text).collect(),
        _ => {
            let delimiter = listed.filter(|_| by_blanks).unwrap_or(delimiter);
            let mut reader =
                ::csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(line);
            let mut record = ::csv::ByteRecord::new();
            // Reading from memory does not fail.
            let _ = reader.read_byte_record(&mut record);
            record.iter().map(text).collect()
        }
    }
}

/// A line of quoted cells.
fn written(cells: &[String], delimiter: u8) -> Vec<u8> {
    let quoted: Vec<_> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")).into_bytes()).collect();
    quoted.join(&delimiter)
}

/// A text whose cells are separated by any number of blanks, with one between them and none around them.
struct Blanks<R> {
    text: R,
    /// There were blanks after the last cell.
    pending: bool,
    /// The line has a cell.
    begun: bool,
}

impl<R: BufRead> Read for Blanks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            let Some(&byte) = self.text.fill_buf()?.first() else { break };
            let is_end = matches!(byte, b'\n' | b'\r');
            if byte == b' ' {
                (self.pending, _) = (true, self.text.consume(1));
            } else if self.pending && self.begun && !is_end {
                // The byte itself comes next.
                (self.pending, buffer[count]) = (false, b' ');
                count += 1;
            } else {
                (self.pending, self.begun, buffer[count]) = (false, !is_end, byte);
                count += 1;
                self.text.consume(1);
            }
        }
        Ok(count)
    }
}

/// The delimiter that cuts the first two lines into the same number of cells, else the first one in line 1.
fn delimiter(text: &[u8]) -> u8 {
    let mut counts = vec![[0usize; DELIMITERS.len()]];
    let mut quoted = false;
    let mut blank = true;
    for &byte in text {
        quoted ^= byte == b'"';
        if quoted {
            blank = false;
        } else if matches!(byte, b'\n' | b'\r') {
            if !blank {
                counts.push([0; DELIMITERS.len()]);
                blank = true;
            }
        } else {
            blank &= byte.is_ascii_whitespace() && byte != b'\t';
            if let (Some(which), Some(line)) = (DELIMITERS.iter().position(|&d| d == byte), counts.last_mut()) {
                line[which] += 1;
            }
        }
    }
    let first = counts[0];
    let second = counts.get(1).filter(|_| counts.len() > 2 || !blank);
    let agrees = |which: usize| first[which] > 0 && second.is_none_or(|second| second[which] == first[which]);
    let which = (0..DELIMITERS.len()).find(|&w| agrees(w)).or_else(|| (0..DELIMITERS.len()).find(|&w| first[w] > 0));
    which.map_or(if is_by_blanks(text) { b' ' } else { b',' }, |which| DELIMITERS[which])
}

/// Whether the first lines hold numbers with nothing but blanks between them.
fn is_by_blanks(text: &[u8]) -> bool {
    let numbers = |line: &&str| {
        line.split_whitespace().count() > 1 && line.split_whitespace().all(|cell| cell.parse::<f64>().is_ok())
    };
    // A name may hold blanks, so that the numbers decide.
    std::str::from_utf8(text).is_ok_and(|text| text.lines().filter(|line| !line.trim().is_empty()).any(|l| numbers(&l)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found() {
        let cases: [(&str, u8); 14] = [
            ("1,2\n3,4\n", b','),
            ("1;2\n3;4", b';'),
            ("1\t2\r\n3\t4\r\n", b'\t'),
            ("a,b;c\n1;2\n", b';'),
            ("time [a;b],x\n1,2\n", b','),
            ("\"a,b,c\";d\n1;2", b';'),
            ("\"a\nb,c\";d\n1;2", b';'),
            ("1,5;2,5\n1,5;2,5\n", b';'),
            ("\n\n  \n1;2\n", b';'),
            ("1;2", b';'),
            ("1", b','),
            ("", b','),
            ("a;b\r1;2\r", b';'),
            ("a;b;c\n1;2\n", b';'),
        ];
        for (text, expected) in cases {
            assert_eq!(delimiter(text.as_bytes()) as char, expected as char, "{text:?}");
        }
    }
}
