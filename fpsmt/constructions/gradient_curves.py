"""An activation with its derivative at every value of a small format, and bounds of both on half-lines.

Trusted: the correctly rounded σ and σ′, listed.  Zeros are one place, and their signs do not count.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Mode, Subnormals
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals, ordinals
from fpsmt.functions import correctly_rounded_array, function_named

LISTED_BITS = 16


class Curve:
    """σ and σ′ from −∞ to ∞: `low` = σ(−∞), `high` = σ(∞), `zero` = σ(0), `slope0` = σ′(0).

    `floor` is the last float such that up to it σ = low and σ′ = 0.
    """

    def __init__(self, ctx: Context, name: str) -> None:
        fmt = ctx.format
        if fmt.bits > LISTED_BITS or not fmt.is_ieee:
            raise Unsupported(f"{fmt}: the construction is for IEEE formats of at most {LISTED_BITS} bits")
        if ctx.mode is not Mode.RNE or ctx.subnormals is not Subnormals.GRADUAL:
            raise Unsupported("the construction is for rounding to nearest even, without flushed subnormals")
        function = function_named(name)
        self.context, self.format, self.name, self.vector = ctx, fmt, name, arithmetic(ctx)
        self._last = fmt.largest_code + 1
        self.line = from_ordinals(fmt, np.arange(-self._last, self._last + 1))
        self.outputs = correctly_rounded_array(function, ctx, self.line)
        self.slopes = correctly_rounded_array(function.derivative, ctx, self.line)
        if np.isnan(self.outputs).any() or np.isnan(self.slopes).any():
            raise Unsupported(f"{name} is not a number somewhere")
        self._least = np.minimum.accumulate(self.outputs[::-1])[::-1]
        self._most = np.maximum.accumulate(self.outputs)
        self.low, self.high = float(self.outputs[0]) + 0.0, float(self.outputs[-1])
        self.zero, self.slope0 = float(self.value(0.0)), float(self.slope(0.0))
        self.bounded = bool(np.isfinite(self.outputs).all())
        flat = (self.outputs == self.low) & (self.slopes == 0.0)
        self.floor = float(self.line[int(np.argmin(flat)) - 1]) if flat[0] and not flat.all() else -np.inf

    def _place(self, x: ArrayLike) -> np.ndarray:
        if np.isnan(x).any():
            raise Unsupported("a sum may be NaN")
        return np.asarray(ordinals(self.format, x) + self._last)

    def value(self, x: ArrayLike) -> Carriers:
        """σ(x)."""
        return np.asarray(self.outputs[self._place(x)])

    def slope(self, x: ArrayLike) -> Carriers:
        """σ′(x)."""
        return np.asarray(self.slopes[self._place(x)])

    def least(self, x: ArrayLike) -> Carriers:
        """The least σ(y) for y ≥ x."""
        return np.asarray(self._least[self._place(x)])

    def most(self, x: ArrayLike) -> Carriers:
        """The greatest σ(y) for y ≤ x."""
        return np.asarray(self._most[self._place(x)])


@lru_cache(maxsize=16)
def curve(ctx: Context, name: str) -> Curve:
    return Curve(ctx, name)
