//! A table as Markdown for people and as CSV for scripts, the paper's numbers beside ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Row, Table};
use crate::atomic::{Overwrite, write_atomic};
use crate::config::Preset;
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::measure::{Metric, Protocol};
use crate::paper::lab::{Absent, Lab};
use crate::paper::published::{self, Numbers};
use crate::paper::result::Measured;
use crate::paper::settings_in_words;
use crate::report::grouped;

/// A row with what was measured of it.
struct Filled<'a> {
    row: &'a Row,
    results: Result<Vec<Measured>, Absent>,
}

/// Mean and deviation of some runs.
struct Summary {
    mean: f64,
    /// None of a single run.
    deviation: Option<f64>,
    runs: usize,
}

/// Writes `tables/NAME.md` and `.csv`; returns their path without the extension.
pub(in crate::paper) fn write(lab: &Lab<'_>, table: &Table) -> Result<PathBuf> {
    let rows = filled(lab, table)?;
    let folder = lab.request.out.join("tables");
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    let path = folder.join(table.name);
    let numbers = published::table(table.name);
    let text = format!("# {}\n\n{}", table.title, body(lab, table, &rows, &numbers));
    write_atomic(&path.with_extension("md"), Overwrite::Yes, |file| file.write_all(text.as_bytes()))?;
    let csv = csv(table, &rows, &numbers);
    write_atomic(&path.with_extension("csv"), Overwrite::Yes, |file| file.write_all(csv.as_bytes()))?;
    Ok(path)
}

fn filled<'a>(lab: &Lab<'_>, table: &'a Table) -> Result<Vec<Filled<'a>>> {
    let rows: Vec<Filled<'_>> =
        table.rows.iter().map(|row| Ok(Filled { row, results: lab.results(&row.model)? })).collect::<Result<_>>()?;
    // Models are compared on the same rows. Of a training that diverged nothing was measured on any.
    let mut first: BTreeMap<&str, &Measured> = BTreeMap::new();
    for measured in rows.iter().filter_map(|row| row.results.as_ref().ok()).flatten().filter(|m| m.data.is_some()) {
        let set = measured.model.split('-').next().unwrap_or_default();
        let before = first.entry(set).or_insert(measured);
        if before.data != measured.data {
            let [old, new] = [*before, measured].map(|m| format!("{}-s{}", m.model, m.run));
            let what = format!(
                "{old} and {new} were measured on different rows; remove the results of those whose files were the wrong ones"
            );
            return Err(Error::format(lab.request.out.join("results"), what));
        }
    }
    Ok(rows)
}

fn body(lab: &Lab<'_>, table: &Table, rows: &[Filled<'_>], numbers: &Numbers) -> String {
    let several_sets = rows.iter().any(|row| row.row.model.data != rows[0].row.model.data);
    let mut text = String::new();
    let first: &[&str] = if several_sets { &["data", "blocks", "model"] } else { &["blocks", "model"] };
    let mut head: Vec<String> = first.iter().chain(&["parameters"]).map(|s| (*s).to_owned()).collect();
    for metric in table.metrics {
        let arrow = if metric.rises() { "↑" } else { "↓" };
        head.extend([format!("{} {arrow}", metric.name()), "paper".into()]);
    }
    line(&mut text, &head);
    let rule = (0..head.len()).map(|k| if k < first.len() { "---".to_owned() } else { "---:".to_owned() });
    line(&mut text, &rule.collect::<Vec<_>>());
    for Filled { row, results } in rows {
        let mut cells = vec![row.model.blocks.to_string(), row.model.label()];
        if several_sets {
            cells.insert(0, row.model.data.name().to_uppercase());
        }
        cells.push(parameters(results).map_or(String::new(), |p| grouped(p as u64)));
        for (k, &metric) in table.metrics.iter().enumerate() {
            cells.push(match results {
                Ok(all) => ours(all, metric),
                Err(Absent::NoFile(names)) if k == 0 => format!("needs {names}"),
                Err(Absent::Unreadable) if k == 0 => "file cannot be read".into(),
                Err(Absent::NotRun) if k == 0 => "not run".into(),
                Err(_) => "–".into(),
            });
            let paper = numbers.get(&row.key).and_then(|row| row.get(&metric));
            cells.push(paper.map_or(String::new(), |value| {
                let (mean, deviation) = value.parts();
                number(mean, deviation, metric)
            }));
        }
        line(&mut text, &cells);
    }
    text.push('\n');
    text + &notes(lab, table, rows)
}

