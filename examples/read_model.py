"""Reads a model.safetensors of hintflow with NumPy alone: latents, log-determinants and log-densities in float64.

    python examples/read_model.py model.safetensors x.npy [y.npy]

prints a row for each row of x: log-density (hint and cinn: log p(x | y)), log-determinant (hint: of the y lane and of the
x lane) and latent vector (hint: z_y, then z_x). x and y are in the user's units, and so are densities.
"""

import json
import struct
import sys

import numpy as np


def load(path):
    """The description of a model, and its tensors by name."""
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    about = json.loads(header.pop("__metadata__")["hintflow"])
    part = lambda t: np.frombuffer(data[start:], "<f4", np.prod(t["shape"], dtype=int), t["data_offsets"][0])
    return about, {name: part(t).reshape(t["shape"]).astype(float) for name, t in header.items()}


def draw_in(u, c, a):
    """Beyond c a distance r becomes a log(1 + r / a); and the log of the slope."""
    r = np.maximum(np.abs(u) - c, 0.0) / a
    return np.where(r > 0.0, np.copysign(c + a * np.log1p(r), u), u), -np.log1p(r)


def rank(v, x, z):
    """A monotone rational quadratic through the knots (x, z), with logarithms beyond both ends."""
    secants, last = np.diff(z) / np.diff(x), len(x) - 1
    slopes = np.concatenate([secants[:1], np.sqrt(secants[:-1]) * np.sqrt(secants[1:]), secants[-1:]])
    k = np.clip(np.searchsorted(x, v, side="right"), 1, last) - 1
    s, d0, d1 = secants[k], slopes[k], slopes[k + 1]
    t = (np.clip(v, x[0], x[-1]) - x[k]) / (x[k + 1] - x[k])
    under = s + (d0 + d1 - 2.0 * s) * t * (1.0 - t)
    u = z[k] + (z[k + 1] - z[k]) * (s * t * t + d0 * t * (1.0 - t)) / under
    log_slope = np.log(d1 * t * t + 2.0 * s * t * (1.0 - t) + d0 * (1.0 - t) ** 2) + 2.0 * np.log(s / under)
    beyond = v - np.clip(v, x[0], x[-1])
    far = np.log1p(np.abs(beyond) * s)
    return np.where(beyond, u + np.copysign(far, beyond), u), np.where(beyond, np.log(s) - far, log_slope)


def transform(v, t):
    """What happens to a column after its bounds; and the log of the slope."""
    kind = t["kind"]
    if kind == "robust":
        u, log_slope = draw_in((v - t["center"]) / t["scale"], t["knee"], t["pull"])
        return u, log_slope - np.log(t["scale"])
    if kind == "asinh":
        return np.arcsinh((v - t["center"]) / t["scale"]), -np.log(np.hypot(t["scale"], v - t["center"]))
    if kind == "softplus":
        sign = -1.0 if t.get("upper") else 1.0
        d = np.exp(sign * v) / t["scale"]
        return sign * (d + np.log(-np.expm1(-d))), np.log(d) - np.log(-np.expm1(-d))
    if kind == "rank":
        return rank(v, np.array(t["x"]), np.array(t["z"]))
    return v, np.zeros(len(v))


def to_units(x, about, y=None):
    """Packing, bounds by log(x - low), -log(high - x) or logit, transforms, mean and deviation, regression on y in its units,
    squash; and the log of the Jacobian."""
    x, log_det = np.array(x, float), np.zeros(len(x))
    for j, packing in enumerate(about.get("packing") or []):
        x[:, j] = (x[:, j] - packing["offset"]) / packing["scale"]
        log_det -= np.log(packing["scale"])
    u = x.copy()
    for j, bound in enumerate(about.get("bounds") or []):
        low, high = ((bound or {}).get(side) for side in ("lower", "upper"))
        above, below = (None if low is None else x[:, j] - low), (None if high is None else high - x[:, j])
        logs = [np.log(distance) for distance in (above, below) if distance is not None]
        if logs:
            u[:, j] = logs[0] - logs[1] if len(logs) == 2 else (logs[0] if high is None else -logs[0])
            log_det += (np.log(high - low) if len(logs) == 2 else 0.0) - sum(logs)
    for j, of_column in enumerate(about.get("transforms") or []):
        u[:, j], log_slope = transform(u[:, j], of_column)
        log_det += log_slope
    if about.get("standardize"):
        mean, scale = (np.array(about["standardize"][name]) for name in ("mean", "scale"))
        u, log_det = (u - mean) / scale, log_det - np.log(scale).sum()
    for j, coefficients in enumerate(about["regression"]["coefficients"] if about.get("regression") else []):
        if coefficients:
            u[:, j] -= y @ np.array(coefficients)
    if about.get("squash"):
        # Not of columns that are drawn in already.
        kinds = [t["kind"] for t in about.get("transforms") or []] or [""] * u.shape[1]
        rest = [j for j, kind in enumerate(kinds) if kind not in ("asinh", "rank")]
        u[:, rest], log_slope = draw_in(u[:, rest], about["squash"], 1.0)
        log_det = log_det + log_slope.sum(1)
    return u, log_det


def network(tensors, name, v):
    """Linear, ReLU, Linear, ReLU, Linear. Without inputs there is no first weight."""
    for layer in range(3):
        weight, bias = tensors.get(f"{name}.{layer}.weight"), tensors[f"{name}.{layer}.bias"]
        v = (0.0 if weight is None else v @ weight.T) + np.tile(bias, (len(v), 1))
        v = np.maximum(v, 0.0) if layer < 2 else v
    return v


