//! Settings, and how to get the same run again.

use crate::report::html::{Cell, Html, Row};
use crate::train::folder;

use super::facts::{Facts, quoted};

pub(super) fn write(facts: &Facts, html: &mut Html) {
    html.part("Settings");
    let differences = match &facts.config {
        Ok(config) => config.beside_defaults(folder::known_rows(&facts.run)).map_err(|e| e.to_string()),
        Err(error) => Err(error.clone()),
    };
    match differences {
        Ok(differences) if differences.is_empty() => {
            html.paragraph("All are the defaults for such data and such a model.")
        }
        Ok(differences) => {
            html.paragraph("These are not the defaults for such data and such a model:");
            let text = |value: Option<String>| Cell::Text(value.unwrap_or_else(|| "not set".into()));
            let row = |d: crate::config::Difference| Row {
                cells: vec![Cell::Text(d.key), text(d.value), text(d.default)],
                is_bad: false,
            };
            html.table(&["setting", "value", "default"], &differences.into_iter().map(row).collect::<Vec<_>>());
        }
        Err(error) => html.paragraph(&format!("They cannot be understood: {error}")),
    }
    let mut inner = Html::default();
    inner.code(&facts.config_text, false);
    html.details("All settings (config.toml)", inner);
}

/// How to get the same run again.
pub(super) fn again(facts: &Facts, html: &mut Html) {
    let manifest = &facts.manifest;
    html.part("To get the same again");
    if !manifest.command.is_empty() {
        html.paragraph("The command that was run last:");
        let words: Vec<String> = manifest.command.iter().map(|word| quoted(word)).collect();
        html.code(&words.join(" "), true);
    }
    html.paragraph("The same training with all of its settings, into another folder:");
    html.code(&facts.command("hintflow train --config RUN/config.toml --out ANOTHER"), true);
    let files = facts.files();
    let state = |is_there: bool| if is_there { "" } else { " (no longer there)" };
    let files: Vec<String> = files.iter().map(|(path, there)| format!("{}{}", path.display(), state(*there))).collect();
    let mut all = Vec::new();
    if !manifest.version.is_empty() {
        all.extend([("Version", format!("hintflow {}", manifest.version)), ("Seed", manifest.seed.to_string())]);
    }
    if !files.is_empty() {
        all.push(("Files", files.join(", ")));
    }
    if !manifest.data.fingerprint.is_empty() {
        all.push(("Rows, SHA-256", manifest.data.fingerprint.clone()));
    }
    let device = &manifest.device;
    if !device.name.is_empty() {
        all.push(("Device", format!("{} ({})", device.name, device.backend)));
    }
    html.facts(&all);
    html.paragraph(
        "On the same device the result is the same to the last bit; on another one it differs in the last digits.",
    );
}
