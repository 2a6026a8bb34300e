//! Events for TensorBoard: records of the TFRecord format, each an `Event` as a protocol buffer.
//!
//! A record is the length of its data (u64), a checksum of these eight bytes (u32), the data, and a checksum of the data
//! (u32), all little-endian. The checksum is CRC-32C, rotated and shifted so that a record in a record does no harm. Of
//! `tensorflow/core/util/event.proto` and `summary.proto` these fields are written:
//!
//! ```text
//! Event   { 1: double wall_time, 2: int64 step, 3: string file_version | 5: Summary summary }
//! Summary { 1: repeated Value value }
//! Value   { 1: string tag, 2: float simple_value }
//! ```

use super::now;
use crate::train::epoch_report::EpochReport;

/// TensorBoard takes folders.
pub(super) const FOLDER: &str = "tensorboard";
/// TensorBoard takes files with `tfevents` in their names. A name that never changes is found again by a resumed run.
pub(super) const FILE: &str = "tensorboard/events.out.tfevents.0.hintflow";

/// What a file begins with.
pub(super) fn head() -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, now());
    bytes(&mut event, 3, b"brain.Event:2");
    framed(&event)
}

/// The record of an epoch.
pub(super) fn record(report: &EpochReport) -> Vec<u8> {
    let scalars = [
        ("loss/train", Some(report.train_loss)),
        ("loss/test", report.validation_loss),
        ("ll", report.ll),
        ("learning_rate", Some(report.learning_rate)),
        ("rows_per_s", Some(report.rows_per_s)),
    ];
    let mut summary = Vec::new();
    for (tag, value) in scalars {
        let Some(value) = value else { continue };
        let mut scalar = Vec::new();
        bytes(&mut scalar, 1, tag.as_bytes());
        key(&mut scalar, 2, FIXED32);
        scalar.extend((value as f32).to_le_bytes());
        bytes(&mut summary, 1, &scalar);
    }
    let mut event = Vec::new();
    double(&mut event, 1, now());
    key(&mut event, 2, VARINT);
    varint(&mut event, report.step);
    bytes(&mut event, 5, &summary);
    framed(&event)
}

/// The length of the whole records up to a step.
pub(super) fn kept(file: &[u8], step: u64) -> usize {
    let mut kept = 0;
    while let Some(event) = data(&file[kept..]) {
        if step_of(event) > step {
            break;
        }
        kept += event.len() + FRAME;
    }
    kept
}

/// Wire types.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

fn key(to: &mut Vec<u8>, field: u8, wire: u8) {
    to.push(field << 3 | wire);
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn double(to: &mut Vec<u8>, field: u8, value: f64) {
    key(to, field, FIXED64);
    to.extend(value.to_le_bytes());
}

fn bytes(to: &mut Vec<u8>, field: u8, value: &[u8]) {
    key(to, field, BYTES);
    varint(to, value.len() as u64);
    to.extend(value);
}

/// The step of an event: its field 2, which follows its time; 0 of one that has none.
fn step_of(event: &[u8]) -> u64 {
    const TIME: usize = 9;
    const STEP: u8 = 2 << 3 | VARINT;
    let Some((&[STEP], rest)) = event.get(TIME..).and_then(<[u8]>::split_first_chunk) else { return 0 };
    let last = rest.iter().position(|byte| byte & 0x80 == 0).map_or(rest.len(), |last| last + 1);
    rest[..last.min(10)].iter().rev().fold(0, |step, byte| step << 7 | u64::from(byte & 0x7f))
}

/// Bytes of a record beside its data.
const FRAME: usize = 16;

fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length).to_le_bytes(), data, &masked(data).to_le_bytes()].concat()
}

/// The data of the first record, if it is whole.
fn data(file: &[u8]) -> Option<&[u8]> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*sum) != masked(length) {
        return None;
    }
    let (data, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    (u32::from_le_bytes(*rest.first_chunk()?) == masked(data)).then_some(data)
}

fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// CRC-32C, bit by bit: a record an epoch is no work.
fn crc32c(data: &[u8]) -> u32 {
    const CASTAGNOLI: u32 = 0x82F6_3B78;
    let of_bit = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ CASTAGNOLI } else { sum >> 1 };
    !data.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), |sum, _| of_bit(sum)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    /// The values of RFC 3720, appendix B.4.
    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46DD_794E);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    /// Fields of a message: number, and what it holds.
    fn fields(mut message: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut fields = Vec::new();
        while let [first, rest @ ..] = message {
            let until = |rest: &[u8]| rest.iter().position(|b| b & 0x80 == 0).unwrap() + 1;
            let (skipped, length) = match first & 7 {
                0 => (0, until(rest)),
                1 => (0, 8),
                2 => {
                    let skipped = until(rest);
                    (skipped, rest[..skipped].iter().rev().fold(0, |n, b| n << 7 | usize::from(b & 0x7f)))
                }
                5 => (0, 4),
                other => panic!("wire type {other}"),
            };
            fields.push((first >> 3, rest[skipped..][..length].to_vec()));
            message = &rest[skipped + length..];
        }
        fields
    }

    #[test]
    fn records_hold_what_an_epoch_reports() {
        let head = head();
        let of_head = fields(data(&head).unwrap());
        assert_eq!((of_head[0].0, &of_head[1]), (1, &(3, b"brain.Event:2".to_vec())));
        let record = record(&report(300));
        let event = fields(data(&record).unwrap());
        assert_eq!(event.iter().map(|field| field.0).collect::<Vec<_>>(), [1, 2, 5]);
        // 3000 as a varint.
        assert_eq!(event[1].1, [0xB8, 0x17]);
        let scalars: Vec<(String, f32)> = fields(&event[2].1)
            .iter()
            .map(|(number, value)| {
                let value = fields(value);
                assert_eq!((*number, value[0].0, value[1].0), (1, 1, 2));
                let number = f32::from_le_bytes(value[1].1[..].try_into().unwrap());
                (String::from_utf8(value[0].1.clone()).unwrap(), number)
            })
            .collect();
        let want = [("loss/train", -298.5), ("loss/test", 0.25), ("learning_rate", 0.01), ("rows_per_s", 1234.0)];
        assert_eq!(scalars, want.map(|(tag, value)| (tag.to_owned(), value)));
        assert_eq!(step_of(data(&record).unwrap()), 3000);
        assert_eq!(step_of(data(&head).unwrap()), 0);
    }

    #[test]
    fn damage_ends_what_is_kept() {
        let file: Vec<u8> = [head(), record(&report(1)), record(&report(2))].concat();
        let second = head().len() + record(&report(1)).len();
        assert_eq!((kept(&file, 20), kept(&file, 10), kept(&file, 9)), (file.len(), second, head().len()));
        for place in [second, second + 9, second + 20, file.len() - 1] {
            let mut damaged = file.clone();
            damaged[place] ^= 4;
            assert_eq!(kept(&damaged, 20), second, "byte {place}");
        }
        assert_eq!(kept(&file[..file.len() - 1], 20), second);
        assert_eq!(kept(b"nonsense", 20), 0);
        // A length without end.
        assert_eq!(kept(&framed(b"")[..12], 20), 0);
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        huge.extend(masked(&huge).to_le_bytes());
        assert_eq!(kept(&huge, 20), 0);
    }
}
