//! The header of an array, and what type its numbers have.
//!
//! It is parsed here and not by a library, because every byte of a file may be wrong: nothing in it is believed before it
//! was compared with the length of the file, nesting is not followed, and nothing is allocated by its word.

use std::io::Read;
use std::path::Path;

use crate::counted::counted;
use crate::error::{Error, Result};

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Plain arrays have headers of about 100 bytes.
const LONGEST_HEADER: usize = 1 << 16;
/// What the header of a file says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) item: Item,
    /// Whether columns follow each other, and not rows.
    pub(super) fortran: bool,
    pub(super) rows: usize,
    pub(super) dim: usize,
}

/// Type of the stored numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::data) struct Item {
    /// `f`, `i`, `u` or `b`.
    kind: u8,
    pub(super) size: usize,
    big: bool,
}

/// Parses the header and checks it against the length of the file.
pub(super) fn read_header(input: &mut impl Read, length: u64, path: &Path) -> Result<Header> {
    let bad = |what: String| Error::format(path, what);
    if length == 0 {
        return Err(bad("the file is empty".into()));
    }
    let mut take = |count: usize| {
        let mut bytes = vec![0; count];
        input.read_exact(&mut bytes).map(|()| bytes).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => bad("the file ends within its header; it is truncated".into()),
            _ => Error::io("read", path, e),
        })
    };
    let start = take(MAGIC.len().min(length as usize))?;
    if start != MAGIC {
        return Err(bad("not a .npy file (it does not begin with \\x93NUMPY)".into()));
    }
    let version = take(2)?;
    let (prefix, header_length) = match version[0] {
        1 => (10, take(2)?.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte))),
        2 | 3 => (12, take(4)?.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte))),
        other => {
            return Err(bad(format!(
                "version {other}.{} of the .npy format is unknown; 1.0, 2.0 and 3.0 are read",
                version[1]
            )));
        }
    };
    if header_length > LONGEST_HEADER {
        return Err(bad(format!("the header claims {header_length} bytes; the file is damaged or no plain array")));
    }
    let text = take(header_length)?;
    let (item, fortran, shape) = parse(&text).map_err(|what| bad(format!("cannot understand the header: {what}")))?;
    let (rows, dim) = match shape[..] {
        [rows] => (rows, 1),
        [rows, dim] => (rows, dim),
        _ => {
            return Err(bad(format!(
                "the array has {}; save it with 1 or 2 (rows, columns)",
                counted(shape.len(), "dimension")
            )));
        }
    };
    if rows == 0 || dim == 0 {
        return Err(bad(format!(
            "the array has {} and {}; there must be at least one of each",
            counted(rows, "row"),
            counted(dim, "column")
        )));
    }
    let present = length.saturating_sub((prefix + header_length) as u64);
    let needed = rows.checked_mul(dim).and_then(|n| n.checked_mul(item.size as u64));
    match needed {
        Some(needed) if needed == present => {}
        Some(needed) if needed < present => {
            return Err(bad(format!(
                "{} after the {rows} x {dim} values of the header",
                counted(present - needed, "byte") + if present - needed == 1 { " follows" } else { " follow" }
            )));
        }
        _ => {
            return Err(bad(format!(
                "the header promises {rows} x {dim} values of {} bytes, but only {present} bytes follow; the file is truncated",
                item.size
            )));
        }
    }
    let size = |n: u64| usize::try_from(n).map_err(|_| bad("too large for this machine".into()));
    Ok(Header { item, fortran, rows: size(rows)?, dim: size(dim)? })
}

impl Item {
    /// `<f4` and so on.
    pub(in crate::data) fn parse(text: &str) -> Result<Self, String> {
        let unsupported =
            || format!("numbers of type '{text}' are not supported; save the array as float32 or float64");
        let [order, kind, size @ ..] = text.as_bytes() else { return Err(unsupported()) };
        let size = match size {
            [digit @ b'1'..=b'8'] => usize::from(digit - b'0'),
            _ => return Err(unsupported()),
        };
        let known = match kind {
            b'f' => matches!(size, 2 | 4 | 8),
            b'i' | b'u' => matches!(size, 1 | 2 | 4 | 8),
            b'b' => size == 1,
            _ => false,
        };
        // Single bytes have no order.
        let ordered = matches!(order, b'<' | b'>') || (*order == b'|' && size == 1);
        if known && ordered { Ok(Self { kind: *kind, size, big: *order == b'>' }) } else { Err(unsupported()) }
    }

    /// Bytes of one item.
    pub(in crate::data) fn size(self) -> usize {
        self.size
    }

    /// Function from the bytes of one item to its value.
    pub(in crate::data) fn decoder(self) -> fn(&[u8]) -> f64 {
        /// Bytes in little-endian order; callers pass exactly `N`.
        fn ordered<const N: usize, const BIG: bool>(bytes: &[u8]) -> [u8; N] {
            let mut array = [0; N];
            array.copy_from_slice(bytes);
            if BIG {
                array.reverse();
            }
            array
        }
        macro_rules! number {
            ($kind:ty, $size:literal) => {
                if self.big {
                    |b| <$kind>::from_le_bytes(ordered::<$size, true>(b)) as f64
                } else {
                    |b| <$kind>::from_le_bytes(ordered::<$size, false>(b)) as f64
                }
            };
        }
        match (self.kind, self.size) {
            (b'f', 2) if self.big => |b| half(u16::from_be_bytes([b[0], b[1]])),
            (b'f', 2) => |b| half(u16::from_le_bytes([b[0], b[1]])),
            (b'f', 4) => number!(f32, 4),
            (b'f', 8) => number!(f64, 8),
            (b'i', 1) => |b| f64::from(b[0].cast_signed()),
            (b'i', 2) => number!(i16, 2),
            (b'i', 4) => number!(i32, 4),
            (b'i', _) => number!(i64, 8),
            (b'u', 2) => number!(u16, 2),
            (b'u', 4) => number!(u32, 4),
            (b'u', 8) => number!(u64, 8),
            (b'b', _) => |b| f64::from(u8::from(b[0] != 0)),
            _ => |b| f64::from(b[0]),
        }
    }
}

