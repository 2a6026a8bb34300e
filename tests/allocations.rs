//! Training steps of the CPU engine allocate nothing: a test binary of its own, for the allocator is the whole
//! process's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use hintflow::flow::{Memory, Mixing, Spline, Transform};
use hintflow::train::Event;
use hintflow::{Dataset, Engine, TrainConfig, Trainer};

/// Counts allocations of all threads.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn training_steps_allocate_nothing() {
    /// Rows of 40 batches.
    const BATCHES: usize = 40;
    const EPOCHS: u64 = 8;
    // In batches of 8 reflections are applied to the rows, in batches of 300 a matrix is made.
    for (coupling, memory, batch, more) in [
        (Transform::Spline(Spline::default()), Memory::Stored, 300, false),
        (Transform::Spline(Spline::default()), Memory::Reversible, 300, false),
        (Transform::Affine, Memory::Stored, 300, false),
        (Transform::Affine, Memory::Reversible, 300, false),
        (Transform::Affine, Memory::Stored, 300, true),
        (Transform::Affine, Memory::Stored, 8, false),
    ] {
        let rows: Vec<f32> = (0..BATCHES * batch * 6).map(|i| ((i * 7919 % 997) as f32 / 300.0).sin()).collect();
        let data = Dataset::from_rows(&rows, 6).validation(0.0).build().unwrap();
        let flow = data.flow().coupling(coupling).blocks(2).width(50).mixing(Mixing::Householder);
        let mut flow = flow.build(&Engine::cpu_with_threads(2).unwrap()).unwrap();
        // Without retries, for which all weights are looked at after an epoch's last step.
        let config = TrainConfig::default().epochs(EPOCHS).batch(batch as u64).memory(memory).retries(0);
        let config = if more { config.clip_norm(0.5).weight_decay(0.1).average(0.99) } else { config };
        // Steps are told of by tens. What is between two of them within an epoch is steps alone; the first epoch makes the
        // arenas of both threads.
        let (mut last, mut counted, mut steps) = (None, 0, 0);
        let trainer = Trainer::new(&mut flow, &data, config).unwrap();
        let told = |event: Event<'_>| {
            let now = ALLOCATIONS.load(Ordering::Relaxed);
            last = match event {
                Event::Step(progress) => {
                    if let Some(before) = last.filter(|_| progress.epoch > 1) {
                        (counted, steps) = (counted + now - before, steps + 10);
                    }
                    Some(now)
                }
                _ => None,
            };
            ControlFlow::Continue(())
        };
        trainer.fit(told).unwrap();
        assert_eq!(steps, 30 * (EPOCHS as usize - 1));
        // The queue of the pool takes a new block once in 60 steps or so.
        let what = (coupling, memory, batch, more);
        assert!(counted < steps / 10, "{counted} allocations in {steps} steps, {what:?}");
    }
}
