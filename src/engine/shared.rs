//! Runs that several ranks share: each computes some of the samples, and all get the results of all. Samples do not depend
//! on each other, so that results are those of one process, bit for bit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Footprint, Groups, Job, KernelTime, ProgramId, Session, Skips, StepJob, Values};
use crate::comm::{Incoming, Outgoing, World, share};
use crate::error::Result;
use crate::program::Program;

/// Fewer samples than this are computed by every rank for itself, which takes less time than messages.
const FEW: usize = 256;

/// Shares out runs, and hands all else to the engine's session, which shares steps.
pub(super) struct Shared {
    session: Box<dyn Session>,
    world: World,
    /// For each program the rows of its inputs and outputs; none of one whose samples cannot be shared out.
    programs: Vec<Option<[Vec<usize>; 2]>>,
    exchanged: Duration,
}

impl Shared {
    pub(super) fn new(session: Box<dyn Session>, world: World) -> Result<Self> {
        let mut shared = Self { session, world: world.clone(), programs: Vec::new(), exchanged: Duration::ZERO };
        if world.size() > 1 {
            shared.share(world)?;
        }
        Ok(shared)
    }

    /// The results of all ranks, of which each has those of its samples.
    fn exchange(&mut self, rows: usize, columns: &[usize], own: &[Vec<f32>]) -> Result<Vec<Vec<f32>>> {
        let began = Instant::now();
        let (rank, size) = (self.world.rank(), self.world.size());
        let mut all = Vec::with_capacity(own.len());
        for (&columns, own) in columns.iter().zip(own) {
            let what = || format!("results of {rows} rows");
            let mut values: Vec<f32> = crate::memory::reserved(rows * columns, what)?;
            values.resize(rows * columns, 0.0);
            values[share(rows, rank, size).start * columns..][..own.len()].copy_from_slice(own);
            let bytes = bytemuck::cast_slice(own);
            let others = (0..size).filter(|&other| other != rank);
            let send: Vec<_> = others.map(|to| Outgoing { to, bytes }).collect();
            let mut receive = Vec::new();
            let mut rest = &mut values[..];
            for from in 0..size {
                let (part, later) = rest.split_at_mut(share(rows, from, size).len() * columns);
                rest = later;
                if from != rank {
                    receive.push(Incoming { from, bytes: bytemuck::cast_slice_mut(part) });
                }
            }
            self.world.exchange(&send, &mut receive)?;
            all.push(values);
        }
        self.exchanged += began.elapsed();
        Ok(all)
    }
}

/// The job of a few of its samples.
fn part<'a>(job: &Job<'_>, inputs: &'a [&'a [f32]], rows: std::ops::Range<usize>) -> Job<'a> {
    let first_row = job.first_row + rows.start as u64;
    let (first_row, groups) = match u64::from(job.groups.rows) {
        0 => (first_row, job.groups),
        of_group => {
            let first = job.groups.first + (first_row / of_group) as u32;
            (first_row % of_group, Groups { first, ..job.groups })
        }
    };
    Job { rows: rows.len(), inputs, seed: job.seed, first_row, groups }
}

impl Session for Shared {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        let columns = |buffers: &[crate::buffer::Buffer]| buffers.iter().map(|b| b.rows as usize).collect();
        let apart = !program.has_gradients() && !program.couples_samples();
        self.programs.push(apart.then(|| [columns(&program.inputs), columns(&program.outputs)]));
        self.session.compile(program, rows)
    }

    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let size = self.world.size();
        let (1.., Some([inputs, outputs])) = (size - 1, &self.programs[program.0]) else {
            return self.session.run(program, job);
        };
        if job.rows < FEW {
            return self.session.run(program, job);
        }
        let rows = share(job.rows, self.world.rank(), size);
        let values: Vec<&[f32]> = inputs
            .iter()
            .zip(job.inputs)
            .map(|(columns, values)| &values[rows.start * columns..rows.end * columns])
            .collect();
        let outputs = outputs.clone();
        let own = self.session.run(program, &part(job, &values, rows));
        // A rank whose device fails must not leave the others waiting.
        let own = crate::comm::collective::together(&*self.world, own)?;
        self.exchange(job.rows, &outputs, &own)
    }

    fn share(&mut self, world: World) -> Result<()> {
        self.session.share(world.clone())?;
        self.world = world;
        self.exchanged = Duration::ZERO;
        Ok(())
    }

    fn exchanged(&self) -> Duration {
        self.exchanged + self.session.exchanged()
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        self.session.set_data(data)
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        self.session.set_order(order)
    }

    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        self.session.step(program, job)
    }

    fn loss(&mut self) -> Result<f32> {
        self.session.loss()
    }

    fn skips(&mut self) -> Result<Skips> {
        self.session.skips()
    }

    fn set_skips(&mut self, skips: Skips) -> Result<()> {
        self.session.set_skips(skips)
    }

    fn gradients(&mut self) -> Result<Vec<f32>> {
        self.session.gradients()
    }

    fn read(&mut self, values: Values) -> Result<Vec<f32>> {
        self.session.read(values)
    }

    fn write(&mut self, values: Values, data: &[f32]) -> Result<()> {
        self.session.write(values, data)
    }

    fn dispatches(&self, program: ProgramId) -> usize {
        self.session.dispatches(program)
    }

    fn tiles(&self, program: ProgramId, rows: usize) -> usize {
        self.session.tiles(program, rows)
    }

    fn begin_profile(&mut self) -> Result<()> {
        self.session.begin_profile()
    }

    fn end_profile(&mut self) -> Result<Vec<KernelTime>> {
        self.session.end_profile()
    }

    fn footprint(&self) -> Footprint {
        self.session.footprint()
    }
}

#[cfg(test)]
mod tests {
    use crate::comm::collective::tests::on_ranks;
    use crate::{Engine, Flow};

    /// Samples, densities and posteriors of a model whose engine is shared by so many ranks.
    fn results(size: usize) -> Vec<[Vec<f32>; 4]> {
        on_ranks(size, |world| {
            let engine = Engine::cpu_with_threads(1).unwrap().with_ranks(world);
            let flow = Flow::builder(3).width(8).blocks(2).seed(2).build(&engine).unwrap();
            let x = flow.sample_from(1001, 4, 77).unwrap();
            let cinn = Flow::cinn_builder(2, 3).width(8).seed(1).build(&engine).unwrap();
            let y: Vec<f32> = (0..9).map(|i| (i as f32).sin()).collect();
            let drawn = cinn.given(&y).unwrap().sample(333, 5).unwrap();
            [flow.log_prob(&x).unwrap(), flow.encode(&x).unwrap().z, x, drawn]
        })
    }

    #[test]
    fn results_have_the_same_bits_for_any_number_of_ranks() {
        let alone = results(1).remove(0);
        assert!(alone.iter().flatten().all(|value| value.is_finite()));
        for size in [2, 3, 7] {
            assert!(results(size).iter().all(|all| *all == alone), "{size} ranks");
        }
    }
}
