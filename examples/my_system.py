"""A system for `hintflow filter --simulator`: a level that is fed by an unknown inflow, and measured with noise.

    hintflow filter --simulator "python3 examples/my_system.py" --observations observations.csv --names level,inflow --lower level=0

The state is (level, inflow), the observation a noisy level. docs/filtering.md has the protocol.
"""

import io
import os
import sys

import numpy as np

step = int(os.environ["HINTFLOW_STEP"])  # 0: draw states at the beginning
rows = int(os.environ["HINTFLOW_ROWS"])
rng = np.random.default_rng(int(os.environ["HINTFLOW_SEED"]))  # another one for each step

if step == 0:
    level = rng.lognormal(0.0, 0.3, rows)
    inflow = rng.normal(0.4, 0.2, rows)
    out = np.stack([level, inflow], axis=1)
else:
    level, inflow = np.load(io.BytesIO(sys.stdin.buffer.read())).T.astype(float)
    level = (0.7 * level + np.exp(inflow - 1.0)) * rng.lognormal(0.0, 0.05, rows)
    inflow = inflow + rng.normal(0.0, 0.05, rows)
    seen = level + rng.normal(0.0, 0.1, rows)
    out = np.stack([level, inflow, seen], axis=1)  # the next state, then its observation

array = io.BytesIO()
np.save(array, out.astype(np.float32))
sys.stdout.buffer.write(array.getvalue())  # and nothing else: messages go to sys.stderr
