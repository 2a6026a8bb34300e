//! The lines of a text, with the numbers that an editor gives them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A quoted cell may hold ends of lines; beyond so many bytes its quote is one that was forgotten.
const LONGEST: usize = 1 << 26;

/// The lines of a file that hold something, one by one. They end in LF, CRLF or CR; one with an open quote goes on in the
/// next.
pub(super) struct Lines {
    text: BufReader<File>,
    path: PathBuf,
    /// The number of the line that comes next, from 1.
    number: u64,
    /// The line in which a quote was opened that no line has closed.
    opened: Option<u64>,
    /// The last line ended in CR, so that an LF may belong to it.
    after_return: bool,
    /// Lines that were looked at and come again.
    again: VecDeque<(u64, Vec<u8>)>,
}

impl Lines {
    /// # Errors
    /// [`Error::Format`] of a text in UTF-16, [`Error::Io`].
    pub(super) fn new(file: File, path: &Path) -> Result<Self> {
        let mut text = BufReader::with_capacity(1 << 16, file);
        let start = text.fill_buf().map_err(|e| Error::io("read", path, e))?;
        if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
            return Err(Error::format(path, "the text is UTF-16; save it as UTF-8"));
        }
        if start.starts_with(BYTE_ORDER_MARK) {
            text.consume(BYTE_ORDER_MARK.len());
        }
        let (path, again) = (path.to_owned(), VecDeque::new());
        Ok(Self { text, path, number: 1, opened: None, after_return: false, again })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the next line that is not blank, without its end, and its number.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> Result<Option<u64>> {
        if let Some((number, again)) = self.again.pop_front() {
            *line = again;
            return Ok(Some(number));
        }
        loop {
            line.clear();
            let number = self.number;
            if !self.physical(line)? {
                return Ok(None);
            }
            if line.trim_ascii().is_empty() && !line.contains(&b'\t') {
                continue;
            }
            // A comment may hold a quote that is none.
            if !line.trim_ascii_start().starts_with(b"#") {
                self.close_quote(line, number)?;
            }
            return Ok(Some(number));
        }
    }

    /// Lines that are to come again, before all others.
    pub(super) fn put_back(&mut self, lines: Vec<(u64, Vec<u8>)>) {
        self.again.extend(lines);
    }

    /// The error of a quote that is never closed, if there is one.
    pub(super) fn open_quote(&self) -> Option<Error> {
        let line = self.opened?;
        Some(Error::format(&self.path, format!("the quote opened in line {line} is never closed")))
    }

    /// Adds lines until no quote is open.
    fn close_quote(&mut self, line: &mut Vec<u8>, first: u64) -> Result<()> {
        let (mut open, mut looked_at) = (None, 0);
        loop {
            let quotes = line[looked_at..].iter().filter(|&&byte| byte == b'"').count();
            looked_at = line.len();
            if quotes % 2 == 1 {
                open = if open.is_some() { None } else { Some(self.number - 1) };
            }
            let Some(at) = open else { return Ok(()) };
            line.push(b'\n');
            if line.len() > LONGEST || !self.physical(line)? {
                line.pop();
                // What is wrong with the line is told first if it is another thing.
                self.opened = Some(at.max(first));
                return Ok(());
            }
        }
    }

    /// Adds the next line of the file without its end. False: there is none.
    fn physical(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        let mut some = false;
        loop {
            let bytes = self.text.fill_buf().map_err(|e| Error::io("read", &self.path, e))?;
            if bytes.is_empty() {
                self.number += u64::from(some);
                return Ok(some);
            }
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                self.text.consume(1);
                continue;
            }
            some = true;
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            let Some(end) = end else {
                let all = bytes.len();
                self.text.consume(all);
                continue;
            };
            self.after_return = bytes[end] == b'\r';
            self.text.consume(end + 1);
            self.number += 1;
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> (Vec<(u64, String)>, Option<Error>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let mut lines = Lines::new(File::open(&path).unwrap(), &path).unwrap();
        let (mut all, mut line) = (Vec::new(), Vec::new());
        while let Some(number) = lines.next(&mut line).unwrap() {
            all.push((number, String::from_utf8(line.clone()).unwrap()));
        }
        (all, lines.open_quote())
    }

    #[test]
    fn lines_have_the_numbers_of_an_editor() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("\u{feff}a,b{end}{end}  {end}1,2{end}\"x{end}y\",3{end}4,5");
            let (all, open) = lines(text.as_bytes());
            let expected = [(1, "a,b"), (4, "1,2"), (5, "\"x\ny\",3"), (7, "4,5")];
            assert_eq!(all, expected.map(|(number, line)| (number, line.to_owned())), "{end:?}");
            assert!(open.is_none());
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_is_found_where_it_was_opened() {
        let (all, open) = lines(b"# it's 5\" wide\na,b\n1,2\n\"3,4\n5,6\n");
        assert_eq!(all.last().unwrap(), &(4, "\"3,4\n5,6".to_owned()));
        assert!(open.unwrap().to_string().contains("line 4"));
    }
}
