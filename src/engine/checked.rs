//! A session that checks what it is told, so that both engines refuse the same things with the same words.

use std::sync::Arc;
use std::time::Duration;

use super::{Footprint, Job, KernelTime, ProgramId, Session, Skips, StepJob, Values};
use crate::comm::World;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::Program;

/// Checks sizes and row numbers, then asks the engine's session.
pub(super) struct Checked {
    session: Box<dyn Session>,
    plan: Arc<Plan>,
    /// For each program the rows of its inputs.
    inputs: Vec<Vec<usize>>,
    /// Rows of the data.
    data: usize,
    /// Length of the order.
    order: usize,
}

impl Checked {
    pub(super) fn new(session: Box<dyn Session>, plan: Arc<Plan>) -> Self {
        Self { session, plan, inputs: Vec::new(), data: 0, order: 0 }
    }

    fn columns(&self) -> usize {
        self.plan.spec.row_columns() as usize
    }
}

fn agree(what: &str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what: what.into(), expected, got }) }
}

fn at_most(what: &str, most: usize, got: usize) -> Result<()> {
    if got <= most { Ok(()) } else { Err(Error::Shape { what: format!("{what} (at most)"), expected: most, got }) }
}

impl Session for Checked {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        assert!(program.plan == self.plan, "a session runs programs of its own plan");
        let inputs = program.inputs.iter().map(|b| b.rows as usize).collect();
        let id = self.session.compile(program, rows)?;
        assert_eq!(id.0, self.inputs.len(), "programs are numbered in order");
        self.inputs.push(inputs);
        Ok(id)
    }

    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let inputs = &self.inputs[program.0];
        agree("inputs of the program", inputs.len(), job.inputs.len())?;
        for (features, values) in inputs.iter().zip(job.inputs) {
            agree("values of an input", job.rows * features, values.len())?;
        }
        self.session.run(program, job)
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        agree("values beyond the last whole row of the data", 0, data.len() % self.columns())?;
        let rows = data.len() / self.columns();
        at_most("rows of the data", u32::MAX as usize, rows)?;
        self.session.set_data(data)?;
        (self.data, self.order) = (rows, 0);
        Ok(())
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        if let Some(&largest) = order.iter().max() {
            at_most("rows of the data that the order needs", self.data, largest as usize + 1)?;
        }
        self.session.set_order(order)?;
        self.order = order.len();
        Ok(())
    }

    fn share(&mut self, world: World) -> Result<()> {
        self.session.share(world)
    }

    fn exchanged(&self) -> Duration {
        self.session.exchanged()
    }

    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        at_most("samples in the order of the data", self.order, job.first.saturating_add(job.rows))?;
        if job.rows == 0 {
            return Err(Error::Shape { what: "samples of a training step".into(), expected: 1, got: 0 });
        }
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
        let expected = match values {
            Values::Weights => self.plan.layout.len(),
            Values::FirstMoments | Values::SecondMoments | Values::Averages => self.plan.layout.trained,
        };
        let what = match values {
            Values::Weights => "weights",
            Values::FirstMoments => "first moments",
            Values::SecondMoments => "second moments",
            Values::Averages => "averages of the weights",
        };
        agree(what, expected, data.len())?;
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
    use super::*;
    use crate::engine::Engine;
    use crate::flow::programs::{Name, record};
    use crate::optim::Adam;
    use crate::plan::Spec;
    use crate::tape::Memory;

    #[test]
    fn wrong_sizes_are_errors_that_name_them() {
        let plan = Arc::new(Plan::new(&Spec { dim: 3, blocks: 1, width: 4, ..Spec::default() }).unwrap());
        let mut session = Engine::cpu_with_threads(1).unwrap().load(plan.clone()).unwrap();
        let message = |result: Result<()>| result.unwrap_err().to_string();

        assert!(message(session.write(Values::Weights, &[0.0])).contains("weights"));
        assert!(message(session.set_data(vec![0.0; 7].into())).contains("whole row"));
        session.set_data(vec![0.0; 6].into()).unwrap();
        assert!(message(session.set_order(&[0, 2])).contains("order"));
        session.set_order(&[1, 0]).unwrap();
        let id = session.compile(record(Name::Step(Memory::Stored), &plan), 2).unwrap();
        let step = |first, rows| StepJob {
            first,
            rows,
            noise: 0.0,
            dropout: 0,
            seed: 0,
            step: 0,
            adam: Adam::default().step(0.1, 1),
        };
        assert!(message(session.step(id, &step(1, 2))).contains("order"));
        assert!(message(session.step(id, &step(0, 0))).contains("samples"));
        session.step(id, &step(0, 2)).unwrap();
        let id = session.compile(record(Name::Encode, &plan), 2).unwrap();
        let job = Job { rows: 2, inputs: &[&[0.0; 5]], seed: 0, first_row: 0, ..Job::default() };
        assert!(message(session.run(id, &job).map(drop)).contains("input"));
    }
}
