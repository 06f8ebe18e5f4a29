"""Lines below and above the results of a float program, for the linear bounds of `fpsmt.networks.relaxation`.

A program is far from its function where both are large, so that no error holds everywhere.  The lines on [l, u] are
those of the function (`fpsmt.networks.smooth_curves`), apart by the error of the program on the least [−2^k, 2^k],
k ≥ 0, that holds l and u, or what of it is finite in the format: `Contract.error_on`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, exactly, pow2
from fpsmt.functions import Implementation
from fpsmt.networks.curves import Lines
from fpsmt.networks.smooth_curves import Smooth

Array = NDArray[np.float64]

FARTHEST = 19  #: 2^k, about where grids end


class Analysed:
    """The lines of an implementation whose contract bounds its own distance from the function, in its own context."""

    def __init__(self, implementation: Implementation, ctx: Context) -> None:
        self.implementation, self.context = implementation, ctx
        self.regions: dict[int, Smooth | None] = {}
        unit = self._region(0)
        if unit is None:
            raise Unsupported(f"linear bounds do not know {implementation.text} in {ctx}")
        self.near = unit.near  #: as `Curve.near`: about the function, whatever its error

    def _region(self, k: int) -> Smooth | None:
        """The function and errors on [−2^k, 2^k]."""
        if k not in self.regions:
            use, fmt = self.implementation, self.context.format
            end = exactly(fmt, min(pow2(k), fmt.largest))
            error = use.contract.error_on(use.function, self.context, -end, end) if k <= FARTHEST else None
            self.regions[k] = None if error is None else Smooth(use.function, error, self.context)
        return self.regions[k]

    def lines(self, low: Array, high: Array) -> Lines:
        """As `Curve.lines`."""
        reach = np.maximum(np.abs(low), np.abs(high))
        inside = reach <= pow2(FARTHEST)
        _, level = np.frexp(np.where(inside, reach, 0.0))
        level = np.maximum(level, 0)  # reach < 2^level
        found = Lines(*(np.full(low.shape, fill) for fill in (0.0, 0.0, 0.0, 0.0, -np.inf, np.inf)))
        for k in np.unique(level[inside]):
            region, here = self._region(int(k)), inside & (level == k)
            if region is not None:
                for part, lines in zip(found, region.lines(low[here], high[here]), strict=True):
                    part[here] = lines
        return found
