//! What a `hint` knows of x and y together: joint density, evidence, joint samples (docs/model.md, Lanes).

use super::programs::Name;
use super::{Encoded, Flow, add_jacobian, log_density};
use crate::data::units::Units;
use crate::engine::Job;
use crate::error::{Error, Result};
use crate::plan::Kind;

/// Something for each of the two lanes of a `hint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lanes<T> {
    /// Of the lane of conditions.
    pub y: T,
    /// Of the lane of x, given y.
    pub x: T,
}

impl Lanes<Vec<f32>> {
    /// Rows in the user's units, of rows in the units of the networks.
    pub(crate) fn outer(self, units: Lanes<&Units>) -> Self {
        let x = units.x.given(&self.y).outer(self.x);
        Self { y: units.y.outer(self.y), x }
    }

    /// The two outputs of a program, y first.
    pub(super) fn of_two(outputs: Vec<Vec<f32>>) -> Self {
        match <[Vec<f32>; 2]>::try_from(outputs) {
            Ok([y, x]) => Self { y, x },
            Err(_) => unreachable!("the program has an output for each lane"),
        }
    }
}

impl Flow {
    /// Both lanes of rows y (B, C) and x (B, N): z_y with `log |det dz_y/dy|`, and z_x with `log |det dz_x/dx|`, given
    /// y.
    ///
    /// # Errors
    /// [`Error::Config`] where the model is not a `hint`, [`Error::Shape`] where the lengths do not agree.
    pub fn encode_joint(&self, y: &[f32], x: &[f32]) -> Result<Lanes<Encoded>> {
        let rows = self.joint_rows(y, x)?;
        let inner = self.y.inner(y)?;
        let lane = self.x.given(&inner);
        let mut lanes = self.encode_lanes(&inner, &lane.inner(x)?, rows)?;
        add_jacobian(&self.y.given(&[]), y, self.spec().cond_dim, &mut lanes.y.log_det);
        add_jacobian(&lane, x, self.spec().dim, &mut lanes.x.log_det);
        Ok(lanes)
    }

    /// y and x of latent rows z_y (B, C) and z_x (B, N): the inverse of [`Flow::encode_joint`].
    ///
    /// # Errors
    /// As those of [`Flow::encode_joint`].
    pub fn decode_joint(&self, z_y: &[f32], z_x: &[f32]) -> Result<Lanes<Vec<f32>>> {
        let rows = self.joint_rows(z_y, z_x)?;
        Ok(self.outer(self.decode_lanes(Lanes { y: z_y, x: z_x }, rows)?))
    }

    /// `log p(y, x)` of rows in nats, in the user's units.
    ///
    /// # Errors
    /// As those of [`Flow::encode_joint`].
    pub fn log_prob_joint(&self, y: &[f32], x: &[f32]) -> Result<Vec<f32>> {
        let Lanes { y, x } = self.encode_joint(y, x)?;
        Ok(log_density(&y).into_iter().zip(log_density(&x)).map(|(y, x)| (y + x) as f32).collect())
    }

    /// `log p(y)` of rows y (B, C) in nats, in the user's units: how usual the observations are among those of the
    /// training.
    ///
    /// # Errors
    /// [`Error::Config`] where the model is not a `hint`, [`Error::Shape`] where the length is not a multiple of C.
    pub fn log_evidence(&self, y: &[f32]) -> Result<Vec<f32>> {
        self.two_lanes()?;
        let rows = self.whole_rows("y", self.plan.spec.cond_dim, y)?;
        let mut encoded = self.encode_y(&self.y.inner(y)?, rows)?;
        add_jacobian(&self.y.given(&[]), y, self.spec().cond_dim, &mut encoded.log_det);
        Ok(log_density(&encoded).into_iter().map(|density| density as f32).collect())
    }

    /// `n` samples of y (n, C) and x (n, N) together. Sample i of a seed is the same whatever `n` is.
    ///
    /// # Errors
    /// [`Error::Config`] where the model is not a `hint` or memory cannot hold so many, [`Error::DeviceLost`] where the
    /// device fails.
    pub fn sample_joint(&self, n: usize, seed: u64) -> Result<Lanes<Vec<f32>>> {
        self.sample_joint_from(n, seed, 0)
    }

    /// Samples number `first..first + n` of a seed, for drawing a large number in pieces.
    ///
    /// # Errors
    /// As those of [`Flow::sample_joint`].
    pub fn sample_joint_from(&self, n: usize, seed: u64, first: u64) -> Result<Lanes<Vec<f32>>> {
        self.two_lanes()?;
        self.room_for(n)?;
        let job = Job { rows: n, seed, first_row: first, ..Job::default() };
        Ok(self.outer(Lanes::of_two(self.run(Name::SampleJoint, &job)?)))
    }

    /// Rows of both lanes in the user's units.
    fn outer(&self, rows: Lanes<Vec<f32>>) -> Lanes<Vec<f32>> {
        rows.outer(Lanes { y: &self.y, x: &self.x })
    }

    fn joint_rows(&self, y: &[f32], x: &[f32]) -> Result<usize> {
        self.two_lanes()?;
        let of_y = self.whole_rows("y", self.plan.spec.cond_dim, y)?;
        let of_x = self.whole_rows("x", self.plan.spec.dim, x)?;
        match of_y == of_x {
            true => Ok(of_x),
            false => Err(Error::Shape { what: "rows of x, one for each row of y".into(), expected: of_y, got: of_x }),
        }
    }

    fn two_lanes(&self) -> Result<()> {
        if self.plan.spec.kind == Kind::Hint {
            return Ok(());
        }
        let kind = self.plan.spec.kind.name();
        let what = format!("the model is a `{kind}`; only a `hint` has a density of its conditions and joint samples");
        Err(Error::config("model.kind", what))
    }
}
