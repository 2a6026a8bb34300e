//! A process that is alone.

use super::{Communicator, Incoming, Outgoing};
use crate::error::Result;

/// One rank, which has nobody to talk to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl Communicator for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn host(&self) -> String {
        super::host()
    }

    fn exchange(&self, send: &[Outgoing<'_>], receive: &mut [Incoming<'_>]) -> Result<()> {
        assert!(send.is_empty() && receive.is_empty(), "there is no other rank");
        Ok(())
    }
}
