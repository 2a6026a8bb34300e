//! The report of a run: one page that says what there is, whatever is missing, and that browsers show as it is meant.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cli::tool::Place;

const SMALL: &str = "--device cpu --epochs 3 --set model.width=8 --set model.blocks=2";

fn report(place: &Place, run: &str) -> String {
    place.text(format!("{run}/report.html"))
}

/// Fails unless a page holds all of these words in this order.
#[track_caller]
fn says(page: &str, words: &[&str]) {
    let mut rest = page;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("no `{word}`, or not in this order"));
        rest = &rest[at + word.len()..];
    }
}

/// A run with a posterior, and its diagnosis.
fn diagnosed(place: &Place) {
    place.table("table.csv", 400, 3);
    place.line(&format!("train table.csv --given c --set model.kind=hint {SMALL} --out run")).good();
    place.line("diagnose run --samples 50 --device cpu").good();
}

#[test]
fn a_training_ends_with_a_report_that_needs_nothing_else() {
    let place = Place::new();
    place.table("table.csv", 400, 3);
    let done = place.line(&format!("train table.csv {SMALL} --out run")).good();
    assert!(done.stderr.contains("report: run/report.html"), "{}", done.stderr);
    let page = report(&place, "run");
    says(
        &page,
        &[
            "<!DOCTYPE html>",
            "<h1>Density of table</h1>",
            "class=\"verdict open\"",
            "has not been tested",
            "<code>hintflow diagnose run</code>",
            "What was trained",
            "3: a, b, c",
            "360 rows to train on, 40 held out",
            "3 of 3",
            "The data",
            "Nothing is conspicuous in their numbers",
            "The course of the training",
            "aria-label=\"Mean loss",
            "Samples beside data",
            "aria-label=\"Pairs of columns",
            "Settings",
            "model.width",
            "data-name=\"value\">8</td><td class=\"text\" data-name=\"default\">128</td>",
            "All settings (config.toml)",
            "kind = &quot;flow&quot;",
            "To get the same again",
            "train table.csv",
            "Rows, SHA-256",
        ],
    );
    // Nothing is fetched, and nothing runs.
    let is_ours = |url: &str| ["data:image/png;base64,", "data:,"].iter().any(|kind| url.starts_with(kind));
    assert!(page.split("href=\"").skip(1).all(is_ours) && !page.contains("src=\"") && !page.contains("<script"));
    assert!(!page.contains("class=\"verdict bad\"") && !page.contains("Warnings of the training"));
    // What the seed and the number of rows chose is no setting that somebody made.
    assert!(!page.contains("data-name=\"setting\">train.batch</td>"));
    place.line(&format!("train table.csv {SMALL} --out bare --no-report")).good();
    assert!(!place.path("bare/report.html").exists());
}

#[test]
fn a_diagnosis_comes_first_in_the_report() {
    let place = Place::new();
    diagnosed(&place);
    let page = report(&place, "run");
    let found: serde_json::Value = serde_json::from_str(&place.text("run/diagnosis/diagnostics.json")).unwrap();
    let tests = found["tests"].as_array().unwrap();
    for test in tests {
        let says = test["says"].as_str().unwrap().replace('<', "&lt;");
        assert!(page.contains(&says), "{says}");
    }
    says(
        &page,
        &[
            "class=\"verdict",
            "What was trained",
            "Conditions",
            "1: c",
            "Diagnosis",
            "40 held-out rows of run",
            "Where truths lie",
            "calibration of a",
            "aria-label=\"A line that leaves",
            "Latent vectors of these rows",
            "aria-label=\"A line that leaves",
            "given conditions",
            "latent vectors given c",
            "aria-label=\"What belongs to a latent column",
        ],
    );
    // Truths from elsewhere, beside the run: the report stays as it is.
    place.table("other.csv", 300, 3);
    let text = place.text("other.csv").replace(",0.", ",9.");
    place.write("other.csv", text);
    place.line("diagnose run other.csv --samples 50 --device cpu --out apart").good();
    assert_eq!(report(&place, "run"), page);
    place.line("diagnose run other.csv --samples 50 --device cpu --no-report").good();
    assert_eq!(report(&place, "run"), page);
    place.line("report run").good();
    let page = report(&place, "run");
    says(&page, &["class=\"verdict bad\"", "speak against this model", "What was trained", "rejected: "]);
    // A diagnosis is not that of another model.
    place.line(&format!("train table.csv --given c --set model.kind=hint {SMALL} --seed 2 --out second")).good();
    std::fs::copy(place.path("second/model.safetensors"), place.path("run/model.safetensors")).unwrap();
    place.line("report run").good();
    let page = report(&place, "run");
    says(&page, &["class=\"verdict open\"", "another one than that which was tested"]);
    // Nor of another training in its folder.
    place.line(&format!("train table.csv {SMALL} --out run --force")).good();
    assert!(!place.path("run/diagnosis/diagnostics.json").exists());
    says(&report(&place, "run"), &["has not been tested"]);
}

