//! A warning before a posterior is trusted: are these observations like those of the training?

use hintflow::data::Table;
use hintflow::plan::Kind;
use hintflow::{Flow, Result};

/// Observations rarer than this share of the training rows are warned of.
const RARE: f64 = 0.001;

/// Says how usual the observations are among those that the model was trained on, where the model knows.
pub(super) fn tell(flow: &Flow, observations: &Table) -> Result<()> {
    let (Kind::Hint, Some(evidence)) = (flow.spec().kind, flow.evidence()) else { return Ok(()) };
    let log_prob = flow.log_evidence(observations.values())?;
    let shares: Vec<f64> = log_prob.iter().map(|&l| evidence.share_below(l.into())).collect();
    if let [share] = shares[..] {
        tracing::info!(
            "log p(y) of the observation is {:.4}: {} of those of the training are lower",
            log_prob[0],
            percent(share)
        );
    }
    let rare: Vec<String> =
        shares.iter().enumerate().filter(|(_, share)| **share < RARE).map(|(i, _)| (i + 1).to_string()).collect();
    match (rare.len(), observations.rows) {
        (0, _) => {}
        (_, 1) => tracing::warn!(
            "the observation is unlike those of the training (less than {} of them have so low a log p(y)): do not trust its \
             posterior",
            percent(RARE)
        ),
        (n, rows) => tracing::warn!(
            "{n} of {rows} observations are unlike those of the training (less than {} of them have so low a log p(y)): do not \
             trust their posteriors. Rows {}{}",
            percent(RARE),
            rare[..n.min(10)].join(", "),
            if n > 10 { ", ..." } else { "" }
        ),
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e4).round() / 100.0)
}
