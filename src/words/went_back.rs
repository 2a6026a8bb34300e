//! A training that diverged and went back.

use std::fmt;

use crate::train::{Diverged, WentBack};

impl fmt::Display for WentBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen {
            Diverged::InStep(loss, step) => write!(f, "the loss became {loss} at step {step}")?,
            Diverged::InEpoch(loss, epoch) => {
                write!(f, "the loss of the held-out rows became {loss:.4} in epoch {epoch}")?;
            }
        }
        let from = if self.to == 0 { "the beginning".into() } else { format!("the model of epoch {}", self.to) };
        write!(
            f,
            ": went back to {from} and on with {} of the learning rate (retry {} of {}, train.retries)",
            self.retries.factor(),
            self.retries.count,
            self.most
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Retries;

    #[test]
    fn words_say_why_and_where_to() {
        let back = |seen, to| WentBack { seen, to, retries: Retries { count: 2, step: 40 }, most: 3 }.to_string();
        assert_eq!(
            back(Diverged::InStep(f32::NAN, 47), 0),
            "the loss became NaN at step 47: went back to the beginning and on with 0.25 of the learning rate (retry 2 of 3, \
             train.retries)"
        );
        let text = back(Diverged::InEpoch(1e4, 5), 4);
        assert!(text.starts_with("the loss of the held-out rows became 10000.0000 in epoch 5: went back to"), "{text}");
        assert!(text.contains("the model of epoch 4 and on"), "{text}");
    }
}
