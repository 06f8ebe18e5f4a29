"""What a construction asks about an activation: its values, bounds on half-lines, where it is zero, what it can return.

Not trusted: a wrong answer makes a network that fails its verification.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats import Context
from fpsmt.floats.vector import Carriers, arithmetic, encode, from_ordinals, ordinals
from fpsmt.functions import Implementation

_FOUND: OrderedDict[Any, Any] = OrderedDict()
MOST_FOUND = 64


def remembered(key: Any, work: Callable[[], Any]) -> Any:
    """What was found for the same inputs before: detectors do not depend on a table's values."""
    if key in _FOUND:
        _FOUND.move_to_end(key)
        return _FOUND[key]
    _FOUND[key] = result = work()
    if len(_FOUND) > MOST_FOUND:
        _FOUND.popitem(last=False)
    return result


class Shape:
    """An activation in a context.  Zeros are one place; NaN makes bounds NaN."""

    def __init__(self, context: Context, implementation: Implementation) -> None:
        self.context, self.format, self.implementation = context, context.format, implementation
        self.vector = arithmetic(context)
        self.listed = self.format.bits <= 16
        self.top = self.format.largest_code + self.format.has_infinity
        self.largest = float(self.format.largest)
        self.smallest = float(self.format.smallest)
        if not self.listed and implementation.text not in ("relu", "identity"):
            raise Unsupported(f"{implementation.text} in {self.format}: only formats of at most 16 bits are tabulated")

    @cached_property
    def line(self) -> Carriers:
        """Every value but NaN, ascending."""
        return from_ordinals(self.format, np.arange(-self.top, self.top + 1))

    @cached_property
    def results(self) -> Carriers:
        network = object.__new__(SparseNetwork)
        object.__setattr__(network, "context", self.context)
        object.__setattr__(network, "implementation", self.implementation)
        return network.results()

    @cached_property
    def outputs(self) -> Carriers:
        """The activation on `line`."""
        out = self.results[encode(self.format, self.line).astype(np.int64)]
        return out

    @cached_property
    def _from_above(self) -> Carriers:
        return np.minimum.accumulate(self.outputs[::-1])[::-1]

    @cached_property
    def _from_below(self) -> Carriers:
        return np.maximum.accumulate(self.outputs)

    def place(self, z: Any) -> Any:
        """Indices in `line`."""
        return ordinals(self.format, z) + self.top

    def apply(self, z: ArrayLike) -> Carriers:
        z = np.asarray(z, float)
        if not self.listed:
            return np.maximum(z, 0.0) if self.implementation.text == "relu" else z
        return self.results[encode(self.format, z).astype(np.int64)]

    def at_least(self, z: ArrayLike) -> Carriers:
        """The least result at z or above."""
        z = np.asarray(z, float)
        return self._from_above[self.place(z)] if self.listed else self.apply(z)

    def at_most(self, z: ArrayLike) -> Carriers:
        """The largest result at z or below."""
        z = np.asarray(z, float)
        return self._from_below[self.place(z)] if self.listed else self.apply(z)

    @cached_property
    def zero_up_to(self) -> float | None:
        """The largest z such that the activation is exactly 0 at z and everywhere below."""
        if not self.listed:
            return 0.0 if self.implementation.text == "relu" else None
        good = self.outputs == 0.0
        count = len(good) if good.all() else int(np.argmin(good))
        return float(self.line[count - 1]) if count > 1 else None

    @cached_property
    def ends(self) -> tuple[float, float, float] | None:
        """(z, low, high): the activation is low at −z and below, high at z and above, and low ≠ high; z is least."""
        if not self.listed:
            return None
        low, high = self.outputs[0], self.outputs[-1]
        if not np.isfinite([low, high]).all() or low == high:
            return None
        below, above = self.outputs == low, self.outputs == high
        a = int(np.argmin(below)) - 1
        b = int(len(above) - np.argmin(above[::-1]))
        z = max(-self.line[a], self.line[b])
        return (float(z), float(low), float(high)) if np.isfinite(z) else None

    def key(self, *arrays: Carriers) -> Any:
        """Identifies the activation and some arrays."""
        return (self.context, self.implementation, *(np.ascontiguousarray(a).tobytes() for a in arrays))

    # -- arithmetic -------------------------------------------------------------------------------------------

    def mul(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        return self.vector.mul(a, b)

    def add(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        return self.vector.add(a, b)

    def neighbour(self, z: ArrayLike, by: Any) -> Carriers:
        """`by` floats further up, not beyond the largest finite values."""
        places = np.clip(ordinals(self.format, z) + by, -self.format.largest_code, self.format.largest_code)
        return from_ordinals(self.format, places)

    def scale(self, x: ArrayLike, exponent: int) -> Carriers:
        """The largest power of two W with W·|x| < 2^(exponent+1), within the format's finite powers of two."""
        fmt = self.format
        size = np.maximum(np.abs(np.asarray(x, float)), self.smallest)
        _, e = np.frexp(size)
        low = fmt.emin - fmt.fraction_bits
        return np.ldexp(1.0, np.clip(exponent - (e.astype(np.int64) - 1), low, fmt.emax))


def powers(shape: Shape) -> list[int]:
    """Exponents at which a feature may sit: from the largest down to 1."""
    top = shape.format.emax
    high, low = range(top, max(top - 4, 0), -1), (k for k in (10, 8, 6, 5, 4, 3, 2, 1, 0) if k < top)
    return sorted({*high, *low}, reverse=True)
