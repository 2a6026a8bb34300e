//! Rows of trainings: how they are read, split and standardised, with conditions and without.

use super::*;
use crate::Overwrite;
use crate::config::Given;
use crate::config::preset::for_tables;
use crate::data::shapes::lens::Outline;
use crate::data::{Bounds, ColumnTransform, Shapes};
use crate::train::dataset::simulated::zeros;
use std::path::Path;

fn table(folder: &Path, rows: usize) -> Config {
    let path = folder.join("t.npy");
    let values = (0..rows * 2).map(|v| v as f32).collect();
    Table::new(vec![], 2, values).unwrap().write(&path, Overwrite::Yes).unwrap();
    let mut config = for_tables();
    config.data.path = Some(path);
    config
}

#[test]
fn tables_are_split_by_a_seed_and_standardised_by_the_training_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = table(folder.path(), 100);
    let data = Dataset::load(&config, None).unwrap();
    assert_eq!((data.train_rows(), data.test_rows(), data.dim, data.name.as_str()), (90, 10, 2, "t"));
    let mean = data.train.iter().step_by(2).sum::<f32>() / 90.0;
    assert!(mean.abs() < 1e-5);
    let rows = data.some_rows(1000).x;
    assert!(rows.chunks(2).is_sorted_by(|a, b| a[0] < b[0]) && rows.len() == 180);
    // A sorted table is looked at from its beginning to its end.
    let some = data.some_rows(20).x;
    assert_eq!(some.len(), 36);
    assert!(some[0] == rows[0] && some[34] == rows[170], "{some:?}");
    config.data.seed = 2;
    assert_ne!(Dataset::load(&config, None).unwrap().fingerprint, data.fingerprint);
}

#[test]
fn small_tables_train_too() {
    let folder = tempfile::tempdir().unwrap();
    for rows in [1, 2, 5] {
        let config = table(folder.path(), rows);
        let data = Dataset::load(&config, None).unwrap();
        assert_eq!(data.train_rows() + data.test_rows(), rows);
        assert!(data.train_rows() > 0 && (data.test_rows() > 0) == (rows > 1));
        let train = data.resolve(&config.train, config.model.kind, config.model.coupling).unwrap();
        assert_eq!(train.batches_per_epoch, Some(32));
    }
}

#[test]
fn batches_beyond_the_data_name_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = table(folder.path(), 100);
    config.train.batch = Some(91);
    let data = Dataset::load(&config, None).unwrap();
    let text = data.resolve(&config.train, config.model.kind, config.model.coupling).unwrap_err().to_string();
    assert!(text.contains("train.batch") && text.contains("90") && text.contains("data.validation"), "{text}");
    config.train.batch = None;
    config.train.epochs = u64::MAX;
    assert!(
        data.resolve(&config.train, config.model.kind, config.model.coupling)
            .unwrap_err()
            .to_string()
            .contains("train.epochs")
    );
    config.data.rows = Some(101);
    assert!(Dataset::load(&config, None).unwrap_err().to_string().contains("data.rows"));
}

#[test]
fn the_split_keeps_every_row_once_and_in_order() {
    let values: Vec<f32> = (0..60).map(|v| v as f32).collect();
    let table = || Table::new(vec![], 2, values.clone()).unwrap();
    let (train, test) = split(table(), 30, 7, &held_out_rows(30, 7, 3)).unwrap();
    assert_eq!((train.len(), test.len()), (46, 14));
    assert!(train.is_sorted() && test.is_sorted());
    let mut all = [&train[..], &test].concat();
    all.sort_by(f32::total_cmp);
    assert_eq!(all, values);
    // The rows that the permutation names first, as in every version.
    let mut named: Vec<f32> =
        rng::permutation_on(3, Stream::Split, 0, 30)[..7].iter().map(|&r| 2.0 * r as f32).collect();
    named.sort_by(f32::total_cmp);
    assert_eq!(test.iter().step_by(2).copied().collect::<Vec<_>>(), named);
    let (train, test) = split(table(), 20, 0, &[]).unwrap();
    assert_eq!((&train[..], &test[..]), (&values[..40], &[][..]));
}

