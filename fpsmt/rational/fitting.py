"""Trainable rationals near a function: where training starts.  Untrusted: least squares in float64."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.rational.formulas import named
from fpsmt.rational.trainable import Trainable

Array = NDArray[np.float64]
POINTS, ROUNDS = 301, 200


def value_and_slopes(x: Array, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """Form A at an array: r(x), dr/dx, and dr/daᵢ, dr/dbⱼ along a last axis.

    >>> r, *_ = value_and_slopes(np.array([-3.0, 3.0]), np.array([0.0, 1.0]), np.array([-2.0]))
    >>> [round(float(v), 6) for v in r]
    [-0.428571, 0.428571]
    """
    m, n = len(a) - 1, len(b)
    size, sign = np.abs(x)[..., None], np.sign(x)
    up = x[..., None] ** np.arange(m + 1)
    down = size ** np.arange(1, n + 1)
    p, q = up @ a, 1 + down @ np.abs(b)
    dp = up[..., :m] @ (a[1:] * np.arange(1, m + 1)) if m else np.zeros_like(x)
    lower = size ** np.arange(n)
    dq = sign * (lower @ (np.abs(b) * np.arange(1, n + 1)))
    r = p / q
    return r, (dp - r * dq) / q, up / q[..., None], -(r / q)[..., None] * down * np.sign(b + (b == 0))


def fitted(name: str, type: tuple[int, int] = (5, 4), low: float = -3.0, high: float = 3.0) -> Trainable:
    """A rational of form A near the named function on [low, high], by Levenberg and Marquardt's least squares.

    >>> from fpsmt.rational.fitting import fitted
    >>> r = fitted("gelu")
    >>> r.type, abs(float(r(Fraction(1))) - 0.8413447) < 0.01
    ((5, 4), True)
    """
    if not low < high or type[0] < 0 or type[1] < 0:
        raise UsageError("a fit needs an interval LOW < HIGH and a pair of degrees")
    x = np.linspace(low, high, POINTS)
    target = named(name)
    y = np.array([float(target.ball(Fraction(float(t)), 64).mid()) for t in x])
    best: tuple[float, Any] = (np.inf, None)
    for start in (0.1, 1.0):
        a, b = np.zeros(type[0] + 1), np.full(type[1], start)
        found = _descend(x, y, a, b)
        best = min(best, found, key=lambda pair: pair[0])
    return Trainable.of("A", *best[1])


def _descend(x: Array, y: Array, a: Array, b: Array) -> tuple[float, tuple[Array, Array]]:
    damping, now = 1e-2, np.inf
    for _ in range(ROUNDS):
        r, _, da, db = value_and_slopes(x, a, b)
        error, slopes = y - r, np.concatenate([da, db], axis=1)
        now = float(error @ error)
        normal = slopes.T @ slopes
        while damping < 1e8:
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), slopes.T @ error)
            ta, tb = a + step[: len(a)], b + step[len(a) :]
            rest = y - value_and_slopes(x, ta, tb)[0]
            if float(rest @ rest) < now:
                a, b, damping = ta, tb, damping / 3
                break
            damping *= 4
        else:
            break
    return now, (a, b)