fn line(text: &mut String, cells: &[String]) {
    text.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn parameters(results: &Result<Vec<Measured>, Absent>) -> Option<usize> {
    results.as_ref().ok().and_then(|all| all.iter().map(|m| m.parameters).find(|p| *p > 0))
}

fn ours(results: &[Measured], metric: Metric) -> String {
    let (diverged, missing) = (diverged(results), missing(results, metric));
    if diverged == results.len() {
        return "diverged".into();
    }
    let shown = summary(results, metric).map_or("no number".into(), |s| number(s.mean, s.deviation, metric));
    let left_out =
        [(diverged, "diverged"), (if missing + diverged < results.len() { missing } else { 0 }, "without a number")];
    let notes: Vec<String> = left_out
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} of {} runs {what}", results.len()))
        .collect();
    if notes.is_empty() { shown } else { format!("{shown} ({})", notes.join(", ")) }
}

/// Runs whose training diverged.
fn diverged(results: &[Measured]) -> usize {
    results.iter().filter(|m| m.scores.is_none()).count()
}

/// Trained runs that have no number of a measure: their samples are no numbers, for example.
fn missing(results: &[Measured], metric: Metric) -> usize {
    results.iter().filter(|m| m.scores.is_some_and(|scores| metric.of(&scores).is_none())).count()
}

fn number(mean: f64, deviation: Option<f64>, metric: Metric) -> String {
    let digits = metric.decimals();
    let deviation = deviation.map_or(String::new(), |d| format!(" ± {d:.digits$}"));
    format!("{mean:.digits$}{deviation}")
}

fn summary(results: &[Measured], metric: Metric) -> Option<Summary> {
    let values: Vec<f64> = results.iter().filter_map(|m| metric.of(m.scores.as_ref()?)).collect();
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    Some(Summary { mean, deviation: (values.len() > 1).then(|| (square / (n - 1.0)).sqrt()), runs: values.len() })
}

/// What a reader needs to know of the numbers, as a list.
fn notes(lab: &Lab<'_>, table: &Table, rows: &[Filled<'_>]) -> String {
    let results = || rows.iter().filter_map(|row| row.results.as_ref().ok()).flatten();
    let mut notes = vec![settings_in_words(lab.request)];
    let runs = || rows.iter().filter_map(|row| row.results.as_ref().ok()).map(Vec::len);
    let ours = match (runs().min(), runs().max()) {
        (_, None | Some(0)) => "nothing was run yet".to_owned(),
        (_, Some(1)) => "one training run".to_owned(),
        (least, Some(most)) if least == Some(most) => format!("mean ± deviation of {most} training runs"),
        (_, Some(most)) => format!("mean ± deviation of up to {most} training runs"),
    };
    notes.push(format!("Ours: {ours}. A column `paper` has the paper's number of the measure to its left."));
    for metric in table.metrics {
        let better = if metric.rises() { "higher" } else { "lower" };
        notes.push(format!("{}: {}; {better} is better.", metric.name(), metric.meaning()));
    }
    if table.metrics.contains(&Metric::Iou) {
        // `eval::fit`.
        let ceiling = match table.rows.first().map(|row| row.model.data) {
            Some(Preset::Cross) => "0.91 and 0.16",
            _ => "0.94 and 0.08",
        };
        notes.push(format!(
            "Contours of few coefficients round the corners of their shapes: rows of the data with the noise of the \
             training have an IoU and an H-dist of about {ceiling}, as a perfect model would have. The paper's H-dist is \
             below that, so it is measured in another way than ours."
        ));
    }
    let mmd = results().find(|m| m.protocol.batches > 0);
    if table.metrics.contains(&Metric::Mmd)
        && rows[0].row.model.is_conditional()
        && let Some(Measured { protocol, .. }) = mmd
    {
        notes.push(format!(
            "MMD is the mean over {} observations, against the {} nearest of {} draws of the prior; the paper takes 1,000, \
             4,000 and 100,000,000.",
            grouped(protocol.batches as u64),
            grouped(protocol.batch_rows as u64),
            grouped(protocol.draws)
        ));
        if *protocol != Protocol::PAPER {
            notes.push(
                "The nearest of so few draws are wider than the posterior, which makes MMD too high: at scale `quick` a HINT \
                 of two blocks that was trained in full has 0.03 instead of 0.02."
                    .into(),
            );
        }
    }
    notes.extend(published::remark(table.name).map(str::to_owned));
    let own_rate = lab.request.set.iter().any(|set| set.starts_with("train.lr"));
    if !own_rate && table.rows.iter().any(|row| row.model.begins_slower()) {
        notes.push(
            "Models of 16 and 32 blocks begin with a learning rate of 0.001 instead of 0.01, as some of the paper's did."
                .into(),
        );
    }
    let own_bound = lab.request.set.iter().any(|set| set.starts_with("model.scale") || set.starts_with("model.slope"));
    if !own_bound && table.rows.iter().any(|row| row.model.is_plain()) {
        notes.push(
            match table.rows[0].model.is_conditional() {
                true => {
                    "Log-scales of the cINN end at 5, as the authors' do, those of HINT at 4; of the authors' HINT those of \
                     the y lane and between the lanes end at 5."
                }
                false => "Log-scales of RealNVP end at 5 and those of recursive models at 4, as the authors' do.",
            }
            .into(),
        );
    }
    for measured in results() {
        let broken = measured.scores.map_or(0, |scores| scores.not_finite);
        if broken > 0 {
            let (model, run) = (&measured.model, measured.run);
            notes.push(format!(
                "{model}, run {run}: {} not finite numbers, and no part of the measures.",
                counted(broken, "sample") + if broken == 1 { " is" } else { " are" }
            ));
        }
    }
    let mut unreadable: Vec<_> = rows.iter().filter_map(|row| lab.why_unreadable(&row.row.model)).collect();
    unreadable.sort_unstable();
    unreadable.dedup();
    notes.extend(unreadable.into_iter().map(str::to_owned));
    let mut made: Vec<_> = results().map(|m| format!("{} on {}", m.date, m.device)).collect();
    made.sort();
    made.dedup();
    if !made.is_empty() {
        notes.push(format!("Measured {}.", made.join("; ")));
    }
    notes.into_iter().map(|note| format!("- {note}\n")).collect()
}

