//! Tables of pandas in pickles: the layout of blocks that all versions share, whatever else is around it.
//!
//! A `DataFrame` keeps columns of one type together in blocks, arrays (columns, rows), with the places of these columns
//! in the table. Versions before 1.3 write a block as a dictionary of `values` and `mgr_locs`, later ones as a call of
//! `_unpickle_block`. Arrays of NumPy come from `_reconstruct` and a state, or from `_frombuffer`.

use std::borrow::Cow;

use super::pickle::{Id, Object, Pickle};
use crate::data::files::narrow;
use crate::data::files::npy::Item;

/// More columns than any table has.
const MOST: usize = 1 << 16;

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    block: usize,
    row: usize,
}

/// A table.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column<'a>>,
    blocks: Vec<Array<'a>>,
}

/// An array of numbers.
#[derive(Debug)]
struct Array<'a> {
    shape: Vec<usize>,
    item: Item,
    fortran: bool,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Frame<'a> {
    /// The table of a pickle of so many bytes, which has a column of that name; or what is wrong.
    pub(super) fn of(pickle: &Pickle<'a>, bytes: usize, name: &str) -> Result<Self, String> {
        let (mut blocks, mut places) = (Vec::new(), Vec::new());
        let (mut held, mut columns) = (0, 0);
        for id in 0..pickle.0.len() {
            let Some((values, place)) = block(pickle, id) else { continue };
            let array = array(pickle, values)?;
            let place = placement(pickle, place).ok_or("the places of some columns are not understood")?;
            // A few bytes can refer to the same values again and again; a table holds each of them once.
            held += array.bytes.len();
            columns += place.len();
            if held > bytes || columns > MOST {
                return Err("its table is larger than the file: values are referred to more than once".into());
            }
            places.push(place);
            blocks.push(array);
        }
        let Some(rows) = blocks.first().and_then(|array| array.shape.get(1)).copied() else {
            return Err("there is no table of numbers".into());
        };
        let width: usize = places.iter().map(Vec::len).sum();
        let names =
            (0..pickle.0.len()).find_map(|id| names(pickle, id).filter(|n| n.len() == width && n.contains(&name)));
        let names = names.ok_or_else(|| format!("there are no names of {width} columns, `{name}` among them"))?;
        let mut found: Vec<_> = names.into_iter().map(|name| (name, None)).collect();
        for (block, (array, places)) in blocks.iter().zip(&places).enumerate() {
            if array.shape != [places.len(), rows] {
                return Err(format!(
                    "a block of {} columns and {rows} rows has the shape {:?}",
                    places.len(),
                    array.shape
                ));
            }
            for (row, &place) in places.iter().enumerate() {
                found.get_mut(place).ok_or("a column has a place outside of the table")?.1 = Some((block, row));
            }
        }
        let column = |(name, place): (&'a str, Option<(usize, usize)>)| {
            let (block, row) = place.ok_or_else(|| format!("column `{name}` has no values"))?;
            Ok(Column { name, block, row })
        };
        let columns = found.into_iter().map(column).collect::<Result<_, String>>()?;
        Ok(Self { rows, columns, blocks })
    }

    /// Writes a column into every `step`-th value; or the row, from 0, of a value that is no finite number, and why.
    pub(super) fn write(&self, column: &Column<'_>, values: &mut [f64], step: usize) -> Result<(), (usize, String)> {
        let array = &self.blocks[column.block];
        let (width, size, decode) = (array.shape[0], array.item.size(), array.item.decoder());
        for (row, value) in values.iter_mut().step_by(step).take(self.rows).enumerate() {
            let at = if array.fortran { row * width + column.row } else { column.row * self.rows + row };
            *value = decode(&array.bytes[at * size..][..size]);
            narrow(*value).map_err(|what| (row, what))?;
        }
        Ok(())
    }
}

