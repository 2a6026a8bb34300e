//! Settings of an `inn` alone.

use super::validate::number;
use super::{Config, Memory, Train};
use crate::error::{Error, Result};
use crate::flow::Losses;
use crate::plan::Kind;

impl Train {
    /// Default of `train.latent_loss`.
    pub(crate) const LATENT_LOSS: f64 = 30.0;
    /// Default of `train.inverse_loss`.
    pub(crate) const INVERSE_LOSS: f64 = 30.0;
    /// Default of `train.inverse_from`.
    pub(crate) const INVERSE_FROM: f64 = 0.1;

    /// The losses of an `inn`, whole: see [`Train::way_back_from`].
    pub(crate) fn inn_losses(&self) -> Losses {
        Losses {
            latent: self.latent_loss.unwrap_or(Self::LATENT_LOSS) as f32,
            inverse: Some(self.inverse_loss.unwrap_or(Self::INVERSE_LOSS) as f32),
        }
    }

    /// The first epoch, from 0, in which an `inn` is trained on the way back too.
    pub(crate) fn way_back_from(&self) -> u64 {
        (self.epochs as f64 * self.inverse_from.unwrap_or(Self::INVERSE_FROM)).round() as u64
    }
}

impl Config {
    /// Whether what belongs to an `inn` belongs to one, and whether that can be trained so.
    pub(super) fn of_inn(&self) -> Result<()> {
        let (t, d) = (&self.train, &self.data);
        let own = [
            ("train.latent_loss", t.latent_loss),
            ("train.inverse_loss", t.inverse_loss),
            ("train.inverse_from", t.inverse_from),
        ];
        if self.model.kind != Kind::Inn {
            return match own.iter().find(|(_, value)| value.is_some()) {
                Some((key, _)) => Err(Error::config(*key, "belongs to model.kind = \"inn\"; leave it out")),
                None => Ok(()),
            };
        }
        for (key, value) in own[..2].iter().filter_map(|(key, value)| value.map(|value| (*key, value))) {
            number(key, value, "0 or more", |v| v >= 0.0)?;
        }
        t.inverse_from.map_or(Ok(()), |v| {
            number("train.inverse_from", v, "a share of the epochs, from 0 to 1", |v| (0.0..=1.0).contains(&v))
        })?;
        if d.regression {
            let what = "must be false of an `inn`: it tells y from x, and so from what the regression takes off";
            return Err(Error::config("data.regression", what));
        }
        if t.memory != Memory::Stored {
            let what = "must be stored of an `inn`: its inverse has a backward pass of its own";
            return Err(Error::config("train.memory", what));
        }
        Ok(())
    }
}
