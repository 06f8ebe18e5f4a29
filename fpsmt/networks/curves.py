"""Lines below and above the results of an activation, for the linear bounds of `fpsmt.networks.relaxation`.

`Curve.lines(low, high)` gives for executed values z in [low, high] the lines

    lower·z + bottom ≤ y ≤ upper·z + top        and numbers   least ≤ y ≤ most

for every result y that the activation may return at z.  They hold for all slopes lower·(1 + θ) and upper·(1 + θ) with
|θ| ≤ 2^−53, too, where these are not 0 or 1.  relu is here, `fpsmt.networks.smooth_curves` has all functions with a
derivative, and `CURVES` of `fpsmt.networks.relaxation_steps` says which functions have lines of their own.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROOM = 1.0 + 2.0**-40


class Lines(NamedTuple):
    """Arrays of one shape; `least` and `most` are infinite where nothing is known."""

    lower: Array
    bottom: Array
    upper: Array
    top: Array
    least: Array
    most: Array


class Curve(Protocol):
    """One activation as it is executed."""

    def lines(self, low: Array, high: Array) -> Lines:
        """Of arrays with low ≤ high; finite lines also where an end is not finite."""
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
