//! The README and the pages of `docs`: commands that are shown run, links and headings that are named exist.
//!
//! A block of commands is run if the comment `<!-- tested -->` stands before it: every line that begins with `hintflow`
//! or `$ hintflow`, in the order of the page, in one folder for each page. The folder holds the files that the pages
//! speak of. Trainings are short and small by settings in the environment, so that the pages need not show them.

use std::path::{Path, PathBuf};

use hintflow::data::Table;

use crate::cli::tool::{Done, Place};
use crate::common::fixture::{self, Fixture};

const TESTED: &str = "<!-- tested -->";
/// What comes before a heading where sources name one.
const MENTION: &str = concat!("docs/model.md", ",");

/// A place in a page, for messages.
struct Line<'a> {
    page: &'a str,
    /// From 1.
    number: usize,
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}", self.page, self.number)
    }
}

fn root() -> PathBuf {
    fixture::folder().join("../..").canonicalize().expect("the folder of the project")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Files below a folder, with one of these endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if path.extension().is_some_and(|ending| endings.iter().any(|e| ending == *e)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Names of the pages, from the project's folder, and their texts.
fn pages() -> Vec<(String, String)> {
    let root = root();
    let mut paths = vec![root.join("README.md")];
    paths.extend(files(&root.join("docs"), &["md"]));
    let name = |path: &Path| path.strip_prefix(&root).expect("a page").display().to_string();
    paths.iter().map(|path| (name(path), text(path))).collect()
}

/// Commands of the tested blocks, with the numbers of their lines.
fn commands(page: &str, text: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if line.trim() != TESTED {
            continue;
        }
        let fence = lines.next().map_or("", |(_, line)| line);
        assert!(["```sh", "```console"].contains(&fence), "{page}, line {number}: no commands follow");
        let mut block = lines.by_ref().take_while(|(_, line)| *line != "```");
        while let Some((number, line)) = block.next() {
            let mut command = line.strip_prefix("$ ").unwrap_or(line).to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                command = format!("{begun} {}", block.next().map_or("", |(_, line)| line));
            }
            let command = command.split(" #").next().unwrap_or_default().trim();
            if command.starts_with("hintflow ") {
                commands.push((number, command.to_owned()));
            } else {
                // Lines of a `console` block without a prompt are what commands print.
                let shown = fence == "```console" && !line.starts_with("$ ");
                assert!(shown || command.is_empty(), "{page}, line {number}: `{line}` is not run");
            }
        }
    }
    commands
}

/// Rows of some columns that depend on each other.
fn rows(count: usize, columns: usize) -> Vec<f32> {
    let value = |i: usize, j: usize| {
        let t = i as f64 / count as f64;
        (17.0 * t * (j + 1) as f64).sin() + 0.3 * ((i * (j + 3) * 7919) % 101) as f64 / 101.0
    };
    (0..count).flat_map(|i| (0..columns).map(move |j| value(i, j) as f32)).collect()
}

/// The files that the commands of a page take.
fn put_files(page: &str, place: &Place) {
    const ROWS: usize = 200;
    let write = |name: &str, columns: &[&str], dim: usize, values: &[f32]| {
        let columns: Vec<String> = columns.iter().copied().map(String::from).collect();
        let table = Table::new(columns, dim, values.to_vec()).expect(name);
        table.write(place.path(name), hintflow::Overwrite::No).expect(name);
    };
    if page == "docs/another-implementation.md" {
        let fixture = Fixture::load("flow_n20_full_input");
        for (name, tensor) in [("x.npy", "in.x"), ("latent.npy", "in.latent")] {
            let values: Vec<f32> = fixture.data(tensor).iter().map(|&v| v as f32).collect();
            write(name, &[], fixture.spec.dim, &values);
        }
        std::fs::create_dir_all(place.path("tests/fixtures")).expect("a folder");
        for name in ["flow_n20_full_input", "flow_n20_spline_reverse"] {
            let name = format!("{name}.model.safetensors");
            std::fs::copy(fixture::folder().join(&name), place.path("tests/fixtures").join(&name)).expect("a copy");
        }
        return;
    }
    write("table.csv", &["a", "b", "c", "d", "rate", "dose"], 6, &rows(ROWS, 6));
    let theta = rows(ROWS, 2);
    let noise = rows(ROWS + 7, 2);
    let x: Vec<f32> = theta.iter().zip(&noise[14..]).map(|(theta, noise)| theta + 0.3 * noise).collect();
    write("parameters.npy", &[], 2, &theta);
    write("observations.npy", &[], 2, &x);
    write("observed.csv", &[], 2, &x[6..8]);
}

