"""Lines below and above the results of an activation, for the linear bounds of `fpsmt.networks.relaxation`.

`Curve.lines(low, high)` gives for executed values z in [low, high] the lines

    lower·z + bottom ≤ y ≤ upper·z + top        and numbers   least ≤ y ≤ most

for every result y that the activation may return at z.  They hold for all slopes lower·(1 + θ) and upper·(1 + θ) with
|θ| ≤ 2^−53, too.  `CURVES` has a way for some implementations; others are added there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.floats import Format
from fpsmt.functions import CorrectlyRounded
from fpsmt.networks.nodes import Activation

Array = NDArray[np.float64]

ROOM = 1.0 + 2.0**-40


class Lines(NamedTuple):
    """Arrays of one shape; `least` and `most` are finite where low and high are."""

    lower: Array
    bottom: Array
    upper: Array
    top: Array
    least: Array
    most: Array


class Curve(Protocol):
    """One activation as it is executed."""

    def lines(self, low: Array, high: Array) -> Lines:
        """Of arrays with low ≤ high; where an end is not finite, anything finite but `least` and `most`."""
        ...

    def near(self, z: Array) -> tuple[Array, Array]:
        """About the values and the slopes at z: for searches."""
        ...


class Relu:
    """max(z, 0), which is never rounded.

    relu is 0 if high ≤ 0, z if low ≥ 0, and else αz ≤ relu(z) ≤ s z + t for any α of {0, 1}, any s of [0, 1] and
    t ≥ max(−s·low, (1 − s)·high), because relu(z) − s z is convex and is at most that at both ends.
    """

    def lines(self, low: Array, high: Array) -> Lines:
        open_ = (low < 0) & (high > 0) & np.isfinite(low) & np.isfinite(high)
        l, u = np.where(open_, low, -1.0), np.where(open_, high, 1.0)
        s = u / (u - l)
        t = np.maximum(s * -l, (1.0 - s) * u) * ROOM + s * (u - l) * 2.0**-50 + 2.0**-1000
        stable = np.where(low >= 0, 1.0, 0.0)
        return Lines(
            np.where(open_, np.where(u > -l, 1.0, 0.0), stable), np.zeros_like(low),
            np.where(open_, s, stable), np.where(open_, t, 0.0), np.maximum(low, 0.0), np.maximum(high, 0.0),
        )  # fmt: skip

    def near(self, z: Array) -> tuple[Array, Array]:
        return np.maximum(z, 0.0), np.where(z > 0, 1.0, 0.0)


def _relu(node: Activation, source: Format) -> Curve:
    if source != node.format:
        raise Unsupported(f"linear bounds: {node.name!r} is of another format than its source")
    return Relu()


CURVES: dict[str, Callable[[Activation, Format], Curve]] = {"relu": _relu}  #: of correctly rounded functions


def curve_of(node: Activation, source: Format) -> Curve:
    """`Unsupported` where no lines are known."""
    use = node.implementation
    if use.function.name not in CURVES or not isinstance(use.contract, CorrectlyRounded):
        raise Unsupported(f"linear bounds know correctly rounded relu, not {use.text} ({node.name!r})")
    return CURVES[use.function.name](node, source)
