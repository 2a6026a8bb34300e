//! The regression of columns on their conditions, as a user meets it.

use crate::cli::conditional::SMALL;
use crate::cli::tool::Place;

/// Column `b` follows `u` but for noise, `a` follows neither condition linearly.
#[test]
fn a_regression_is_told_checked_carried_on_and_can_be_turned_off() {
    let place = Place::new();
    place.pairs(200);
    let train = |out: &str, more: &str| {
        let line = format!("train x.csv --given y.csv --set model.kind=hint --out {out} {SMALL} {more}");
        place.line(&line).good().stderr
    };
    let told = train("with", "");
    assert!(told.contains("regression on the conditions, of b (R² 9"), "{told}");
    let off = "--set data.regression=false";
    let told = train("without", off);
    assert!(!told.contains("regression"), "{told}");
    assert_ne!(place.densities("with x.csv --given y.csv"), place.densities("without x.csv --given y.csv"));
    // What begins with the model keeps it.
    let line = format!("train x.csv --given y.csv --init with --out no {off}");
    place.line(&line).fails(2, &["data.regression", "leave it out"]);
    train("on", "--init with");
    let text =
        |run: &str| String::from_utf8_lossy(&place.read(format!("{run}/model.safetensors"))[..4000]).into_owned();
    assert!(
        text("on").contains("regression")
            && text("with").contains("regression")
            && !text("without").contains("regression")
    );
    let done = place.line("check with x.csv --given y.csv --all --device cpu").good();
    assert!(done.stdout.contains("ok") && !done.stdout.contains("FAILED"), "{}", done.stdout);
}