#[test]
fn reports_are_written_elsewhere_and_not_over_other_files() {
    let place = Place::new();
    place.trained();
    let done = place.line("report run").good();
    assert_eq!(done.stdout, "run/report.html\n");
    let done = place.line("report run -o page.html").good();
    assert_eq!(done.stdout, "page.html\n");
    place.line("report run -o page.html").fails(1, &["page.html", "--force"]);
    place.line("report run -o page.html --force").good();
    place.line("report missing").fails(1, &["missing"]);
    place.line("report run/model.safetensors").fails(1, &["run folder"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.line("report empty").fails(1, &["not a run folder"]);
}

#[test]
fn runs_that_are_not_whole_have_reports_that_say_so() {
    let place = Place::new();
    place.trained();
    let whole = place.text("run/manifest.json");
    let with = |status: &str| {
        place.write(
            "run/manifest.json",
            whole.replace("\"status\": \"finished\"", &format!("\"status\": \"{status}\"")),
        );
        place.line("report run").good();
        report(&place, "run")
    };
    let stopped = ["stopped after 2 of 2 epochs", "hintflow train --resume run"];
    says(&with("interrupted"), &stopped);
    // Nothing works on it, whatever the manifest of a killed process says.
    says(&with("running"), &stopped);
    says(&with("diverged"), &["verdict bad", "diverged", "train.lr"]);
    says(&with("failed"), &["verdict bad", "ended with an error"]);
    place.write("run/manifest.json", &whole);
    // The table is gone.
    std::fs::remove_file(place.path("table.csv")).unwrap();
    place.line("report run").good();
    says(&report(&place, "run"), &["table.csv</code> is no longer there", "(no longer there)"]);
    // Files that are damaged, one after the other, and then are not there.
    for name in ["plots/loss.svg", "plots/pairs.svg", "data.json", "metrics.csv", "manifest.json", "model.safetensors"]
    {
        place.write(&format!("run/{name}"), "{<script>alert(1)</script>");
        place.line("report run").good();
        let page = report(&place, "run");
        assert!(page.ends_with("</html>\n") && !page.contains("<script"), "{name}");
        std::fs::remove_file(place.path("run").join(name)).unwrap();
        place.line("report run").good();
    }
    says(&report(&place, "run"), &["no manifest", "There is no model yet", "not written down"]);
    place.write("run/config.toml", "[train]\nlr = \"<b>\"\n");
    place.line("report run").good();
    says(&report(&place, "run"), &["cannot be understood", "lr = &quot;&lt;b&gt;&quot;"]);
}

#[test]
fn damaged_files_are_named_with_what_to_do() {
    let place = Place::new();
    place.trained();
    for (name, words) in [
        ("manifest.json", "restore it from a copy"),
        ("data.json", "the model does not need it"),
        ("metrics.csv", "line 3 is not that of a later epoch"),
        ("config.toml", "cannot be resumed without it"),
    ] {
        let path = format!("run/{name}");
        let whole = place.read(&path);
        let cut = match name {
            "metrics.csv" => {
                let lines: Vec<&str> = std::str::from_utf8(&whole).unwrap().lines().collect();
                format!("{}\n{}\n2,oh", lines[0], lines[1]).into_bytes()
            }
            "config.toml" => [b"[train\xff".as_slice(), &whole].concat(),
            _ => whole[..whole.len() / 2].to_vec(),
        };
        place.write(&path, cut);
        let done = place.line("report run").good();
        for text in [&done.stderr, &report(&place, "run")] {
            let text = text.replace("<code>", "`").replace("</code>", "`");
            says(&text, &[&path, words]);
        }
        // All else is shown.
        says(
            &report(&place, "run"),
            &["Damaged files", "What was trained", "The course", "Samples beside data", "Settings"],
        );
        place.write(&path, whole);
    }
    let done = place.line("report run").good();
    assert!(done.stderr.is_empty() && !report(&place, "run").contains("Damaged"), "{}", done.stderr);
    place.write("run/manifest.json", "{\"status\": 1}");
    place.line("report run").good();
    says(&report(&place, "run"), &["manifest is damaged", "2 of 2", "aria-label=\"Mean loss"]);
}

#[test]
fn names_in_reports_are_text() {
    let place = Place::new();
    place.table("plain.csv", 80, 2);
    let rows = place.text("plain.csv").split_once('\n').unwrap().1.to_owned();
    place.write("t.csv", format!("\"<img src=x onerror=alert(1)>\",\"b\u{1b}[2J\u{202e}\"\n{rows}"));
    place.line(&format!("train t.csv {SMALL} --out run")).good();
    let page = report(&place, "run");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && page.contains("b\\u{1b}[2J\\u{202e}"));
    assert!(!page.contains("<img") && !page.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'));
}

#[test]
fn every_kind_of_run_has_a_report() {
    let place = Place::new();
    place.table("table.csv", 200, 3);
    let tiny = "--device cpu --epochs 1 --set model.budget=3000";
    place.line(&format!("train lens {tiny} --set data.rows=200 --set data.test_rows=20 --out lens")).good();
    says(
        &report(&place, "lens"),
        &["Density of lens", "lens is simulated", "aria-label=\"Curves of samples", "data.rows"],
    );
    let line =
        format!("train lens {tiny} --set data.rows=200 --set data.test_rows=20 --set model.kind=hint --out shapes");
    place.line(&line).good();
    says(&report(&place, "shapes"), &["Posterior of lens (hint)", "aria-label=\"Samples for one observation"]);
    for kind in ["cinn", "inn"] {
        let line = format!("train table.csv --given c --set model.kind={kind} {SMALL} --out {kind}");
        place.line(&line).good();
        says(&report(&place, kind), &[&format!("Posterior of table ({kind})"), "Conditions", "1: c"]);
        place.line(&format!("diagnose {kind} --device cpu --samples 20")).good();
        says(&report(&place, kind), &["Diagnosis", "Where truths lie"]);
    }
}

/// A Chromium, if there is one.
fn chromium() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&paths).flat_map(|folder| names.map(|name| folder.join(name))).find(|path| path.is_file())
}

