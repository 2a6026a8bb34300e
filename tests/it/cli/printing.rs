//! Names from elsewhere reach terminals and pictures as text, whatever they hold; what is ended leaves nothing behind.

use std::time::{Duration, Instant};

use crate::cli::tool::{Done, Place};

/// A name that would clear a terminal, ring its bell and turn the direction of writing.
const NAME: &str = "a\u{1b}[2J\u{7}\u{202e}";

/// Whether output holds nothing but text.
fn is_text(done: &Done, what: &str) {
    for text in [&done.stdout, &done.stderr] {
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert!(bad.is_none(), "{what}: {bad:?} in {text:?}");
    }
}

#[test]
fn names_do_not_command_terminals() {
    let place = Place::new();
    place.table("plain.csv", 80, 2);
    let (_, rows) = place.text("plain.csv").split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    place.write("t.csv", format!("\"{NAME}\",\"b<&>\"\n{rows}"));
    place.write("bad.csv", format!("\"{NAME}\",b\n1,x\n"));
    let train = "train t.csv --device cpu --epochs 1 --set model.width=4 --set model.blocks=1 --out run";
    let escaped = "a\\u{1b}[2J\\u{7}\\u{202e}";
    for (line, shows) in [
        (train, false),
        ("check run t.csv --device cpu", false),
        ("log-prob run t.csv --device cpu", false),
        ("sample run -n 2 --device cpu", true),
        ("evaluate run --device cpu", false),
        ("log-prob run plain.csv --device cpu", true),
        ("train bad.csv --device cpu", false),
    ] {
        let done = place.line(line);
        is_text(&done, line);
        assert!(!shows || done.stdout.contains(escaped) || done.stderr.contains(escaped), "{line}: {}", done.stderr);
    }
    for args in [
        &["train", "t.csv", "--set", &format!("train.{NAME}=1")][..],
        &["train", "t.csv", "--device", NAME],
        &["train", NAME],
        &["sample", NAME],
    ] {
        let done = place.run(args);
        assert_ne!(done.code, Some(0), "{args:?}");
        is_text(&done, &format!("{args:?}"));
    }
    for name in place.names("run/plots") {
        if name.ends_with(".svg") {
            let text = place.text(format!("run/plots/{name}"));
            assert!(!text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)), "{name}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_sampling_that_is_ended_leaves_nothing_behind() {
    let place = Place::new();
    place.trained();
    for signal in ["-INT", "-TERM"] {
        let mut child = place.spawn("sample run -n 3000000 -o s.csv --device cpu --threads 1");
        let started = Instant::now();
        while !place.names(".").iter().any(|name| name.ends_with(".tmp")) {
            assert!(started.elapsed() < Duration::from_secs(60), "nothing is written");
            assert!(child.try_wait().unwrap().is_none(), "it is over already");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        let names = place.names(".");
        assert!(!names.iter().any(|name| name.ends_with(".tmp") || name == "s.csv"), "{signal}: {names:?}");
    }
}
