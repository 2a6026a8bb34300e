"""How good `hintflow correct` and the warning of unusual observations are, on a problem whose answers are known.

    python3 benches/correction.py HINTFLOW SIMULATIONS OUT [--run RUN] [--poor RUN] [--seeds 100] [--samples 10000]

SIMULATIONS is a folder with theta.npy and x.npy of sbibm's gaussian_linear: theta ~ N(0, 0.1), x = theta + N(0, 0.1), ten
columns each. Trains a `hint` with nothing set, unless RUN is one, and a poor one (five epochs, of half of theta: too
narrow), unless it is named.
Then, for observations drawn from the same simulator, one for each seed: how many samples of equal weight as many corrected
samples are worth, and how many standard errors the log-evidence is from the truth, N(x; 0, 0.2). And for 2,000 observations
each: how many of the simulator's own are among the rarest 5 % by log p(y), and how many of others. Needs NumPy."""
import argparse, subprocess
from pathlib import Path

import numpy as np

arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arg.add_argument("hintflow", type=Path)
arg.add_argument("simulations", type=Path)
arg.add_argument("out", type=Path)
arg.add_argument("--run", type=Path)
arg.add_argument("--poor", type=Path)
arg.add_argument("--seeds", type=int, default=100)
arg.add_argument("--samples", type=int, default=10_000)
a = arg.parse_args()
a.out.mkdir(parents=True, exist_ok=True)
g = np.random.default_rng(1)
VARIANCE = 0.1


def call(*args, codes=(0,)):
    done = subprocess.run([a.hintflow, *map(str, args)], capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"{args}: code {done.returncode}\n{done.stderr}")
    return done


def train(name, theta, *args):
    data = [theta, "--given", a.simulations / "x.npy", "--set", "model.kind=hint"]
    call("train", *data, *args, "--out", a.out / name, "--force")
    return a.out / name


def normal(x, middle, variance):
    return (-0.5 * (x - middle) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)).sum(-1)


def simulate(count):
    theta = np.sqrt(VARIANCE) * g.normal(size=(count, 10))
    return (theta + np.sqrt(VARIANCE) * g.normal(size=(count, 10))).astype(np.float32)


def corrected(run, seed):
    """Share of the samples, distance of the log-evidence in standard errors, and the exit code."""
    x = simulate(1)
    np.save(a.out / "seen.npy", x)
    drawn, density = a.out / "drawn.npy", a.out / "density.npy"
    call("sample", run, "--given", a.out / "seen.npy", "-n", a.samples, "--seed", seed, "-o", drawn, "--force")
    theta = np.load(drawn).astype(float)
    np.save(density, normal(x, theta, VARIANCE) + normal(theta, 0, VARIANCE))
    done = call("correct", run, drawn, "--given", a.out / "seen.npy", "--log-density", density, codes=(0, 5))
    words = done.stdout.replace("(", "").split()
    share = float(words[words.index("%)") - 1]) / 100
    at = words.index("log-evidence")
    estimate, error = float(words[at + 1]), float(words[at + 3])
    return share, (estimate - normal(x[0].astype(float), 0, 2 * VARIANCE)) / error, done.returncode


def evidence(run, x):
    np.save(a.out / "many.npy", x.astype(np.float32))
    call("log-prob", run, a.out / "many.npy", "--of", "evidence", "-o", a.out / "evidence.npy", "--force")
    return np.load(a.out / "evidence.npy").ravel()


run = a.run or train("run", a.simulations / "theta.npy")
found = np.array([corrected(run, seed) for seed in range(a.seeds)])
print(f"{a.seeds} observations, {a.samples} samples each, nothing set")
print(f"share of equal weights: median {np.median(found[:, 0]):.3f}, least {found[:, 0].min():.3f}")
print(f"log-evidence within two standard errors: {np.sum(np.abs(found[:, 1]) < 2)}, largest {np.abs(found[:, 1]).max():.1f}")
print(f"not to be trusted (code 5): {np.sum(found[:, 2] == 5):.0f}")
np.save(a.out / "half.npy", 0.5 * np.load(a.simulations / "theta.npy"))
poor = a.poor or train("poor", a.out / "half.npy", "--epochs", "5")
found = np.array([corrected(poor, seed) for seed in range(20)])
print(f"a poor model: not to be trusted {np.sum(found[:, 2] == 5):.0f} of 20; share of equal weights: median {np.median(found[:, 0]):.4f}")
limit = np.quantile(evidence(run, np.load(a.simulations / "x.npy")), 0.05)
below = lambda x: 100 * np.mean(evidence(run, x) < limit)
print(f"observations among the rarest 5 %: the simulator's own {below(simulate(2000)):.1f} %")
for what, x in (
    ("noise twice as large", simulate(2000) + np.sqrt(3 * VARIANCE) * g.normal(size=(2000, 10))),
    ("a shift by two deviations in all columns", simulate(2000) + 2 * np.sqrt(2 * VARIANCE)),
    ("one column off by five deviations", simulate(2000) + 5 * np.sqrt(2 * VARIANCE) * (np.arange(10) == 3)),
    ("columns that repeat the first", np.repeat(simulate(2000)[:, :1], 10, 1)),
):
    print(f"  {what}: {below(x):.1f} %")
