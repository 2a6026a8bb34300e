"""`hintflow diagnose` beside the calibration checks of sbi, on the same simulations in the same minutes.

    python3 benches/calibration.py HINTFLOW SIMULATIONS OUT [--rows 1000] [--samples 1000] [--epochs 20]
    python3 benches/calibration.py --fixture tests/fixtures/sbi_calibration.safetensors

SIMULATIONS is a folder with theta.npy and x.npy. Both train on all but the last ROWS of them: hintflow a `hint` with nothing
set, sbi its default NPE for EPOCHS epochs (a density that is good enough; its quality does not change what sampling
costs). Then `diagnose` on one side, `run_sbc`, sample-based expected coverage and `run_tarp` on the other judge the last
ROWS with SAMPLES posterior samples each. Prints wall and user CPU seconds. Needs NumPy, torch and sbi; the second form
makes the arrays that src/diagnose/tests.rs holds our ranks against."""
import argparse, resource, subprocess, time
from pathlib import Path

import numpy as np
import torch

arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arg.add_argument("hintflow", type=Path, nargs="?")
arg.add_argument("simulations", type=Path, nargs="?")
arg.add_argument("out", type=Path, nargs="?")
arg.add_argument("--rows", type=int, default=1000)
arg.add_argument("--samples", type=int, default=1000)
arg.add_argument("--epochs", type=int, default=20)
arg.add_argument("--fixture", type=Path)


def fixture(path):
    """Truths, samples of posteriors that are too narrow and shifted, and what sbi's own functions make of them."""
    from safetensors.numpy import save_file
    from sbi.diagnostics.sbc import _run_sbc
    from sbi.diagnostics.tarp import _run_tarp

    g = np.random.default_rng(1)
    rows, count, dim = 150, 60, 2
    middle = g.normal(size=(rows, dim))
    truths = middle + g.normal(size=(rows, dim)) * [1.0, 0.5]
    samples = middle[None] + 0.2 + 0.7 * g.normal(size=(count, rows, dim)) * [1.0, 0.5]
    points = 2 * g.normal(size=(rows, dim))
    truths, samples, points = (torch.tensor(a, dtype=torch.float32) for a in (truths, samples, points))
    ranks = _run_sbc(truths, truths, samples, "marginals", False)
    coverage, credibility = _run_tarp(samples, truths, points, num_bins=15)
    save_file(
        {
            "truths": truths.numpy(),
            "samples": np.ascontiguousarray(samples.numpy().transpose(1, 0, 2)),
            "points": points.numpy(),
            "ranks": ranks.numpy().astype(np.float32),
            "coverage": coverage.numpy().astype(np.float32),
            "credibility": credibility.numpy().astype(np.float32),
        },
        path,
    )


class Timed:
    """Wall and user CPU seconds of a block, those of its children too."""

    def __enter__(self):
        self.start = time.time(), self.user()
        return self

    def user(self):
        return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    def __exit__(self, *_):
        self.wall, self.cpu = time.time() - self.start[0], self.user() - self.start[1]


def race(a):
    from sbi.diagnostics import run_sbc, run_tarp
    from sbi.inference import NPE

    torch.set_num_threads(2)
    torch.manual_seed(1)
    a.out.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.load(a.simulations / f"{name}.npy").astype(np.float32) for name in ("theta", "x")}
    for name, array in arrays.items():
        np.save(a.out / f"{name}.npy", array[: -a.rows])
        np.save(a.out / f"{name}_judged.npy", array[-a.rows :])
    run, given = a.out / "run", ["--given", a.out / "x.npy"]
    subprocess.run([a.hintflow, "train", a.out / "theta.npy", *given, "--set", "model.kind=hint", "--out", run, "--force"],
                   check=True, capture_output=True)
    judged = [a.out / "theta_judged.npy", "--given", a.out / "x_judged.npy", "--samples", str(a.samples), "--force"]
    with Timed() as ours:
        subprocess.run([a.hintflow, "diagnose", run, *judged, "-o", a.out / "diagnosed"], check=True, capture_output=True)
    theta, x = (torch.tensor(arrays[name]) for name in ("theta", "x"))
    trainer = NPE(show_progress_bars=False)
    trainer.append_simulations(theta[: -a.rows], x[: -a.rows])
    estimator = trainer.train(training_batch_size=500, max_num_epochs=a.epochs)
    posterior = trainer.build_posterior(estimator)
    truths, seen = theta[-a.rows :], x[-a.rows :]
    common = dict(num_posterior_samples=a.samples, show_progress_bar=False)
    with Timed() as ranks:
        run_sbc(truths, seen, posterior, **common)
    with Timed() as coverage:
        run_sbc(truths, seen, posterior, reduce_fns=posterior.log_prob, **common)
    with Timed() as tarp:
        run_tarp(truths, seen, posterior, references=None, **common)
    print(f"{a.rows} observations, {a.samples} samples each: wall s, user CPU s")
    print(f"hintflow diagnose (ranks, coverage, TARP, latents, pictures)  {ours.wall:.1f}  {ours.cpu:.1f}")
    for what, timed in (("run_sbc, ranks", ranks), ("run_sbc, expected coverage", coverage), ("run_tarp", tarp)):
        print(f"sbi {what}  {timed.wall:.1f}  {timed.cpu:.1f}")
    theirs = sum(timed.wall for timed in (ranks, coverage, tarp))
    print(f"all of sbi's {theirs:.1f} s, {theirs / ours.wall:.1f} times as long")


a = arg.parse_args()
if a.fixture:
    fixture(a.fixture)
elif a.out:
    race(a)
else:
    arg.error("name HINTFLOW, SIMULATIONS and OUT, or --fixture")