/// One line for each model and measure; `runs` are those in the mean.
fn csv(table: &Table, rows: &[Filled<'_>], numbers: &Numbers) -> String {
    let mut text =
        "table,data,blocks,model,parameters,metric,ours,ours_deviation,runs,diverged,without_number,paper,paper_deviation\n".to_owned();
    let cell = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    for Filled { row, results } in rows {
        for &metric in table.metrics {
            let all = results.as_deref().unwrap_or_default();
            let ours = summary(all, metric);
            let paper = numbers.get(&row.key).and_then(|row| row.get(&metric)).map(|v| v.parts());
            let model = &row.model;
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                table.name,
                model.data.name(),
                model.blocks,
                model.label(),
                parameters(results).map_or(String::new(), |p| p.to_string()),
                metric.key(),
                cell(ours.as_ref().map(|s| s.mean)),
                cell(ours.as_ref().and_then(|s| s.deviation)),
                ours.as_ref().map_or(0, |s| s.runs),
                diverged(all),
                missing(all, metric),
                cell(paper.map(|(mean, _)| mean)),
                cell(paper.and_then(|(_, deviation)| deviation)),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Protocol, Scores};

    /// A run with this IoU, or one that diverged.
    fn run(scores: Option<Scores>) -> Measured {
        Measured {
            model: "lens-rnvp-1".into(),
            run: 1,
            parameters: 7,
            data: None,
            scores,
            protocol: Protocol::QUICK,
            settings: serde_json::Value::Null,
            device: String::new(),
            version: String::new(),
            date: String::new(),
        }
    }

    fn iou(iou: Option<f64>) -> Measured {
        run(Some(Scores { iou, ..Scores::default() }))
    }

    #[test]
    fn means_say_what_they_leave_out() {
        let shown = |runs: &[Measured]| ours(runs, Metric::Iou);
        assert_eq!(shown(&[iou(Some(0.5))]), "0.500");
        // Deviation of 0.4, 0.5 and 0.6: 0.1, with n - 1.
        let three = [iou(Some(0.4)), iou(Some(0.6)), iou(Some(0.5))];
        assert_eq!(shown(&three), "0.500 ± 0.100");
        let with = |more: &[Measured]| shown(&[&three, more].concat());
        assert_eq!(with(&[run(None)]), "0.500 ± 0.100 (1 of 4 runs diverged)");
        assert_eq!(with(&[iou(None)]), "0.500 ± 0.100 (1 of 4 runs without a number)");
        let both = with(&[iou(None), run(None), run(None)]);
        assert_eq!(both, "0.500 ± 0.100 (2 of 6 runs diverged, 1 of 6 runs without a number)");
        assert_eq!(shown(&[run(None)]), "diverged");
        assert_eq!(shown(&[iou(None)]), "no number");
        assert_eq!(shown(&[iou(None), run(None)]), "no number (1 of 2 runs diverged)");
    }
}
