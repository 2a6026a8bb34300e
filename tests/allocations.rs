//! Training steps of the CPU engine allocate nothing: a test binary of its own, for the allocator is the whole
//! process's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use hintflow::Engine;
use hintflow::config::{Memory, preset};
use hintflow::data::Table;
use hintflow::flow::FlowBuilder;
use hintflow::plan::Mixing;
use hintflow::train::{Dataset, Trainer};

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
    const STEPS: usize = 200;
    let rows: Vec<f32> = (0..2000 * 6).map(|i| ((i * 7919 % 997) as f32 / 300.0).sin()).collect();
    // In batches of 8 reflections are applied to the rows, in batches of 300 a matrix is made.
    for (of_tables, memory, batch, more) in [
        (preset::for_tables(), Memory::Stored, 300, false),
        (preset::for_tables(), Memory::Reversible, 300, false),
        (preset::for_affine_tables(), Memory::Stored, 300, false),
        (preset::for_affine_tables(), Memory::Reversible, 300, false),
        (preset::for_affine_tables(), Memory::Stored, 300, true),
        (preset::for_affine_tables(), Memory::Stored, 8, false),
    ] {
        let mut config = of_tables;
        config.model.width = Some(50);
        config.model.blocks = 2;
        config.model.mixing = Mixing::Householder;
        config.train.batch = Some(batch);
        config.train.batches_per_epoch = Some(2 * STEPS as u64);
        config.train.memory = memory;
        if more {
            (config.train.clip_norm, config.train.decay, config.train.average) = (0.5, Some(0.1), 0.99);
        }
        let table = Table::new(vec![], 6, rows.clone()).unwrap();
        let data = Dataset::from_tables(&config, "waves", table, None).unwrap();
        let spec = config.model.spec(6, 0).unwrap();
        let flow = FlowBuilder::from_spec(spec).build(&Engine::cpu_with_threads(2).unwrap()).unwrap();
        let mut trainer = Trainer::new(&flow, &config, &data).unwrap();
        let mut allocations = || {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for _ in 0..STEPS {
                trainer.step().unwrap();
            }
            ALLOCATIONS.load(Ordering::Relaxed) - before
        };
        // The first steps make the arenas of both threads.
        allocations();
        let counted = allocations();
        // The queue of the pool takes a new block once in 60 steps or so.
        let what = (config.model.coupling, memory, batch, more);
        assert!(counted < STEPS / 10, "{counted} allocations in {STEPS} steps, {what:?}");
    }
}
