//! Run folders with a damaged file, and little memory or room on the disk: an answer or an error, and never a crash.
//!
//! What is damaged differs from run to run, so that `tests/long.sh` finds what one run does not; a failure prints the
//! seed, which `HINTFLOW_SEED_OF_DAMAGE` takes.

use std::path::Path;

use crate::cli::tool::{Done, Place};

const TRAIN: &str = "train table.csv --device cpu --threads 1 --set model.width=8 --set model.blocks=2 --epochs 3 \
                     --set train.patience=0 --set run.checkpoint_every=4 --out run";

/// Numbers by chance (splitmix64).
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let given = std::env::var("HINTFLOW_SEED_OF_DAMAGE").ok().map(|seed| seed.parse().expect("a number"));
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos().into();
        let seed = given.unwrap_or_else(now);
        eprintln!("seed of the damage: {seed}");
        Self(seed)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) % end as u64) as usize
    }

    /// Changes a file in one to three places.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let (at, other) = (self.below(bytes.len().max(1)), self.below(bytes.len().max(1)));
            let few = (at..bytes.len().min(at + 1 + self.below(20))).collect::<Vec<_>>();
            match self.below(7) {
                _ if bytes.is_empty() => bytes.push(self.below(256) as u8),
                0 | 1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes[at] = b"\0\n\"-9e[\xff"[self.below(8)],
                3 => bytes.truncate(at),
                4 => drop(bytes.drain(at..at + few.len())),
                5 => bytes.insert(at, self.below(256) as u8),
                _ => few.into_iter().for_each(|place| bytes[place] = bytes[(place + other) % bytes.len()]),
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The command ended by itself, with a code that the help knows, and a reason if it is not 0.
fn assert_ended(what: &str, done: &Done) {
    assert!(matches!(done.code, Some(0..=5)), "{what}: {:?}\n{}", done.code, done.stderr);
    assert!(!done.stderr.contains("panicked"), "{what}: {}", done.stderr);
    // A model that does not fit (5) is no error.
    assert_eq!(!matches!(done.code, Some(0 | 5)), done.stderr.contains("error: "), "{what}: {}", done.stderr);
}

/// A run that was stopped after its last checkpoint: with a model, and with steps left.
fn stopped_run() -> Place {
    let place = Place::new();
    place.table("table.csv", 120, 3);
    place.line(TRAIN).good();
    place.table("other.csv", 40, 3);
    place
}

#[test]
fn damaged_run_folders_are_answered() {
    const TIMES: usize = 14;
    let (place, mut chance) = (stopped_run(), Chance::new());
    let checkpoints = place.names("run/checkpoints").into_iter().map(|name| format!("checkpoints/{name}"));
    let files: Vec<String> = ["config.toml", "manifest.json", "metrics.csv", "model.safetensors"]
        .map(String::from)
        .into_iter()
        .chain(checkpoints)
        .collect();
    for time in 0..TIMES {
        let file = &files[time % files.len()];
        let _ = std::fs::remove_dir_all(place.path("hurt"));
        copy(&place.path("run"), &place.path("hurt"));
        let name = format!("hurt/{file}");
        let mut bytes = place.read(&name);
        chance.damage(&mut bytes);
        place.write(&name, &bytes);
        if chance.below(2) == 0 && file != "model.safetensors" {
            // As if it had been stopped before its end.
            std::fs::remove_file(place.path("hurt/model.safetensors")).unwrap();
        }
        for line in
            ["train --resume hurt --threads 1", "sample hurt -n 3 --device cpu", "log-prob hurt other.csv --device cpu"]
        {
            let done = place.line(line);
            assert_ended(&format!("{line}, {file}, time {time}"), &done);
        }
    }
}

/// Runs a line by a shell, after something of the shell.
#[cfg(unix)]
fn after(place: &Place, limit: &str, line: &str) -> Done {
    let program = place.command::<&str>(&[]).get_program().to_string_lossy().into_owned();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{limit}; exec {program} {line}")]).current_dir(place.path("."));
    command.output().expect("a shell").into()
}

/// Where memory ends, so does the command: with an error, and no file by halves.
#[cfg(target_os = "linux")]
#[test]
fn little_memory_is_an_error() {
    let place = stopped_run();
    // 200,000 rows of three columns.
    let rows: Vec<u8> =
        (0..600_000u32).flat_map(|i| ((u64::from(i) * 7919 % 10_007) as f32 / 1e4).to_le_bytes()).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 3), }}", rows.len() / 12);
    let header = format!("{header:<117}\n");
    place.write("large.npy", [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &rows].concat());
    // In megabytes: what the program takes before it does anything.
    let limited = |megabytes: u32, line: &str| after(&place, &format!("ulimit -v {}", megabytes * 1024), line);
    let least = (8..2000).step_by(4).find(|&limit| limited(limit, "--version").code == Some(0)).expect("a limit");
    let mut short = 0;
    for line in [
        "train large.npy --device cpu --threads 1 --epochs 1 --set train.batches_per_epoch=1 --set model.width=8 --out big \
         --force",
        "log-prob run large.npy --device cpu --threads 2 -o out.npy --force",
        "encode run large.npy --device cpu --threads 1 -o out.npy --force",
        "check run large.npy --device cpu --threads 2",
        "sample run -n 200000 --device cpu --threads 1 -o out.npy --force",
    ] {
        for limit in (least..least + 28).step_by(4) {
            let done = limited(limit, line);
            assert_ended(&format!("{line} with {limit} MB"), &done);
            short += usize::from(done.code == Some(4) && done.stderr.contains("out of memory"));
            let left: Vec<_> = place.names(".").into_iter().filter(|name| name.ends_with(".tmp")).collect();
            assert!(left.is_empty(), "{line} with {limit} MB: {left:?}");
        }
    }
    assert!(short >= 5, "{short} commands had too little memory");
}

/// The largest file that the shell allows: the reason is told, and nothing is left of the file.
#[cfg(target_os = "linux")]
#[test]
fn files_that_may_not_grow_are_named() {
    let place = stopped_run();
    let done = after(&place, "ulimit -f 8", "sample run -n 100000 --device cpu -o out.npy");
    done.fails(1, &["out.npy", "too large"]);
    let names = place.names(".");
    assert!(!names.iter().any(|name| name == "out.npy" || name.ends_with(".tmp")), "{names:?}");
}
