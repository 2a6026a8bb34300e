//! The gradients of a training step, by Adam's first moments: those of the oracle, whether a step applies reflections to
//! few rows or makes a matrix for many.

use hintflow::config::{Memory, Preset};
use hintflow::data::Table;
use hintflow::train::Dataset;
use hintflow::{Engine, Flow};

use crate::rooms::common::engines;
use crate::rooms::common::fixture::write_model;
use crate::rooms::common::oracle::{Mixing, Model, Spec};
use crate::rooms::common::random::{random_model, random_rows};
use crate::rooms::common::whole::assert_close_on_the_whole;

/// What the first step of a training on all of the rows takes for the gradients, by the names of the weights.
fn gradients(model: &Model, rows: &[f32], memory: Memory, engine: &Engine) -> Vec<(String, Vec<f64>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    let flow = Flow::load(&path, engine).unwrap();

    let mut config = Preset::Lens.config();
    config.data.preset = None;
    let dim = flow.spec().row_columns() as usize;
    let table = Table::new(vec![], dim, rows.to_vec()).unwrap();
    let data = Dataset::from_tables(&config, "rows", table, None).unwrap();
    assert!(data.some_rows(usize::MAX).x == rows, "the model sees the rows as they are");
    let train = &mut config.train;
    (train.epochs, train.memory) = (1, memory);
    (train.batch, train.batches_per_epoch) = (Some((rows.len() / dim) as u64), Some(1));
    (train.noise, train.l2, train.grad_clamp) = (0.0, 0.0, 1e30);
    (train.decay, train.dropout) = (Some(0.0), Some(0.0));
    let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
    trainer.step().unwrap();
    let moments = trainer.state().unwrap().first_moments;
    let tensors = flow.plan().layout.tensors.iter().filter(|tensor| tensor.offset < moments.len());
    let gradient = |m: &f32| f64::from(*m) / (1.0 - config.train.beta1);
    tensors.map(|t| (t.name.clone(), moments[t.offset..t.offset + t.len()].iter().map(gradient).collect())).collect()
}

fn steps_have_the_oracles_gradients(engine: &Engine) {
    let flow = |dim, blocks| Spec { blocks, mixing: Mixing::Householder, width: 12, depth: 2, ..Spec::flow(dim) };
    // One block of 32 reflections, some, and some with a rest; rows that are few and many beside the columns, in one
    // tile and in several.
    for (spec, all_rows) in [(flow(5, 3), &[3, 50][..]), (flow(32, 2), &[21, 90]), (flow(75, 2), &[1, 37, 100, 300])] {
        let model = random_model(3, spec.clone());
        for &rows in all_rows {
            let (x, _) = random_rows(&model, 5, rows, 1e-4);
            let want = model.loss_gradients(&x, &[]);
            let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            for memory in [Memory::Stored, Memory::Reversible] {
                let got = gradients(&model, &x, memory, engine);
                assert_eq!(got.len(), want.params.keys().filter(|name| !name.ends_with("mix.weight")).count());
                for (name, got) in &got {
                    let what = format!("{name} of {rows} rows, {memory:?}, {spec:?}");
                    assert_close_on_the_whole(&what, got, &want.params[name].data, 1e-4);
                }
                let wanted: Vec<f64> = got.iter().flat_map(|(name, _)| want.params[name].data.clone()).collect();
                let all: Vec<f64> = got.into_iter().flat_map(|(_, values)| values).collect();
                assert_close_on_the_whole(&format!("{rows} rows, {memory:?}, {spec:?}"), &all, &wanted, 1e-5);
            }
        }
    }
}

#[test]
fn steps_have_the_oracles_gradients_on_the_native_engine() {
    steps_have_the_oracles_gradients(&engines::cpu());
}

#[test]
fn steps_have_the_oracles_gradients_on_a_gpu() {
    steps_have_the_oracles_gradients(&engines::gpu());
}
