use std::collections::BTreeSet;

use super::table::Table;
use super::*;
use crate::config::{Depth, Keep, Preset, ScaleKind};
use crate::measure::Metric;
use crate::plan::{Kind, Mixing, budget};

#[test]
fn every_row_has_the_papers_numbers_and_none_is_left_over() {
    for table in table::all() {
        let mut numbers = published::table(table.name);
        for row in &table.rows {
            let found = numbers.remove(&row.key).unwrap_or_else(|| panic!("{}: no {}", table.name, row.key));
            let metrics: BTreeSet<Metric> = table.metrics.iter().copied().collect();
            assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), metrics, "{}: {}", table.name, row.key);
        }
        assert!(numbers.is_empty(), "{}: {:?}", table.name, numbers.keys());
    }
}

#[test]
fn numbers_are_those_of_the_paper() {
    let value = |table: &str, key: &str, metric| published::table(table)[key][&metric].parts();
    assert_eq!(value("lens_unconditional", "1.rec", Metric::Mmd), (0.140, Some(0.002)));
    assert_eq!(value("depth_width_512", "32.0", Metric::Corr), (0.0021, None));
    assert_eq!(value("uci", "8.miniboone.rec", Metric::LogDensity), (-14.117, Some(0.163)));
}

#[test]
fn remarks_agree_with_the_numbers() {
    let remark = published::remark("cross_unconditional").unwrap();
    for (table, key) in [("cross_unconditional", "4.rnvp"), ("depth_fixed_2m", "4.0")] {
        for metric in [Metric::Ll, Metric::Iou, Metric::Hausdorff] {
            let value = published::table(table)[key][&metric].parts().0;
            assert!(remark.contains(&format!("{value:.3}")), "{table}: {value}");
        }
    }
    assert!(published::remark("uci").is_none());
}

fn models() -> impl Iterator<Item = (Table, Model)> {
    table::all().into_iter().flat_map(|table| {
        let models: Vec<Model> = table.rows.iter().map(|row| row.model).collect();
        let name = table.name;
        models.into_iter().map(move |model| {
            let table = table::all().into_iter().find(|table| table.name == name).unwrap();
            (table, model)
        })
    })
}

#[test]
fn names_tell_models_apart() {
    for (_, a) in models() {
        for (_, b) in models() {
            assert_eq!(a.name() == b.name(), a == b, "{} and {}", a.name(), b.name());
        }
    }
    let names: BTreeSet<&str> = Item::all().into_iter().map(Item::name).collect();
    assert_eq!(names.len(), Item::all().len());
    assert!(Item::named("lens_unconditional").unwrap().is_table());
    let error = Item::named("lens").unwrap_err().to_string();
    assert!(error.contains("lens_conditional") && !error.contains("fourier"), "those alike: {error}");
    let error = Item::named("moons").unwrap_err().to_string();
    assert!(error.contains("lens_conditional") && error.contains("fourier"), "all: {error}");
}

#[test]
fn models_are_trained_as_the_paper_says() {
    for (table, model) in models() {
        let path = model.data.uci().map(|_| Path::new("uci"));
        let config = model.settings(Scale::Paper, 2, path, &[]).unwrap();
        let name = model.name();
        let lr = if model.blocks < 16 { 0.01 } else { 0.001 };
        assert_eq!((config.train.epochs, config.train.lr, config.train.keep), (50, lr, Keep::Last), "{name}");
        assert_eq!(config.train.lr_final, lr / 100.0, "{name}");
        assert_eq!((config.train.seed, config.model.blocks), (2, model.blocks), "{name}");
        let shapes = model.data.shapes(None);
        if let Some(shapes) = shapes {
            assert_eq!((config.train.batch, config.train.batches_per_epoch), (Some(10_000), Some(100)), "{name}");
            assert_eq!((config.data.rows, config.model.mixing), (Some(1_000_000), Mixing::Householder), "{name}");
            let conditions = if model.is_conditional() { shapes.observations().len() as u32 } else { 0 };
            let spec = config.model.spec(shapes.dim() as u32, conditions).unwrap();
            let parameters = budget::parameters(&spec);
            let wanted = match (model.data, model.is_conditional()) {
                _ if table.name.starts_with("depth_width") => parameters,
                (Preset::Lens, false) => 100_000,
                (Preset::Lens, true) => 400_000,
                (_, false) => 2_000_000,
                (_, true) => 4_000_000,
            };
            assert!(parameters.abs_diff(wanted) * 50 < wanted, "{name}: {parameters} instead of {wanted}");
        }
        let kind = match model.family {
            Family::Cinn => Kind::Cinn,
            Family::Hint => Kind::Hint,
            _ => Kind::Flow,
        };
        assert_eq!(config.model.kind, kind, "{name}");
        let plain = matches!(model.family, Family::RealNvp | Family::Cinn);
        assert_eq!(config.model.depth == Depth::Levels(0), plain, "{name}");
        assert_eq!(config.model.slope, plain.then_some(3.18), "{name}");
        let exp = model.settings(Scale::Paper, 2, path, &["model.scale=exp".to_owned()]).unwrap();
        assert_eq!((exp.model.scale, exp.model.slope), (ScaleKind::Exp, None), "{name}");
    }
}

#[test]
fn quick_models_are_smaller() {
    for (_, model) in models() {
        let path = model.data.uci().map(|_| Path::new("uci"));
        let config = model.settings(Scale::Quick, 1, path, &[]).unwrap();
        assert!(config.train.epochs * config.train.batches_per_epoch.unwrap() <= 2000, "{}", model.name());
        assert!(config.model.width.is_none_or(|width| width <= 128), "{}", model.name());
    }
}
