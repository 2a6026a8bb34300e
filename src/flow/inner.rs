//! A model in the units of its networks: standardised rows, conditions before x.

use super::programs::Name;
use super::{Encoded, Flow, Lanes, half_square};
use crate::data::side_by_side;
use crate::engine::Job;
use crate::error::Result;
use crate::plan::Kind;

/// What training and its report want to know of rows.
pub(crate) struct Scores {
    /// Sum of the losses: `|z|^2 / 2 - log |det J|` of everything that the model has a density of.
    pub(crate) loss: f64,
    /// Sum of `-|z|^2 / 2 + log |det J|` of x alone, given y where the model is conditional.
    pub(crate) ll: f64,
}

impl Flow {
    /// z and log-determinant of rows x, given as many rows y where the model is conditional.
    pub(super) fn encode_inner(&self, y: &[f32], x: &[f32], rows: usize) -> Result<Encoded> {
        let outputs = self.run(Name::Encode, &Job { rows, inputs: self.x_and_y(&[x, y]), ..Job::default() })?;
        // Two lanes put out y before x.
        Ok(last_lane(outputs))
    }

    /// Both lanes of rows.
    pub(super) fn encode_lanes(&self, y: &[f32], x: &[f32], rows: usize) -> Result<Lanes<Encoded>> {
        let mut outputs = self.run(Name::Encode, &Job { rows, inputs: &[x, y], ..Job::default() })?;
        let x = outputs.split_off(2);
        Ok(Lanes { y: last_lane(outputs), x: last_lane(x) })
    }

    /// The y lane of rows.
    pub(super) fn encode_y(&self, y: &[f32], rows: usize) -> Result<Encoded> {
        Ok(last_lane(self.run(Name::EncodeY, &Job { rows, inputs: &[y], ..Job::default() })?))
    }

    /// x of latent rows.
    pub(super) fn decode_inner(&self, y: &[f32], z: &[f32], rows: usize) -> Result<Vec<f32>> {
        let outputs = self.run(Name::Decode, &Job { rows, inputs: self.x_and_y(&[z, y]), ..Job::default() })?;
        Ok(last_output(outputs))
    }

    /// y and x of the latent rows of both lanes.
    pub(super) fn decode_lanes(&self, z: Lanes<&[f32]>, rows: usize) -> Result<Lanes<Vec<f32>>> {
        let outputs = self.run(Name::DecodeJoint, &Job { rows, inputs: &[z.y, z.x], ..Job::default() })?;
        Ok(Lanes::of_two(outputs))
    }

    /// What the blocks of a `hint` see of observations y (observations, C): for each block (rows, C), if row i is of
    /// observation `observation(i)`. The y lane runs once for each observation.
    pub(super) fn seen(&self, y: &[f32], rows: usize, observation: impl Fn(usize) -> usize) -> Result<Vec<Vec<f32>>> {
        let c = self.plan.spec.cond_dim as usize;
        let of_blocks = self.run(Name::Seen, &Job { rows: y.len() / c, inputs: &[y], ..Job::default() })?;
        let for_rows = |seen: Vec<f32>| (0..rows).flat_map(|row| &seen[observation(row) * c..][..c]).copied().collect();
        Ok(of_blocks.into_iter().map(for_rows).collect())
    }

    /// z and log-determinant of rows x, if blocks see that of y.
    pub(super) fn encode_seeing(&self, seen: &[Vec<f32>], x: &[f32], rows: usize) -> Result<Encoded> {
        Ok(last_lane(self.run_seeing(Name::EncodeSeeing, seen, x, rows)?))
    }

    /// x of latent rows, if blocks see that of y.
    pub(super) fn decode_seeing(&self, seen: &[Vec<f32>], z: &[f32], rows: usize) -> Result<Vec<f32>> {
        Ok(last_output(self.run_seeing(Name::DecodeSeeing, seen, z, rows)?))
    }

    fn run_seeing(&self, name: Name, seen: &[Vec<f32>], first: &[f32], rows: usize) -> Result<Vec<Vec<f32>>> {
        let inputs: Vec<&[f32]> = std::iter::once(first).chain(seen.iter().map(Vec::as_slice)).collect();
        self.run(name, &Job { rows, inputs: &inputs, ..Job::default() })
    }

    /// The inputs that the model has: x or z, and y unless it is unconditional.
    fn x_and_y<'a, 'b>(&self, both: &'a [&'b [f32]; 2]) -> &'a [&'b [f32]] {
        if self.plan.spec.kind == Kind::Flow { &both[..1] } else { both }
    }

    /// Scores rows [y, x].
    pub(crate) fn score_rows(&self, rows: &[f32]) -> Result<Scores> {
        let (count, Lanes { y, x }) = self.split_rows(rows);
        let sum =
            |Encoded { z, log_det }: &Encoded| log_det.iter().map(|&l| f64::from(l)).sum::<f64>() - half_square(z);
        Ok(match self.plan.spec.kind {
            Kind::Flow | Kind::Cinn => {
                let ll = sum(&self.encode_inner(&y, &x, count)?);
                Scores { loss: -ll, ll }
            }
            Kind::Hint => {
                let lanes = self.encode_lanes(&y, &x, count)?;
                let ll = sum(&lanes.x);
                Scores { loss: -ll - sum(&lanes.y), ll }
            }
            Kind::Inn => unreachable!("see `score_inn`"),
        })
    }

    /// Rows [y, x] to their latent and back.
    pub(crate) fn round_trip(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let (count, Lanes { y, x }) = self.split_rows(rows);
        let back = match self.plan.spec.kind {
            Kind::Inn => Lanes { x: self.inn_round_trip(&x, count)?, y },
            Kind::Flow | Kind::Cinn => {
                let z = self.encode_inner(&y, &x, count)?.z;
                Lanes { x: self.decode_inner(&y, &z, count)?, y }
            }
            Kind::Hint => {
                let lanes = self.encode_lanes(&y, &x, count)?;
                self.decode_lanes(Lanes { y: &lanes.y.z, x: &lanes.x.z }, count)?
            }
        };
        Ok(side_by_side(&back.y, &back.x, count))
    }

    /// Number of rows [y, x], and their two parts.
    pub(crate) fn split_rows(&self, rows: &[f32]) -> (usize, Lanes<Vec<f32>>) {
        let (c, n) = (self.plan.spec.cond_dim as usize, self.plan.spec.dim as usize);
        let count = rows.len() / (c + n);
        let mut parts = Lanes { y: Vec::with_capacity(count * c), x: Vec::with_capacity(count * n) };
        for row in rows.chunks_exact(c + n) {
            parts.y.extend_from_slice(&row[..c]);
            parts.x.extend_from_slice(&row[c..]);
        }
        (count, parts)
    }
}

fn last_output(mut outputs: Vec<Vec<f32>>) -> Vec<f32> {
    outputs.pop().unwrap_or_else(|| unreachable!("every program of inference has an output"))
}

/// The last two outputs of a program that encodes.
fn last_lane(mut outputs: Vec<Vec<f32>>) -> Encoded {
    match (outputs.pop(), outputs.pop()) {
        (Some(log_det), Some(z)) => Encoded { z, log_det },
        _ => unreachable!("a program that encodes has two outputs for each lane"),
    }
}
