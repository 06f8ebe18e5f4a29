"""Circuits of `gradient_functions` at every loss derivative, compiled.

Trusted: `first_wrong` is what the rule about every function of the loss derivative takes for the truth; `run_circuit`
is the same on arrays, level by level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fpsmt.constructions.gradient_functions import Level
from fpsmt.floats import Context
from fpsmt.floats.compiled import add, mul, parameters
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import Carriers


def first_wrong(ctx: Context, levels: Sequence[Level], y: Carriers, place: int, wanted: tuple[float, float]) -> int:
    """The first index of y where the last two nodes are not `wanted`, for y[place], or 0, for every other y; or where
    some node is not finite; −1 if there is none.  The weights are finite floats.

    >>> from fpsmt.constructions.gradient_functions import circuit, positive, scales
    >>> from fpsmt.floats import context, float8_e4m3
    >>> ctx, y = context(float8_e4m3), positive(float8_e4m3)
    >>> [first_wrong(ctx, circuit(ctx, 60), y, place, scales(float8_e4m3)) for place in (58, 59, 60)]
    [58, -1, 59]
    """
    nodes = [node for level in levels for node in level]
    starts = np.cumsum([0, *(len(node) for node in nodes)])
    columns = np.array([i for node in nodes for i, _ in node], np.int64)
    weights = np.array([w for node in nodes for _, w in node], np.float64)
    begins = np.cumsum([0, *(len(level) for level in levels)])
    return int(_first_wrong(starts, columns, weights, begins, y, place, *wanted, parameters(ctx)))


@jit
def _first_wrong(
    starts: Any, columns: Any, weights: Any, begins: Any, ys: Any, place: int, a: float, b: float, k: Any
) -> int:
    room = np.zeros((2, len(starts)))
    for j in range(len(ys)):
        above, below = room[0], room[1]
        above[0] = ys[j]
        some = True
        for level in range(len(begins) - 1):
            some = False
            for row in range(begins[level], begins[level + 1]):
                total = 0.0
                for t in range(starts[row], starts[row + 1]):
                    w, x = weights[t], above[columns[t]]
                    p = x if w == 1.0 else mul(x, w, k)
                    total = p if t == starts[row] else add(total, p, k)
                if not math.isfinite(total):
                    return j
                some = some or total != 0.0
                below[row - begins[level]] = total
            above, below = below, above
            if not some:  # products and sums of zeros from here on
                break
        if j == place:
            if not some or above[0] != a or above[1] != b:
                return j
        elif some:
            return j
    return -1
