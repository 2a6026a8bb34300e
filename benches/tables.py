"""Densities of real tables with nothing set: held-out log-density, tails and samples.

    python3 benches/tables.py HINTFLOW OUT TABLE.csv[.gz]... [--threads 1] [--seed 1] [--set key=value]...

A table is numbers without a header. Constant columns are left out, then columns that those before them give to within 0.01
deviations (linearly); the others are brought to mean 0 and deviation 1, and noise of 0.02 is added once to all rows, so that
columns with steps have a density. 80 % of the rows, drawn with seed 0, train; the rest test. Prints for every table the mean
and median log-density of the test rows in nats per row, the lowest row, how many of 50,000 samples lie more than ten times
as far out as the training rows (in half ranges from the middle, in some column), and seconds of user CPU. Needs NumPy."""
import argparse, resource, subprocess
from pathlib import Path

import numpy as np

arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arg.add_argument("hintflow", type=Path)
arg.add_argument("out", type=Path)
arg.add_argument("tables", type=Path, nargs="+")
arg.add_argument("--threads", type=int, default=1)
arg.add_argument("--seed", type=int, default=1)
arg.add_argument("--set", action="append", default=[])


def split(path):
    x = np.loadtxt(path, delimiter=",", ndmin=2)
    x = x[:, x.std(0) > 1e-9 * np.abs(x).max(0)]
    x = (x - x.mean(0)) / x.std(0)
    kept = []
    for j in range(x.shape[1]):
        rest = x[:, j]
        if kept:
            rest = rest - x[:, kept] @ np.linalg.lstsq(x[:, kept], rest, rcond=None)[0]
        if rest.std() > 0.01:
            kept.append(j)
    g = np.random.default_rng(0)
    y = (x[:, kept] + 0.02 * g.standard_normal((len(x), len(kept)))).astype(np.float32)
    order, n = g.permutation(len(y)), len(y) * 4 // 5
    return y[order[:n]], y[order[n:]]


def measure(a, path):
    folder = a.out / path.name.split(".")[0]
    folder.mkdir(parents=True, exist_ok=True)
    train, test = split(path)
    np.save(folder / "train.npy", train)
    np.save(folder / "test.npy", test)
    common = ["--threads", str(a.threads), "--force"]
    run, sets = folder / "run", [part for pair in a.set for part in ("--set", pair)]

    def hintflow(*words):
        done = subprocess.run([a.hintflow, *words, *common], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{path}: {done.stderr.strip().splitlines()[-1]}")

    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    hintflow("train", folder / "train.npy", "--out", run, "--seed", str(a.seed), *sets)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    hintflow("log-prob", run, folder / "test.npy", "-o", folder / "scores.npy")
    hintflow("sample", run, "-n", "50000", "-o", folder / "samples.npy")
    scores = np.load(folder / "scores.npy").astype(float).ravel()
    samples = np.load(folder / "samples.npy").astype(float)
    middle, half = (train.max(0) + train.min(0)) / 2.0, (train.max(0) - train.min(0)) / 2.0
    # A sample that is no number is beyond, too.
    beyond = (~(np.abs(samples - middle) <= 10.0 * half)).any(1).sum()
    print(f"| {folder.name} | {len(train)} | {train.shape[1]} | {scores.mean():.3f} ± {scores.std() / len(scores) ** 0.5:.3f} | "
          f"{np.median(scores):.3f} | {scores.min():.1f} | {beyond} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    a = arg.parse_args()
    print("| table | training rows | columns | mean | median | lowest row | samples beyond | s |")
    print("|---|---|---|---|---|---|---|---|")
    for path in a.tables:
        measure(a, path)
