//! A conditional model with its conditions: z = T(x | y), p(x | y) (docs/model.md, Lanes).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::programs::Name;
use super::{Encoded, Flow, add_jacobian, log_density};
use crate::counted::counted;
use crate::engine::{Groups, Job};
use crate::error::{Error, Result};
use crate::plan::Kind;

/// Some observations y and the model that knows x given them, see [`Flow::given`].
///
/// Of a `cinn` that is the model itself, of a `hint` its x lane: the posterior. Rows of x belong to the observations
/// one by one; a single observation stands for any number of rows.
#[derive(Clone)]
pub struct Conditional<'a> {
    pub(super) flow: &'a Flow,
    /// Conditions in the user's units, row-major (rows, C); empty for an unconditional flow.
    user: &'a [f32],
    /// Conditions in the units of the networks.
    inner: Cow<'a, [f32]>,
    /// Number of observations, None if there are no conditions.
    observations: Option<usize>,
    /// Number of the first observation.
    first: u32,
}

impl fmt::Debug for Conditional<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conditional").field("flow", self.flow).field("observations", &self.observations()).finish()
    }
}

impl Flow {
    /// The model given observations y, row-major (B, C), in the user's units; an unconditional flow is given nothing.
    ///
    /// # Errors
    /// [`Error::NotFinite`] naming a value of `y` that is no number,
    /// [`Error::WrongKind`] if the model has no conditions and `y` is not empty, [`Error::Shape`] if `y` has no rows
    /// or its length is not a multiple of C.
    pub fn given<'a>(&'a self, y: &'a [f32]) -> Result<Conditional<'a>> {
        if self.plan.spec.kind == Kind::Flow {
            if y.is_empty() {
                return self.unconditional();
            }
            return Err(Error::WrongKind {
                needed: "a model with conditions (`cinn` or `hint`)",
                found: Kind::Flow.name(),
            });
        }
        let observations = self.whole_rows("y", self.plan.spec.cond_dim, y)?;
        if observations == 0 {
            return Err(Error::Shape { what: "observations".into(), expected: 1, got: 0 });
        }
        Ok(Conditional { flow: self, user: y, inner: self.y.inner(y)?, observations: Some(observations), first: 0 })
    }

    /// An unconditional flow as one that is given nothing.
    pub(super) fn unconditional(&self) -> Result<Conditional<'_>> {
        let spec = &self.plan.spec;
        if spec.kind == Kind::Flow {
            return Ok(Conditional { flow: self, user: &[], inner: Cow::Borrowed(&[]), observations: None, first: 0 });
        }
        let needed = "an unconditional `flow`; of others `Flow::given` takes the conditions first";
        Err(Error::WrongKind { needed, found: spec.kind.name() })
    }

    /// Number of rows of `columns` values, which must be numbers.
    pub(super) fn whole_rows(&self, what: &str, columns: u32, values: &[f32]) -> Result<usize> {
        let n = columns as usize;
        if !values.len().is_multiple_of(n) {
            let what =
                format!("{what} must hold whole rows of {}; values beyond the last whole row", counted(n, "value"));
            return Err(Error::Shape { what, expected: 0, got: values.len() % n });
        }
        if let Some(place) = values.iter().position(|v| !v.is_finite()) {
            let what = format!("row {}, column {} of {what} (from 0)", place / n, place % n);
            return Err(Error::NotFinite { what });
        }
        Ok(values.len() / n)
    }
}

