//! Whether the model can be trusted: what a reader sees first.

use crate::counted::{are, counted};
use crate::diagnose::{against, headline};
use crate::report::html::{Html, Mood};
use crate::train::folder::manifest_of;

use super::facts::{Facts, State};
use super::training::still_falling;

/// Tests whose words are in the box; the others are named.
const SHOWN: usize = 4;

pub(super) fn write(facts: &Facts, html: &mut Html) {
    let (mood, sentence, mut beside) = match of_state(facts) {
        Some((mood, sentence, beside)) => (mood, sentence, vec![beside]),
        None => of_diagnosis(facts),
    };
    let density = density(facts);
    let (mood, sentence) = match (density.is_empty(), mood) {
        (true, _) | (false, Mood::Bad) => (mood, sentence),
        (false, _) => {
            beside.insert(0, sentence);
            (Mood::Bad, "Densities or samples of this model are wrong in places.".into())
        }
    };
    beside.extend(density);
    if facts.state == State::Finished {
        beside.extend(worse_than_gaussian(facts));
        beside.extend(still_falling(facts));
    }
    let of_data = facts.profile.as_ref().map_or(0, |profile| profile.findings.len());
    let of_training = facts.manifest.warnings.len();
    let all = [(of_data, "finding", "about the data"), (of_training, "warning", "of the training")];
    let told = all.into_iter().filter(|(count, ..)| *count > 0);
    let told: Vec<String> = told.map(|(count, noun, whose)| format!("{} {whose}", counted(count, noun))).collect();
    if !told.is_empty() {
        beside.push(format!("Below: {}.", told.join(" and ")));
    }
    html.verdict(mood, &sentence, &beside);
}

/// The median row may be so many nats below a Gaussian before it is spoken of.
const WORSE: f64 = 0.3;

/// That the model is worse than a Gaussian, if it is.
fn worse_than_gaussian(facts: &Facts) -> Option<String> {
    let gaussian = facts.manifest.density.as_ref()?.gaussian.as_ref()?;
    (gaussian.median < -WORSE).then(|| {
        format!(
            "The median of the held-out rows is {:.2} nats less likely than by a Gaussian that was fitted to the training rows: \
             the training was too short or its rate too low, or the model has too few parameters.",
            -gaussian.median
        )
    })
}

/// What densities of held-out rows and samples warn of.
pub(super) fn density(facts: &Facts) -> Vec<String> {
    let density = facts.manifest.density.as_ref();
    density
        .map(|density| {
            density.of_not_finite().into_iter().chain(density.warnings()).map(|text| sentence(&text)).collect()
        })
        .unwrap_or_default()
}

/// What there is to say of a run that is not simply finished.
fn of_state(facts: &Facts) -> Option<(Mood, String, String)> {
    let (done, all) = (facts.trained_epochs(), counted(facts.all_epochs(), "epoch"));
    let so_far = match facts.has_model {
        true => "The model in the folder is that of an earlier end.",
        false => "There is no model yet.",
    };
    let go_on = facts.command("`hintflow train --resume RUN` goes on.");
    Some(match facts.state {
        State::Finished => return None,
        State::Training => (
            Mood::Open,
            format!("The training is not over: {done} of {all} {} done. {so_far}", are(done)),
            facts.command("`hintflow report RUN` tells more later."),
        ),
        State::Stopped => {
            (Mood::Open, format!("The training was stopped after {done} of {all}. {so_far}"), go_on)
        }
        State::Diverged => (
            Mood::Bad,
            format!("The training diverged after {done} of {all}: its loss became no number."),
            "Try a lower `train.lr`, and look at the data below: far values and columns without variation are the usual reasons."
                .into(),
        ),
        State::Failed => (Mood::Bad, format!("The training ended with an error after {done} of {all}. {so_far}"), go_on),
        State::Unknown => (
            Mood::Open,
            match facts.is_damaged(&manifest_of(&facts.run)) {
                true => format!("The manifest is damaged, so that nothing tells how the training ended. {so_far}"),
                false => format!("There is no manifest that tells how the training ended. {so_far}"),
            },
            go_on,
        ),
    })
}

fn of_diagnosis(facts: &Facts) -> (Mood, String, Vec<String>) {
    let Some(diagnosed) = &facts.diagnostics else {
        let how = match facts.manifest.data.test_rows {
            0 => "`hintflow diagnose RUN TABLE` tests it on rows that it was not trained on.",
            _ => "`hintflow diagnose RUN` tests it on the rows that were held out, and writes what it finds here.",
        };
        return (Mood::Open, "Whether this model can be trusted has not been tested.".into(), vec![facts.command(how)]);
    };
    if !facts.has_model {
        let how = "Take a checkpoint of the run in its place, or restore it from a copy.".into();
        return (Mood::Open, "The model that was tested is no longer there.".into(), vec![how]);
    }
    if diagnosed.is_of_another {
        let how = facts.command("`hintflow diagnose RUN` tests the model that is there now.");
        return (Mood::Open, "The model is another one than that which was tested.".into(), vec![how]);
    }
    let found = &diagnosed.found;
    let rejected = found.diagnosis.rejected(found.level);
    if rejected.is_empty() {
        return (Mood::Good, sentence(&found.verdict), found.notes());
    }
    let speak = against(rejected.len(), found.diagnosis.tests.len());
    let speak = sentence(&match rejected.len() {
        1 => speak,
        _ => format!("{speak}; one fault may be behind several"),
    });
    let fault = headline(&rejected).map(|fault| sentence(&fault));
    let (words, mut beside) = match (found.judges_by_other_rows(), fault) {
        // It may explain all of the rest.
        (true, fault) => (
            "These rows are not like those that the model was trained on.".into(),
            fault.into_iter().chain([speak]).collect(),
        ),
        (false, Some(fault)) => (fault, vec![speak]),
        (false, None) => (speak, Vec::new()),
    };
    beside.extend(found.notes());
    beside.extend(rejected.iter().take(SHOWN).map(|test| sentence(&format!("{}: {}", test.name, test.says))));
    let others: Vec<&str> = rejected.iter().skip(SHOWN).map(|test| test.name.as_str()).collect();
    if !others.is_empty() {
        beside.push(format!("Also: {}.", others.join(", ")));
    }
    (Mood::Bad, words, beside)
}

/// Words as a sentence.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let text = first + letters.as_str();
    if text.ends_with(['.', ':', '!', '?']) { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn words_become_sentences() {
        assert_eq!(["", "ä b", "It is."].map(sentence), [".", "Ä b.", "It is."]);
    }
}
