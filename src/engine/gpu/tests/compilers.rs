//! The kernels of timed models as SPIR-V, and what a compiler of a real GPU makes of them (`benches/compilers.sh`).
//! Needs no device.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::Case;
use crate::engine::gpu::compile::bounds::{Bounds, KernelVariants};
use crate::engine::gpu::compile::dispatch::Dispatch;
use crate::engine::gpu::compile::recompute::recomputed;
use crate::engine::gpu::compile::record::{Recorder, pack_weights};
use crate::engine::gpu::compile::tiling::{Fit, TILE_STEP};
use crate::engine::gpu::kernels::shader::spirv::spirv;
use crate::engine::gpu::kernels::shader::{PackShape, Variant};
use crate::engine::gpu::layout::panels::Panels;
use crate::engine::gpu::layout::tables::Tables;
use crate::engine::gpu::layout::workgroup::Workgroup;
use crate::flow::programs::{self, Name};
use crate::plan::{ConditionOn, Plan};
use crate::tape::Memory;

/// Models whose kernels are looked at.
const CASES: [&str; 4] = ["lens1", "lens2", "cross4", "small"];
/// Workgroups along a grid: WebGPU's default.
const WORKGROUPS: u32 = 65_535;

/// The kernels of a training step and of sampling, in all variants that the tuner has to choose from; true: of the variant
/// that it tries first.
fn variants(case: &Case) -> Vec<(Variant, bool)> {
    let plan = std::sync::Arc::new(Plan::new(&case.spec(ConditionOn::Input)).unwrap());
    let tables = Tables::new(&plan, &Panels::new(&plan), Workgroup::MOST);
    let shapes = tables.stages.iter().map(|stage| stage.packs.len()).max().unwrap_or(0);
    let mut all: Vec<_> = pack_weights(&plan, WORKGROUPS).iter().map(|dispatch| (dispatch.variant, true)).collect();
    let mut add = |dispatches: Vec<Dispatch>, first| {
        all.extend(dispatches.iter().map(|dispatch| (dispatch.variant, first)));
    };
    for number in (0..shapes).map(Some).chain([None]) {
        for recompute in [false, true] {
            let variants = KernelVariants { forward: number, backward: number, recompute: Some(recompute) };
            let bounds =
                Bounds { workgroups: WORKGROUPS, iterations: None, reflection_work: u64::MAX, variants, fuse: true };
            for name in [Name::Step(Memory::Stored), Name::Sample] {
                let program = programs::record(name, &plan);
                // Shapes depend on neither of these.
                let fit = Fit { capacity: case.batch.next_multiple_of(TILE_STEP), slices: 1 };
                let recomputed = recomputed(&tables, &program, variants, case.batch, None);
                let recorder = || Recorder::new(&plan, &tables, fit, bounds, &recomputed);
                for steps in [&program.prepare, &program.finish] {
                    add(recorder().steps(steps, false).unwrap(), number == Some(0));
                }
                add(recorder().rows(&program).unwrap(), number == Some(0));
            }
        }
    }
    all
}

/// Name of a file.
fn name(variant: Variant) -> String {
    let kernel = variant.kernel.name();
    match variant.shape {
        Some(PackShape { quads, threads, rows }) => format!("{kernel}.{threads}.{rows}.{quads}"),
        None => kernel.to_owned(),
    }
}

/// Writes every kernel in every shape, and to `cases.tsv` which of [`CASES`] have it and whether it is tried first.
/// Returns the number of files.
fn write(folder: &Path) -> usize {
    let mut users: BTreeMap<String, (Variant, Vec<&str>, bool)> = BTreeMap::new();
    for case in CASES {
        for (variant, first) in variants(&Case::named(case).unwrap()) {
            let (known, cases, is_first) = users.entry(name(variant)).or_insert((variant, Vec::new(), false));
            assert_eq!(*known, variant, "two variants of one name");
            *is_first |= first;
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    std::fs::create_dir_all(folder).unwrap();
    let mut list = String::new();
    for (name, (variant, cases, first)) in &users {
        std::fs::write(folder.join(format!("{name}.spv")), spirv(*variant)).unwrap();
        list.push_str(&format!("{name}\t{}\t{}\n", cases.join(", "), if *first { "first" } else { "" }));
    }
    std::fs::write(folder.join("cases.tsv"), list).unwrap();
    users.len()
}

#[test]
#[ignore = "writes files: benches/compilers.sh runs it, with their folder in HINTFLOW_SPIRV"]
fn spirv_is_written() {
    let folder = std::env::var_os("HINTFLOW_SPIRV").expect("HINTFLOW_SPIRV names a folder");
    write(Path::new(&folder));
}

/// What real compilers say: no kernel spills registers or waits for its loads one by one, and the hot ones have enough
/// waves. Left out, with the reason on stderr, if there is no Mesa for it, no gcc, or no header of Vulkan.
#[test]
#[cfg(unix)]
fn compilers_of_real_gpus_like_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    assert!(write(folder.path()) > CASES.len());
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let script = Path::new(&root).join("benches/compilers.sh");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new("bash");
        command.arg(&script).args(["--families", "vega10,navi21"]).args(arguments).output()
    };
    let missing = match run(&["--status"]) {
        Ok(output) if output.status.success() => None,
        Ok(output) if output.status.code() == Some(3) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Ok(output) => panic!("{output:?}"),
        Err(error) => Some(format!("there is no bash: {error}")),
    };
    if let Some(missing) = missing {
        eprintln!("SKIPPED: {}", missing.trim());
        return;
    }
    let output = run(&["--spirv", folder.path().to_str().unwrap()]).unwrap();
    let [table, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{errors}\n{table}");
    for kernel in ["weight_gradient", "narrow_backward.", "networks_packed.", "adam"] {
        assert!(table.contains(&format!("\n| {kernel}")), "no {kernel} in\n{table}");
    }
}
