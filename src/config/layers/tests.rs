use super::*;
use crate::config::ScaleKind;

fn set(assignments: &[&str]) -> Result<Config> {
    let mut layers = Layers::new();
    layers.assignments(&assignments.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())?;
    layers.resolve()
}

fn message(assignments: &[&str]) -> String {
    set(assignments).unwrap_err().to_string()
}

#[test]
fn columns_of_any_name_have_bounds() {
    let columns = set(&[
        "columns.theta_1.lower=0",
        "columns.theta_1.upper = 2.5",
        "columns.a.b.lower=1",
        "columns.\"a b\".lower=2",
        "columns.\"rate = 1/s\".upper=3",
        "columns.3.lower=-1e-30",
    ]);
    let columns = columns.unwrap().columns;
    let bounds = |name: &str| (columns[name].lower, columns[name].upper);
    assert_eq!(bounds("theta_1"), (Some(0.0), Some(2.5)));
    assert_eq!((bounds("a.b"), bounds("a b")), ((Some(1.0), None), (Some(2.0), None)));
    assert_eq!((bounds("rate = 1/s"), bounds("3")), ((None, Some(3.0)), (Some(-1e-30), None)));
    let mut layers = Layers::new();
    layers.toml("[columns.\"a.b\"]\nlower = 1\n[columns.c]\nupper = 2", Path::new("c.toml")).unwrap();
    let config = layers.resolve().unwrap();
    assert_eq!((config.columns["a.b"].lower, config.columns["c"].upper), (Some(1.0), Some(2.0)));
    let mut again = Layers::new();
    again.toml(&config.to_toml().unwrap(), Path::new("c.toml")).unwrap();
    assert_eq!(again.resolve().unwrap().columns, config.columns);
    for (wrong, what) in
        [("columns.a.lower=x", "a number"), ("columns.a.lower=inf", "finite"), ("columns.a.least=0", "columns.a.least")]
    {
        assert!(message(&[wrong]).contains(what), "{}", message(&[wrong]));
    }
    assert!(message(&["columns.a.lower=2", "columns.a.upper=2"]).contains("no room"));
}

#[test]
fn values_are_toml_or_text() {
    let c = set(&[
        "train.lr=1e-3",
        "train.batch=1e4",
        "model.depth=full",
        "train.epochs=3",
        "data.path=dir/x.npy",
        "run.device=0",
        "train.shuffle=false",
        "data.columns=a, b",
        "train.noise=0",
    ]);
    let c = c.unwrap();
    assert_eq!((c.train.lr, c.train.batch, c.train.epochs, c.train.noise), (1e-3, Some(10_000), 3, 0.0));
    assert_eq!((c.run.device.as_str(), c.train.shuffle), ("0", false));
    assert_eq!(c.data.columns.unwrap().0, ["a", "b"]);
    assert_eq!(set(&["model.depth=2"]).unwrap().model.depth, super::super::Depth::Levels(2));
}

#[test]
fn errors_name_key_value_and_source() {
    let text = message(&["train.lr=fast"]);
    assert!(text.contains("train.lr") && text.contains("fast") && text.contains("--set"), "{text}");
    let text = message(&["train.epochs=-1"]);
    assert!(text.contains("train.epochs") && text.contains("-1"), "{text}");
    let text = message(&["model.depth=deep"]);
    assert!(text.contains("\"full\" or a number"), "{text}");
    assert!(message(&["train.lrate=1"]).contains("did you mean `train.lr`"));
    assert!(message(&["train.lr"]).contains("key=value"));
    assert!(message(&["train.batch=1.5"]).contains("train.batch"));
    for (set, words) in [
        ("model.width=-1", "must be a whole number from 1 to 65536, is -1"),
        ("train.cycles=-1", "must be a whole number from 1 to 9223372036854775807, is -1"),
        ("train.cycles=0", "must be a whole number from 1 to 9223372036854775807, is 0"),
        ("run.threads=-1", "must be a whole number from 0 to 1024, is -1"),
        ("run.threads=1025", "must be a whole number from 0 to 1024, is 1025; 0 takes one per core"),
        ("model.bins=1.5", "must be a whole number from 2 to 64, is 1.5"),
        ("model.bins=1", "must be a whole number from 2 to 64, is 1"),
        ("train.seed=18446744073709551615", "must be a whole number from 0 to 9223372036854775807, is"),
        ("train.lr=fast", "must be a number, is `fast`"),
        ("train.shuffle=maybe", "must be true or false, is `maybe`"),
        ("model.kind=flaw", "must be one of `flow`, `cinn`, `hint`, `inn`, is `flaw`"),
    ] {
        assert!(message(&[set]).contains(words), "{}", message(&[set]));
    }
    let text = message(&["optimizer.momentum=1"]);
    assert!(text.contains("(from --set)") && !text.contains("did you mean"), "{text}");
}

