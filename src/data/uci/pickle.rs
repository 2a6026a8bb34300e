//! Pickles of Python, protocols 2 to 5, as the objects that they describe. Nothing is called: what Python would build
//! by a call stays the description of the call.
//!
//! A pickle is a program for a machine with a stack. Objects refer to each other, in circles too, so they lie in one
//! list and have numbers. Strings are parts of the file.

use std::collections::HashMap;

/// Number of an object.
pub(super) type Id = usize;

/// What a pickle describes.
#[derive(Debug, PartialEq)]
pub(super) enum Object<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A name of a module, as `numpy.ndarray`.
    Global(&'a str, &'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// What a call returns, and what is then put into it.
    Call {
        callable: Id,
        arguments: Id,
        state: Option<Id>,
    },
}

/// All objects of a pickle.
#[derive(Debug)]
pub(super) struct Pickle<'a>(pub(super) Vec<Object<'a>>);

impl<'a> Pickle<'a> {
    /// Reads a pickle, or says why it cannot be read.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let mut machine =
            Machine { rest: bytes, objects: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
        while machine.step()? {}
        Ok(Self(machine.objects))
    }

    pub(super) fn get(&self, id: Id) -> &Object<'a> {
        &self.0[id]
    }

    /// The members of a tuple or list.
    pub(super) fn members(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Object::Tuple(members) | Object::List(members) => Some(members),
            _ => None,
        }
    }

    /// A text, or what Python 2 had for one.
    pub(super) fn text(&self, id: Id) -> Option<&'a str> {
        match *self.get(id) {
            Object::Text(text) => Some(text),
            Object::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn size(&self, id: Id) -> Option<usize> {
        match *self.get(id) {
            Object::Int(value) => usize::try_from(value).ok(),
            _ => None,
        }
    }

    /// What a dictionary has under a name.
    pub(super) fn entry(&self, id: Id, name: &str) -> Option<Id> {
        let Object::Dict(entries) = self.get(id) else { return None };
        entries.iter().find(|(key, _)| self.text(*key) == Some(name)).map(|(_, value)| *value)
    }

    /// Arguments and state of a call of the function of that name, in a module of any name.
    pub(super) fn call(&self, id: Id, name: &str) -> Option<(&[Id], Option<Id>)> {
        let Object::Call { callable, arguments, state } = *self.get(id) else { return None };
        match self.get(callable) {
            Object::Global(_, called) if *called == name => Some((self.members(arguments)?, state)),
            _ => None,
        }
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    objects: Vec<Object<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

const TRUNCATED: &str = "the file ends within the pickle; it is truncated";
const DAMAGED: &str = "the pickle is damaged";

impl<'a> Machine<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let count = usize::try_from(count).ok().filter(|&count| count <= self.rest.len()).ok_or(TRUNCATED)?;
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    /// A little-endian number of up to eight bytes.
    fn number(&mut self, bytes: u64) -> Result<u64, String> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    /// As many bytes as a number of `prefix` bytes says.
    fn prefixed(&mut self, prefix: u64) -> Result<&'a [u8], String> {
        let count = self.number(prefix)?;
        self.take(count)
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = self.rest.iter().position(|&byte| byte == b'\n').ok_or(TRUNCATED)?;
        let line = self.take(end as u64 + 1)?;
        text(&line[..end])
    }

    fn push(&mut self, object: Object<'a>) {
        self.stack.push(self.objects.len());
        self.objects.push(object);
    }

    fn pop(&mut self) -> Result<Id, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor { self.stack.pop().ok_or_else(|| DAMAGED.into()) } else { Err(DAMAGED.into()) }
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(|| DAMAGED.into())
    }

    /// Everything above the last mark.
    fn marked(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len()).ok_or(DAMAGED)?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, count: usize) -> Result<(), String> {
        let mut members = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        members.reverse();
        self.push(Object::Tuple(members));
        Ok(())
    }

    fn append(&mut self, added: Vec<Id>) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.objects[list] {
            Object::List(members) => members.extend(added),
            _ => return Err("it adds to something that is no list".into()),
        }
        Ok(())
    }

    fn insert(&mut self, added: &[Id]) -> Result<(), String> {
        let dict = self.top()?;
        match &mut self.objects[dict] {
            Object::Dict(entries) => entries.extend(added.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
            _ => return Err("it adds to something that is no dictionary".into()),
        }
        Ok(())
    }

    fn remember(&mut self, key: u32) -> Result<(), String> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<(), String> {
        let known = u32::try_from(key).ok().and_then(|key| self.memo.get(&key)).copied().ok_or(DAMAGED)?;
        self.stack.push(known);
        Ok(())
    }

    /// Runs one instruction; false at the end.
    fn step(&mut self) -> Result<bool, String> {
        match self.take(1)?[0] {
            b'.' => return Ok(false),
            0x80 => {
                self.take(1)?;
            }
            0x95 => {
                self.take(8)?;
            }
            b'(' => self.marks.push(self.stack.len()),
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.marked()?;
            }
            b'N' => self.push(Object::None),
            code @ (0x88 | 0x89) => self.push(Object::Bool(code == 0x88)),
            b'J' => {
                let value = self.number(4)? as u32;
                self.push(Object::Int(value.cast_signed().into()));
            }
            code @ (b'K' | b'M') => {
                let value = self.number(if code == b'K' { 1 } else { 2 })?;
                self.push(Object::Int(value as i64));
            }
            0x8a => {
                let bytes = self.prefixed(1)?;
                let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
                if bytes.len() > 8 {
                    return Err("a number has more than 64 bits".into());
                }
                let start = if negative { -1 } else { 0i64 };
                self.push(Object::Int(bytes.iter().rev().fold(start, |n, &byte| n << 8 | i64::from(byte))));
            }
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Object::Float(f64::from_bits(bits)));
            }
            code @ (b'U' | b'C' | b'T' | b'B' | 0x8e | 0x96) => {
                let prefix = match code {
                    b'U' | b'C' => 1,
                    b'T' | b'B' => 4,
                    _ => 8,
                };
                let bytes = self.prefixed(prefix)?;
                self.push(Object::Bytes(bytes));
            }
            code @ (0x8c | b'X' | 0x8d) => {
                let prefix = match code {
                    0x8c => 1,
                    b'X' => 4,
                    _ => 8,
                };
                let bytes = self.prefixed(prefix)?;
                self.push(Object::Text(text(bytes)?));
            }
            b']' => self.push(Object::List(Vec::new())),
            b'}' => self.push(Object::Dict(Vec::new())),
            b')' => self.tuple(0)?,
            code @ 0x85..=0x87 => self.tuple(usize::from(code - 0x84))?,
            b't' => {
                let members = self.marked()?;
                self.push(Object::Tuple(members));
            }
            b'a' => {
                let added = self.pop()?;
                self.append(vec![added])?;
            }
            b'e' => {
                let added = self.marked()?;
                self.append(added)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.insert(&[key, value])?;
            }
            b'u' => {
                let added = self.marked()?;
                self.insert(&added)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Object::Global(module, name));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (&Object::Text(module), &Object::Text(name)) = (&self.objects[module], &self.objects[name]) else {
                    return Err(DAMAGED.into());
                };
                self.push(Object::Global(module, name));
            }
            // A call, and a new object of a class.
            b'R' | 0x81 => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                self.push(Object::Call { callable, arguments, state: None });
            }
            b'b' => {
                let put = self.pop()?;
                let top = self.top()?;
                if let Object::Call { state, .. } = &mut self.objects[top] {
                    *state = Some(put);
                }
            }
            b'q' => {
                let key = self.number(1)?;
                self.remember(key as u32)?;
            }
            b'r' => {
                let key = self.number(4)?;
                self.remember(key as u32)?;
            }
            0x94 => self.remember(self.memo.len() as u32)?,
            b'h' => {
                let key = self.number(1)?;
                self.recall(key)?;
            }
            b'j' => {
                let key = self.number(4)?;
                self.recall(key)?;
            }
            other => return Err(format!("the instruction {other:#04x} of a pickle is not known")),
        }
        Ok(true)
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a text in the pickle is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_those_of_python() {
        // pickle.dumps({'a': [1, -2, 3.5, None, True, b'xy'], (7, 70000): 'b'}, 2) and the like, by Python 3.
        let p = Pickle::read(b"\x80\x02}(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffG@\x0c\x00\x00\x00\x00\x00\x00N\x88U\x02xye\x8a\x02\xff\x7fh\x02u.").unwrap();
        let list = p.entry(0, "a").unwrap();
        let members: Vec<_> = p.members(list).unwrap().iter().map(|&id| p.get(id)).collect();
        use Object::{Bool, Bytes, Float, Int, None};
        assert_eq!(members, [&Int(1), &Int(-2), &Float(3.5), &None, &Bool(true), &Bytes(b"xy")]);
        assert!(p.0.contains(&Int(32767)));
        let p = Pickle::read(b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x01m\x8c\x01f\x93\x94K\x05\x85R}b.")
            .unwrap();
        let call = p.0.iter().position(|object| matches!(object, Object::Call { .. })).unwrap();
        let (arguments, state) = p.call(call, "f").unwrap();
        assert_eq!((p.size(arguments[0]), state.is_some()), (Some(5), true));
        assert!(p.call(call, "g").is_none());
    }

    #[test]
    fn no_bytes_do_harm() {
        let whole = b"\x80\x02}(X\x01\x00\x00\x00aq\x01]q\x02(K\x01U\x02xyeh\x02h\x01\x85R}bu.";
        assert!(Pickle::read(whole).is_ok());
        for end in 0..whole.len() {
            assert!(Pickle::read(&whole[..end]).unwrap_err().contains("truncated"), "{end}");
        }
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                let _ = Pickle::read(&bytes);
            }
        }
        for bytes in [&b"."[..], b"(.", b"].", b"]]a."] {
            assert!(Pickle::read(bytes).is_ok());
        }
        for bytes in [
            &b"0."[..],
            b"e.",
            b"t.",
            b"]a.",
            b"](0.",
            b"h\x05.",
            b"K\x01K\x02a.",
            b"s.",
            b"b.",
            b"\x93.",
            b"X\xff\xff\xff\xff.",
        ] {
            assert!(Pickle::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
