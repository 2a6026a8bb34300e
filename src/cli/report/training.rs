//! What was trained on what, how it went, and what the model draws.

use crate::counted;
use crate::plan::{Depth, Kind, Transform};
use crate::report::html::Html;
use crate::report::{grouped, short};
use crate::train::folder::picture;

use super::facts::Facts;
use super::verdict::sentence;

/// Names of columns that are written out.
const NAMED: usize = 12;

pub(super) fn write(facts: &Facts, html: &mut Html) {
    let manifest = &facts.manifest;
    let mut all: Vec<(&str, String)> = Vec::new();
    if let Some(kind) = facts.kind() {
        let what = match kind {
            Kind::Flow => "`flow`: the density of its columns",
            Kind::Cinn => "`cinn`: the density of its columns given the conditions",
            Kind::Hint => "`hint`: the joint density of conditions and columns, and the posterior of the columns",
            Kind::Inn => "`inn`: samples of its columns given the conditions, without a density",
        };
        all.push(("Model", what.into()));
    }
    if let Some(spec) = &manifest.model {
        all.push(("Columns", names(facts, spec.dim, false)));
        if spec.cond_dim > 0 {
            all.push(("Conditions", names(facts, spec.cond_dim, true)));
        }
        let depth = match spec.depth {
            Depth::Full => "full recursion".to_owned(),
            Depth::Levels(0) => "no recursion".into(),
            Depth::Levels(n) => format!("recursion depth {n}"),
        };
        let coupling = match spec.coupling {
            Transform::Affine => "affine couplings",
            Transform::Spline(_) => "spline couplings",
        };
        all.push((
            "Size",
            format!(
                "{} {}: {} of width {}, {depth}, {coupling}",
                grouped(manifest.parameters),
                counted::of(&manifest.parameters, "parameter"),
                counted::counted(spec.blocks, "block"),
                spec.width
            ),
        ));
    }
    if !manifest.data.name.is_empty() {
        all.push((
            "Data",
            format!(
                "{}: {} {} to train on, {} held out",
                manifest.data.name,
                grouped(manifest.data.train_rows as u64),
                counted::of(&manifest.data.train_rows, "row"),
                grouped(manifest.data.test_rows as u64)
            ),
        ));
    }
    let kept = manifest.kept_epoch.map(|epoch| format!("; the model is that of epoch {epoch}")).unwrap_or_default();
    all.push(("Epochs", format!("{} of {}{kept}", facts.trained_epochs(), facts.all_epochs())));
    if manifest.seconds > 0.0 {
        all.push(("Time", format!("{} on {}", time(manifest.seconds), manifest.device.name)));
    } else if !manifest.device.name.is_empty() {
        all.push(("Device", manifest.device.name.clone()));
    }
    if !manifest.started.is_empty() {
        let day = |time: &str| time.replace('T', " ").replace('Z', " UTC");
        let ended = manifest.ended.as_deref().map(|time| format!(" to {}", day(time))).unwrap_or_default();
        all.push(("When", format!("{}{ended}", day(&manifest.started))));
    }
    if let Some(middle) = manifest.density.as_ref().and_then(|density| density.middle) {
        all.push((
            "Held-out rows",
            format!(
                "log-density {} in the mean, {} in the median (nats per row)",
                short(middle.mean),
                short(middle.median)
            ),
        ));
    }
    if let Some(ll) = manifest.ll.filter(|ll| ll.is_finite()) {
        all.push((
            "LL of held-out rows",
            format!(
                "{} nats per column: the log-likelihood as the paper has it, of standardised columns{} and without the constant of \
                 the normal distribution",
                short(ll),
                if facts.kind() == Some(Kind::Hint) { " given the conditions" } else { "" }
            ),
        ));
    }
    html.part("What was trained");
    html.facts(&all);
    for note in &manifest.notes {
        html.paragraph(&sentence(note));
    }
}

/// Seconds in units for people.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, _) if seconds < 10.0 => format!("{seconds:.1} s"),
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

fn names(facts: &Facts, count: u32, conditions: bool) -> String {
    let columns = facts.profile.as_ref().map(|profile| &profile.columns[..]).unwrap_or_default();
    let of_lane = columns.iter().filter(|column| column.is_condition == conditions);
    let mut names: Vec<&str> = of_lane.map(|column| column.name.as_str()).take(NAMED).collect();
    if names.is_empty() {
        return count.to_string();
    }
    if count as usize > NAMED {
        names.push("...");
    }
    format!("{count}: {}", names.join(", "))
}

/// What the training warned of; what the densities at its end warned of stands in the verdict.
pub(super) fn warnings(facts: &Facts, html: &mut Html) {
    let all: Vec<String> = facts.manifest.warnings.iter().map(|text| sentence(text)).collect();
    if !all.is_empty() {
        html.part("Warnings of the training");
        html.list(&all);
    }
}

