//! NumPy's `.npy`: numbers of any common type and byte order in, little-endian `f32` out.
//!
//! The header is parsed here and not by a library, because every byte of a file may be wrong: nothing in it is believed
//! before it was compared with the length of the file, nesting is not followed, and nothing is allocated by its word.

mod write;

use std::io::{BufReader, Read};
use std::path::Path;

use super::precision::Precision;
use super::source::{ALL, Choice, narrow, narrow_packed, open_regular};
use super::text::{ALL_MISSING, TextSettings, left_out_note};
use crate::data::packing::{Packed, Packing, shortened};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::memory;
#[cfg(feature = "cli")]
pub(crate) use write::npy_to;
pub(crate) use write::write_npy;
pub(super) use write::{write_npy_of, write_npy_vector};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Plain arrays have headers of about 100 bytes.
const LONGEST_HEADER: usize = 1 << 16;
/// Bytes decoded at a time; a multiple of every item size.
const CHUNK: usize = 1 << 18;

/// What the header of a file says.
#[derive(Debug, PartialEq)]
struct Header {
    item: Item,
    fortran: bool,
    rows: usize,
    dim: usize,
}

/// Type of the stored numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::data) struct Item {
    /// `f`, `i`, `u` or `b`.
    kind: u8,
    size: usize,
    big: bool,
}

/// Reads a one- or two-dimensional array. One dimension makes one column. Names are absent.
pub(crate) fn read_npy(path: &Path) -> Result<Table> {
    read_chosen(path, &TextSettings::default(), Packed::No, ALL)
}

/// As [`read_npy`], some columns of it. Of the settings only what stands for a missing value is of any use. A file whose
/// columns turn out to need packing is read twice.
pub(super) fn read_chosen(
    path: &Path,
    settings: &TextSettings,
    packed: Packed<'_>,
    choice: Choice<'_>,
) -> Result<Table> {
    if let Packed::AsNeeded = packed {
        let looked = Numbers::read(path, settings, packed, choice)?;
        let Some(packing) = looked.precision.needed() else { return looked.table(path) };
        drop(looked);
        let mut numbers = Numbers::read(path, settings, Packed::As(&[], &packing), choice)?;
        let note = |(packing, column): (&Packing, &usize)| packing.note(&format!("column {}", column + 1));
        numbers.assumed = numbers.packing.iter().zip(&numbers.chosen).filter_map(note).collect();
        return numbers.table(path);
    }
    Numbers::read(path, settings, packed, choice)?.table(path)
}

/// Some columns of an array, rounded.
struct Numbers {
    chosen: Vec<usize>,
    packing: Vec<Packing>,
    precision: Precision,
    /// Row by row; NaN if one is missing.
    values: Vec<f32>,
    /// What is to be told of how they are packed.
    assumed: Vec<String>,
    /// Whether nothing is packed.
    is_plain: bool,
}

impl Numbers {
    fn read(path: &Path, settings: &TextSettings, packed: Packed<'_>, choice: Choice<'_>) -> Result<Self> {
        let (file, length) = open_regular(path)?;
        let mut input = BufReader::with_capacity(CHUNK, file);
        let header = read_header(&mut input, length, path)?;
        let chosen = choice(&[], header.dim)?.unwrap_or_else(|| (0..header.dim).collect());
        let packing = packed.of_columns(|_| None, chosen.len());
        let mut precision = Precision::new(chosen.len());
        // Numbers of one or two bytes fit.
        let (is_wide, looks) = (header.item.size > 2, matches!(packed, Packed::AsNeeded));
        let values = read_as(&mut input, &header, &chosen, path, |place, exact| {
            if settings.is_missing_number(exact) {
                return Ok(f32::NAN);
            }
            let (exact, value) = match looks && exact.is_finite() {
                true => (exact, exact as f32),
                false => narrow_packed(exact, &packing[place])?,
            };
            if is_wide {
                precision.add(place, exact, value);
            }
            Ok(value)
        })?;
        Ok(Self { chosen, packing, precision, values, assumed: Vec::new(), is_plain: matches!(packed, Packed::No) })
    }

    fn table(self, path: &Path) -> Result<Table> {
        let Self { chosen, packing, precision, mut values, mut assumed, is_plain } = self;
        let rows = values.len() / chosen.len().max(1);
        let left_out = remove_missing(&mut values, chosen.len());
        if values.is_empty() {
            return Err(Error::format(path, ALL_MISSING));
        }
        assumed.extend(left_out_note(left_out, rows));
        let numbers = chosen.iter().map(|column| column + 1).collect();
        // What is packed as a model has it may be nothing beside the model's numbers.
        if is_plain {
            precision.check(path, |i| format!("column {}", chosen[i] + 1))?;
        }
        let table = Table::new(Vec::new(), chosen.len(), values)?.with_coarse(precision.coarse());
        let table = table.with_file_numbers(numbers).with_packing(shortened(packing));
        Ok(table.with_assumed(assumed, left_out))
    }
}

