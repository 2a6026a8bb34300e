//! The tests of a diagnosis, each with what it found, and pictures of them.

use crate::counted::{self, are, counted};
use crate::diagnose::likeness::Likeness;
use crate::diagnose::{Diagnostics, Kind, Test, p_value_text};
use crate::plan;
use crate::report::html::{Cell, Html, Row};
use crate::report::{beside, grouped, short};
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
            "A line that leaves the grey band is unlikely for a right model; each panel has a scale of its own. Of a column: all \
             above zero, truths lie below their posteriors; all below, above them; first above and then below, posteriors are too \
             narrow; first below and then above, too wide. TARP is read like a column. Of expected coverage: below zero, \
             posteriors are too narrow; above, too wide.",
        )),
    },
    Part {
        title: "Latent vectors of these rows",
        holds: "The model turns a row into latent columns: noise, from which it can make the row again. Each is standard normal, and \
                the squared norm chi-squared. A latent column belongs to no single column of the table.",
        kinds: &[Kind::Latent, Kind::Norm],
        picture: Some((
            picture::LATENTS,
            "A line that leaves the grey band is unlikely for a right model; each panel has a scale of its own. Of a column, first \
             above and then below: rows lie further out than the model has it; first below and then above: not as far. Of the \
             norm, below: further out.",
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
         regards that there {} {} (Holm), and below {} it speaks against the model. With many rows faults are found that are too \
         small to matter: what was found says how large they are.",
        grouped(found.rows as u64),
        found.rows_of,
        grouped(found.samples as u64),
        counted::of(&found.samples, "sample"),
        found.seed,
        are(found.diagnosis.tests.len()),
        counted(found.diagnosis.tests.len(), "test"),
        found.level
    ));
    likeness(found, html);
    for part in &PARTS {
        let tests: Vec<&Test> = found.diagnosis.tests.iter().filter(|test| part.kinds.contains(&test.kind)).collect();
        if tests.is_empty() {
            continue;
        }
        html.smaller_part(part.title);
        html.paragraph(part.holds);
        let rows: Vec<Row> = tests.iter().map(|test| row(test, found.level)).collect();
        html.stacking_table(&["test", "found", "p-value", "adjusted"], &rows);
        if let Some((name, words)) = part.picture
            && let Some(svg) = facts.diagnosis_plot(name)
        {
            figure(html, &svg, name, words);
        }
    }
}

/// Columns that the table of both kinds of rows has; `diagnostics.json` has all.
const COMPARED: usize = 60;

/// The rows that judge beside those of the training.
fn likeness(found: &Diagnostics, html: &mut Html) {
    if found.columns.is_empty() {
        return;
    }
    let row = |column: &Likeness| {
        let condition = if column.is_condition { " (condition)" } else { "" };
        let [(mean, deviation), (mean_of_training, deviation_of_training)] =
            [column.judged, column.trained].map(|[mean, deviation]| (beside(mean, deviation), short(deviation)));
        let cells = vec![
            Cell::Text(format!("{}{condition}", column.column)),
            Cell::Number(mean),
            Cell::Number(mean_of_training),
            Cell::Number(deviation),
            Cell::Number(deviation_of_training),
        ];
        Row { cells, is_bad: column.differs }
    };
    let head = ["column", "mean", "mean in the training", "deviation", "deviation in the training"];
    let (different, alike): (Vec<&Likeness>, Vec<&Likeness>) = found.columns.iter().partition(|column| column.differs);
    let shown: Vec<Row> = different.iter().chain(&alike).take(COMPARED).map(|column| row(column)).collect();
    if different.is_empty() {
        let mut inner = Html::default();
        inner.stacking_table(&head, &shown);
        html.details("These rows are like those of the training: means and deviations", inner);
    } else {
        html.smaller_part("These rows are not like those of the training");
        html.paragraph("Red columns are distributed differently, by more than chance (told by quantiles).");
        html.stacking_table(&head, &shown);
    }
}

fn row(test: &Test, level: f64) -> Row {
    let is_bad = test.adjusted_p_value < level;
    let cells = vec![
        Cell::Text(test.name.clone()),
        Cell::Text(if is_bad { format!("rejected: {}", test.says) } else { test.says.clone() }),
        Cell::Number(p_value_text(test.p_value)),
        Cell::Number(p_value_text(test.adjusted_p_value)),
    ];
    Row { cells, is_bad }
}
