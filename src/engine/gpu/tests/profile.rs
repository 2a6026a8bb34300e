//! Timing dispatches changes no result and misses none.

use super::*;
use crate::engine::KernelTime;
use crate::flow::Memory;
use crate::flow::programs::{Name, record};

#[test]
fn every_dispatch_is_timed_once() {
    let plan = plan(Spec { dim: 5, width: 13, ..Spec::default() });
    let device = device();
    let x = numbers(3, 70 * 5, 1.0);
    let session = |time_by_pass: bool| {
        let mut session = session_with(&device, &plan, Options { time_by_pass, ..tiles(32) });
        session.write(Values::Weights, &weights(&plan)).unwrap();
        let id = session.compile(record(Name::LossGradients(Memory::Stored), &plan), 70).unwrap();
        (session, id)
    };
    // Both number their only program alike.
    let ((mut session, id), (mut by_pass, _)) = (session(false), session(true));
    let run = |session: &mut GpuSession| {
        session.run(id, &Job { rows: 70, inputs: &[&x], seed: 0, first_row: 0, ..Job::default() }).unwrap()
    };
    // The first run of a session copies its weights as well.
    let untimed = run(&mut session);
    assert!(run(&mut by_pass) == untimed);

    session.begin_profile().unwrap();
    assert!(run(&mut session) == untimed);
    let in_one_pass = session.end_profile().unwrap();
    by_pass.begin_profile().unwrap();
    assert!(run(&mut by_pass) == untimed);
    let in_a_pass_each = by_pass.end_profile().unwrap();

    // Three tiles.
    assert_eq!(in_one_pass.len(), 3 * session.dispatches(id));
    let names = |times: &[KernelTime]| times.iter().map(|time| (time.name, time.grid)).collect::<Vec<_>>();
    assert_eq!(names(&in_one_pass), names(&in_a_pass_each));
    assert!(names(&in_one_pass).iter().any(|(name, grid)| *name == "weight_gradient" && grid[0] > 0));
    for time in in_one_pass.iter().chain(&in_a_pass_each) {
        assert!(time.nanoseconds > 0.0 && time.nanoseconds < 1e9, "{time:?}");
    }
    assert!(session.end_profile().unwrap().is_empty(), "nothing was timed since");
}