impl Conditional<'_> {
    /// Counts the observations from `first` on, so that samples for a part of a list are those that the whole list has
    /// there. Otherwise they count from 0.
    #[must_use = "the observations are given back"]
    pub fn numbered_from(self, first: u32) -> Self {
        Self { first, ..self }
    }

    /// Number of observations; 0 of an unconditional flow.
    pub fn observations(&self) -> usize {
        self.observations.unwrap_or(0)
    }

    /// z and log-determinant of rows x, row-major (B, N); of a `hint` those of the x lane.
    ///
    /// # Errors
    /// [`Error::Shape`] if the length of `x` is not a multiple of N, or its rows are not as many as the
    /// observations; [`Error::NotFinite`] naming a value that is no number, [`Error::Config`] naming a row outside of
    /// the bounds of a column.
    pub fn encode(&self, x: &[f32]) -> Result<Encoded> {
        self.has_density()?;
        let rows = self.rows("x", self.flow.plan.spec.dim, x)?;
        let y = self.inner_for(rows);
        let lane = self.flow.x.given(&y);
        let inner = lane.inner(x)?;
        let mut encoded = match self.seen_of(rows)? {
            Some(seen) => self.flow.encode_seeing(&seen, &inner, rows)?,
            None => self.flow.encode_inner(&y, &inner, rows)?,
        };
        add_jacobian(&lane, x, self.flow.spec().dim, &mut encoded.log_det);
        Ok(encoded)
    }

    /// Whether it is a model with a density.
    pub(super) fn has_density(&self) -> Result<()> {
        let kind = self.flow.plan.spec.kind;
        if kind.has_density() {
            return Ok(());
        }
        let needed = "a model with a density (`flow`, `cinn` or `hint`); an `inn` only draws samples";
        Err(Error::WrongKind { needed, found: kind.name() })
    }

    /// x of latent rows z, row-major (B, N), of an `inn` (B, L): the inverse of [`Conditional::encode`].
    ///
    /// # Errors
    /// As those of [`Conditional::encode`].
    pub fn decode(&self, z: &[f32]) -> Result<Vec<f32>> {
        let spec = &self.flow.plan.spec;
        let rows = self.rows("z", if spec.kind == Kind::Inn { spec.latent } else { spec.dim }, z)?;
        let y = self.inner_for(rows);
        let inner = match self.seen_of(rows)? {
            Some(seen) => self.flow.decode_seeing(&seen, z, rows)?,
            None => self.flow.decode_inner(&y, z, rows)?,
        };
        Ok(self.flow.x.given(&y).outer(inner))
    }

    /// `log p(x | y)` of rows x in nats, in the user's units (docs/model.md, Densities). Outside of the bounds of a column it
    /// is minus infinity.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::NotFinite`], as those of [`Conditional::encode`].
    pub fn log_prob(&self, x: &[f32]) -> Result<Vec<f32>> {
        self.rows("x", self.flow.plan.spec.dim, x)?;
        let (x, outside) = self.flow.x.moved_inside(x);
        let mut densities: Vec<f32> =
            log_density(&self.encode(&x)?).into_iter().map(|density| density as f32).collect();
        self.settle_far_rows(&x, &mut densities)?;
        outside.into_iter().for_each(|row| densities[row] = f32::NEG_INFINITY);
        Ok(densities)
    }

    /// Rows that are so far out that numbers beyond 32-bit floats cancel in the networks have no density.
    fn settle_far_rows(&self, x: &[f32], densities: &mut [f32]) -> Result<()> {
        /// The square of a number beyond it is no 32-bit float.
        const FAR: f32 = 1e18;
        if !densities.iter().any(|density| density.is_nan()) {
            return Ok(());
        }
        let y = self.inner_for(densities.len());
        let inner = self.flow.x.given(&y).inner(x)?;
        let dim = self.flow.plan.spec.dim as usize;
        for (density, row) in densities.iter_mut().zip(inner.chunks_exact(dim)) {
            if density.is_nan() && row.iter().any(|v| v.abs() > FAR || !v.is_finite()) {
                *density = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// `n` samples of x for each observation, row-major (observations * n, N), those of an observation together. Of an
    /// unconditional flow they are those of [`Flow::sample`].
    ///
    /// Sample i of observation k depends on the seed, i, k and the observation alone: not on `n`, nor on the others.
    ///
    /// # Errors
    /// As those of [`Conditional::sample_rows`].
    pub fn sample(&self, n: usize, seed: u64) -> Result<Vec<f32>> {
        self.sample_rows(n, seed, 0, self.sampled_rows(n)?)
    }

    /// The same samples with `log p(x | y)` of each, in one go: for less than [`Conditional::log_prob`] of them afterwards,
    /// and equal to it but for rounding.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if the model has no density, else as those of [`Conditional::sample_rows`].
    pub fn sample_and_log_prob(&self, n: usize, seed: u64) -> Result<(Vec<f32>, Vec<f32>)> {
        self.has_density()?;
        let rows = self.sampled_rows(n)?;
        let Some(drawn) = self.draw(n, seed, 0..rows, true)? else { return Ok((Vec::new(), Vec::new())) };
        let [z, log_det, x] = <[Vec<f32>; 3]>::try_from(drawn.outputs)
            .unwrap_or_else(|_| unreachable!("a program that scores samples has three outputs"));
        let lane = self.flow.x.given(&drawn.y);
        let mut encoded = Encoded { z, log_det };
        let x = lane.outer(x);
        add_jacobian(&lane, &x, self.flow.spec().dim, &mut encoded.log_det);
        let log_prob = log_density(&encoded).into_iter().map(|density| density as f32).collect();
        Ok((x, log_prob))
    }

    /// `rows` rows from row `first` on of what [`Conditional::sample`] gives, for drawing a large number in pieces.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not so many, [`Error::Argument`] if `n` is 2^31 or more, or so large that the
    /// samples of all observations cannot be counted or held in memory, [`Error::DeviceLost`] if the device fails.
    pub fn sample_rows(&self, n: usize, seed: u64, first: usize, rows: usize) -> Result<Vec<f32>> {
        let Some(mut drawn) = self.draw(n, seed, first..first.saturating_add(rows), false)? else {
            return Ok(Vec::new());
        };
        Ok(self.flow.x.given(&drawn.y).outer(drawn.outputs.swap_remove(0)))
    }

    /// Some rows of the samples, in the units of the networks; none of no rows.
    fn draw(&self, n: usize, seed: u64, rows: Range<usize>, is_scored: bool) -> Result<Option<Drawn>> {
        let Some(group) = u32::try_from(n).ok().filter(|&n| n < 1 << 31) else {
            return Err(Error::argument(
                "n",
                format!("is {n}: at most 2147483647 samples of an observation are possible"),
            ));
        };
        let (all, count) = (self.sampled_rows(n)?, rows.len());
        if rows.end > all {
            return Err(Error::Shape { what: "rows of the samples (at most)".into(), expected: all, got: rows.end });
        }
        if count == 0 {
            return Ok(None);
        }
        self.flow.room_for(count)?;
        if self.observations.is_none() {
            let name = if is_scored { Name::SampleScored } else { Name::Sample };
            let job = Job { rows: count, seed, first_row: rows.start as u64, ..Job::default() };
            return Ok(Some(Drawn { y: Vec::new(), outputs: self.flow.run(name, &job)? }));
        }
        let (from, to) = (rows.start / n, (rows.end - 1) / n + 1);
        if u32::try_from(to - 1).ok().and_then(|last| self.first.checked_add(last)).is_none() {
            let what = format!("observations are counted from {}: their numbers must stay below 2^32", self.first);
            return Err(Error::argument("numbered_from", what));
        }
        let c = self.flow.plan.spec.cond_dim as usize;
        let y: Vec<f32> = rows.clone().flat_map(|row| &self.inner[row / n * c..][..c]).copied().collect();
        let is_hint = self.flow.plan.spec.kind == Kind::Hint;
        let seen = (is_hint && (is_scored || worth_taking_apart(to - from, count)))
            .then(|| self.flow.seen(&self.inner[from * c..to * c], count, |row| (rows.start + row) / n - from))
            .transpose()?;
        let name = match (is_scored, &seen) {
            (true, _) => Name::SampleScored,
            (false, Some(_)) => Name::SampleSeeing,
            (false, None) => Name::Sample,
        };
        let inputs: Vec<&[f32]> = seen.as_ref().map_or(vec![&y], |seen| seen.iter().map(Vec::as_slice).collect());
        let groups = Groups { rows: group, first: self.first + from as u32 };
        let job = Job { rows: count, inputs: &inputs, seed, first_row: (rows.start % n) as u64, groups };
        Ok(Some(Drawn { outputs: self.flow.run(name, &job)?, y }))
    }

    /// What blocks see of the observations of that many rows, if it is worth taking apart.
    fn seen_of(&self, rows: usize) -> Result<Option<Vec<Vec<f32>>>> {
        let observations = self.observations.unwrap_or(1);
        let is_hint = self.flow.plan.spec.kind == Kind::Hint;
        (is_hint && worth_taking_apart(observations, rows))
            .then(|| self.flow.seen(&self.inner, rows, |row| row * observations / rows))
            .transpose()
    }

    /// Number of rows of `n` samples of each observation; an unconditional flow counts as one.
    fn sampled_rows(&self, n: usize) -> Result<usize> {
        let observations = self.observations.unwrap_or(1);
        observations.checked_mul(n).ok_or_else(|| {
            Error::argument(
                "n",
                format!("is {n}: so many samples of {} cannot be counted", counted(observations, "observation")),
            )
        })
    }

    /// Number of rows of some values, which must be as many as the observations.
    pub(super) fn rows(&self, what: &str, columns: u32, values: &[f32]) -> Result<usize> {
        let rows = self.flow.whole_rows(what, columns, values)?;
        match self.observations {
            Some(observations) if observations > 1 && observations != rows => {
                let what = format!("rows of {what}, one for each observation");
                Err(Error::Shape { what, expected: observations, got: rows })
            }
            _ => Ok(rows),
        }
    }

    /// The conditions of that many rows, in the units of the networks.
    pub(super) fn inner_for(&self, rows: usize) -> Cow<'_, [f32]> {
        self.repeat(&self.inner, rows)
    }

    /// The same in the user's units.
    pub(super) fn user_for(&self, rows: usize) -> Cow<'_, [f32]> {
        self.repeat(self.user, rows)
    }

    fn repeat<'b>(&self, y: &'b [f32], rows: usize) -> Cow<'b, [f32]> {
        match self.observations {
            Some(1) if rows != 1 => y.repeat(rows).into(),
            _ => y.into(),
        }
    }
}

/// Rows of samples in the units of the networks.
struct Drawn {
    /// The conditions of each.
    y: Vec<f32>,
    /// Of the program.
    outputs: Vec<Vec<f32>>,
}

/// Whether the y lane of a `hint` is to run once for each observation and not for each row: for a row of each it would be
/// more work, since what it leaves has to be carried from one program to the other.
fn worth_taking_apart(observations: usize, rows: usize) -> bool {
    rows >= 2 * observations
}
