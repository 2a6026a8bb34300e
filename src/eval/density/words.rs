//! What there is to tell of densities, in words.

use crate::counted::{are, counted, have};

use super::{ASTRONOMICAL, BELOW, BEYOND, BROKEN, Below, Density, SHARE, Samples};

impl Density {
    /// Count, mean, median and ends in one line.
    pub(crate) fn summary(&self) -> String {
        let rows = match self.not_finite {
            0 => format!("rows {}", self.rows),
            bad => format!("rows {}  finite {}", self.rows, self.rows - bad),
        };
        let Some(middle) = self.middle else { return rows };
        let [mean, median, least, greatest] =
            [middle.mean, middle.median, middle.least, middle.greatest].map(|v| number(v, 6));
        format!("{rows}  mean {mean}  median {median}  min {least}  max {greatest}")
    }

    /// Everything, a line each: what was counted, without a verdict.
    pub(crate) fn in_words(&self) -> Vec<String> {
        let first = format!("{}: log-density: {}", self.of, self.summary());
        std::iter::once(first).chain(self.details()).collect()
    }

    /// What there is to tell beside [`Density::summary`], a line each.
    pub(crate) fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let worst: Vec<_> = self.worst.iter().map(|w| format!("row {} ({})", w.row, number(w.log_prob, 4))).collect();
        if self.rows > 1 {
            lines.push(format!("lowest log-densities: {}", worst.join(", ")));
        }
        if let Some(carried) = self.carried {
            let which = match (carried.rows, carried.lowest) {
                (1, true) => "its lowest row".into(),
                (1, false) => "its highest row".into(),
                (n, true) => format!("its {n} lowest rows"),
                (n, false) => format!("its {n} highest rows"),
            };
            let without = number(carried.without, 4);
            lines.push(format!("the mean is carried by few rows: without {which} it is {without}"));
        }
        lines.extend(self.gaussian.as_ref().filter(|below| below.rows > 0).map(Below::in_words));
        lines.extend(self.samples.as_ref().filter(|samples| samples.drawn > 0).map(Samples::in_words));
        lines
    }

    /// What is wrong, if anything is, and what to do. Rows that are no numbers are told by
    /// [`Density::of_not_finite`].
    pub(crate) fn warnings(&self) -> Vec<String> {
        let remedy = self.remedy();
        let below = self.gaussian.as_ref().and_then(|below| below.warning(&self.of, &remedy));
        let samples = self.samples.as_ref().and_then(|samples| samples.warning(&remedy));
        below.into_iter().chain(samples).collect()
    }

    /// That rows have no number, where some have none.
    pub(crate) fn of_not_finite(&self) -> Option<String> {
        let first = self.worst.first()?;
        (self.not_finite > 0).then(|| {
            format!(
                "{} of {} {} {} a log-density that is no finite number; one is row {}: {}",
                self.not_finite,
                self.rows,
                self.of,
                have(self.not_finite),
                first.row,
                self.remedy()
            )
        })
    }

    /// What to do about a model that is wrong in few places.
    fn remedy(&self) -> String {
        // What a spline does has its bounds: it is the identity beyond its box.
        let bound = if self.is_affine { " a smaller model.max_log_scale," } else { "" };
        format!(
            "do not compute with this model's densities before that is solved; train again with a lower train.lr,{bound} more \
             rows or another --seed, and see that columns with a limit have their bound (columns.NAME.lower) and columns \
             of extreme values a better unit (their logarithm)"
        )
    }
}

impl Below {
    fn in_words(&self) -> String {
        let (side, median) = if self.median < 0.0 { ("below", -self.median) } else { ("above", self.median) };
        format!(
            "{} of {} ({}) {} more than {BELOW} nats below a Gaussian fitted to the training rows; the median row is {} \
             nats {side} that Gaussian",
            self.below,
            counted(self.rows, "row"),
            percent(self.below, self.rows),
            are(self.below),
            number(median, 2)
        )
    }

    fn warning(&self, of: &str, remedy: &str) -> Option<String> {
        let furthest = self.furthest?;
        let low = format!("row {}, {} nats below", furthest.row, number(-furthest.log_prob, 1));
        if self.broken > 0 {
            return Some(format!(
                "the density is broken: {} of {} {of} {} more than {BROKEN} nats below a Gaussian fitted to the training \
                 rows ({low}). Unless these rows are unlike those of the training: {remedy}",
                self.broken,
                self.rows,
                are(self.broken)
            ));
        }
        (self.below as f64 > SHARE * self.rows as f64).then(|| {
            format!(
                "{} of {} {of} ({}) {} more than {BELOW} nats below a Gaussian fitted to the training rows (the worst: {low}), \
                 and chance allows 1 in 22000: the model is wrong there, or has too few rows, epochs or blocks; look at \
                 these rows, and compare with another --seed",
                self.below,
                self.rows,
                percent(self.below, self.rows),
                are(self.below)
            )
        })
    }
}

impl Samples {
    fn in_words(&self) -> String {
        let broken = match self.not_finite {
            0 => String::new(),
            1 => ", 1 is no finite number".into(),
            n => format!(", {n} are no finite numbers"),
        };
        format!(
            "{} of {} {} more than {BEYOND} times as far out as the training rows{broken}; the farthest is {} times as \
             far, in `{}`",
            self.beyond,
            counted(self.drawn, "sample"),
            are(self.beyond),
            number(self.farthest, 2),
            self.name
        )
    }

    fn warning(&self, remedy: &str) -> Option<String> {
        let bad = self.beyond + self.not_finite;
        (bad > 0).then(|| {
            format!(
                "{bad} of {} samples ({}) {}, or more than {BEYOND} times as far out as the training rows (the \
                 farthest {} times as far, in `{}`): means and deviations of samples are worth nothing before such rows \
                 are left out; {}",
                self.drawn,
                percent(bad, self.drawn),
                if bad == 1 { "is no number" } else { "are no numbers" },
                number(self.farthest, 1),
                self.name,
                if self.fails() { remedy } else { "see whether the column has so long a tail" }
            )
        })
    }

    /// Whether samples are where nothing can be.
    pub(crate) fn fails(&self) -> bool {
        // NaN is no place either.
        self.not_finite > 0 || self.farthest > ASTRONOMICAL || self.farthest.is_nan()
    }
}

/// With so many digits after the point, or as a power of ten where it is huge.
fn number(value: f64, digits: usize) -> String {
    if value.is_finite() && value.abs() >= 1e7 { format!("{value:.3e}") } else { format!("{value:.digits$}") }
}

fn percent(part: usize, whole: usize) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    let digits = if percent > 0.0 && percent < 0.1 { 3 } else { 1 };
    format!("{percent:.digits$}%")
}
