//! The engines that every model test runs on.

use hintflow::Engine;

/// The native engine, with two threads so that tiles really run side by side.
pub(crate) fn cpu() -> Engine {
    Engine::cpu_with_threads(2).expect("threads of the CPU engine")
}

/// The adapter that `HINTFLOW_TEST_DEVICE` names, else the best GPU, or a software adapter where there is none.
pub(crate) fn gpu() -> Engine {
    match std::env::var("HINTFLOW_TEST_DEVICE") {
        Ok(name) => Engine::named(&name),
        Err(_) => Engine::gpu(),
    }
    .expect("an adapter")
    // Tests meet many models once; and they leave the user's cache alone.
    .untuned()
}

/// Of numbers of columns those that `HINTFLOW_TEST_COLUMNS` lists, with commas; all of them if it does not exist.
pub(crate) fn asked(dims: impl IntoIterator<Item = usize>) -> impl Iterator<Item = usize> {
    let list = std::env::var("HINTFLOW_TEST_COLUMNS").ok();
    let numbers: Option<Vec<usize>> =
        list.map(|list| list.split(',').map(|n| n.trim().parse().expect("HINTFLOW_TEST_COLUMNS: numbers")).collect());
    dims.into_iter().filter(move |dim| numbers.as_ref().is_none_or(|numbers| numbers.contains(dim)))
}
