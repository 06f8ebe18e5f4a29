"""Trainable rational activations against fixed ones, with numpy alone: a classification and a regression with a kink.

    python examples/train_rationals.py [--quick] [--plot FILE]

Networks of two hidden layers are trained with equal budgets (width, steps, batches, learning rate) and several seeds; a
rational of form A and type (5, 4) belongs to each hidden layer, is trained with it, and starts near LeakyReLU or GELU.
Normalisation standardises each hidden layer's sums over the batch, with a trained scale and shift per unit.
Prints one row for each activation: mean and spread over the seeds of test accuracy (spirals) and test error (kink).
"""

from __future__ import annotations

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


def loss_slope(task: str, out: Array, y: Array) -> Array:
    """Cross entropy of classes, or half the mean square."""
    if task == "spirals":
        e = np.exp(out - out.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        e[np.arange(len(y)), y] -= 1
        return e / len(y)
    return (out - y) / len(y)


def train(task: str, activation: str, normalised: bool, seed: int, steps: int) -> tuple[Net, float]:
    """The net after so many steps of Adam, and its accuracy (spirals) or root mean square error (kink) elsewhere."""
    rng = np.random.default_rng(seed)
    make, outputs = (spirals, 3) if task == "spirals" else (kink, 1)
    x, y = make(rng, 1024)
    net = Net(activation, (2, WIDTH, WIDTH, outputs), normalised).randomise(rng)
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
    x, y = make(rng, 2048)
    out, _ = net.forward(x)
    return net, float((out.argmax(axis=1) == y).mean() if task == "spirals" else np.sqrt(((out - y) ** 2).mean()))


def table(seeds: int = 4, steps: int = 500, report: Any = None) -> dict[tuple[str, str, bool], list[float]]:
    """Scores of every task, activation and normalisation, one for each seed."""
    found: dict[tuple[str, str, bool], list[float]] = {}
    for task in ("spirals", "kink"):
        for activation in ACTIVATIONS:
            for normalised in (False, True):
                scores = [train(task, activation, normalised, seed, steps)[1] for seed in range(seeds)]
                found[task, activation, normalised] = scores
                if report is not None:
                    report(f"{task}, {activation}{', normalised' * normalised}: {np.mean(scores):.4f}")
    return found


def lines(found: dict[tuple[str, str, bool], list[float]]) -> list[str]:
    """The table as text."""
    head = f"{'activation':26}{'spirals':>18}{'normalised':>18}{'kink':>18}{'normalised':>18}"
    out = [head]
    for activation in ACTIVATIONS:
        cells = [found[task, activation, n] for task in ("spirals", "kink") for n in (False, True)]
        out.append(f"{activation:26}" + "".join(f"{np.mean(c):>10.4f} ±{np.std(c):<6.4f}" for c in cells))
    return [*out, "accuracy of spirals, root mean square error of the kink; mean ± deviation over the seeds"]


def draw(found: dict[tuple[str, str, bool], list[float]], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4))
    for axes, task in zip(figure.subplots(1, 2), ("spirals", "kink"), strict=True):
        for n in (False, True):
            at = np.arange(len(ACTIVATIONS)) + 0.2 * n
            values = [found[task, a, n] for a in ACTIVATIONS]
            means, spreads = [np.mean(v) for v in values], [np.std(v) for v in values]
            axes.errorbar(at, means, spreads, fmt="o", label="normalised" if n else "plain")
        axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS, rotation=30, ha="right")
        axes.set_title("accuracy, spirals" if task == "spirals" else "error, kink")
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    scores = table(2 if quick else 4, 300 if quick else 500, lambda line: print(line, file=sys.stderr))
    print("\n".join(lines(scores)))
    if "--plot" in sys.argv:
        draw(scores, sys.argv[sys.argv.index("--plot") + 1])
