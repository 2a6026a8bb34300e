//! The engines that every model test runs on.

use hintflow::Engine;

/// The native engine, with two threads so that tiles really run side by side.
pub(crate) fn cpu() -> Engine {
    Engine::cpu_with_threads(2).expect("threads of the CPU engine")
}

/// The best GPU, or a software adapter where there is none.
pub(crate) fn gpu() -> Engine {
    Engine::gpu().expect("an adapter")
}