/// Values and places of a block.
fn block(pickle: &Pickle<'_>, id: Id) -> Option<(Id, Id)> {
    if let Some((&[values, places, ..], _)) = pickle.call(id, "_unpickle_block") {
        return Some((values, places));
    }
    pickle.entry(id, "values").zip(pickle.entry(id, "mgr_locs"))
}

/// The places in the table of the columns of a block: a slice or an array.
fn placement(pickle: &Pickle<'_>, id: Id) -> Option<Vec<usize>> {
    if let Some((&[start, stop, step], _)) = pickle.call(id, "slice") {
        let step = if *pickle.get(step) == Object::None { 1 } else { pickle.size(step)?.max(1) };
        let (start, stop) = (pickle.size(start)?, pickle.size(stop)?);
        return (stop < MOST).then(|| (start..stop).step_by(step).collect());
    }
    let places = array(pickle, id).ok()?;
    let decode = places.item.decoder();
    let place = |bytes| Some(decode(bytes)).filter(|p| (0.0..MOST as f64).contains(p)).map(|p| p as usize);
    (places.shape.len() == 1).then_some(())?;
    places.bytes.chunks_exact(places.item.size()).map(place).collect()
}

/// A list of texts.
fn names<'a>(pickle: &Pickle<'a>, id: Id) -> Option<Vec<&'a str>> {
    let Object::List(members) = pickle.get(id) else { return None };
    members.iter().map(|&id| pickle.text(id)).collect()
}

fn array<'a>(pickle: &Pickle<'a>, id: Id) -> Result<Array<'a>, String> {
    let parts = match (pickle.call(id, "_reconstruct"), pickle.call(id, "_frombuffer")) {
        (Some((_, Some(state))), _) => match pickle.members(state) {
            Some(&[_, shape, dtype, fortran, data]) => {
                Some((shape, dtype, data, *pickle.get(fortran) == Object::Bool(true)))
            }
            _ => None,
        },
        (_, Some((&[data, dtype, shape, order], _))) => Some((shape, dtype, data, pickle.text(order) == Some("F"))),
        _ => None,
    };
    let (shape, dtype, data, fortran) = parts.ok_or("a block of columns is no plain array of numbers")?;
    let item = Item::parse(&dtype_text(pickle, dtype).ok_or("the type of a block of columns is not understood")?)?;
    // Of more dimensions there is no block; they would only take memory.
    let shape = pickle.members(shape).filter(|shape| shape.len() <= 2);
    let shape = shape.and_then(|shape| shape.iter().map(|&id| pickle.size(id)).collect::<Option<Vec<_>>>());
    let shape = shape.ok_or("the shape of a block of columns is not understood")?;
    let bytes = data_of(pickle, data).ok_or("the values of a block of columns are not understood")?;
    let needed = shape.iter().try_fold(item.size(), |size, &n| size.checked_mul(n));
    if needed != Some(bytes.len()) {
        return Err(format!("a block of the shape {shape:?} has {} bytes", bytes.len()));
    }
    Ok(Array { shape, item, fortran, bytes })
}

/// A type as NumPy writes it in its files: `<f8`.
fn dtype_text(pickle: &Pickle<'_>, id: Id) -> Option<String> {
    let (&[name, ..], state) = pickle.call(id, "dtype")? else { return None };
    let name = pickle.text(name)?;
    let order = state.and_then(|state| pickle.members(state)).and_then(|state| pickle.text(*state.get(1)?));
    Some(match order.unwrap_or("|") {
        "=" => format!("<{name}"),
        order => format!("{order}{name}"),
    })
}

/// Bytes of an array. Python 3 writes them into protocol 2 as a text to be encoded.
fn data_of<'a>(pickle: &Pickle<'a>, id: Id) -> Option<Cow<'a, [u8]>> {
    if let Some((&[text, encoding], _)) = pickle.call(id, "encode") {
        let (Object::Text(text), Some("latin1")) = (pickle.get(text), pickle.text(encoding)) else { return None };
        return text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>().map(Cow::Owned);
    }
    match *pickle.get(id) {
        Object::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        _ => None,
    }
}
