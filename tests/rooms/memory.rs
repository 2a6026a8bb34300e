//! Reversible trainings: memory that does not grow with the number of blocks, and the gradients of stored activations.

use crate::rooms::common::compare::{Tolerance, assert_close};
use crate::rooms::common::engines;
use crate::rooms::common::fixture::write_model;
use crate::rooms::common::oracle::{ConditionOn, Mixing, Model, Scale, Spec};
use crate::rooms::common::random::{random_model, random_rows};
use crate::rooms::common::whole::assert_close_on_the_whole;
use hintflow::config::preset;
use hintflow::data::Table;
use hintflow::flow::Memory;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::Dataset;
use hintflow::{Engine, Flow};

const MEMORIES: [Memory; 2] = [Memory::Stored, Memory::Reversible];

/// Bytes that are no matter of weights and data: after a training step, and after a training that scored held-out rows
/// and drew samples.
fn activations(engine: &Engine, condition_on: hintflow::plan::ConditionOn, memory: Memory, blocks: u32) -> [f64; 2] {
    let normals = |rows: usize, seed| {
        let mut values = vec![0.0; rows * 6];
        fill_normals(seed, Stream::Data, 0, 0, &mut values);
        Table::new(vec![], 6, values).expect("a table")
    };
    let mut config = preset::for_affine_tables();
    // Rows enough that activations outweigh what every dispatch of a block is told.
    (config.train.epochs, config.train.batch, config.train.memory) = (1, Some(2000), memory);
    let data = Dataset::from_tables(&config, "normals", normals(4000, 1), Some(normals(200, 2))).expect("data");
    let flow = Flow::builder(6).blocks(blocks).width(12).condition_on(condition_on).build(engine).expect("flow");
    let mut trainer = crate::rooms::begin(&flow, &config, &data).expect("trainer");
    let bytes = || {
        let footprint = flow.footprint();
        (footprint.total() - footprint.of_weights() - footprint.data) as f64
    };
    trainer.step().expect("step");
    let after_a_step = bytes();
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
    assert!(footprint.gradients >= 4 * flow.parameters() && footprint.data >= 4000 * 6 * 4);
    [after_a_step, bytes()]
}

fn memory_does_not_grow_with_the_blocks(engine: &Engine) {
    use hintflow::plan::ConditionOn;
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        let [stored, reversible] = MEMORIES.map(|memory| {
            let [few, many] = [4, 32].map(|blocks| activations(engine, condition_on, memory, blocks));
            [many[0] / few[0], many[1] / few[1]]
        });
        assert!(reversible.iter().all(|&ratio| ratio <= 1.3), "{condition_on:?}: {reversible:?}");
        assert!(stored[0] > 3.0, "{condition_on:?}: {stored:?}, so this test cannot tell them apart");
    }
}

#[test]
fn memory_does_not_grow_with_the_blocks_on_the_native_engine() {
    // Every thread has an arena of its own, which it makes when it first meets the others busy.
    memory_does_not_grow_with_the_blocks(&Engine::cpu_with_threads(1).expect("a thread"));
}

fn load(model: &Model, engine: &Engine, memory: Memory) -> Flow {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    Flow::load(&path, engine).expect("model").with_memory(memory)
}

/// A random model of many blocks, with last layers halved: what grows in one block makes the scales of the next grow,
/// and 32 blocks of what is tame in four reach 1e60.
fn deep_model(spec: Spec) -> Model {
    let mut model = random_model(3, spec);
    let last_layers =
        model.params.iter_mut().filter(|(name, _)| name.ends_with(".2.weight") || name.ends_with(".2.bias"));
    last_layers.flat_map(|(_, tensor)| &mut tensor.data).for_each(|v| *v *= 0.5);
    model
}

/// Many blocks, where errors of the way back add up: against float64, and against stored activations.
fn deep_models_have_the_right_gradients(engine: &Engine) {
    for (dim, blocks, condition_on, mixing, scale) in [
        (1, 32, ConditionOn::Input, Mixing::None, Scale::Exp),
        (5, 32, ConditionOn::Output, Mixing::Fixed, Scale::Exp),
        (7, 32, ConditionOn::Input, Mixing::Householder, Scale::default()),
        (20, 16, ConditionOn::Input, Mixing::Fixed, Scale::Exp),
        (20, 32, ConditionOn::Output, Mixing::Fixed, Scale::default()),
    ] {
        let spec = Spec { blocks, condition_on, mixing, scale, width: 16, ..Spec::flow(dim) };
        let model = deep_model(spec.clone());
        // Far from the kinks of ReLUs: on the wrong side of one, a single row moves the gradient by far more than
        // rounding. Networks that see nothing are the same for all rows and engines.
        let (x, _) = random_rows(&model, 5, 40, if dim == 1 { 0.0 } else { 1e-4 });
        let rows: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let want = model.loss_gradients(&x, &[]);
        let [stored, reversible] = MEMORIES.map(|memory| {
            let what = |part: &str| format!("{memory:?}: {part} of {spec:?}");
            let (_, got) = load(&model, engine, memory).loss_gradients(&rows).expect("gradients");
            assert_close(&what("d_x"), &got.x, &want.x, Tolerance::relative(1e-4));
            let (mut all, mut wanted) = (Vec::new(), Vec::new());
            for (name, gradient) in &got.tensors {
                let want = &want.params[name].data;
                assert_close(&what(name), gradient, want, Tolerance::relative(1e-4).floor(1e-5));
                all.extend(gradient.iter().map(|&v| f64::from(v)));
                wanted.extend(want);
            }
            assert_close_on_the_whole(&what("the gradient"), &all, &wanted, 1e-5);
            all
        });
        assert_close_on_the_whole(&format!("stored or not: {spec:?}"), &reversible, &stored, 1e-5);
    }
}

#[test]
fn deep_models_have_the_right_gradients_on_the_native_engine() {
    deep_models_have_the_right_gradients(&engines::cpu());
}

mod gpu {
    use crate::rooms::common::engines;

    #[test]
    fn memory_does_not_grow_with_the_blocks() {
        super::memory_does_not_grow_with_the_blocks(&engines::gpu());
    }

    #[test]
    fn deep_models_have_the_right_gradients() {
        super::deep_models_have_the_right_gradients(&engines::gpu());
    }
}
