//! The update of the CPU engine: what the optimiser keeps, and one step of it over all trained weights.

use std::ops::Range;

use rayon::prelude::*;

use crate::engine::Skips;
use crate::error::Result;
use crate::kernel::adam;
use crate::kernel::memory::Floats;
use crate::optim::AdamStep;
use crate::plan::Layout;

use super::arrays::zeros;

/// Weights of one task of the parallel update. The order of the norm's sum depends on it.
const SLICE: usize = 1 << 13;

/// What the optimiser keeps from step to step.
pub(super) struct Optimizer {
    pub(super) first_moments: Floats,
    pub(super) second_moments: Floats,
    /// Moving averages of the weights; empty until they are written.
    pub(super) averages: Floats,
    /// Where the weights that decay lie.
    decayed: Vec<Range<usize>>,
    /// Squares of the gradient's norm in each slice of the weights.
    squares: Vec<f64>,
    /// What the gradient of this step is multiplied with; none: the update is left out.
    scale: Option<f32>,
    pub(super) skips: Skips,
}

impl Optimizer {
    pub(super) fn new(layout: &Layout) -> Result<Self> {
        Ok(Self {
            first_moments: zeros(layout.trained, "moments of the weights")?,
            second_moments: zeros(layout.trained, "moments of the weights")?,
            averages: Floats::default(),
            decayed: layout.matrices().collect(),
            squares: vec![0.0; layout.trained.div_ceil(SLICE)],
            scale: Some(1.0),
            skips: Skips::default(),
        })
    }

    /// Makes room for the averages.
    pub(super) fn average(&mut self) -> Result<()> {
        if self.averages.is_empty() {
            self.averages = zeros(self.first_moments.len(), "averages of the weights")?;
        }
        Ok(())
    }

    /// Bytes of all that it keeps.
    pub(super) fn bytes(&self) -> usize {
        let arrays = [&self.first_moments, &self.second_moments, &self.averages];
        arrays.map(|array| size_of_val(&**array)).iter().sum()
    }

    /// Decides on the next update by the norm of the gradient.
    pub(super) fn clip<'a>(&mut self, step: &AdamStep, partials: impl Iterator<Item = &'a [f32]> + Clone + Sync) {
        let trained = self.first_moments.len();
        self.squares.par_iter_mut().enumerate().for_each(|(i, square)| {
            let range = i * SLICE..trained.min((i + 1) * SLICE);
            *square = adam::square(range.len(), partials.clone().map(|p| &p[range.clone()]));
        });
        self.scale = adam::clip(step.adam.clip_norm, self.squares.iter().sum());
        let Skips { total, in_a_row } = &mut self.skips;
        match self.scale {
            Some(_) => *in_a_row = 0,
            None => (*total, *in_a_row) = (total.saturating_add(1), in_a_row.saturating_add(1)),
        }
    }

    /// Updates the trained weights.
    pub(super) fn update<'a>(
        &mut self,
        step: &AdamStep,
        weights: &mut [f32],
        partials: impl Iterator<Item = &'a [f32]> + Clone + Sync,
    ) {
        // The next step may not clip.
        let Some(scale) = self.scale.replace(1.0) else { return };
        let decayed = &self.decayed;
        let weights = weights.par_chunks_mut(SLICE);
        let first = self.first_moments.par_chunks_mut(SLICE);
        let second = self.second_moments.par_chunks_mut(SLICE);
        let one = |i: usize, weights: &mut [f32], first: &mut [f32], second: &mut [f32]| {
            let range = i * SLICE..i * SLICE + weights.len();
            if step.shrink > 0.0 {
                for part in within(decayed, &range) {
                    weights[part].iter_mut().for_each(|p| *p -= step.shrink * *p);
                }
            }
            let partials = partials.clone().map(|p| &p[range.clone()]);
            adam::update(step, scale, adam::Slice { weights, first, second }, partials);
        };
        if step.follow > 0.0 {
            let averages = self.averages.par_chunks_mut(SLICE);
            weights.zip(first.zip(second)).zip(averages).enumerate().for_each(
                |(i, ((weights, (first, second)), averages))| {
                    one(i, weights, first, second);
                    adam::follow(step.follow, averages, weights);
                },
            );
        } else {
            weights.zip(first.zip(second)).enumerate().for_each(|(i, (weights, (first, second)))| {
                one(i, weights, first, second);
            });
        }
    }
}

