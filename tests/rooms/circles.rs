//! No circle among the files of a room: whoever reads one finds what it needs further down, and never the way back.
//!
//! A file with a folder of its own counts as one with all that is in it. What tests use does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rooms whose files must not use each other in a circle.
const ROOMS: [&str; 16] = [
    "bench",
    "config",
    "data",
    "diagnose",
    "engine/cpu",
    "engine/gpu",
    "eval",
    "filter",
    "flow",
    "kernel",
    "measure",
    "paper",
    "plan",
    "report",
    "train",
    "words",
];

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "rs") && !path.to_string_lossy().contains("tests"));
    found.sort();
    found
}

/// The path of a file's module, from the crate's root.
fn module(sources: &Path, file: &Path) -> Vec<String> {
    let path = file.strip_prefix(sources).expect("a source").with_extension("");
    let mut parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// What a file says outside of its tests, without comments.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut lines = Vec::new();
    let mut of_tests = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let is_attribute = line.trim() == "#[cfg(test)]";
        if !of_tests && !is_attribute {
            lines.push(line);
        }
        // The item after the attribute, to its end.
        of_tests = is_attribute || (of_tests && !line.trim_end().ends_with([';', '}']));
    }
    lines.join("\n")
}

/// The paths that a tree of `use` names.
fn paths(tree: &str) -> Vec<String> {
    let Some((head, body)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let body = body.trim_end().strip_suffix('}').unwrap_or(body);
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for letter in body.chars().chain([',']) {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(letter);
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(paths).map(|path| format!("{}{path}", head.trim())).collect()
}

/// All paths that code names: in `use`, and where it stands.
fn named(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let at = ["use crate::", "use super::", "use self::"].iter().filter_map(|word| statement.find(word)).min();
        match at {
            Some(at) => {
                rest.push_str(&statement[..at]);
                found.extend(paths(statement[at + 4..].trim_end_matches(';')));
            }
            None => rest.push_str(statement),
        }
    }
    for word in rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        if word.starts_with("crate::") || word.starts_with("super::") {
            found.push(word.to_owned());
        }
    }
    found
}

/// A path from the crate's root, as a module of this path names it.
fn absolute(module: &[String], path: &str) -> Vec<String> {
    let mut parts = path.split("::").peekable();
    let mut base = module.to_vec();
    match parts.peek() {
        Some(&"crate") => {
            parts.next();
            base.clear();
        }
        _ => {
            while let Some(&step @ ("super" | "self")) = parts.peek() {
                if step == "super" {
                    base.pop();
                }
                parts.next();
            }
        }
    }
    base.into_iter().chain(parts.map(str::to_owned)).collect()
}

/// Which files of a room use which.
fn uses(sources: &Path, room: &str) -> BTreeMap<String, BTreeSet<String>> {
    let depth = room.split('/').count();
    let room: Vec<&str> = room.split('/').collect();
    let inside = |path: &[String]| path.len() > depth && path.iter().zip(&room).all(|(a, b)| a == b);
    let modules: Vec<_> = files(&sources.join(room.join("/"))).iter().map(|f| (module(sources, f), code(f))).collect();
    let nodes: BTreeSet<String> = modules.iter().filter(|(m, _)| inside(m)).map(|(m, _)| m[depth].clone()).collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in modules.iter().filter(|(module, _)| inside(module)) {
        let targets = named(code).into_iter().map(|path| absolute(module, &path));
        let targets =
            targets.filter(|path| inside(path) && nodes.contains(&path[depth])).map(|path| path[depth].clone());
        graph.entry(module[depth].clone()).or_default().extend(targets.filter(|target| *target != module[depth]));
    }
    graph
}

/// A circle, if there is one.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        node: &'a str,
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = way.iter().position(|&n| n == node) {
            return Some(way[at..].iter().chain([&node]).map(|n| (*n).to_owned()).collect());
        }
        if !done.insert(node) {
            return None;
        }
        way.push(node);
        let found = graph.get(node).into_iter().flatten().find_map(|next| walk(next, graph, way, done));
        way.pop();
        found
    }
    graph.keys().find_map(|node| walk(node, graph, &mut Vec::new(), &mut BTreeSet::new()))
}

#[test]
fn no_room_has_a_circle() {
    let sources = super::common::fixture::folder().join("../../src").canonicalize().expect("the sources");
    let mut edges = 0;
    for room in ROOMS {
        let graph = uses(&sources, room);
        edges += graph.values().map(BTreeSet::len).sum::<usize>();
        if let Some(way) = circle(&graph) {
            panic!("the files of src/{room} use each other in a circle: {}", way.join(" -> "));
        }
    }
    // That the sources were really read.
    assert!(edges > 80, "{edges}");
}

#[test]
fn circles_are_found() {
    let graph = |edges: &[(&str, &[&str])]| {
        let set = |to: &[&str]| to.iter().map(|&t| t.to_owned()).collect();
        edges.iter().map(|&(from, to)| (from.to_owned(), set(to))).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(circle(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    let found = circle(&graph(&[("a", &["b"]), ("b", &["c", "d"]), ("c", &[]), ("d", &["b"])]));
    assert_eq!(found.unwrap(), ["b", "d", "b"]);
    let code = "pub(crate) use super::{x::{self, Y}, z};\nfn f() { crate::a::b::c(); }\nuse std::fs;";
    assert_eq!(named(code), ["super::x::self", "super::x::Y", "super::z", "crate::a::b::c"]);
    assert_eq!(absolute(&["a".into(), "b".into()], "super::c::D"), ["a", "c", "D"]);
}