/// What a browser makes of a page that is so many pixels wide: width of its content, of its window, and what its console
/// says.
fn shown(browser: &PathBuf, place: &Place, page: &str, width: u32) -> (u32, u32, String) {
    // A window of Chromium has a least width, a frame has none. The page itself allows no script that could measure it.
    let frame = format!(
        "<iframe id=f src=\"{page}\" style=\"width:{width}px;height:900px;border:0\"></iframe><script>\
         f.onload = () => {{ const page = f.contentDocument.documentElement; \
         document.body.append(`widths ${{page.scrollWidth}} ${{page.clientWidth}} end`); }}</script>"
    );
    place.write("frame.html", frame);
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .args(["--disable-web-security", "--allow-file-access-from-files", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", place.path("browser").display()))
        .arg(format!("file://{}", place.path("frame.html").display()))
        .stdin(Stdio::null())
        .output()
        .expect("Chromium runs");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let widths = dom.rsplit("widths ").next().and_then(|rest| rest.split(" end").next()).unwrap_or_default();
    let widths: Vec<u32> = widths.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [content, window] = widths[..] else { panic!("{page} was not shown: {log}") };
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    (content, window, console.join("\n"))
}

/// Neither a phone nor a desktop scrolls the page sideways, and the console is silent.
#[test]
fn browsers_show_reports_on_phones_and_desktops() {
    let Some(browser) = chromium() else {
        eprintln!("SKIPPED: there is no Chromium; Debian has it in `chromium`");
        return;
    };
    let place = Place::new();
    diagnosed(&place);
    // That a fault would be seen.
    place.write(
        "wide.html",
        "<!DOCTYPE html><body><div style=\"width:2000px\">x</div><script>console.error('told')</script>",
    );
    let (content, window, console) = shown(&browser, &place, "wide.html", 390);
    assert!(content >= 2000 && window == 390 && console.contains("told"), "{content} {window} {console}");
    for width in [390, 1280] {
        let (content, window, console) = shown(&browser, &place, "run/report.html", width);
        assert_eq!((content, window, console.as_str()), (width, width, ""));
    }
}