/// The parts of sorted ranges that lie in one, counted from its beginning.
fn within<'a>(sorted: &'a [Range<usize>], range: &'a Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let first = sorted.partition_point(|r| r.end <= range.start);
    sorted[first..]
        .iter()
        .take_while(|r| r.start < range.end)
        .map(|r| r.start.max(range.start) - range.start..r.end.min(range.end) - range.start)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Engine, ProgramId, Session, StepJob, Values};
    use crate::flow::programs::{Name, record};
    use crate::optim::Adam;
    use crate::optim::definition::Definition;
    use crate::plan::{Mixing, Plan, Spec};
    use crate::rng::{Stream, fill_normals};
    use crate::tape::Memory;

    const ROWS: u32 = 700;

    fn normals(seed: u64, len: usize, scale: f32) -> Vec<f32> {
        let mut values = vec![0.0; len];
        fill_normals(seed, Stream::Data, 0, 0, &mut values);
        values.iter_mut().for_each(|v| *v *= scale);
        values
    }

    /// More weights than a slice has.
    fn plan() -> Arc<Plan> {
        let spec = Spec { dim: 5, blocks: 2, width: 50, mixing: Mixing::Householder, ..Spec::default() };
        let plan = Plan::new(&spec).unwrap();
        assert!(plan.layout.trained > 2 * SLICE && !plan.layout.trained.is_multiple_of(SLICE));
        plan.into()
    }

    fn session(plan: &Arc<Plan>, threads: usize, name: Name) -> (Box<dyn Session>, ProgramId) {
        let mut session = Engine::cpu_with_threads(threads).unwrap().load(plan.clone()).unwrap();
        let weights = normals(1, plan.layout.len(), 0.1);
        session.write(Values::Weights, &weights).unwrap();
        session.write(Values::Averages, &weights[..plan.layout.trained]).unwrap();
        session.set_data(normals(2, ROWS as usize * 5, 2.0).into()).unwrap();
        session.set_order(&(0..ROWS).collect::<Vec<_>>()).unwrap();
        let id = session.compile(record(name, plan), ROWS as usize).unwrap();
        (session, id)
    }

    const ALL: Adam = Adam {
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-4,
        l2: 0.01,
        grad_clamp: 0.02,
        clip_norm: 0.3,
        decay: 2.0,
        average: 0.6,
    };

    fn job(adam: Adam, t: u64) -> StepJob {
        StepJob {
            first: 0,
            rows: ROWS as usize,
            noise: 0.1,
            dropout: 0,
            seed: 3,
            step: t as u32,
            adam: adam.step(0.01, t),
        }
    }

    const VALUES: [Values; 4] = [Values::Weights, Values::FirstMoments, Values::SecondMoments, Values::Averages];

    fn state(session: &mut dyn Session, trained: usize) -> Vec<Vec<f32>> {
        VALUES.map(|values| session.read(values).unwrap()[..trained].to_vec()).to_vec()
    }

    #[test]
    fn updates_are_those_of_the_definition() {
        let plan = plan();
        let trained = plan.layout.trained;
        for (what, adam) in [
            ("all", ALL),
            ("clip", Adam { clip_norm: 0.3, ..Adam::default() }),
            ("a wide bound", Adam { clip_norm: 1e9, ..Adam::default() }),
            ("decay", Adam { decay: 2.0, ..Adam::default() }),
            ("average", Adam { average: 0.99, ..Adam::default() }),
        ] {
            let name = if adam.clip_norm > 0.0 { Name::ClippedStep } else { Name::Step };
            let (mut session, id) = session(&plan, 2, name(Memory::Stored));
            let mut definition = Definition::new(&plan.layout, &session.read(Values::Weights).unwrap());
            let mut scales = Vec::new();
            for t in 1..=4 {
                session.step(id, &job(adam, t)).unwrap();
                let gradient: Vec<f64> = session.gradients().unwrap()[..trained].iter().map(|&g| g.into()).collect();
                scales.push(definition.step(&adam.step(0.01, t), &gradient));
            }
            assert_eq!(scales.iter().all(|&s| s < 0.9), adam.clip_norm == 0.3, "{what}: {scales:?}");
            let want = [&definition.weights, &definition.first, &definition.second, &definition.averages];
            for (got, want) in state(session.as_mut(), trained).iter().zip(want) {
                let largest = want.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
                let far = got.iter().zip(want).all(|(&g, w)| (f64::from(g) - w).abs() <= 2e-6 * largest);
                assert!(far, "{what}");
            }
            assert_eq!(session.skips().unwrap(), Skips::default());
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let plan = plan();
        let run = |threads| {
            let (mut session, id) = session(&plan, threads, Name::ClippedStep(Memory::Stored));
            (1..=4).for_each(|t| session.step(id, &job(ALL, t)).unwrap());
            state(session.as_mut(), plan.layout.trained)
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3));
    }

    /// A bound that is never reached changes no bit, so that the two programs are one.
    #[test]
    fn what_is_not_clipped_is_as_without() {
        let plan = plan();
        let run = |adam: Adam, name: Name| {
            let (mut session, id) = session(&plan, 2, name);
            (1..=4).for_each(|t| session.step(id, &job(adam, t)).unwrap());
            state(session.as_mut(), plan.layout.trained)
        };
        let wide = Adam { clip_norm: 1e9, ..Adam::default() };
        assert!(run(wide, Name::ClippedStep(Memory::Stored)) == run(Adam::default(), Name::Step(Memory::Stored)));
    }

    #[test]
    fn updates_whose_gradient_is_not_finite_are_left_out_and_counted() {
        let plan = plan();
        let (mut session, id) = session(&plan, 2, Name::ClippedStep(Memory::Stored));
        let rows = normals(2, ROWS as usize * 5, 2.0);
        let skips = |total, in_a_row| Skips { total, in_a_row };
        session.step(id, &job(ALL, 1)).unwrap();
        let before = state(session.as_mut(), plan.layout.trained);
        for (t, bad) in (2..).zip([f32::NAN, f32::INFINITY, 1e30]) {
            let mut broken = rows.clone();
            broken[1234] = bad;
            session.set_data(broken.into()).unwrap();
            session.set_order(&(0..ROWS).collect::<Vec<_>>()).unwrap();
            session.step(id, &job(ALL, t)).unwrap();
            assert_eq!(session.skips().unwrap(), skips(t as u32 - 1, t as u32 - 1), "{bad}");
        }
        assert!(state(session.as_mut(), plan.layout.trained) == before);
        session.set_data(rows.into()).unwrap();
        session.set_order(&(0..ROWS).collect::<Vec<_>>()).unwrap();
        session.step(id, &job(ALL, 5)).unwrap();
        assert_eq!(session.skips().unwrap(), skips(3, 0));
        assert!(state(session.as_mut(), plan.layout.trained) != before);
    }

    #[test]
    fn parts_of_ranges() {
        let sorted = [2..5, 5..7, 9..12];
        let parts = |range: Range<usize>| within(&sorted, &range).collect::<Vec<_>>();
        assert_eq!(parts(0..20), [2..5, 5..7, 9..12]);
        assert_eq!(parts(3..6), [0..2, 2..3]);
        assert_eq!(parts(10..11), vec![0..1]);
        assert!(parts(7..9).is_empty());
        assert!(parts(12..20).is_empty());
    }
}
