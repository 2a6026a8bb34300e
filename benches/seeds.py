"""How much luck a training of a small table needs: ten data sets, several seeds each, nothing set.

    python3 benches/seeds.py HINTFLOW OUT [--seeds 20] [--sets a,b] [--threads 1] [--set key=value]...

HINTFLOW is the binary, OUT a folder of data, runs and results; a result that is there is not computed again. Needs NumPy.
Every seed trains anew (weights, order and held-out rows follow from the seed); the data of a set are the same for all.
Prints for every set the median over seeds of the mean log-density of 20,000 test rows in nats per row, how far the worst
and the best seed are from it, and the seconds of user CPU of a training."""
import argparse, json, resource, subprocess
from pathlib import Path

import numpy as np

arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arg.add_argument("hintflow", type=Path)
arg.add_argument("out", type=Path)
arg.add_argument("--seeds", type=int, default=20)
arg.add_argument("--sets", default="")
arg.add_argument("--threads", type=int, default=1)
arg.add_argument("--set", action="append", default=[])


def mixture(g, n, dim, parts, spread):
    """Gaussians of deviation 0.3 about random centres."""
    centres = np.random.default_rng(7).normal(0, spread, (parts, dim))
    return centres[g.integers(parts, size=n)] + 0.3 * g.normal(size=(n, dim))


def ring(g, n):
    angle = g.uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * (1 + 0.1 * g.normal(size=n))[:, None]


def two_rings(g, n):
    return ring(g, n) * np.where(g.uniform(size=n) < 0.5, 1, 3)[:, None]


def spiral(g, n):
    t = 3 * np.pi * np.sqrt(g.uniform(size=n))
    return np.c_[t * np.cos(t), t * np.sin(t)] / 3 + 0.1 * g.normal(size=(n, 2))


def correlated(g, x):
    """Columns that share a factor, so that there is something to learn between them."""
    return x + 0.5 * x[:, :1]


SETS = {
    "mixture_2": (2000, lambda g, n: mixture(g, n, 2, 5, 2.0)),
    "mixture_5": (5000, lambda g, n: mixture(g, n, 5, 8, 1.5)),
    "mixture_10": (10000, lambda g, n: mixture(g, n, 10, 3, 1.0)),
    "ring": (1000, ring),
    "two_rings": (5000, two_rings),
    "spiral": (3000, spiral),
    "exponential_3": (2000, lambda g, n: correlated(g, g.exponential(size=(n, 3)))),
    "exponential_8": (500, lambda g, n: correlated(g, g.exponential(size=(n, 8)))),
    "student_4": (4000, lambda g, n: correlated(g, g.standard_t(3, size=(n, 4)))),
    "lognormal_6": (1000, lambda g, n: np.exp(correlated(g, g.normal(size=(n, 6))))),
}


def user():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def score(a, name, seed):
    rows, make = SETS[name]
    folder = a.out / name
    result = folder / f"{seed}.json"
    if result.exists():
        return json.loads(result.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for part, n, data_seed in (("train", rows, 1), ("test", 20000, 2)):
        if not (folder / f"{part}.npy").exists():
            np.save(folder / f"{part}.npy", make(np.random.default_rng(data_seed), n).astype(np.float32))
    run, before = folder / f"run{seed}", user()
    sets = [part for pair in a.set for part in ("--set", pair)]
    common = ["--threads", str(a.threads), "--force"]
    train = [a.hintflow, "train", folder / "train.npy", "--seed", str(seed), "--out", run, *common, *sets]
    done = subprocess.run([*train, "--set", f"data.seed={seed}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}, seed {seed}: {done.stderr.strip().splitlines()[-1]}")
    seconds = user() - before
    scores = run / "scores.npy"
    subprocess.run([a.hintflow, "log-prob", run, folder / "test.npy", "-o", scores, *common], check=True, capture_output=True)
    values = np.load(scores).astype(float).ravel()
    found = {"mean": values.mean(), "median": float(np.median(values)), "worst": values.min(), "seconds": seconds}
    result.write_text(json.dumps(found))
    return found


if __name__ == "__main__":
    a = arg.parse_args()
    print("| data | training rows | columns | median seed | worst seed | best seed | worst row | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in a.sets.split(",") if a.sets else SETS:
        all_of = [score(a, name, seed) for seed in range(1, a.seeds + 1)]
        means = np.array([one["mean"] for one in all_of])
        middle = np.median(means)
        columns = np.load(a.out / name / "train.npy").shape[1]
        worst = min(one["worst"] for one in all_of)
        seconds = np.median([one["seconds"] for one in all_of])
        print(f"| {name} | {SETS[name][0]} | {columns} | {middle:.3f} | {means.min() - middle:+.3f} | "
              f"{means.max() - middle:+.3f} | {worst:.1f} | {seconds:.1f} |", flush=True)
