//! Run folders: who may write into them, and what is removed.

use super::*;

#[test]
fn full_folders_need_force_and_keep_foreign_files() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("a/b");
    drop(RunFolder::create(&path, Overwrite::No).unwrap());
    // A start that failed before its settings were written is no run.
    for left in ["metrics.csv", "checkpoints/step-00000000.safetensors", "checkpoints/.hintflow-1-1.tmp"] {
        std::fs::write(path.join(left), "x").unwrap();
    }
    drop(RunFolder::create(&path, Overwrite::No).unwrap());
    std::fs::write(path.join("config.toml"), "x").unwrap();
    assert!(matches!(RunFolder::create(&path, Overwrite::No), Err(Error::Exists { .. })));
    std::fs::create_dir(path.join("plots")).unwrap();
    let own = [
        "model.safetensors",
        "checkpoints/step-00000007.safetensors",
        "plots/pairs.svg",
        "plots/loss.png",
        ".hintflow-1-0.tmp",
        "checkpoints/.hintflow-1-1.tmp",
        "plots/.hintflow-1-2.tmp",
    ];
    let foreign = ["notes.txt", "plots/mine.png"];
    for name in own.into_iter().chain(foreign) {
        std::fs::write(path.join(name), "x").unwrap();
    }
    assert!(RunFolder::replaces(&path, &path.join("plots/../model.safetensors")));
    assert!(RunFolder::replaces(&path, &path.join("checkpoints/step-00000007.safetensors")));
    assert!(!RunFolder::replaces(&path, &path.join("notes.txt")));
    assert!(!RunFolder::replaces(&path, &path.join("missing")));
    drop(RunFolder::create(&path, Overwrite::Yes).unwrap());
    for name in own {
        assert!(!path.join(name).exists(), "{name}");
    }
    assert!(foreign.iter().all(|name| path.join(name).exists()));
    let file = top.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(RunFolder::create(&file, Overwrite::Yes), Err(Error::Format { .. })));
}

#[test]
fn a_folder_that_was_filled_meanwhile_is_seen_under_the_lock() {
    let top = tempfile::tempdir().unwrap();
    let held = RunFolder::create(top.path(), Overwrite::No).unwrap();
    assert!(is_unbegun(top.path()));
    std::fs::write(held.model(), "").unwrap();
    assert!(!is_unbegun(top.path()));
    std::fs::remove_file(held.model()).unwrap();
    std::fs::write(top.path().join("checkpoints/step-00000007.safetensors"), "").unwrap();
    assert!(!is_unbegun(top.path()));
}

#[test]
fn opening_removes_what_killed_processes_left() {
    let top = tempfile::tempdir().unwrap();
    std::fs::write(config_of(top.path()), "").unwrap();
    std::fs::create_dir(top.path().join("checkpoints")).unwrap();
    let left = top.path().join("checkpoints/.hintflow-12-3.tmp");
    std::fs::write(&left, "").unwrap();
    drop(RunFolder::open(top.path()).unwrap());
    assert!(!left.exists());
}

#[test]
fn one_process_at_a_time() {
    let top = tempfile::tempdir().unwrap();
    let held = RunFolder::create(top.path(), Overwrite::Yes).unwrap();
    std::fs::write(held.config(), "").unwrap();
    assert!(RunFolder::open(top.path()).unwrap_err().to_string().contains("another process"));
    drop(held);
    RunFolder::open(top.path()).unwrap();
}

#[test]
fn models_are_found_in_runs() {
    let top = tempfile::tempdir().unwrap();
    assert!(model_of(&top.path().join("missing")).is_err());
    assert!(model_of(top.path()).unwrap_err().to_string().contains("give a run folder"));
    std::fs::write(config_of(top.path()), "").unwrap();
    assert!(model_of(top.path()).unwrap_err().to_string().contains("--resume"));
    let held = RunFolder::open(top.path()).unwrap();
    assert!(model_of(top.path()).unwrap_err().to_string().contains("still running"));
    drop(held);
    std::fs::write(top.path().join(MODEL), "").unwrap();
    assert_eq!(model_of(top.path()).unwrap(), top.path().join(MODEL));
    assert_eq!(model_of(&config_of(top.path())).unwrap(), config_of(top.path()));
}