/// That the held-out rows were still scored better and better when the training ended, if they were.
pub(super) fn still_falling(facts: &Facts) -> Option<String> {
    /// The least fall worth a word, in nats per column, and the share of the epochs in which it is looked for.
    const FALL: f64 = 0.05;
    const LAST: f64 = 0.2;
    let losses: Vec<f64> = facts.epochs.iter().filter_map(|report| report.validation_loss).collect();
    let spec = facts.manifest.model.as_ref()?;
    // An `inn` has another loss.
    if !spec.kind.has_density() || facts.trained_epochs() < facts.all_epochs() {
        return None;
    }
    let (before, last) = match losses[..] {
        [] => return None,
        [_] => return Some("Only one epoch was trained: `train.epochs` says how many.".into()),
        [.., last] => (losses[((1.0 - LAST) * (losses.len() - 1) as f64) as usize], last),
    };
    let fall = before - last;
    (fall > FALL * f64::from(spec.latent_dim())).then(|| {
        format!(
            "The loss of the held-out rows fell by {} nats in the last fifth of the epochs: more of them (`train.epochs`) may \
             give a better model.",
            short(fall)
        )
    })
}

/// Losses.
pub(super) fn course(facts: &Facts, html: &mut Html) {
    html.part("The course of the training");
    let Some(svg) = facts.plot(picture::LOSS) else {
        html.paragraph("No epoch has ended yet, or its picture is missing (plots/loss.svg).");
        return;
    };
    let kept = match facts.manifest.kept_epoch {
        Some(epoch) if epoch < facts.trained_epochs() => format!(
            " The model that was kept is that of epoch {epoch}, {}; what came after is no part of it.",
            why_kept(facts, epoch)
        ),
        Some(epoch) => format!(" The model is that of epoch {epoch}, the last."),
        None => String::new(),
    };
    let loss = match facts.kind() {
        Some(Kind::Inn) => "The loss adds squared errors and discrepancies.",
        Some(Kind::Hint) => {
            "The loss is minus the log-density of conditions and columns together, standardised and without constants: nats per \
             row, the less the better."
        }
        _ => {
            "The loss is minus the log-density of standardised columns, without constants: nats per row, the less the better."
        }
    };
    let caption = format!(
        "Mean loss of the training rows and of the held-out ones (test) after each epoch, and the learning rate. {loss} A test \
         curve that rises while that of the training falls is overfitting.{kept}"
    );
    figure(html, &svg, picture::LOSS, &caption);
}

/// Why the model of an epoch that is not the last was kept.
fn why_kept(facts: &Facts, epoch: u64) -> &'static str {
    let losses = || facts.epochs.iter().filter_map(|report| Some((report.epoch, report.validation_loss?)));
    let own = losses().find(|&(of, _)| of == epoch).map(|(_, loss)| loss);
    match own.is_some_and(|own| losses().any(|(_, loss)| loss < own)) {
        true => "as later ones, of another cycle of the learning rate, were not clearly better",
        false => "which scored the held-out rows best",
    }
}

/// Samples beside data.
pub(super) fn samples(facts: &Facts, html: &mut Html) {
    let pictures = [
        (picture::OUTLINES, "Curves of samples, and those of the data; red: the shapes that these are of."),
        (picture::POSTERIOR, "Samples for one observation, and the data whose observations come nearest to it."),
        (
            picture::MARGINALS,
            "The distribution of each column, of data and samples: the lines should lie on each other.",
        ),
        (picture::PAIRS, "Pairs of columns: clouds of data and samples should cover each other, edges and gaps too."),
        (
            picture::CORRELATION,
            "Correlations of the columns, of data and samples, and their difference, which has a scale of its own.",
        ),
    ];
    let there: Vec<_> =
        pictures.into_iter().filter_map(|(name, words)| Some((name, facts.plot(name)?, words))).collect();
    html.part("Samples beside data");
    if there.is_empty() {
        html.paragraph("There are none: they are drawn when a training is over.");
    }
    if let Some(density) = &facts.manifest.density {
        html.list(&density.details().iter().map(|text| sentence(text)).collect::<Vec<_>>());
    }
    for (name, svg, words) in there {
        figure(html, &svg, name, words);
    }
}

/// A picture, or that its file cannot be used.
pub(super) fn figure(html: &mut Html, svg: &str, name: &str, caption: &str) {
    if !html.figure(svg, caption) {
        html.paragraph(&format!("The picture `{name}.svg` is damaged, and left out."));
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_their_units() {
        assert_eq!([1.23, 42.4, 61.0, 7290.0].map(time), ["1.2 s", "42 s", "1 min 1 s", "2 h 1 min"]);
    }
}
