#!/usr/bin/env python3
"""Predicts training steps on 1 to 1,024 ranks from measured times, by playing a step through message by message.

    benches/scaling.py --step-ms 700 --parameters 2000000 [--latency-us 2] [--gigabytes-per-s 10] [--update-ms 5]

`--step-ms` is what `hintflow bench step --threads T` takes of one process with as many threads as a rank will have. What is
assumed: parts of a batch take equally long; a rank sends its messages one after the other, each after a latency, through a
link of its own that carries as much in both directions; the network has no other limit; every rank updates all weights.
"""
import argparse


def share(count, rank, size):
    return count * (rank + 1) // size - count * rank // size


def exchange(size, values, latency, rate):
    """Seconds of one of the two rounds: every rank sends a slice of `values` floats to each other one."""
    return (size - 1) * (latency + 4 * values / size / rate)


def step(size, parts, compute, update, values, latency, rate):
    """Seconds of a step whose `parts` take `compute` seconds altogether."""
    largest = max(share(parts, rank, size) for rank in range(size))
    # What is added up before and after the first round passes through memory: part of the update.
    return largest * compute / parts + update + 2 * (exchange(size, values, latency, rate) if size > 1 else 0)


options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--step-ms", type=float, required=True, help="a step of one process")
options.add_argument("--update-ms", type=float, default=0.0, help="that part of it which every rank does: Adam")
options.add_argument("--parameters", type=int, required=True)
options.add_argument("--parts", type=int, default=16, help="parts of a batch")
options.add_argument("--latency-us", type=float, default=2.0)
options.add_argument("--gigabytes-per-s", type=float, default=10.0)
o = options.parse_args()
update, latency, rate = o.update_ms * 1e-3, o.latency_us * 1e-6, o.gigabytes_per_s * 1e9
compute = o.step_ms * 1e-3 - update
alone = compute + update
print("| ranks | strong: step, ms | speed-up | messages | weak, batch x ranks: step, ms | efficiency |")
print("|---|---|---|---|---|---|")
for size in [2**k for k in range(11)]:
    times = (update, o.parameters, latency, rate)
    strong, weak = step(size, o.parts, compute, *times), step(size, o.parts, compute * size, *times)
    messages = 2 * exchange(size, o.parameters, latency, rate) if size > 1 else 0.0
    print(f"| {size} | {strong * 1e3:.1f} | {alone / strong:.1f} | {messages / strong:.1%} | {weak * 1e3:.1f} | {alone / weak:.0%} |")
