"""Trainable rational activations against fixed ones, with numpy alone: classifications and a regression with a kink.

    python examples/train_rationals.py [--quick] [--plot FILE]
    python examples/train_rationals.py --conditioning

The digits are scikit-learn's (the extra ``fpsmt[train]``) and are left out where it is not installed.

Networks of two hidden layers are trained with equal budgets (width, steps, batches, learning rate) and several seeds; a
rational of form A and type (5, 4) belongs to each hidden layer, is trained with it, and starts near LeakyReLU or GELU.
Normalisation standardises each hidden layer's sums over the batch, with a trained scale and shift per unit.
Prints one row for each activation: mean and spread over the seeds of test accuracy (digits, spirals) and test error
(kink).

--conditioning prints condition numbers of trained nets, by blocks of parameters (`conditioning`).
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fpsmt.rational import Trainable
from fpsmt.rational.fitting import fitted, value_and_slopes

Array = np.ndarray
WIDTH, BATCH, RATE = 24, 64, 3e-3
ROOT = 0.7978845608028654


def _gelu(x: Array) -> tuple[Array, Array]:
    t = np.tanh(ROOT * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 0.134145 * x * x)


def _swish(x: Array) -> tuple[Array, Array]:
    s = 0.5 * (1 + np.tanh(x / 2))
    return x * s, s + x * s * (1 - s)


START = cache(fitted)
TASKS = ("digits", "spirals", "kink")
FIXED = {"relu": lambda x: (np.maximum(x, 0), (x > 0) * 1.0), "gelu": _gelu, "swish": _swish}
ACTIVATIONS = (*FIXED, "rational from leaky_relu", "rational from gelu")


@dataclass
class Net:
    """Layers of weights, biases, and where they are used scales, shifts and rationals; `p` is every parameter."""

    activation: str
    sizes: tuple[int, ...]
    normalised: bool
    p: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start = START(self.activation.split()[-1]).arrays() if self.rational else ()
        for k in range(self.hidden):
            if self.rational:
                self.p[f"a{k}"], self.p[f"b{k}"] = (np.array(c) for c in start)
            if self.normalised:
                self.p[f"scale{k}"], self.p[f"shift{k}"] = np.ones(self.sizes[k + 1]), np.zeros(self.sizes[k + 1])

    @property
    def rational(self) -> bool:
        return self.activation.startswith("rational")

    @property
    def hidden(self) -> int:
        return len(self.sizes) - 2

    def randomise(self, rng: Any) -> Net:
        for k, (n, m) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            self.p[f"w{k}"], self.p[f"c{k}"] = rng.normal(size=(n, m)) * np.sqrt(2 / n), np.zeros(m)
        return self

    def forward(self, x: Array) -> tuple[Array, list[Any]]:
        kept = []
        for k in range(self.hidden + 1):
            z = x @ self.p[f"w{k}"] + self.p[f"c{k}"]
            if k == self.hidden:
                kept.append((x,))
                return z, kept
            spread = normal = None
            if self.normalised:
                spread = np.sqrt(z.var(axis=0) + 1e-5)
                normal = (z - z.mean(axis=0)) / spread
                z = normal * self.p[f"scale{k}"] + self.p[f"shift{k}"]
            if self.rational:
                y, slope, da, db = value_and_slopes(z, self.p[f"a{k}"], self.p[f"b{k}"])
            else:
                (y, slope), da, db = FIXED[self.activation](z), None, None
            kept.append((x, normal, spread, slope, da, db))
            x = y
        raise AssertionError

    def backward(self, g: Array, kept: list[Any]) -> dict[str, Array]:
        grads: dict[str, Array] = {}
        for k in range(self.hidden, -1, -1):
            if k < self.hidden:
                _, normal, spread, slope, da, db = kept[k]
                if self.rational:
                    grads[f"a{k}"], grads[f"b{k}"] = (np.einsum("ij,ijk->k", g, d) for d in (da, db))
                g = g * slope
                if self.normalised:
                    grads[f"scale{k}"], grads[f"shift{k}"] = (g * normal).sum(axis=0), g.sum(axis=0)
                    g = g * self.p[f"scale{k}"]
                    g = (g - g.mean(axis=0) - normal * (g * normal).mean(axis=0)) / spread
            x = kept[k][0]
            grads[f"w{k}"], grads[f"c{k}"] = x.T @ g, g.sum(axis=0)
            g = g @ self.p[f"w{k}"].T
        return grads

    def rationals(self) -> list[Trainable]:
        return [Trainable.of("A", self.p[f"a{k}"], self.p[f"b{k}"]) for k in range(self.hidden)] * self.rational


def spirals(rng: Any, n: int) -> tuple[Array, Array]:
    """Three arms in the plane, with noise; labels 0, 1, 2."""
    label = rng.integers(0, 3, n)
    r = rng.uniform(0.1, 1, n)
    angle = 5 * r + 2 * np.pi * label / 3 + rng.normal(size=n) * 0.15
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1) * 2, label


def kink(rng: Any, n: int) -> tuple[Array, Array]:
    """|x₁ + x₂| + sin 3x₁ + max(x₂, 0.3)."""
    x = rng.uniform(-1, 1, (n, 2))
    return x, (np.abs(x.sum(axis=1)) + np.sin(3 * x[:, 0]) + np.maximum(x[:, 1], 0.3))[:, None]


def tasks() -> tuple[str, ...]:
    """Those whose data are there."""
    return TASKS if importlib.util.find_spec("sklearn") else TASKS[1:]


def data(task: str, rng: Any) -> tuple[Array, Array, Array, Array]:
    """1024 inputs and answers to train with, and others to test with: 773 digits, else 2048."""
    if task == "digits":  # images of 8×8 pixels
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        order = rng.permutation(len(x))
        x, y = x[order] / 16, y[order]
        return x[:1024], y[:1024], x[1024:], y[1024:]
    make = spirals if task == "spirals" else kink
    return *make(rng, 1024), *make(rng, 2048)


def loss_slope(task: str, out: Array, y: Array) -> Array:
    """Cross entropy of classes, or half the mean square."""
    if task != "kink":
        e = np.exp(out - out.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        e[np.arange(len(y)), y] -= 1
        return e / len(y)
    return (out - y) / len(y)


def train(task: str, activation: str, normalised: bool, seed: int, steps: int) -> tuple[Net, float]:
    """The net after so many steps of Adam, and its accuracy (classes) or root mean square error (kink) elsewhere."""
    rng = np.random.default_rng(seed)
    x, y, x_test, y_test = data(task, rng)
    outputs = 1 if task == "kink" else 1 + int(y.max())
    net = Net(activation, (x.shape[1], WIDTH, WIDTH, outputs), normalised).randomise(rng)
    first, second = ({name: np.zeros_like(v) for name, v in net.p.items()} for _ in range(2))
    for t in range(1, steps + 1):
        pick = rng.integers(0, len(x), BATCH)
        out, kept = net.forward(x[pick])
        rate = RATE * (1 - t / (steps + 1))
        for name, g in net.backward(loss_slope(task, out, y[pick]), kept).items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g * g
            move = first[name] / (1 - 0.9**t) / (np.sqrt(second[name] / (1 - 0.999**t)) + 1e-8)
            net.p[name] = net.p[name] - rate * move
    out, _ = net.forward(x_test)
    score = np.sqrt(((out - y_test) ** 2).mean()) if task == "kink" else (out.argmax(axis=1) == y_test).mean()
    return net, float(score)


def conditioning(net: Net, x: Array, layer: int) -> dict[str, tuple[int, int, float]]:
    """By block of a layer's parameters: (parameters, flat directions, condition number without these).

    The matrix is JᵀJ (Gauss–Newton's for squares) with J the derivatives of the first output at every row of x.  A
    direction is flat when its singular value of J is below 1e-12 of the largest: zero, as far as float64 tells.
    """
    blocks = {"coefficients": [f"a{layer}", f"b{layer}"], "scales and shifts": [f"scale{layer}", f"shift{layer}"]}
    blocks = {name: list(keys) for name, keys in blocks.items() if keys[0] in net.p}
    if len(blocks) == 2:
        blocks["both"] = [key for keys in blocks.values() for key in keys]
    found = {}
    for name, keys in blocks.items():
        sizes = np.linalg.svd(derivatives(net, x, keys), compute_uv=False)
        kept = sizes[sizes > 1e-12 * sizes[0]]
        found[name] = len(sizes), len(sizes) - len(kept), float((kept[0] / kept[-1]) ** 2)
    return found


def derivatives(net: Net, x: Array, keys: list[str]) -> Array:
    """Of the first output at every row of x, by these parameters one after the other: (rows, parameters)."""
    out, kept = net.forward(x)
    rows = []
    for i in range(len(x)):
        one = np.zeros_like(out)
        one[i, 0] = 1
        grads = net.backward(one, kept)
        rows.append(np.concatenate([grads[key].ravel() for key in keys]))
    return np.array(rows)


def conditioning_lines(seeds: int = 4) -> list[str]:
    """The spectra of nets trained for the kink; condition numbers are geometric means over the seeds."""
    out = [f"{'activation':22}{'':12}{'layer':>6}  {'block':20}{'parameters':>10}{'flat':>6}{'condition':>12}"]
    x, _ = kink(np.random.default_rng(1000), 512)
    for activation in ("gelu", "rational from gelu"):
        for normalised in (False, True):
            nets = [train("kink", activation, normalised, seed, 500)[0] for seed in range(seeds)]
            for layer in range(nets[0].hidden):
                rows = [conditioning(net, x, layer) for net in nets]
                for block, (count, _, _) in rows[0].items():
                    flat = "–".join(sorted({str(row[block][1]) for row in rows}))
                    condition = np.exp(np.mean([np.log(row[block][2]) for row in rows]))
                    state = "normalised" if normalised else ""
                    out.append(f"{activation:22}{state:12}{layer:>6}  {block:20}{count:>10}{flat:>6}{condition:>12.1e}")
    return out


def table(seeds: int = 4, steps: int = 500, report: Any = None) -> dict[tuple[str, str, bool], list[float]]:
    """Scores of every task, activation and normalisation, one for each seed."""
    found: dict[tuple[str, str, bool], list[float]] = {}
    for task in tasks():
        for activation in ACTIVATIONS:
            for normalised in (False, True):
                scores = [train(task, activation, normalised, seed, steps)[1] for seed in range(seeds)]
                found[task, activation, normalised] = scores
                if report is not None:
                    report(f"{task}, {activation}{', normalised' * normalised}: {np.mean(scores):.4f}")
    return found


def lines(found: dict[tuple[str, str, bool], list[float]]) -> list[str]:
    """The table as text."""
    met = [task for task in TASKS if (task, ACTIVATIONS[0], False) in found]
    out = [f"{'activation':26}" + "".join(f"{task:>18}{'normalised':>18}" for task in met)]
    for activation in ACTIVATIONS:
        cells = [found[task, activation, n] for task in met for n in (False, True)]
        out.append(f"{activation:26}" + "".join(f"{np.mean(c):>10.4f} ±{np.std(c):<6.4f}" for c in cells))
    return [*out, "accuracy of classes, root mean square error of the kink; mean ± deviation over the seeds"]


def draw(found: dict[tuple[str, str, bool], list[float]], path: str) -> None:
    from matplotlib.figure import Figure

    met = [task for task in TASKS if (task, ACTIVATIONS[0], False) in found]
    figure = Figure(figsize=(4.5 * len(met), 4))
    for axes, task in zip(figure.subplots(1, len(met)), met, strict=True):
        for n in (False, True):
            at = np.arange(len(ACTIVATIONS)) + 0.2 * n
            values = [found[task, a, n] for a in ACTIVATIONS]
            means, spreads = [np.mean(v) for v in values], [np.std(v) for v in values]
            axes.errorbar(at, means, spreads, fmt="o", label="normalised" if n else "plain")
        axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS, rotation=30, ha="right")
        axes.set_title("error, kink" if task == "kink" else f"accuracy, {task}")
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    if "--conditioning" in sys.argv:
        print("\n".join(conditioning_lines()))
        sys.exit()
    quick = "--quick" in sys.argv
    scores = table(2 if quick else 4, 300 if quick else 500, lambda line: print(line, file=sys.stderr))
    print("\n".join(lines(scores)))
    if "--plot" in sys.argv:
        draw(scores, sys.argv[sys.argv.index("--plot") + 1])
