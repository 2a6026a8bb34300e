//! Criterion benches of the native CPU engine through the public API: `cargo bench --bench cpu`.
//!
//! Training steps and sampling of the paper's models are `hintflow bench step` and `hintflow bench sample`, which run on
//! any device. These show where a step's time goes: one block forward, one inverse, one backward.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hintflow::plan::ConditionOn;
use hintflow::{Engine, Flow};

/// Samples of one call.
const ROWS: usize = 2_560;

fn model(engine: &Engine, depth: u32, condition_on: ConditionOn) -> Flow {
    let builder = Flow::builder(20).blocks(1).depth(depth).width(152).condition_on(condition_on);
    builder.init_sigma(0.05).seed(1).build(engine).expect("model")
}

fn one_block(c: &mut Criterion) {
    let engine = Engine::cpu().expect("CPU engine");
    let x = model(&engine, 0, ConditionOn::Input).sample(ROWS, 1).expect("samples");
    let mut group = c.benchmark_group("one block of 20 columns, width 152");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(20);
    for (name, depth, condition_on) in [
        ("plain", 0, ConditionOn::Input),
        ("recursive, input", 99, ConditionOn::Input),
        ("recursive, output", 99, ConditionOn::Output),
    ] {
        let flow = model(&engine, depth, condition_on);
        group.bench_function(BenchmarkId::new("encode", name), |b| b.iter(|| flow.encode(&x).expect("encode")));
        group.bench_function(BenchmarkId::new("decode", name), |b| b.iter(|| flow.decode(&x).expect("decode")));
        group.bench_function(BenchmarkId::new("gradients", name), |b| {
            b.iter(|| flow.loss_gradients(&x).expect("gradients"));
        });
    }
    group.finish();
}

criterion_group!(benches, one_block);
criterion_main!(benches);
