//! The inverse of a stage.

use super::Tape;
use crate::buffer::Buffer;
use crate::plan::ConditionOn;
use crate::program::{Op, StageId};

impl Tape {
    /// Inverse of one stage, in place. For a backward pass to come, `keep` leaves st and the hidden activations in the
    /// scratch.
    pub(crate) fn uncouple(&mut self, stage: StageId, x: Buffer, given: Buffer, keep: bool) {
        match self.plan.spec.condition_on {
            // The networks see the stage's input, which comes to light node by node.
            ConditionOn::Input => {
                let (st, hidden) = self.scratch(stage);
                self.ops.push(Op::Walk { stage, x, given, st, hidden, keep });
            }
            // They see columns that the stage leaves as they are.
            ConditionOn::Output => {
                let (st, _) = self.networks(stage, x, given, keep);
                self.ops.push(Op::Uncouple { stage, from: x, x, st });
            }
        }
    }

    /// Inverse of one stage, in place; adds to `log_det` what the stage itself has for the rows that come out. The
    /// networks run once: their parameters serve both ways. `forth` is scratch, (N, B).
    pub(crate) fn uncouple_counted(
        &mut self,
        stage: StageId,
        x: Buffer,
        given: Buffer,
        forth: Buffer,
        log_det: Buffer,
    ) {
        self.uncouple(stage, x, given, true);
        let (st, _) = self.scratch(stage);
        self.ops.push(Op::Couple { stage, x, st, to: forth, log_det });
    }
}
