//! The tests of a diagnosis, each with what it found, and pictures of them.

use crate::counted::{self, are, counted};
use crate::diagnose::{Kind, Test, p_value_text};
use crate::plan;
use crate::report::html::{Cell, Html, Row};
use crate::report::{grouped, short};
use crate::train::folder::picture;

use super::facts::Facts;
use super::training::figure;

/// Tests that belong together.
struct Part {
    title: &'static str,
    /// What holds if the model is right.
    holds: &'static str,
    kinds: &'static [Kind],
    /// Its picture, and how to read it.
    picture: Option<(&'static str, &'static str)>,
}

const PARTS: [Part; 5] = [
    Part {
        title: "Where truths lie in their posteriors",
        holds: "The true value is equally likely to have any rank among samples of its posterior: of each column (simulation-based \
                calibration), by density (expected coverage), and by the distance from random points (TARP).",
        kinds: &[Kind::Calibration, Kind::Coverage, Kind::Tarp],
        picture: Some((
            picture::CALIBRATION,
            "A line that leaves the grey band is unlikely for a right model. Above it, truths lie below their posteriors; below \
             it, above them. First above and then below: posteriors are too narrow. First below and then above: too wide.",
        )),
    },
    Part {
        title: "Latent vectors of these rows",
        holds: "Each latent column is standard normal, and the squared norm chi-squared.",
        kinds: &[Kind::Latent, Kind::Norm],
        picture: Some((
            picture::LATENTS,
            "A line that leaves the grey band is unlikely for a right model. Of a column, first above and then below: rows lie \
             further out than the model has it; first below and then above: not as far. Of the norm, below: further out.",
        )),
    },
    Part {
        title: "Latent vectors in pairs, and given conditions",
        holds: "Latent columns know nothing of each other, nor of the conditions: neither shift nor width depends on these.",
        kinds: &[Kind::Pairs, Kind::Conditions],
        picture: Some((
            picture::LATENT_CORRELATION,
            "What belongs to a latent column (z) should be white but for the diagonal; conditions may well be correlated among \
             each other.",
        )),
    },
    Part {
        title: "Samples and rows told apart",
        holds: "The nearest neighbour of a sample is a sample as often as chance has it (a classifier two-sample test).",
        kinds: &[Kind::TwoSample],
        picture: None,
    },
    Part {
        title: "Predictions of the observation",
        holds: "The observation lies among what is simulated from samples of its posterior. If it does not, no parameters of \
                this model explain it, or the posterior is not where they are.",
        kinds: &[Kind::Predictive],
        picture: Some((
            picture::PREDICTIONS,
            "Lines and the dot mark what was observed. They should lie where the predictions are, in every column and every pair.",
        )),
    },
];

pub(super) fn write(facts: &Facts, html: &mut Html) {
    let Some(diagnosed) = &facts.diagnostics else { return };
    let found = &diagnosed.found;
    let each = if facts.kind() == Some(plan::Kind::Flow) { "" } else { " each" };
    html.part("Diagnosis");
    if diagnosed.is_of_another {
        html.paragraph("This is of another model than the run has now.");
    }
    html.paragraph(&format!(
        "{} {}, {} {}{each}, seed {}. A p-value is the chance of a deviation as large if the model is right; the adjusted one \
         regards that there {} {} (Holm), and below {} it speaks against the model.",
        grouped(found.rows as u64),
        found.rows_of,
        grouped(found.samples as u64),
        counted::of(&found.samples, "sample"),
        found.seed,
        are(found.diagnosis.tests.len()),
        counted(found.diagnosis.tests.len(), "test"),
        found.level
    ));
    for part in &PARTS {
        let tests: Vec<&Test> = found.diagnosis.tests.iter().filter(|test| part.kinds.contains(&test.kind)).collect();
        if tests.is_empty() {
            continue;
        }
        html.smaller_part(part.title);
        html.paragraph(part.holds);
        let rows: Vec<Row> = tests.iter().map(|test| row(test, found.level)).collect();
        html.table(&["test", "statistic", "p-value", "adjusted", "found"], &rows);
        if let Some((name, words)) = part.picture
            && let Some(svg) = facts.diagnosis_plot(name)
        {
            figure(html, &svg, name, words);
        }
    }
}

fn row(test: &Test, level: f64) -> Row {
    let is_bad = test.adjusted_p_value < level;
    let cells = vec![
        Cell::Text(test.name.clone()),
        Cell::Number(short(test.statistic)),
        Cell::Number(p_value_text(test.p_value)),
        Cell::Number(p_value_text(test.adjusted_p_value)),
        Cell::Text(if is_bad { format!("rejected: {}", test.says) } else { test.says.clone() }),
    ];
    Row { cells, is_bad }
}