def spline(about, raw, x):
    """Rational-quadratic splines (Durkan et al. 2019) of values x by parameters raw (..., 3 K - 1), and their log-slopes."""
    bins, box, least = (about["coupling"][name] for name in ("bins", "box", "min_slope"))

    def knots(a):
        share = np.exp(a - a.max(-1, keepdims=True))
        size = 2 * box * (1e-3 + (1 - 1e-3 * bins) * share / share.sum(-1, keepdims=True))
        return size, np.concatenate([np.full(a.shape[:-1] + (1,), -box), size.cumsum(-1) - box], -1)

    (width, left), (height, low) = knots(raw[..., :bins]), knots(raw[..., bins : 2 * bins])
    slope = least + np.logaddexp(0.0, raw[..., 2 * bins :] + np.log(np.expm1(1 - least)))
    slope = np.concatenate([np.ones(raw.shape[:-1] + (1,)), slope, np.ones(raw.shape[:-1] + (1,))], -1)
    k = (x[..., None] >= left[..., 1:bins]).sum(-1, keepdims=True)
    at = lambda values, k=k: np.take_along_axis(values, k, -1)[..., 0]
    w, h, d, e = at(width), at(height), at(slope), at(slope, k + 1)
    inside = np.abs(x) < box
    t = np.where(inside, (x - at(left)) / w, 0.5)
    s, both = h / w, t * (1 - t)
    under = s + (d + e - 2 * s) * both
    y = at(low) + h * (s * t * t + d * both) / under
    log_slope = 2 * np.log(s / under) + np.log(e * t * t + 2 * s * both + d * (1 - t) ** 2)
    return np.where(inside, y, x), np.where(inside, log_slope, 0.0)


def affine(about, raw, x):
    """x * exp(sigma(s)) + t, and sigma(s), of parameters raw (..., 2): s, t."""
    scale, s = about.get("scale") or {"kind": "atan"}, raw[..., 0]
    s = scale.get("slope", 2.544) * np.arctan(s) if scale["kind"] == "atan" else s
    return x * np.exp(s) + raw[..., 1], s


def parameters(about, tensors, name, v, columns):
    """What the networks of a node say about each of its lower columns: (rows, columns, parameters)."""
    if is_spline(about):
        return network(tensors, f"{name}.spline", v).reshape(len(v), columns, -1)
    return np.stack([network(tensors, f"{name}.{which}", v) for which in "st"], -1)


def is_spline(about):
    return (about.get("coupling") or {"kind": "affine"})["kind"] == "spline"


def mix(tensors, name, x):
    """Q x, with Q as it is stored or the product of its reflections."""
    if f"{name}.reflections" in tensors:
        for v in tensors[f"{name}.reflections"][::-1]:
            x = x - np.outer(2.0 * (x @ v) / (v @ v), v)
    return x @ tensors[f"{name}.weight"].T if f"{name}.weight" in tensors else x


def tree(about, tensors, name, x, y, cross=None):
    """The recursive coupling: children first, then the lower columns given the upper ones. y: what all networks see; cross:
    the name of a coupling of all columns, and what it sees, after all others."""
    out, log_det, on_output = x.copy(), np.zeros(len(x)), about.get("condition_on", "input") == "output"
    # Splines whose networks see the block's input: one for each column, of the sum of all nodes' parameters.
    sums = {} if is_spline(about) and not on_output else None

    def couple(name, seen, low, high):
        raw = parameters(about, tensors, name, seen, high - low)
        if sums is not None:
            for j in range(low, high):
                sums[j] = sums.get(j, 0.0) + raw[:, j - low]
            return
        out[:, low:high], logs = (spline if is_spline(about) else affine)(about, raw, out[:, low:high])
        log_det[:] += logs.sum(1)

    def node(i, level, low, high):
        middle = low + (high - low) // 2
        if level < about["depth"] and high - low > 3:
            node(2 * i, level + 1, low, middle)
            node(2 * i + 1, level + 1, middle, high)
        couple(f"{name}.{i}", np.hstack([(out if on_output else x)[:, low:middle], y]), middle, high)

    node(1, 0, 0, x.shape[1])
    if cross:
        couple(*cross, 0, x.shape[1])
    for j, raw in (sums or {}).items():
        out[:, j], logs = spline(about, raw, x[:, j])
        log_det[:] += logs
    return out, log_det


def encode(about, tensors, x, y=None):
    """Lanes as pairs of latent vectors and log-determinants: [x], for hint [y, x]."""
    y, det_y = to_units(np.zeros((len(x), 0)) if y is None else y, about.get("given") or {})
    x, det_x = to_units(x, about, y)
    hint = about["kind"] == "hint"
    for b in range(about["blocks"]):
        name, nothing = f"blocks.{b}" + (".x" if hint else ""), y[:, :0]
        y = mix(tensors, f"blocks.{b}.y.mix", y) if hint else y
        cross = (f"blocks.{b}.cross", y) if hint else None
        x, det = tree(about, tensors, f"{name}.tree", mix(tensors, f"{name}.mix", x), nothing if hint else y, cross)
        det_x = det_x + det
        if hint:
            y, det = tree(about, tensors, f"blocks.{b}.y.tree", y, nothing)
            det_y = det_y + det
    return [(y, det_y), (x, det_x)] if hint else [(x, det_x)]


def log_prob(lane):
    """Log-density of a lane: of x (given y), or of y."""
    z, log_det = lane
    return log_det - 0.5 * (z**2 + np.log(2.0 * np.pi)).sum(1)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    model, tables = load(sys.argv[1]), [np.load(path).astype(float) for path in sys.argv[2:]]
    lanes = encode(*model, *tables)
    columns = [log_prob(lanes[-1])] + [log_det for _, log_det in lanes] + [z for z, _ in lanes]
    np.savetxt(sys.stdout, np.column_stack(columns), fmt="%.17g")