/// Rows `i`: conditions `i` and `1000 + i`, columns `exp(i / 10)`, `i^2`.
fn conditional(folder: &Path) -> Config {
    let line = |i: i32| format!("{},{i},{},{}\n", f64::from(i * i), (f64::from(i) / 10.0).exp(), 1000 + i);
    let text = "square,i,exp,later\n".to_owned() + &(0..60).map(line).collect::<String>();
    let path = folder.join("t.csv");
    std::fs::write(&path, text).unwrap();
    let mut config = for_tables();
    config.model.kind = Kind::Hint;
    config.data.path = Some(path);
    config.data.given = Some(Given::of_text("i,later"));
    config
}

#[test]
fn conditions_stay_with_their_rows_and_have_units_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = conditional(folder.path());
    config.columns.insert("exp".into(), Bounds { lower: Some(0.0), upper: None }.into());
    let data = Dataset::load(&config, None).unwrap();
    assert_eq!((data.cond_dim, data.dim, data.train_rows(), data.test_rows()), (2, 2, 54, 6));
    assert_eq!(
        (&data.y.columns[..], &data.x.columns[..]),
        (&["i", "later"].map(String::from)[..], &["square", "exp"].map(String::from)[..])
    );
    let rows = data.some_rows(1000);
    for (y, x) in rows.y.chunks(2).zip(rows.x.chunks(2)) {
        let i = y[0];
        assert!((y[1] - 1000.0 - i).abs() < 1e-3 && (x[0] - i * i).abs() < 1e-3, "{y:?} {x:?}");
        assert!((x[1] / (i / 10.0).exp() - 1.0).abs() < 1e-5, "{x:?}");
    }
    // Of the training rows alone, and of the bounded column as it is mapped: ln(exp(i / 10)) = i / 10.
    for c in 0..4 {
        let column = || data.train.iter().skip(c).step_by(4).map(|&v| f64::from(v));
        let (mean, square) = (column().sum::<f64>() / 54.0, column().map(|v| v * v).sum::<f64>() / 54.0);
        assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{c}: {mean} {square}");
    }
    for row in data.train.chunks(4) {
        assert!((row[0] - row[3]).abs() < 1e-5 && (row[0] - row[1]).abs() < 1e-4, "{row:?}");
    }
    assert_eq!((data.y.bounds.len(), data.x.bounds.len()), (0, 2));
}

#[test]
fn the_fingerprint_covers_conditions_and_noise_leaves_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = conditional(folder.path());
    let plain = Dataset::load(&config, None).unwrap();
    config.data.test_noise = 0.1;
    let noisy = Dataset::load(&config, None).unwrap();
    for (a, b) in plain.test.chunks(4).zip(noisy.test.chunks(4)) {
        assert_eq!(a[..2], b[..2]);
        assert!(a[2] != b[2] && a[3] != b[3]);
    }
    assert_eq!((&noisy.train, &noisy.fingerprint), (&plain.train, &plain.fingerprint));
    let path = config.data.path.clone().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("1003", "2003")).unwrap();
    assert_ne!(Dataset::load(&config, None).unwrap().fingerprint, plain.fingerprint);
}

#[test]
fn units_of_a_model_to_start_from_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = conditional(folder.path());
    config.columns.insert("square".into(), Bounds { lower: Some(-1.0), upper: None }.into());
    let first = Dataset::load(&config, None).unwrap();
    let spec = crate::plan::Spec { kind: Kind::Hint, dim: 2, cond_dim: 2, width: 2, ..Default::default() };
    let plan: Arc<_> = crate::plan::Plan::new(&spec).unwrap().into();
    let weights = vec![0.0; plan.layout.len()];
    let file = ModelFile { plan, weights, x: first.x.clone(), y: first.y.clone(), evidence: None, training: None };
    config.columns.clear();
    config.data.rows = Some(30);
    let data = Dataset::load(&config, Some(&file)).unwrap();
    assert_eq!((&data.x, &data.y), (&first.x, &first.y));
    // Its bounds hold for the new rows, by their place in the file.
    let path = config.data.path.clone().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\n4.0,2,", "\n-4.0,2,").replace("\n4,2,", "\n-4,2,")).unwrap();
    let text = Dataset::load(&config, Some(&file)).unwrap_err().to_string();
    assert!(text.contains("t.csv: row 3, column 1 (`square`)") && text.contains("greater than -1"), "{text}");
    config.columns.insert("square".into(), Bounds { lower: Some(-2.0), upper: None }.into());
    std::fs::write(&path, "square,i,exp,later\n1,2,3,4\n5,6,7,8\n").unwrap();
    config.data.rows = None;
    assert!(Dataset::load(&config, Some(&file)).unwrap_err().to_string().contains("other bounds"));
}

