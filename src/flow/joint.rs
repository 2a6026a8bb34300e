//! What a `hint` knows of x and y together: joint density, evidence, joint samples (docs/model.md, Lanes).

use super::programs::Name;
use super::{Encoded, Flow, add_jacobian, log_density};
use crate::data::columns::units::Units;
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

/// A `hint` as the flow of conditions y and columns x together that it is, see [`Flow::joint`].
#[derive(Clone, Copy, Debug)]
pub struct Joint<'a> {
    flow: &'a Flow,
}

impl Flow {
    /// The joint flow [z_y, z_x] = T(y, x) of a `hint`: joint density, evidence, joint samples.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if the model is no `hint`.
    pub fn joint(&self) -> Result<Joint<'_>> {
        match self.plan.spec.kind {
            Kind::Hint => Ok(Joint { flow: self }),
            kind => {
                let needed = "a `hint`, which alone has a density of its conditions";
                Err(Error::WrongKind { needed, found: kind.name() })
            }
        }
    }

    /// Rows of both lanes in the user's units.
    fn outer(&self, rows: Lanes<Vec<f32>>) -> Lanes<Vec<f32>> {
        rows.outer(Lanes { y: &self.y, x: &self.x })
    }
}

impl Joint<'_> {
    /// Both lanes of rows y (B, C) and x (B, N): z_y with `log |det dz_y/dy|`, and z_x with `log |det dz_x/dx|`, given
    /// y.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths do not agree, [`Error::NotFinite`] naming a value that is no number,
    /// [`Error::Config`] naming a row outside of the bounds of a column.
    pub fn encode(&self, y: &[f32], x: &[f32]) -> Result<Lanes<Encoded>> {
        let rows = self.joint_rows(y, x)?;
        let inner = self.flow.y.inner(y)?;
        let lane = self.flow.x.given(&inner);
        let mut lanes = self.flow.encode_lanes(&inner, &lane.inner(x)?, rows)?;
        add_jacobian(&self.flow.y.given(&[]), y, self.flow.spec().cond_dim, &mut lanes.y.log_det);
        add_jacobian(&lane, x, self.flow.spec().dim, &mut lanes.x.log_det);
        Ok(lanes)
    }

    /// y and x of latent rows z_y (B, C) and z_x (B, N): the inverse of [`Joint::encode`].
    ///
    /// # Errors
    /// As those of [`Joint::encode`].
    pub fn decode(&self, z_y: &[f32], z_x: &[f32]) -> Result<Lanes<Vec<f32>>> {
        let rows = self.joint_rows(z_y, z_x)?;
        Ok(self.flow.outer(self.flow.decode_lanes(Lanes { y: z_y, x: z_x }, rows)?))
    }

    /// `log p(y, x)` of rows in nats, in the user's units. Outside of the bounds of a column it is minus infinity.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::NotFinite`], as those of [`Joint::encode`].
    pub fn log_prob(&self, y: &[f32], x: &[f32]) -> Result<Vec<f32>> {
        self.joint_rows(y, x)?;
        let ((y, y_outside), (x, x_outside)) = (self.flow.y.moved_inside(y), self.flow.x.moved_inside(x));
        let Lanes { y, x } = self.encode(&y, &x)?;
        let sums = log_density(&y).into_iter().zip(log_density(&x)).map(|(y, x)| (y + x) as f32);
        let mut densities: Vec<f32> = sums.collect();
        y_outside.into_iter().chain(x_outside).for_each(|row| densities[row] = f32::NEG_INFINITY);
        Ok(densities)
    }

    /// `log p(y)` of rows y (B, C) in nats, in the user's units: how usual the observations are among those of the
    /// training. Outside of the bounds of a column it is minus infinity.
    ///
    /// # Errors
    /// [`Error::Shape`] if the length is not a multiple of C, [`Error::NotFinite`] naming a value that is no number.
    pub fn log_evidence(&self, y: &[f32]) -> Result<Vec<f32>> {
        let rows = self.flow.whole_rows("y", self.flow.plan.spec.cond_dim, y)?;
        let (y, outside) = self.flow.y.moved_inside(y);
        let mut encoded = self.flow.encode_y(&self.flow.y.inner(&y)?, rows)?;
        add_jacobian(&self.flow.y.given(&[]), &y, self.flow.spec().cond_dim, &mut encoded.log_det);
        let mut densities: Vec<f32> = log_density(&encoded).into_iter().map(|density| density as f32).collect();
        outside.into_iter().for_each(|row| densities[row] = f32::NEG_INFINITY);
        Ok(densities)
    }

    /// `n` samples of y (n, C) and x (n, N) together. Sample i of a seed is the same whatever `n` is.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if memory cannot hold so many, [`Error::DeviceLost`] if the device fails.
    pub fn sample(&self, n: usize, seed: u64) -> Result<Lanes<Vec<f32>>> {
        self.sample_from(n, seed, 0)
    }

    /// Samples number `first..first + n` of a seed, for drawing a large number in pieces.
    ///
    /// # Errors
    /// As those of [`Joint::sample`].
    pub fn sample_from(&self, n: usize, seed: u64, first: u64) -> Result<Lanes<Vec<f32>>> {
        self.flow.room_for(n)?;
        let job = Job { rows: n, seed, first_row: first, ..Job::default() };
        Ok(self.flow.outer(Lanes::of_two(self.flow.run(Name::SampleJoint, &job)?)))
    }

    fn joint_rows(&self, y: &[f32], x: &[f32]) -> Result<usize> {
        let of_y = self.flow.whole_rows("y", self.flow.plan.spec.cond_dim, y)?;
        let of_x = self.flow.whole_rows("x", self.flow.plan.spec.dim, x)?;
        match of_y == of_x {
            true => Ok(of_x),
            false => Err(Error::Shape { what: "rows of x, one for each row of y".into(), expected: of_y, got: of_x }),
        }
    }
}