#[test]
fn later_sources_win_and_rivals_within_one_do_not() {
    assert!(message(&["model.width=3", "model.budget=100"]).contains("model.width"));
    let mut layers = Layers::new();
    layers.toml("[model]\nbudget = 5000\n[train]\nlr = 0.5\nseed = 4", Path::new("c.toml")).unwrap();
    let env = [("HINTFLOW_TRAIN__LR", "0.25"), ("HINTFLOW_TRAIN_LR", "1"), ("HINTFLOW_COLOR", "1"), ("LR", "/")];
    let env = env.into_iter().chain([("HINTFLOW_LR", "1")]);
    let strange = layers.environment(env.map(|(k, v)| (k.into(), v.into()))).unwrap();
    assert_eq!(strange, ["HINTFLOW_TRAIN_LR", "HINTFLOW_LR"]);
    layers.flags([("train.seed", "9".to_owned(), "--seed")]).unwrap();
    layers.assignments(&["model.width=7".into()]).unwrap();
    let c = layers.resolve().unwrap();
    assert_eq!((c.model.width, c.model.budget, c.train.lr, c.train.seed), (Some(7), None, 0.25, 9));
}

#[test]
fn a_later_exp_displaces_a_slope_and_one_beside_it_is_an_error() {
    assert!(message(&["model.slope=3", "model.scale=exp"]).contains("leave it out"));
    assert!(message(&["model.scale=exp", "model.slope=3"]).contains("leave it out"));
    let in_turn = |sources: &[&str]| {
        let mut layers = Layers::new();
        for source in sources {
            let all: Vec<String> = source.split(' ').map(str::to_owned).collect();
            layers.assignments(&all).unwrap();
        }
        layers.resolve().map(|config| (config.model.scale, config.model.slope))
    };
    assert_eq!(in_turn(&["model.slope=3", "model.scale=exp"]).unwrap(), (ScaleKind::Exp, None));
    assert_eq!(in_turn(&["model.slope=3", "model.scale=atan"]).unwrap(), (ScaleKind::Atan, Some(3.0)));
    // Only the last word on the function counts.
    let last = (ScaleKind::Atan, Some(3.0));
    assert_eq!(in_turn(&["model.slope=3", "model.scale=exp model.scale=atan"]).unwrap(), last);
    assert_eq!(in_turn(&["model.slope=3", "model.scale=exp", "model.scale=atan"]).unwrap(), last);
    // A slope that is given for `exp` is a mistake, whichever of the two was meant.
    let refused = in_turn(&["model.scale=exp", "model.slope=3"]).unwrap_err().to_string();
    assert!(refused.contains("leave it out") && refused.contains("atan"), "{refused}");
}

#[test]
fn unknown_keys_of_files_and_environment_are_errors() {
    let mut layers = Layers::new();
    assert!(matches!(layers.toml("lr = 1", Path::new("c")), Err(Error::UnknownKey { .. })));
    assert!(matches!(layers.toml("[train]\nlrr = 1", Path::new("c")), Err(Error::UnknownKey { .. })));
    assert!(matches!(layers.toml("[train", Path::new("c")), Err(Error::Config { .. })));
    let env = [("HINTFLOW_TRAIN__LRR".to_owned(), "1".to_owned())];
    assert!(matches!(layers.environment(env), Err(Error::UnknownKey { .. })));
}

#[test]
fn a_written_config_reads_back_equal() {
    for start in [&["data.preset=lens"][..], &["data.path=x.npy", "model.slope=1.5", "data.columns=[1, \"b\"]"]] {
        let config = set(start).unwrap();
        let mut layers = Layers::new();
        layers.toml(&config.to_toml().unwrap(), Path::new("c")).unwrap();
        assert_eq!(layers.resolve().unwrap(), config);
    }
}
