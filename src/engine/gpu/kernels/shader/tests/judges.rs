//! What programs outside this crate say of every shader, if they are installed; a test says why it left one out.

use std::path::Path;
use std::process::{Command, Output};

use super::super::spirv::spirv;
use super::{Kernel, PackShape, Passing, Variant, variants};

/// Every kernel for every transformation, those of packs with a shape; with a name for the file of each.
fn named() -> impl Iterator<Item = (String, Variant)> {
    let packed = [Kernel::NetworksPacked, Kernel::NetworksPackedBackward, Kernel::NarrowBackward];
    let shape = PackShape { quads: 8, threads: 128, rows: 40 };
    variants().into_iter().enumerate().map(move |(i, variant)| {
        let shape = packed.contains(&variant.kernel).then_some(shape);
        (format!("{}.{i}", variant.kernel.name()), Variant { shape, ..variant })
    })
}

/// What a program says; none, with the reason on stderr, if it cannot be run.
fn ask(program: &str, arguments: &[&Path]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: {program}: {error}");
            None
        }
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}

#[test]
fn the_validator_of_spirv_accepts_every_kernel() {
    let folder = tempfile::tempdir().unwrap();
    for (name, variant) in named() {
        let file = folder.path().join(format!("{name}.spv"));
        std::fs::write(&file, spirv(variant)).unwrap();
        let Some(output) = ask("spirv-val", &["--target-env".as_ref(), "vulkan1.3".as_ref(), &file]) else { return };
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}

/// Dawn's compiler, by the module `webgpu` of node below the folder that `HINTFLOW_NODE_MODULES` names.
#[test]
fn the_compiler_of_dawn_accepts_every_shader() {
    let Some(modules) = std::env::var_os("HINTFLOW_NODE_MODULES") else {
        eprintln!("SKIPPED: HINTFLOW_NODE_MODULES names no folder with node's module webgpu; see tests/tint.sh");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut files = 0;
    for (name, variant) in named() {
        std::fs::write(folder.path().join(format!("{name}.wgsl")), variant.source(Passing::Buffer)).unwrap();
        files += 1;
    }
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let script = Path::new(&root).join("tests/tint.mjs");
    let Some(output) = ask("node", &[&script, Path::new(&modules), folder.path()]) else { return };
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(&format!("{files} shaders")), "{}", said(&output));
}
