//! Trainings that several ranks share: they see at the beginning that all are about to do the same.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::TrainingLoop;
use super::state::State;
use crate::comm::World;
use crate::comm::agreement::{Fact, agree};
use crate::engine::Values;
use crate::error::Result;

impl TrainingLoop<'_> {
    /// Shares the steps with these ranks, and what is computed between them.
    ///
    /// # Errors
    /// [`crate::Error::Ranks`] naming a rank that is about to train something else, or on something else.
    pub(crate) fn share(&mut self, world: World) -> Result<()> {
        self.flow.with_session(|session| session.share(world.clone()))?;
        self.world = world;
        self.agree()
    }

    /// Gives the flow back to those that share its engine.
    pub(super) fn unshare(&self) -> Result<()> {
        let world = self.flow.engine().world().clone();
        self.flow.with_session(|session| session.share(world))
    }

    /// Whether all ranks have the same program, settings, data and weights.
    pub(super) fn agree(&self) -> Result<()> {
        if self.world.size() == 1 {
            return Ok(());
        }
        let weights = self.flow.with_session(|session| session.read(Values::Weights))?;
        let fact = |what, value: Vec<u8>, remedy| Fact { what, value, remedy };
        let same = "start all ranks with the same options, settings and variables of the environment";
        agree(
            &*self.world,
            &[
                fact("program", program().into(), "start the same file on all machines"),
                fact(
                    "arithmetic",
                    self.flow.engine().info().arithmetic.into_bytes(),
                    "choose the same kind of device on all machines; with the CPU engine set HINTFLOW_SIMD to the lowest \
                     instruction set among them (avx512, avx2, portable)",
                ),
                fact("seed", self.settings.seed.to_le_bytes().into(), same),
                fact("number of epochs", self.settings.epochs.to_le_bytes().into(), same),
                fact("settings", format!("{:?}", self.settings).into_bytes(), same),
                fact("model", format!("{:?}", self.flow.spec()).into_bytes(), same),
                fact("data", self.data.fingerprint.clone().into_bytes(), "give all ranks the same rows"),
                fact("initial weights", digest(&[&weights]).into(), same),
            ],
        )
    }

    /// Whether all ranks go on from the same state.
    pub(super) fn agree_on(&self, state: &State) -> Result<()> {
        let State { weights, first_moments, second_moments, averages, good, position, .. } = state;
        let mut value = digest(&[weights, first_moments, second_moments, averages, good]).to_vec();
        value.extend_from_slice(format!("{position:?}").as_bytes());
        let remedy = "all ranks must see the same run folder: use a file system that all machines share";
        agree(&*self.world, &[Fact { what: "checkpoint", value, remedy }])
    }
}

fn digest(arrays: &[&[f32]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for array in arrays {
        hash.update((array.len() as u64).to_le_bytes());
        hash.update(bytemuck::cast_slice::<f32, u8>(array));
    }
    hash.finalize().into()
}

/// The program that runs, by its file; by the version of the library, if that cannot be read.
fn program() -> [u8; 32] {
    static PROGRAM: OnceLock<[u8; 32]> = OnceLock::new();
    *PROGRAM.get_or_init(|| {
        let mut hash = Sha256::new();
        hash.update(env!("CARGO_PKG_VERSION"));
        // Without the file the version is what is known of it.
        hash.update(std::env::current_exe().and_then(std::fs::read).unwrap_or_default());
        hash.finalize().into()
    })
}
