//! Criterion benches of the native CPU engine: `cargo bench --bench cpu`.
//!
//! Training steps and sampling of the paper's models are `hintflow bench step` and `hintflow bench sample`, which run
//! on any device. These show where a step's time goes: the operations of a step and the matrix products in its layers'
//! shapes, by the code of `hintflow bench kernels`; one block forward, inverse and backward through the public API.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hintflow::bench::{Bench, Case, Effort, Part, Product};
use hintflow::flow::{ConditionOn, Memory};
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

/// Each operation of a training step and of sampling, on one thread.
fn operations(c: &mut Criterion) {
    let engine = Engine::cpu_with_threads(1).expect("CPU engine");
    let case = Case::named("small").expect("a case");
    let bench = Bench::new(case, ConditionOn::Input, Memory::Stored, &engine).expect("a right engine");
    let times = |part, repeats: usize| {
        bench.kernels(part, &Effort { repeats: Some(repeats), ..Effort::default() }).expect("times").kernels
    };
    for (part, name) in [(Part::Step, "step"), (Part::Sample, "sample")] {
        let mut group = c.benchmark_group(format!("operations of a {name}, {} rows", case.batch));
        group.throughput(Throughput::Elements(case.batch as u64)).sample_size(20);
        for operation in times(part, 1) {
            group.bench_function(operation.name, |b| {
                b.iter_custom(|iterations| {
                    let all = times(part, iterations as usize);
                    let row = all.iter().find(|row| row.name == operation.name).expect("the same operations each time");
                    Duration::from_secs_f64(row.ms * 1e-3 * iterations as f64)
                });
            });
        }
        group.finish();
    }
}

/// The three products of every layer shape, on one tile.
fn products(c: &mut Criterion) {
    let case = Case::named("lens2").expect("a case");
    let mut group = c.benchmark_group("matrix products of lens2");
    group.sample_size(20).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(200));
    for mut product in Product::all(&case, ConditionOn::Input).expect("a model") {
        let shape = format!("{} x {}", product.outputs, product.inputs);
        group.throughput(Throughput::Elements(product.flops()));
        group.bench_function(BenchmarkId::new(format!("{:?}", product.kind), shape), |b| b.iter(|| product.run()));
    }
    group.finish();
}

criterion_group!(benches, one_block, operations, products);
criterion_main!(benches);