#[test]
fn lens_is_the_same_for_any_threads_and_names_its_settings() {
    let mut config = Preset::Lens.config();
    config.data.rows = Some(40);
    config.data.test_rows = Some(0);
    let data = Dataset::load(&config, None).unwrap();
    assert_eq!(data.train[..], *Shapes::Lens(Outline::Vertices).generate(40, 1, 0).unwrap().values());
    assert!(data.test.is_empty() && data.notes.is_empty(), "{:?}", data.notes);
    config.run.threads = 1;
    assert_eq!(Dataset::load(&config, None).unwrap().fingerprint, data.fingerprint);
    config.data.test_rows = Some(1 << 32);
    assert!(Dataset::load(&config, None).unwrap_err().to_string().contains("data.test_rows"));
    // More than any address space: 32-bit numbers of rows cannot ask for it, but few columns of a large N could.
    assert!(zeros("data.rows", 4_000_000_000, 1 << 30).unwrap_err().to_string().contains("data.rows"));
}

#[test]
fn test_noise_is_always_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = table(folder.path(), 50);
    let plain = Dataset::load(&config, None).unwrap();
    config.data.test_noise = 0.1;
    let noisy = Dataset::load(&config, None).unwrap();
    assert_eq!(noisy.test, Dataset::load(&config, None).unwrap().test);
    assert_eq!(noisy.train, plain.train);
    assert!(noisy.test.iter().zip(&plain.test).all(|(a, b)| a != b && (a - b).abs() < 0.6));
}

/// What a message must say of a data set that cannot be built.
fn refused(builder: DatasetBuilder, says: &[&str]) {
    let text = builder.build().unwrap_err().to_string();
    assert!(says.iter().all(|part| text.contains(part)), "{text}: not {says:?}");
}

#[test]
fn rows_in_memory_that_do_not_agree_say_where() {
    let x = [0.5, 1.0, 1.5, -2.0, 3.0, 0.25];
    let rows = || Dataset::from_rows(&x, 2);
    refused(rows().names(["a", "a"]), &["names", "`a`", "two columns of x"]);
    refused(rows().names(["a", " "]), &["names", "column 1", "empty"]);
    refused(rows().condition_names(["a"]), &["condition_names", "no conditions"]);
    refused(rows().condition_bounds(0, Some(0.0), None), &["condition_bounds", "no conditions"]);
    refused(rows().validation_rows(&x).validation_conditions(&x), &["validation_conditions", "no conditions"]);
    let conditional = || rows().conditions(&x[..3], 1);
    refused(conditional().validation_conditions(&x), &["validation_conditions", "no validation rows"]);
    refused(conditional().validation_rows(&x[..5]), &["the validation rows", "whole rows of 2"]);
    refused(conditional().validation_rows(&x), &["the validation conditions", "got 0"]);
    refused(
        conditional().validation_rows(&x).validation_conditions(&x),
        &["rows of the validation conditions", "expected 3, got 6"],
    );
    refused(conditional().validation_rows(&[0.0, f32::NAN]), &["row 0, column 1 of the validation rows"]);
    refused(conditional().condition_bounds(0, Some(0.75), None), &["row 0, column 0 of the conditions", "0.75"]);
    refused(conditional().condition_transform(1, ColumnTransform::Log), &["column", "0 to 0"]);
    let data = conditional()
        .condition_bounds(0, Some(0.25), None)
        .condition_transform(0, ColumnTransform::Log)
        .build()
        .unwrap();
    assert_eq!(data.cond_dim, 1);
}