fn run(place: &Place, command: &str) -> Done {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let mut process = place.command(&words);
    process.env("HINTFLOW_RUN__DEVICE", "cpu").env("HINTFLOW_TRAIN__EPOCHS", "2");
    // A model that is there has its own.
    if !words.contains(&"--init") {
        process.env("HINTFLOW_MODEL__WIDTH", "8").env("HINTFLOW_MODEL__BLOCKS", "2");
    }
    process.output().expect("hintflow runs").into()
}

/// Runs the commands of a page; returns how many there are.
fn run_page(page: &str, text: &str) -> usize {
    let commands = commands(page, text);
    let place = Place::new();
    put_files(page, &place);
    for (number, command) in &commands {
        let at = Line { page, number: *number };
        assert!(!command.contains(['"', '\'', '$', '|', '>', ';']), "{at}: `{command}` needs a shell");
        let done = run(&place, command);
        assert_eq!(done.code, Some(0), "{at}: `{command}`\n{}", done.stderr);
    }
    commands.len()
}

#[test]
fn commands_of_the_pages_run() {
    let pages = pages();
    let ran: usize = std::thread::scope(|scope| {
        let started: Vec<_> = pages.iter().map(|(page, text)| scope.spawn(|| run_page(page, text))).collect();
        started.into_iter().map(|page| page.join().expect("a page whose commands run")).sum()
    });
    assert!(ran >= 30, "{ran} commands: blocks have lost their marks");
}

/// The headings of a page, without those that are comments in its blocks of commands.
fn headings(text: &str) -> Vec<&str> {
    outside_of_blocks(text)
        .filter_map(|(_, line)| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()))
        .collect()
}

fn outside_of_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !fence && !inside
    })
}

/// What a link calls a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = root();
    let mut links = 0;
    for (page, content) in pages() {
        for (number, line) in outside_of_blocks(&content) {
            let at = Line { page: &page, number };
            for target in line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or_default()) {
                if target.starts_with("http") {
                    continue;
                }
                links += 1;
                let (file, heading) = target.split_once('#').map_or((target, None), |(f, h)| (f, Some(h)));
                let path = match file.is_empty() {
                    true => root.join(&page),
                    false => root.join(&page).parent().expect("a folder").join(file),
                };
                assert!(path.exists(), "{at}: there is no {target}");
                if let Some(heading) = heading {
                    let there = text(&path);
                    let exists = headings(&there).iter().any(|h| anchor(h) == heading);
                    assert!(exists, "{at}: {file} has no heading #{heading}");
                }
            }
        }
    }
    assert!(links >= 30, "{links} links");
}

#[test]
fn headings_that_sources_name_exist() {
    let root = root();
    let model = text(&root.join("docs/model.md"));
    let headings = headings(&model);
    // A longer name of which this is the beginning is another heading.
    let names = |rest: &str, heading: &str| {
        rest.strip_prefix(heading).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
    };
    let mut mentions = 0;
    for folder in ["src", "shaders", "tests", "examples", "benches"] {
        for path in files(&root.join(folder), &["rs", "wgsl", "py", "sh"]) {
            let page = path.strip_prefix(&root).expect("a source").display().to_string();
            for (number, line) in (1..).zip(text(&path).lines()) {
                for rest in line.split(MENTION).skip(1) {
                    mentions += 1;
                    let exists = headings.iter().any(|heading| names(rest.trim_start(), heading));
                    let at = Line { page: &page, number };
                    assert!(exists, "{at}: docs/model.md has no heading at the beginning of `{}`", rest.trim());
                }
            }
        }
    }
    assert!(mentions >= 40, "{mentions} mentions");
}