/// An IEEE half as f64.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    sign * size
}

/// The part of a Python literal that has not been read.
struct Literal<'a>(&'a [u8]);

impl<'a> Literal<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// Takes a token if it comes next.
    fn eat(&mut self, token: &[u8]) -> bool {
        self.skip_space();
        self.0.strip_prefix(token).inspect(|rest| self.0 = rest).is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token.as_bytes()) { Ok(()) } else { Err(format!("`{token}` is missing")) }
    }

    /// A string in either kind of quotes. Escapes do not occur in headers of plain arrays.
    fn string(&mut self) -> Option<&'a str> {
        self.skip_space();
        let (&quote, rest) = self.0.split_first().filter(|(q, _)| matches!(q, b'\'' | b'"'))?;
        let end = rest.iter().position(|&b| b == quote)?;
        self.0 = &rest[end + 1..];
        std::str::from_utf8(&rest[..end]).ok()
    }

    fn boolean(&mut self) -> Option<bool> {
        if self.eat(b"True") { Some(true) } else { self.eat(b"False").then_some(false) }
    }

    fn integer(&mut self) -> Option<u64> {
        self.skip_space();
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        // Python 2 wrote 3L.
        self.eat(b"L");
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        let mut comma = true;
        if !self.eat(b"(") {
            return None;
        }
        while !self.eat(b")") {
            if !comma {
                return None;
            }
            numbers.push(self.integer()?);
            comma = self.eat(b",");
        }
        // (3) is a number in brackets, not a tuple.
        (numbers.len() != 1 || comma).then_some(numbers)
    }
}

/// The three entries of a header: item type, order, shape.
fn parse(text: &[u8]) -> Result<(Item, bool, Vec<u64>), String> {
    let (mut item, mut fortran, mut shape) = (None, None, None);
    let mut literal = Literal(text);
    literal.expect("{")?;
    while !literal.eat(b"}") {
        let key = literal.string().ok_or("a key is not a string")?;
        literal.expect(":")?;
        let again = match key {
            "descr" => {
                let descr = literal.string().ok_or("the values are records; save a plain array of numbers")?;
                item.replace(Item::parse(descr)?).is_some()
            }
            "fortran_order" => {
                fortran.replace(literal.boolean().ok_or("'fortran_order' is neither True nor False")?).is_some()
            }
            "shape" => shape.replace(literal.tuple().ok_or("'shape' is not a tuple of sizes")?).is_some(),
            _ => return Err(format!("unknown key '{}'", key.escape_default())),
        };
        if again {
            return Err(format!("'{key}' comes twice"));
        }
        if !literal.eat(b",") {
            literal.expect("}")?;
            break;
        }
    }
    literal.skip_space();
    if !literal.0.is_empty() {
        return Err("something follows after the closing brace".into());
    }
    Ok((
        item.ok_or("'descr' is missing")?,
        fortran.ok_or("'fortran_order' is missing")?,
        shape.ok_or("'shape' is missing")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Item, bool, Vec<u64>), String> {
        parse(text.as_bytes())
    }

    #[test]
    fn headers_of_numpy_are_understood() {
        let f4 = Item { kind: b'f', size: 4, big: false };
        let cases = [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", (f4, false, vec![3, 4])),
            ("{\"shape\": (3L,), \"fortran_order\" : True,\n 'descr':'<f4'}", (f4, true, vec![3])),
            (
                "{'descr': '>u2', 'fortran_order': False, 'shape': ()}",
                (Item { kind: b'u', size: 2, big: true }, false, vec![]),
            ),
            (
                "{'descr': '|b1', 'fortran_order': False, 'shape': (1,2,3,)}",
                (Item { kind: b'b', size: 1, big: false }, false, vec![1, 2, 3]),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parsed(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn wrong_headers_say_what_is_wrong() {
        let cases = [
            ("", "`{` is missing"),
            ("{", "key"),
            ("{}", "'descr' is missing"),
            ("{'descr' '<f4'}", "`:` is missing"),
            ("{'descr': [('a', '<f4')]}", "records"),
            ("{'descr': '<c8', }", "'<c8' are not supported"),
            ("{'descr': '|f4', }", "not supported"),
            ("{'descr': '<f3', }", "not supported"),
            ("{'descr': '<f16', }", "not supported"),
            ("{'descr': '<M8[us]', }", "not supported"),
            ("{'descr': '', }", "not supported"),
            ("{'descr': '<f4', 'descr': '<f4'}", "comes twice"),
            ("{'fortran_order': 1}", "neither True nor False"),
            ("{'shape': (3)}", "tuple"),
            ("{'shape': (3,,4)}", "tuple"),
            ("{'shape': (3 4)}", "tuple"),
            ("{'shape': (-3,)}", "tuple"),
            ("{'shape': (99999999999999999999,)}", "tuple"),
            ("{'shape': ((((((3,)", "tuple"),
            ("{'shape': (3, ", "tuple"),
            ("{'size': 3}", "unknown key 'size'"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x", "something follows"),
            ("{'descr': '<f4' 'fortran_order': False", "`}` is missing"),
        ];
        for (text, expected) in cases {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn halves_have_their_values() {
        let cases = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x3555, 0.333_251_953_125),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
