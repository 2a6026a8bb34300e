//! Reversible trainings: memory that does not grow with the number of blocks, and the gradients of stored activations.

mod common;

use common::compare::{Tolerance, assert_close};
use common::engines;
use common::fixture::write_model;
use common::oracle::{ConditionOn, Mixing, Model, Scale, Spec};
use common::random::{random_model, random_rows};
use hintflow::config::preset;
use hintflow::data::Table;
use hintflow::flow::Memory;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::{Dataset, Trainer};
use hintflow::{Engine, Flow};

const MEMORIES: [Memory; 2] = [Memory::Stored, Memory::Reversible];

/// Bytes of activations after a training of a few steps that scored held-out rows, and drew samples.
fn activations(engine: &Engine, condition_on: hintflow::plan::ConditionOn, memory: Memory, blocks: u32) -> usize {
    let normals = |rows: usize, seed| {
        let mut values = vec![0.0; rows * 6];
        fill_normals(seed, Stream::Data, 0, 0, &mut values);
        Table::new(vec![], 6, values).expect("a table")
    };
    let mut config = preset::for_tables();
    (config.train.epochs, config.train.batch, config.train.memory) = (1, Some(300), memory);
    let data = Dataset::from_tables(&config, "normals", normals(900, 1), Some(normals(200, 2))).expect("data");
    let flow = Flow::builder(6).blocks(blocks).width(12).condition_on(condition_on).build(engine).expect("flow");
    let mut trainer = Trainer::new(&flow, &config, &data).expect("trainer");
    while !trainer.is_done() {
        trainer.step().expect("step");
        if trainer.at_epoch_end() {
            trainer.finish_epoch().expect("score");
        }
    }
    flow.sample(200, 1).expect("samples");
    let footprint = flow.footprint();
    // Everything else follows from the weights and the data.
    assert!(footprint.weights >= 4 * flow.parameters() && footprint.optimizer >= 8 * flow.parameters());
    assert!(footprint.gradients >= 4 * flow.parameters() && footprint.data >= 900 * 6 * 4);
    footprint.total() - footprint.of_weights() - footprint.data
}

fn memory_does_not_grow_with_the_blocks(engine: &Engine) {
    use hintflow::plan::ConditionOn;
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        let [stored, reversible] = MEMORIES.map(|memory| {
            let [few, many] = [4, 32].map(|blocks| activations(engine, condition_on, memory, blocks));
            many as f64 / few as f64
        });
        assert!(reversible <= 1.3, "{condition_on:?}: {reversible}");
        assert!(stored > 3.0, "{condition_on:?}: {stored}, so this test cannot tell them apart");
    }
}

#[test]
fn memory_does_not_grow_with_the_blocks_on_the_native_engine() {
    // Every thread has an arena of its own, which it makes when it first meets the others busy.
    memory_does_not_grow_with_the_blocks(&Engine::cpu_with_threads(1).expect("a thread"));
}

#[test]
fn memory_does_not_grow_with_the_blocks_on_a_gpu() {
    memory_does_not_grow_with_the_blocks(&engines::gpu());
}

fn load(model: &Model, engine: &Engine, memory: Memory) -> Flow {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    Flow::load(&path, engine).expect("model").with_memory(memory)
}

/// Many blocks, where errors of the way back add up: against float64.
fn deep_models_have_the_right_gradients(engine: &Engine) {
    for (dim, blocks, condition_on, mixing, scale) in [
        (1, 32, ConditionOn::Input, Mixing::None, Scale::Exp),
        (5, 32, ConditionOn::Output, Mixing::Fixed, Scale::Exp),
        (7, 32, ConditionOn::Input, Mixing::Householder, Scale::default()),
        (20, 16, ConditionOn::Input, Mixing::Fixed, Scale::Exp),
        (20, 32, ConditionOn::Output, Mixing::Fixed, Scale::default()),
    ] {
        let spec = Spec { blocks, condition_on, mixing, scale, width: 16, ..Spec::flow(dim) };
        let model = random_model(3, spec.clone());
        let (x, _) = random_rows(&model, 5, 40, 1e-6);
        let rows: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let want = model.loss_gradients(&x, &[]);
        for memory in MEMORIES {
            let what = |part: &str| format!("{memory:?}: {part} of {spec:?}");
            let (_, got) = load(&model, engine, memory).loss_gradients(&rows).expect("gradients");
            let close = Tolerance::relative(1e-4).floor(1e-7);
            assert_close(&what("d_x"), &got.x, &want.x, close);
            for (name, gradient) in &got.tensors {
                assert_close(&what(name), gradient, &want.params[name].data, close);
            }
        }
    }
}

#[test]
fn deep_models_have_the_right_gradients_on_the_native_engine() {
    deep_models_have_the_right_gradients(&engines::cpu());
}

#[test]
fn deep_models_have_the_right_gradients_on_a_gpu() {
    deep_models_have_the_right_gradients(&engines::gpu());
}