/// Removes the rows that hold a NaN, which stands for a missing value; returns their number.
fn remove_missing(values: &mut Vec<f32>, dim: usize) -> usize {
    let is_missing = |row: &[f32]| row.iter().any(|v| v.is_nan());
    let left_out = values.chunks_exact(dim).filter(|row| is_missing(row)).count();
    if left_out > 0 {
        *values = values.chunks_exact(dim).filter(|row| !is_missing(row)).flatten().copied().collect();
    }
    left_out
}

/// An array that is in memory, of one or two dimensions: its values and the number of its columns. Errors are those of
/// a file of that name.
#[cfg(feature = "cli")]
pub(crate) fn read_npy_bytes(mut bytes: &[u8], name: &Path) -> Result<(Vec<f32>, usize)> {
    let length = bytes.len() as u64;
    let header = read_header(&mut bytes, length, name)?;
    let values = read_as(&mut bytes, &header, &(0..header.dim).collect::<Vec<_>>(), name, |_, exact| narrow(exact))?;
    Ok((values, header.dim))
}

/// Parses the header and checks it against the length of the file.
fn read_header(input: &mut impl Read, length: u64, path: &Path) -> Result<Header> {
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
        _ => return Err(bad(format!("the array has {} dimensions; save it with 1 or 2 (rows, columns)", shape.len()))),
    };
    if rows == 0 || dim == 0 {
        return Err(bad(format!("the array has {rows} rows and {dim} columns; there must be at least one of each")));
    }
    let present = length.saturating_sub((prefix + header_length) as u64);
    let needed = rows.checked_mul(dim).and_then(|n| n.checked_mul(item.size as u64));
    match needed {
        Some(needed) if needed == present => {}
        Some(needed) if needed < present => {
            return Err(bad(format!(
                "{} bytes follow after the {rows} x {dim} values of the header",
                present - needed
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

/// All numbers of an array of any shape, unrounded; they need not be finite.
#[cfg(feature = "cli")]
pub(crate) fn read_npy_numbers(path: &Path) -> Result<Vec<f64>> {
    let (file, length) = open_regular(path)?;
    let mut input = BufReader::with_capacity(CHUNK, file);
    let header = read_header(&mut input, length, path)?;
    read_as(&mut input, &header, &(0..header.dim).collect::<Vec<_>>(), path, |_, exact| Ok(exact))
}

/// Some columns of an array, row by row and unrounded, as their number and their values; `choice` is told the number of
/// all. For values that are computed with before they are rounded.
pub(in crate::data) fn read_unrounded(
    path: &Path,
    choice: impl Fn(usize) -> Result<Vec<usize>>,
) -> Result<(usize, Vec<f64>)> {
    let (file, length) = open_regular(path)?;
    let mut input = BufReader::with_capacity(CHUNK, file);
    let header = read_header(&mut input, length, path)?;
    let chosen = choice(header.dim)?;
    let values = read_as(&mut input, &header, &chosen, path, |_, exact| narrow(exact).map(|_| exact))?;
    Ok((chosen.len(), values))
}

/// What `convert` makes of each value and its place in the row of the chosen columns.
fn read_as<T: Copy + Default>(
    input: &mut impl Read,
    header: &Header,
    chosen: &[usize],
    path: &Path,
    mut convert: impl FnMut(usize, f64) -> Result<T, String>,
) -> Result<Vec<T>> {
    let &Header { item, fortran, rows, dim } = header;
    let count = rows * dim;
    let kept = chosen.len();
    // Where a column goes.
    let mut places = vec![None; dim];
    chosen.iter().enumerate().for_each(|(place, &column)| places[column] = Some(place));
    let mut values: Vec<T> = memory::reserved(rows * kept, || format!("{rows} x {kept} values of {}", path.display()))?;
    values.resize(rows * kept, T::default());
    let decode = item.decoder();
    let mut buffer = vec![0; CHUNK.min(count * item.size)];
    let mut index = 0;
    while index < count {
        let bytes = (buffer.len()).min((count - index) * item.size);
        input.read_exact(&mut buffer[..bytes]).map_err(|e| Error::io("read", path, e))?;
        for raw in buffer[..bytes].chunks_exact(item.size) {
            let (row, column) = if fortran { (index % rows, index / rows) } else { (index / dim, index % dim) };
            index += 1;
            let Some(place) = places[column] else { continue };
            values[row * kept + place] = convert(place, decode(raw)).map_err(|what| Error::Cell {
                path: path.into(),
                row: row + 1,
                column: column + 1,
                name: None,
                what,
            })?;
        }
    }
    Ok(values)
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
